import { RequestError } from '@agentclientprotocol/sdk';
import {
  AppServerConnectionError,
  HubInvalidResponseError,
  HubRequestError,
  HubUnavailableError,
  JsonRpcError,
} from '../client/index.ts';
import type { Logger } from '../log/index.ts';
import { rpcErrors } from '../protocol/index.ts';

/** Answer to a request of the editor that threw `error`. Unexpected errors are logged. */
export function refusalOf(error: unknown, log: Logger, sessionId?: string): RequestError {
  if (error instanceof RequestError) return error;
  if (error instanceof JsonRpcError) return ofServer(error, sessionId);
  if (error instanceof HubRequestError) {
    const data = { code: error.code, ...error.details };
    if (error.code === 'workspaceNotFound') return RequestError.invalidParams(data, error.message);
    return RequestError.internalError(data, error.message);
  }
  const isKnown =
    error instanceof AppServerConnectionError ||
    error instanceof HubUnavailableError ||
    error instanceof HubInvalidResponseError;
  if (isKnown) return RequestError.internalError(undefined, error.message);
  const errorId = log.bug(error);
  return RequestError.internalError({ errorId }, `a bug; ${errorId} in the log on standard error`);
}

function ofServer({ code, message, data }: JsonRpcError, sessionId: string | undefined): RequestError {
  switch (code) {
    case rpcErrors.threadNotFound.code:
      return sessionId === undefined ? RequestError.resourceNotFound() : RequestError.sessionNotFound(sessionId);
    case rpcErrors.invalidParams.code:
      return RequestError.invalidParams(data, message);
    case rpcErrors.turnInProgress.code:
    case rpcErrors.threadNotActive.code:
      return RequestError.invalidRequest(data, message);
    default:
      return RequestError.internalError({ code, ...(typeof data === 'object' && data) }, message);
  }
}
