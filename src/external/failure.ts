import { DelegateError } from '../agent/index.ts';
import { JsonRpcError, rpcCodes } from '../rpc/index.ts';

/** Error codes of an external agent's failures, as errors of turns carry them. */
export const agentFailureCodes = [
  'agentUnavailable',
  'agentLoginRequired',
  'agentError',
  'agentExited',
  'agentInterrupted',
] as const;
export type AgentFailureCode = (typeof agentFailureCodes)[number];

/** A turn that the agent could not do. */
export class AgentFailure extends DelegateError {
  /** @param resetMs time until a limit of the agent is reset */
  constructor(
    code: AgentFailureCode | 'upstreamRateLimited' | 'upstreamQuotaExceeded',
    message: string,
    resetMs?: number,
  ) {
    super(code, message, resetMs);
  }
}

/** The conversation with the agent is over; no request will be answered any more. */
export class PeerClosedError extends Error {
  override readonly name = 'PeerClosedError';

  constructor() {
    super('The agent has ended.');
  }
}

/** Error answer of an agent. Agents put the details into `data`, next to "Internal error". */
export function errorOfAgent(error: unknown): JsonRpcError {
  const { code, message, data } = Object(error) as Readonly<Record<string, unknown>>;
  const { details, message: inner, error: cause } = Object(data) as Readonly<Record<string, unknown>>;
  const detail = [data, details, inner, cause].find((each) => typeof each === 'string');
  const words = typeof message === 'string' ? message : 'The agent reports an error without words.';
  return new JsonRpcError({
    code: typeof code === 'number' ? code : rpcCodes.internalError,
    message: detail ? `${words}: ${detail}` : words,
    data,
  });
}
