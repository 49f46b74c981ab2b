import type { McpServerPolicy, RestartPolicy } from '../../machines/index.ts';
import { defaults } from '../protocol/index.ts';

const { supervise, mcp } = defaults;

/** Restarts of agent servers, which apply to MCP servers, too. */
const usualPolicy: RestartPolicy = {
  restart: 'onFailure',
  maxRestarts: supervise.maxRestarts,
  withinMs: supervise.withinSeconds * 1000,
  backoffBaseMs: supervise.backoffBaseMs,
  backoffCapMs: supervise.backoffCapMs,
  stableAfterMs: supervise.stableAfterMs,
};

/** @param isTest the server is started once, aside */
export const mcpServerPolicyOf = (
  restartPolicy: RestartPolicy = usualPolicy,
  isTest: boolean,
): Omit<McpServerPolicy, 'startupTimeoutMs'> => ({
  ...restartPolicy,
  ...(isTest && { restart: 'never' as const }),
  closeGraceMs: mcp.closeGraceMs,
  gracefulStopMs: mcp.gracefulStopMs,
  killVerifyMs: supervise.killVerifyMs,
});
