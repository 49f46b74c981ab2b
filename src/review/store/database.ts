import type { Kysely, RawBuilder } from 'kysely';
import type { Tables } from './tables.ts';

export type Rows = Kysely<Tables>;

/** Runs queries on SQLite or PostgreSQL and hides where the two differ. */
export interface Database {
  readonly kind: 'sqlite' | 'postgres';
  /** SQL expression: milliseconds since the epoch by the database's clock, constant within a statement. */
  readonly now: RawBuilder<number>;
  /** Runs statements that only read; each sees the commits before its own start. */
  read<T>(work: (rows: Rows) => Promise<T>): Promise<T>;
  /** Runs statements that only read and must see the same commits. */
  snapshot<T>(work: (rows: Rows) => Promise<T>): Promise<T>;
  /** Runs `work` in one transaction; durable when it resolves. `work` can run again, so it must only run queries. */
  write<T>(work: (rows: Rows) => Promise<T>): Promise<T>;
  /** Runs a single writing statement, with fewer round trips than `write`. */
  statement<T>(work: (rows: Rows) => Promise<T>): Promise<T>;
  /** Waits for the lock `name` and holds it until the transaction ends. */
  lock(rows: Rows, name: string): Promise<void>;
  close(): Promise<void>;
}

/** Whether queries must lock rows: only PostgreSQL has concurrent writers. */
export const locksRows = ({ kind }: Database): boolean => kind === 'postgres';
