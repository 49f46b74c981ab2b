import type { DatabaseSync, SQLInputValue, SQLOutputValue, StatementSync } from 'node:sqlite';
import { wellFormedJson } from '../../lib/index.ts';
import { StorageError } from '../thread-store.ts';
import { hasWords } from './words.ts';

export type Row = Readonly<Record<string, SQLOutputValue>>;

/** A database to read in. @throws StorageError */
export interface Rows {
  readonly file: string;
  get(sql: string, ...values: SQLInputValue[]): Row | undefined;
  all(sql: string, ...values: SQLInputValue[]): readonly Row[];
}

/** The statements of one connection, each prepared once. */
export class Statements {
  readonly #sqlite: DatabaseSync;
  readonly #known = new Map<string, StatementSync>();

  constructor(sqlite: DatabaseSync) {
    this.#sqlite = sqlite;
  }

  of(sql: string): StatementSync {
    const known = this.#known.get(sql);
    if (known) return known;
    const statement = this.#sqlite.prepare(sql);
    this.#known.set(sql, statement);
    return statement;
  }

  clear(): void {
    this.#known.clear();
  }
}

/** A text without the difference between capital and small letters: SQLite's own knows only those of ASCII. */
export const folded = (text: string): string => text.toUpperCase();

/** Adds the functions that our statements call and SQLite lacks. */
export function addFunctions(sqlite: DatabaseSync): void {
  sqlite.function('folded', { deterministic: true }, (text) => folded(String(text)));
  // A message of images alone has no text.
  sqlite.function('hasWords', { deterministic: true }, (text, match) =>
    text !== null && hasWords(String(text), String(match)) ? 1 : 0,
  );
}

/**
 * Parses a column of JSON. Text that an earlier version stored with lone surrogates is repaired.
 * @throws StorageError corrupt, when another program has written there
 */
export function parseColumn<T>(json: unknown, file: string): T {
  return parsed(wellFormedJson(String(json)), file) as T;
}

/** Joins the pieces of a text, JSON texts with commas between. A piece may end in the middle of a character. @throws as `parseColumn` */
export function joinPieces(pieces: string, file: string): string {
  return (parsed(`[${pieces}]`, file) as string[]).join('').toWellFormed();
}

function parsed(json: string, file: string): unknown {
  try {
    return JSON.parse(json);
  } catch (error) {
    // The parser's message quotes the text.
    throw new StorageError('corrupt', `${file} holds a row that is not JSON. It was not changed`, { cause: error });
  }
}
