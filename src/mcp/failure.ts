import * as v from 'valibot';
import { messageOf, plainText } from '../lib/index.ts';
import { mcpLoginCommand } from '../protocol/index.ts';

/** Why a connection failed, for programs: `errorCode` of `mcp/test`. */
export const failureCodes = [
  'misconfigured',
  'notStarted',
  'startupTimeout',
  'exited',
  'unreachable',
  'unauthorized',
  'needsLogin',
  'timeout',
  'protocol',
] as const;
export type FailureCode = (typeof failureCodes)[number];

/** Problem of an MCP server. The message is a sentence for people; secrets are removed where it leaves the room. */
export class McpFailure extends Error {
  override readonly name = 'McpFailure';
  readonly code: FailureCode;
  /** Whether trying again may help. */
  readonly isRetryable: boolean;

  constructor(code: FailureCode, message: string, options: ErrorOptions & { readonly isRetryable?: boolean } = {}) {
    super(message, options);
    this.code = code;
    this.isRetryable = options.isRetryable ?? true;
  }
}

/** Fields of the library's errors that are read here: by shape, so that nothing has to be loaded. */
interface LibraryError {
  readonly name?: unknown;
  readonly requiredScope?: unknown;
  readonly code?: unknown;
  readonly status?: unknown;
  readonly cause?: unknown;
}

const httpProblems: Readonly<Record<number, string>> = {
  401: 'The server wants a credential (HTTP 401): set bearerTokenEnvVar or envHttpHeaders.',
  403: 'The server denies access (HTTP 403): the credential does not allow this.',
};

/** The server requires a log-in, for the first time or again. @param server its name */
export const needsLogin = (server: string): McpFailure =>
  new McpFailure('needsLogin', `The server wants you to log in: ${mcpLoginCommand(server)}`, { isRetryable: false });

/**
 * Describes an error of the library, `fetch` or the system.
 * @param login name of a server to which the user can log in
 */
export function failureOf(error: unknown, login?: string): McpFailure {
  if (error instanceof McpFailure) return error;
  const { name, code, status } = error as LibraryError;
  if (name === 'InsufficientScopeError') return lacksScope(error, login);
  if (status === 401 && login !== undefined) return needsLogin(login);
  if (typeof status === 'number') return httpFailure(status, error);
  if (code === 'REQUEST_TIMEOUT')
    return new McpFailure('timeout', 'The server did not answer in time.', { cause: error });
  const network = networkCode(error);
  if (network !== undefined) {
    return new McpFailure('unreachable', `The server cannot be reached (${network}).`, { cause: error });
  }
  return new McpFailure('protocol', `The server did not keep to the protocol: ${invalidAnswerOf(error)}`, {
    cause: error,
  });
}

/** A credential allows less than the server demands. */
function lacksScope(error: unknown, login: string | undefined): McpFailure {
  const { requiredScope } = error as LibraryError;
  const scopes = typeof requiredScope === 'string' ? ` (${plainText(requiredScope).slice(0, 200)})` : '';
  const step =
    login === undefined ? 'use another credential' : `add them to auth.scopes, then: ${mcpLoginCommand(login)}`;
  const message = `The server demands more scopes${scopes}: ${step}`;
  return new McpFailure('unauthorized', message, { cause: error, isRetryable: false });
}

/** The library appends its validation's issues as JSON: the first one becomes a sentence with the field. */
function invalidAnswerOf(error: unknown): string {
  const message = messageOf(error);
  const [, subject, issues] = /^(.*?)(\[\s*\{.*)$/s.exec(message) ?? [];
  if (subject === undefined || issues === undefined) return message;
  const lead = subject
    .trimEnd()
    .replace(/Error:$/, '')
    .replace(/(?<![:\s])[:\s]+$/, '');
  try {
    const [first] = v.parse(Issues, JSON.parse(issues));
    return `${lead}: ${first.path.join('.') || 'the whole'}: ${first.message}.`;
  } catch {
    return `${lead}.`;
  }
}

/** Issues of the library's validation, of which the first is read. */
const Issues = v.looseTuple([v.object({ path: v.array(v.union([v.string(), v.number()])), message: v.string() })]);

function httpFailure(status: number, cause: unknown): McpFailure {
  const denied = httpProblems[status];
  if (denied !== undefined) return new McpFailure('unauthorized', denied, { cause, isRetryable: false });
  return new McpFailure('unreachable', `The server answers with HTTP ${status}.`, { cause });
}

const networkCodes = /^(E[A-Z]+|UND_ERR_\w+|ERR_TLS_\w+|(?=\w*CERT)\w+)$/;

/** Reason why a request got no answer (`ECONNREFUSED`, `UND_ERR_SOCKET`, `bad port`); undefined: another failure. */
export function networkCode(error: unknown): string | undefined {
  for (let each = error; each instanceof Error; each = each.cause) {
    const { code } = each as LibraryError;
    if (typeof code === 'string' && networkCodes.test(code)) return code;
    // `fetch` refuses some requests without a code.
    if (each.message === 'fetch failed') return networkCode(each.cause) ?? causeOf(each);
  }
  return undefined;
}

/** Whether a write failed because the reader of the pipe has ended. */
export const isBrokenPipe = (error: unknown): boolean =>
  ['EPIPE', 'ECONNRESET', 'ERR_STREAM_DESTROYED'].includes(networkCode(error) ?? '');

const causeOf = ({ cause, message }: Error): string => (cause instanceof Error ? cause.message : message);
