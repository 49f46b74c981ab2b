import { failureOf, McpFailure, networkCode } from '../failure.ts';

/** Error codes of a temporary refusal by an authorization server (RFC 6749, sections 4.1.2.1 and 5.2). */
const temporaryCodes: ReadonlySet<string> = new Set(['server_error', 'temporarily_unavailable', 'too_many_requests']);

/** Error codes of a permanent refusal of a refresh token, or of the client that received it. */
const endedCodes: ReadonlySet<string> = new Set(['invalid_grant', 'invalid_client', 'unauthorized_client']);

/** Code of an OAuth error; undefined for any other error. */
export function oauthCode(error: unknown): string | undefined {
  const { name, code } = error as { readonly name?: unknown; readonly code?: unknown };
  return name === 'OAuthError' && typeof code === 'string' ? code : undefined;
}

export const endsLogin = (error: unknown): boolean => endedCodes.has(oauthCode(error) ?? '');

/**
 * Describes an error of a log-in or renewal, without texts of the authorization server, because they may repeat a token.
 */
export function authFailureOf(error: unknown): McpFailure {
  if (error instanceof McpFailure) return error;
  if (networkCode(error) !== undefined) {
    const { code, message } = failureOf(error);
    return new McpFailure(code, message.replace('The server', 'The authorization server'), { cause: error });
  }
  const { name, status } = error as { readonly name?: unknown; readonly status?: unknown };
  if (name === 'TimeoutError') {
    return new McpFailure('timeout', 'The authorization server did not answer in time. Try again later.');
  }
  if (name === 'AbortError') return new McpFailure('timeout', 'The log-in was ended.');
  if (name === 'IssuerMismatchError') return refused('another server answered in its place (issuer mismatch)');
  if (name === 'RegistrationRejectedError') {
    return refused(
      `it does not register clients (HTTP ${Number(status)}). Register a client there and set auth.clientId`,
    );
  }
  const code = oauthCode(error);
  if (code === undefined)
    return new McpFailure('protocol', 'The authorization server sent an invalid response. Log in again.');
  const shown = /^[a-z_]{1,60}$/.test(code) ? code : 'an unknown error';
  if (!temporaryCodes.has(code)) return refused(shown);
  return new McpFailure('unreachable', `The authorization server refused for now: ${shown}. Try again later.`);
}

/** @param reason reason and, if there is one, the next step */
export const refused = (reason: string): McpFailure =>
  new McpFailure('unauthorized', `The authorization server cannot be used: ${reason}.`, { isRetryable: false });
