import { ReviewStoreError, type ReviewStoreErrorCode } from '../errors.ts';

/** SQLSTATEs (PostgreSQL, appendix A) and classes with a code of their own; all others become databaseFailed. */
const states: Readonly<Record<string, ReviewStoreErrorCode>> = {
  '08': 'databaseUnavailable',
  '57P': 'databaseUnavailable',
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

interface CodedError extends Error {
  readonly code?: string;
}

/** Codes of the system such as `EPIPE` have five letters, too. */
const sqlState = ({ code = '' }: CodedError): string | undefined =>
  /^(?!E[A-Z]{4}$)[0-9A-Z]{5}$/.test(code) ? code : undefined;

/** Place of an error: while connecting, also an error with a SQLSTATE (wrong password, no such database) is an outage. */
export type During = 'connect' | 'statement';

/**
 * Converts an error of PostgreSQL or of the connection. An error without a SQLSTATE comes from the connection.
 * @param setting - name of the setting with the connection string, for hints
 */
export function postgresError(error: unknown, during: During, setting: string): ReviewStoreError {
  if (error instanceof ReviewStoreError) return error;
  const cause: CodedError = error instanceof Error ? error : new Error(String(error));
  const message = `PostgreSQL: ${textOf(cause)}`;
  return new ReviewStoreError(codeOf(cause, during), message, { cause, hint: hintOf(cause, setting) });
}

function codeOf(error: CodedError, during: During): ReviewStoreErrorCode {
  const state = sqlState(error);
  const known = state === undefined ? undefined : knownCode(state);
  if (state === undefined || during === 'connect') return known ?? 'databaseUnavailable';
  return known ?? 'databaseFailed';
}

const knownCode = (state: string): ReviewStoreErrorCode | undefined =>
  states[state] ?? states[state.slice(0, 3)] ?? states[state.slice(0, 2)];

/** Several addresses were tried when the error has errors of its own. */
const textOf = (error: Error): string =>
  error instanceof AggregateError && error.message === ''
    ? error.errors.map((each) => (each instanceof Error ? each.message : String(each))).join('; ')
    : error.message;

/** Next steps by SQLSTATE, code of Node or words of the message; `$` stands for the name of the setting. */
const hints: readonly (readonly [pattern: RegExp, hint: string])[] = [
  [
    /^(DEPTH_ZERO_SELF_SIGNED_CERT|SELF_SIGNED_CERT_IN_CHAIN|UNABLE_TO_\w+)$/,
    'Name the authority of the certificate with sslrootcert=FILE in $.',
  ],
  [/^(CERT_HAS_EXPIRED|CERT_NOT_YET_VALID)$/, 'Renew the certificate of the database server.'],
  [/^ERR_TLS_CERT_ALTNAME_INVALID$/, 'Use a host name in $ that the certificate of the server names.'],
  [/does not support SSL/i, 'Enable TLS on the database server, or set sslmode=disable in $.'],
  [
    /pg_hba\.conf.*(no encryption|SSL off)/i,
    'Admit user, database and host in pg_hba.conf of the server; if it admits them with TLS only, set sslmode=verify-full in $.',
  ],
  [/SASL|client password must be|^28P01$/, 'Check user and password in $.'],
  [
    /startup parameter/i,
    'pgbouncer refuses a parameter of $: remove it there, or list it in ignore_startup_parameters of pgbouncer.',
  ],
  [/^28000$/, 'Check user and database in $, and pg_hba.conf of the server.'],
  [/^3D000$/, 'Create the database, or name another one in $.'],
  [/^25006$/, 'Name the primary server in $, not a standby.'],
  [/^53300$/, 'Raise max_connections of the server, or lower the number of replicas.'],
];

function hintOf(error: CodedError, setting: string): string {
  const { code = '', message } = error;
  const [, hint = 'Check that the database, and pgbouncer if there is one before it, runs and that $ names it.'] =
    hints.find(([pattern]) => pattern.test(code) || pattern.test(message)) ?? [];
  return hint.replaceAll('$', setting);
}

/** Whether the server has rolled back the whole transaction, so that any transaction can be retried. */
export const isRolledBack = ({ cause }: ReviewStoreError): boolean =>
  ['40001', '40P01'].includes((cause as CodedError | undefined)?.code ?? '');
