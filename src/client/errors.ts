/** No Hub can be reached, and none could be started. `logTail` is the end of `hub.log` when one was started here. */
export class HubUnavailableError extends Error {
  override readonly name = 'HubUnavailableError';
  readonly code = 'hubUnavailable';
  readonly logTail: string;

  constructor(message: string, options: { readonly logTail?: string; readonly cause?: unknown } = {}) {
    super(message, { cause: options.cause });
    this.logTail = options.logTail ?? '';
  }
}

/** The Hub has refused a request: its error object (specification §2.7) with the HTTP status. */
export class HubRequestError extends Error {
  override readonly name = 'HubRequestError';
  /** One of `hubErrors`, or one that this version does not know. */
  readonly code: string;
  readonly status: number;
  readonly details: Readonly<Record<string, unknown>> | null;

  constructor(
    status: number,
    error: {
      readonly code: string;
      readonly message: string;
      readonly details: Readonly<Record<string, unknown>> | null;
    },
  ) {
    super(error.message);
    this.status = status;
    this.code = error.code;
    this.details = error.details;
  }
}

/** Something answered that does not speak the Hub's protocol. The answer itself is not quoted: it may hold tokens. */
export class HubInvalidResponseError extends Error {
  override readonly name = 'HubInvalidResponseError';
  readonly code = 'hubInvalidResponse';
}

/** The agent server has answered a request with a JSON-RPC error. */
export class JsonRpcError extends Error {
  override readonly name = 'JsonRpcError';
  readonly code: number;
  readonly data: unknown;

  constructor(error: { readonly code: number; readonly message: string; readonly data?: unknown }) {
    super(error.message);
    this.code = error.code;
    this.data = error.data;
  }
}

/** The connection to the agent server could not be made, has broken, or did not answer in time. */
export class AppServerConnectionError extends Error {
  override readonly name: string = 'AppServerConnectionError';
  readonly code: string = 'appServerConnection';
}

/** The agent server gave no sign of life for too long: its process hangs or is stopped. */
export class AppServerSilentError extends AppServerConnectionError {
  override readonly name = 'AppServerSilentError';
  override readonly code = 'appServerSilent';

  /** @param host where it listens, without a token */
  constructor(host: string, silentMs: number) {
    super(
      `The agent server at ${host} has not answered for ${Math.round(silentMs / 1000)} s: its process hangs or is stopped.`,
    );
  }
}

/** A turn ended in an error of the agent. */
export class TurnFailedError extends Error {
  override readonly name = 'TurnFailedError';
  readonly code = 'turnFailed';
}

/** Why a server counts as unproven. */
export type UnprovenReason = 'unreachable' | 'noRoute' | 'unknownToken' | 'otherAddress' | 'wrongProof' | 'weakToken';

/** A server did not prove that it holds the client's token, so it got neither the token nor a command. */
export class ServerNotProvenError extends Error {
  override readonly name = 'ServerNotProvenError';
  readonly code = 'serverNotProven';
  readonly reason: UnprovenReason;

  constructor(reason: UnprovenReason, message: string, options?: ErrorOptions) {
    super(message, options);
    this.reason = reason;
  }
}
