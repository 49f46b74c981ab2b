import type { DatabaseSync } from 'node:sqlite';
import { fileFault } from '../../lib/index.ts';
import { loadSqlite } from '../../supervise/index.ts';
import { StorageError } from '../thread-store.ts';

/**
 * Refuses a file that SQLite must not open: a symlink, another kind of file, another user's. The files of its log count too.
 *
 * @throws StorageError corrupt
 */
export function checkFiles(file: string): void {
  for (const each of [file, `${file}-wal`, `${file}-shm`, `${file}-journal`]) {
    const fault = fileFault(each);
    if (fault) {
      throw new StorageError('corrupt', `${fault.message}, so it is not used as a database. It was not changed`, {
        cause: fault,
      });
    }
  }
}

/** Tables in which SQLite keeps statistics for its planner. */
const isStatistics = (name: string): boolean => /^sqlite_stat\d$/.test(name);

const objects = "SELECT type, name, tbl_name AS of, ifnull(sql, '') AS sql FROM sqlite_schema";

/** Definition of every object, by its name. */
export type Schema = ReadonlyMap<string, string>;

function schemaOf(sqlite: DatabaseSync): Schema {
  const rows = sqlite.prepare(objects).all();
  return new Map(
    rows
      .filter(({ name }) => !isStatistics(String(name)))
      .map(({ type, name, of, sql }) => [String(name), objectText(type, of, sql)]),
  );
}

/** Text of an object in a `Schema`. @param of the table that it belongs to */
export const objectText = (type: unknown, of: unknown, sql: unknown): string => JSON.stringify([type, of, sql]);

const emptySchema: Schema = new Map();

/** Latest requested schema, but not the one of a new database: nearly every other database has had the same migrations. */
let made: { readonly script: string; readonly schema: Schema } | undefined;

/** Schema that migrations lead to. */
export function schemaAfter(steps: readonly string[]): Schema {
  if (steps.length === 0) return emptySchema;
  const script = steps.join('\n;\n');
  if (made?.script !== script) made = { script, schema: schemaMadeBy(script) };
  return made.schema;
}

function schemaMadeBy(script: string): Schema {
  const sqlite = new (loadSqlite().DatabaseSync)(':memory:');
  try {
    sqlite.exec(script);
    return schemaOf(sqlite);
  } finally {
    sqlite.close();
  }
}

/**
 * Compares the objects of a database with those that our own migrations make, before any statement reads from one: a view
 * or a trigger in the place of a table runs statements of its author.
 *
 * @param expected schema after the migrations that the database's version claims
 * @throws StorageError corrupt
 */
export function checkSchema(sqlite: DatabaseSync, file: string, expected: Schema): void {
  const found = schemaOf(sqlite);
  const different = [...new Set([...expected.keys(), ...found.keys()])].find(
    (name) => expected.get(name) !== found.get(name),
  );
  if (different === undefined) return;
  const what = found.has(different) ? (expected.has(different) ? 'another' : 'an unknown') : 'no';
  throw new StorageError(
    'corrupt',
    `${file} is not a database that Oratorio has made: it has ${what} ${JSON.stringify(different)}. It was not changed. Stop the agent server and move it aside: the next start makes a new one`,
  );
}
