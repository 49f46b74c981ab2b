import type { Kysely, RawBuilder } from 'kysely';
import type { Tables } from './tables.ts';

export type Rows = Kysely<Tables>;

/** A database of either kind: what its queries are run with, and the few things in which the two differ. */
export interface Database {
  readonly kind: 'sqlite' | 'postgres';
  /** SQL: milliseconds since the epoch by its clock, the same throughout a statement. */
  readonly now: RawBuilder<number>;
  /** Statements that only read, each seeing what was committed when it began. */
  read<T>(work: (rows: Rows) => Promise<T>): Promise<T>;
  /** Several that must see the same. */
  snapshot<T>(work: (rows: Rows) => Promise<T>): Promise<T>;
  /** All of `work`'s writes or none; they last when it resolves. `work` may run again and does nothing but queries. */
  write<T>(work: (rows: Rows) => Promise<T>): Promise<T>;
  /** A single statement that writes: less to and fro. */
  statement<T>(work: (rows: Rows) => Promise<T>): Promise<T>;
  /** Until the end of the transaction nobody else goes past here with the same name. */
  lock(rows: Rows, name: string): Promise<void>;
  close(): Promise<void>;
}

/** Options of `$if` and the like: rows can be locked where several write at once. */
export const locksRows = ({ kind }: Database): boolean => kind === 'postgres';
