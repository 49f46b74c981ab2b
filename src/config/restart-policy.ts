import type { RestartPolicy } from '../../machines/index.ts';
import { type ApprovalPolicy, defaults } from '../protocol/index.ts';
import type { Config } from './schema.ts';

/** Restart policy of ended processes: an agent server, an MCP server, an external agent. Milliseconds. */
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

/** Time for the present step of each turn before a restart or a stop of its agent server. */
export const handOverMsOf = ({ Turns }: Pick<Config, 'Turns'>): number => Turns.HandOverSeconds * 1_000;

/** Policy of the chat API: `Api.AutoApprove` decides, unless a client decides at /v1/approvals (specification §1, design §5a). */
export const apiApprovalPolicyOf = ({ ApprovalMode, AutoApprove }: Config['Api']): ApprovalPolicy =>
  ApprovalMode === 'interactive' ? 'default' : AutoApprove ? 'autoApprove' : 'interrupt';
