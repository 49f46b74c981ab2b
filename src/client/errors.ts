/**
 * No Hub can be reached, and starting one failed. `logTail` is the end of `hub.log` if this process started a Hub.
 *
 * @example if (error instanceof HubUnavailableError) console.error(error.message, error.logTail);
 */
export class HubUnavailableError extends Error {
  override readonly name = 'HubUnavailableError';
  readonly code = 'hubUnavailable';
  readonly logTail: string;
  /** Exit code of the Hub that this process started; null without one. */
  readonly exitCode: number | null;

  constructor(
    message: string,
    options: { readonly logTail?: string; readonly exitCode?: number | null; readonly cause?: unknown } = {},
  ) {
    super(message, { cause: options.cause });
    this.logTail = options.logTail ?? '';
    this.exitCode = options.exitCode ?? null;
  }
}

/**
 * The Hub has refused a request: its error object (specification §2.7) with the HTTP status.
 *
 * @example if (error instanceof HubRequestError && error.code === 'workspaceLocked') console.error(error.details);
 */
export class HubRequestError extends Error {
  override readonly name = 'HubRequestError';
  /** Code of the error: one of `hubErrors`, or one that this version does not know. */
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

/**
 * The answer does not follow the Hub's protocol. The message does not quote it: it may contain tokens.
 *
 * @example if (error instanceof HubInvalidResponseError) console.error('another program uses the port of the Hub');
 */
export class HubInvalidResponseError extends Error {
  override readonly name = 'HubInvalidResponseError';
  readonly code = 'hubInvalidResponse';
}

/**
 * Connecting to the agent server failed, the connection broke, or an answer did not arrive in time.
 *
 * @example if (error instanceof AppServerConnectionError) record = await hub.ensure({ workspacePath });
 */
export class AppServerConnectionError extends Error {
  override readonly name: string = 'AppServerConnectionError';
  readonly code: string = 'appServerConnection';
}

/**
 * The agent server sent nothing for the time in the message: its process hangs or is stopped.
 *
 * @example if (error instanceof AppServerSilentError) await hub.restart({ workspacePath });
 */
export class AppServerSilentError extends AppServerConnectionError {
  override readonly name = 'AppServerSilentError';
  override readonly code = 'appServerSilent';

  /** @param host host and port of the agent server, without a token */
  constructor(host: string, silentMs: number) {
    super(
      `The agent server at ${host} has not answered for ${Math.round(silentMs / 1000)} s: its process hangs or is stopped.`,
    );
  }
}

/**
 * A turn ended in an error of the agent.
 *
 * @example if (error instanceof TurnFailedError) console.error(error.message);
 */
export class TurnFailedError extends Error {
  override readonly name = 'TurnFailedError';
  readonly code = 'turnFailed';
  /** Code of the turn's error, e.g. `upstreamUnauthorized`; null when the server names none. */
  readonly reason: string | null;
  /** Pause that the provider requests before the next attempt. */
  readonly retryAfterMs: number | null;

  constructor(
    message: string,
    { code, retryAfterMs }: { readonly code?: string; readonly retryAfterMs?: number } = {},
  ) {
    super(message);
    this.reason = code ?? null;
    this.retryAfterMs = retryAfterMs ?? null;
  }
}

/** Reason why a server counts as unproven. */
export type UnprovenReason = 'unreachable' | 'noRoute' | 'unknownToken' | 'otherAddress' | 'wrongProof' | 'weakToken';

/**
 * A server did not prove that it holds the client's token, so the client sent it neither the token nor a command.
 *
 * @example if (error instanceof ServerNotProvenError && error.reason === 'noRoute') console.error('an older server');
 */
export class ServerNotProvenError extends Error {
  override readonly name = 'ServerNotProvenError';
  readonly code = 'serverNotProven';
  readonly reason: UnprovenReason;

  constructor(reason: UnprovenReason, message: string, options?: ErrorOptions) {
    super(message, options);
    this.reason = reason;
  }
}
