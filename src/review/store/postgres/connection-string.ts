import { accessSync, constants } from 'node:fs';
import type { ClientConfig } from 'pg';
import { ReviewStoreError } from '../errors.ts';
import { limits } from '../limits.ts';

type Pg = typeof import('pg').default;

/** A connection string, checked, with the time limits of its sessions. */
export interface ConnectionSettings {
  readonly config: ClientConfig;
  /** Name of the setting, for errors. */
  readonly setting: string;
  /**
   * Statement that limits the times of a session. A pooler gives its clients process ids of its own, and its sessions to other clients:
   * the limits then end with the statement.
   * @param processId - of the server, as the connection reported it
   */
  readonly session: (processId: number) => string;
  /** Statements that limit the times of a transaction. */
  readonly transaction: string;
  /** Deadline of a statement in this process, after that of the server. */
  readonly deadlineMs: number;
}

const sslModes = ['disable', 'prefer', 'require', 'verify-ca', 'verify-full', 'no-verify'];
const files = ['sslrootcert', 'sslcert', 'sslkey'];
/** Time limits of the server that a connection string can set, in milliseconds. They become statements. */
const times = {
  statement_timeout: limits.postgres.statementMs,
  lock_timeout: undefined,
  idle_in_transaction_session_timeout: limits.postgres.idleInTransactionMs,
} as const;

/**
 * Checks a connection string. Errors name the setting and never quote the string: parts of a password that is not encoded would look
 * like a host or a parameter.
 * @throws ReviewStoreError invalidConnectionString
 */
export function parseConnectionString(pg: Pg, text: string, setting: string): ConnectionSettings {
  const refuse = (problem: string, hint: string) =>
    new ReviewStoreError('invalidConnectionString', `${setting}: ${problem}`, { hint });
  const encode = `Percent-encode the password in ${setting}: @ is %40, / is %2F, ? is %3F, # is %23, % is %25.`;
  const shape = `Write ${setting} as postgres://user:password@host:5432/database.`;

  if (text !== text.trim()) throw refuse('it begins or ends with a space', `Remove the space from ${setting}.`);
  const [, rest] = /^postgres(?:ql)?:\/\/(.*)$/is.exec(text) ?? [];
  if (rest === undefined) throw refuse('it does not begin with postgres://', shape);
  const { user, host, path, query } = partsOf(rest);
  const isAmbiguous = rest.includes('#') || user.includes('@') || path.includes('@') || !isQuery(query);
  if (isAmbiguous || !isDecodable(user))
    throw refuse('the password contains a character with a meaning in URLs', encode);
  const parameters = new URLSearchParams(query);
  if (host.includes(',') || parameters.get('host')?.includes(',') === true)
    throw refuse('it names several hosts', `Name one address in ${setting} that follows the primary server.`);
  if (!/^(\[[0-9a-f:.%]+\]|[^:[\]]*)(:\d{1,5})?$/i.test(host)) throw refuse('its host or port is invalid', shape);
  const sslMode = parameters.get('sslmode');
  if (sslMode !== null && !sslModes.includes(sslMode))
    throw refuse('its sslmode is unknown', `Set sslmode in ${setting} to one of ${sslModes.join(', ')}.`);
  for (const name of files) {
    const fault = unreadable(parameters.get(name));
    if (fault !== undefined)
      throw refuse(`the file that ${name} names cannot be read (${fault})`, `Correct ${name} in ${setting}.`);
  }
  const set = Object.entries(times).flatMap(([name, usual]) => {
    const given = parameters.get(name);
    parameters.delete(name);
    if (given !== null && !/^\d{1,9}$/.test(given))
      throw refuse(`its ${name} is invalid`, `Set ${name} in ${setting} to a number of milliseconds.`);
    const value = given === null ? usual : Number(given);
    return value === undefined ? [] : [{ name, value }];
  });
  // A statement that pg no longer waits for would remain on its connection: the deadline of `connections.ts` counts.
  parameters.delete('query_timeout');
  const config = {
    connectionString: `postgres://${rest.replace(/\?.*$/s, '')}${parameters.size > 0 ? `?${parameters}` : ''}`,
  };
  try {
    // The constructor parses the string and does not connect.
    new pg.Client(config);
  } catch {
    // The error of `pg` is dropped, because it contains the string with the password.
    throw refuse('it is invalid', shape);
  }
  const statementMs = set.find(({ name }) => name === 'statement_timeout')?.value ?? 0;
  return {
    config,
    setting,
    session: (processId) =>
      `SELECT ${set.map(({ name, value }) => `set_config('${name}', '${value}', pg_backend_pid() <> ${processId})`).join(', ')}`,
    transaction: set.map(({ name, value }) => `SET LOCAL ${name} = ${value}`).join('; '),
    deadlineMs: (statementMs || limits.postgres.statementMs) + limits.postgres.graceMs,
  };
}

/** Splits `user:password@host:port/path?query`. */
function partsOf(rest: string) {
  const [, authority = '', path = '', query = ''] = /^([^/?]*)([^?]*)\??(.*)$/s.exec(rest) ?? [];
  const at = authority.lastIndexOf('@');
  return { user: authority.slice(0, Math.max(at, 0)), host: authority.slice(at + 1), path, query };
}

/** The rest of a password after its `?` is not a list of parameters. */
const isQuery = (query: string): boolean => query === '' || query.split('&').every((each) => /^[a-z_]+=/i.test(each));

function isDecodable(user: string): boolean {
  try {
    decodeURIComponent(user);
    return true;
  } catch {
    return false;
  }
}

function unreadable(file: string | null): string | undefined {
  if (file === null || file === '') return undefined;
  try {
    accessSync(file, constants.R_OK);
    return undefined;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? 'unknown';
  }
}
