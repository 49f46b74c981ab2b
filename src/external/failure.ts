import { DelegateError } from '../agent/index.ts';

/** Error codes of an external agent's failures, as errors of turns carry them. */
export const agentFailureCodes = ['agentUnavailable', 'agentLoginRequired', 'agentError', 'agentExited'] as const;
export type AgentFailureCode = (typeof agentFailureCodes)[number];

/** A turn that the agent could not do. */
export class AgentFailure extends DelegateError {
  constructor(code: AgentFailureCode, message: string) {
    super(code, message);
  }
}

/** Error answer of the agent to a request. */
export class PeerError extends Error {
  override readonly name = 'PeerError';
  readonly code: number;

  constructor(code: number, message: string) {
    super(message);
    this.code = code;
  }
}

/** The conversation with the agent is over; no request will be answered any more. */
export class PeerClosedError extends Error {
  override readonly name = 'PeerClosedError';

  constructor() {
    super('The agent has ended.');
  }
}
