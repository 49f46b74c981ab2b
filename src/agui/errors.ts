import { AgentError, type AgentErrorName } from '../agent/index.ts';
import { HttpError } from '../http/index.ts';

const statuses: Partial<Record<AgentErrorName, number>> = {
  threadNotFound: 404,
  approvalNotFound: 404,
  approvalTimeout: 404,
  threadNotActive: 409,
  turnInProgress: 409,
  turnNotRunning: 409,
  toolConflict: 400,
  overloaded: 429,
  storageFailed: 507,
};

/** A refusal of the runtime as an answer; any other error stays unchanged. */
export function refused(error: unknown): unknown {
  if (!(error instanceof AgentError)) return error;
  const { reason, message, detail, data } = error;
  const status = statuses[reason] ?? 409;
  const text = detail === undefined ? `${message}.` : `${message}: ${detail}`;
  return new HttpError(status, reason, text, data, status === 429 ? [['retry-after', '1']] : []);
}
