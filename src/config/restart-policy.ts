import type { RestartPolicy } from '../../machines/index.ts';
import { defaults } from '../protocol/index.ts';
import type { Config } from './schema.ts';

/** When a process that has ended is started again: an agent server, an MCP server, an agent of another maker. Milliseconds. */
export function restartPolicyOf({ Supervision }: Pick<Config, 'Supervision'>): RestartPolicy {
  return {
    restart: Supervision.Restart,
    maxRestarts: Supervision.MaxRestarts,
    withinMs: Supervision.WithinSeconds * 1_000,
    backoffBaseMs: Supervision.BackoffBaseMs,
    backoffCapMs: Supervision.BackoffCapMs,
    stableAfterMs: defaults.supervise.stableAfterMs,
  };
}
