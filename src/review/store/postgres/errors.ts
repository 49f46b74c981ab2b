import { ReviewStoreError, type ReviewStoreErrorCode } from '../errors.ts';
import { LeaseLostError } from '../types.ts';

/** SQLSTATEs (PostgreSQL, appendix A) and their classes that mean more to a caller than "it failed". */
const states: Readonly<Record<string, ReviewStoreErrorCode>> = {
  '08': 'databaseUnavailable',
  '57P01': 'databaseUnavailable',
  '57P02': 'databaseUnavailable',
  '57P03': 'databaseUnavailable',
  '57P05': 'databaseUnavailable',
  '25P03': 'databaseUnavailable',
  '53300': 'databaseUnavailable',
  '53200': 'databaseUnavailable',
  '57014': 'databaseBusy',
  '55P03': 'databaseBusy',
  '40001': 'databaseBusy',
  '40P01': 'databaseBusy',
  '53100': 'databaseFull',
  '25006': 'databaseReadOnly',
  XX001: 'databaseCorrupt',
  XX002: 'databaseCorrupt',
};

/** What Node says of a connection that cannot be made, or broke. */
const socketCodes =
  /^(ECONN[A-Z]+|EPIPE|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH|ENOTFOUND|EAI_AGAIN|ENOENT|EACCES|ERR_SOCKET_[A-Z_]+)$/;
/** What `pg` says of the same, without a code. */
const brokenConnection =
  /connection (was )?terminated|connection error|client was closed|timeout exceeded|not queryable/i;

interface CodedError extends Error {
  readonly code?: string;
}

/** What PostgreSQL or the way to it said, in our terms. What is neither is a bug and comes back as it is. */
export function postgresError(error: unknown): unknown {
  if (!(error instanceof Error) || error instanceof ReviewStoreError || error instanceof LeaseLostError) return error;
  const code = codeOf(error);
  return code ? new ReviewStoreError(code, `PostgreSQL: ${error.message}`, { cause: error }) : error;
}

function codeOf(error: CodedError): ReviewStoreErrorCode | undefined {
  const { code = '', message } = error;
  // Several addresses were tried, and none answered.
  if (error instanceof AggregateError || socketCodes.test(code) || (code === '' && brokenConnection.test(message)))
    return 'databaseUnavailable';
  if (!/^[0-9A-Z]{5}$/.test(code)) return undefined;
  return states[code] ?? states[code.slice(0, 2)] ?? 'databaseFailed';
}

/** Whether the server has taken the whole transaction back: it may be tried again whatever it was. */
export const isRolledBack = (error: unknown): boolean => ['40001', '40P01'].includes((error as CodedError).code ?? '');
