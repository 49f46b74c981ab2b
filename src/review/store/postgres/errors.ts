import { ReviewStoreError, type ReviewStoreErrorCode } from '../errors.ts';
import { LeaseLostError } from '../types.ts';

/** SQLSTATEs (PostgreSQL, appendix A) and classes with a code of their own; all others become databaseFailed. */
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

/** Codes of Node for a failed or broken connection. */
const socketCodes =
  /^(ECONN[A-Z]+|EPIPE|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH|ENOTFOUND|EAI_AGAIN|ENOENT|EACCES|ERR_SOCKET_[A-Z_]+)$/;
/** Messages of `pg` for a broken connection, which have no code. */
const brokenConnection =
  /connection (was )?terminated|connection error|client was closed|timeout exceeded|not queryable/i;

interface CodedError extends Error {
  readonly code?: string;
}

/** Converts an error of PostgreSQL or of the connection to a ReviewStoreError. Other errors are bugs and are returned unchanged. */
export function postgresError(error: unknown): unknown {
  if (!(error instanceof Error) || error instanceof ReviewStoreError || error instanceof LeaseLostError) return error;
  const code = codeOf(error);
  return code ? new ReviewStoreError(code, `PostgreSQL: ${error.message}`, { cause: error }) : error;
}

function codeOf(error: CodedError): ReviewStoreErrorCode | undefined {
  const { code = '', message } = error;
  // AggregateError: several addresses were tried, and all failed.
  if (error instanceof AggregateError || socketCodes.test(code) || (code === '' && brokenConnection.test(message)))
    return 'databaseUnavailable';
  if (!/^[0-9A-Z]{5}$/.test(code)) return undefined;
  return states[code] ?? states[code.slice(0, 2)] ?? 'databaseFailed';
}

/** Whether the server has rolled back the whole transaction, so that any transaction can be retried. */
export const isRolledBack = (error: unknown): boolean => ['40001', '40P01'].includes((error as CodedError).code ?? '');
