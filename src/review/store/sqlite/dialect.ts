import type { DatabaseSync, SQLInputValue, StatementSync } from 'node:sqlite';
import {
  type CompiledQuery,
  type DatabaseConnection,
  type Dialect,
  type Driver,
  type QueryResult,
  SqliteAdapter,
  SqliteIntrospector,
  SqliteQueryCompiler,
} from 'kysely';
import { limits } from '../limits.ts';
import { sqliteError } from './errors.ts';
import { GroupCommit } from './group-commit.ts';

/** GroupCommit serialises the transactions, so Kysely need not. */
class Adapter extends SqliteAdapter {
  override get supportsMultipleConnections(): boolean {
    return true;
  }
}

/**
 * Kysely dialect for `node:sqlite`. With `writes` every use is a transaction that shares its commit with others; without it statements
 * run at once, without a transaction. Throws ReviewStoreErrors. Nested transactions are rejected.
 */
export function nodeSqliteDialect(
  sqlite: DatabaseSync,
  { file, writes }: { readonly file: string; readonly writes: boolean },
): Dialect {
  const statements = new Statements(sqlite, file);
  return {
    createDriver: () => (writes ? new WritingDriver(sqlite, statements, file) : new ReadingDriver(statements)),
    createQueryCompiler: () => new SqliteQueryCompiler(),
    createAdapter: () => new Adapter(),
    createIntrospector: (db) => new SqliteIntrospector(db),
  };
}

interface Known {
  readonly statement: StatementSync;
  readonly givesRows: boolean;
}

/** Cache of prepared statements of one connection, least recently used first. */
class Statements {
  readonly #sqlite: DatabaseSync;
  readonly #file: string;
  readonly #known = new Map<string, Known>();

  constructor(sqlite: DatabaseSync, file: string) {
    this.#sqlite = sqlite;
    this.#file = file;
  }

  run<R>(query: CompiledQuery): QueryResult<R> {
    try {
      const { statement, givesRows } = this.#of(query);
      const values = query.parameters as SQLInputValue[];
      if (givesRows) return { rows: statement.all(...values) as R[] };
      const { changes } = statement.run(...values);
      return { rows: [], numAffectedRows: BigInt(changes) };
    } catch (error) {
      throw sqliteError(error, this.#file);
    }
  }

  #of({ sql, query }: CompiledQuery): Known {
    const before = this.#known.get(sql);
    const known = before ?? { statement: this.#sqlite.prepare(sql), givesRows: givesRows(sql, query.kind) };
    if (before) this.#known.delete(sql);
    this.#known.set(sql, known);
    if (this.#known.size > limits.sqlite.maxStatements) this.#forgetOldest();
    return known;
  }

  #forgetOldest(): void {
    const [oldest] = this.#known.keys();
    if (oldest !== undefined) this.#known.delete(oldest);
  }
}

const givesRows = (sql: string, kind: string): boolean =>
  kind === 'SelectQueryNode' ||
  /\breturning\b/i.test(sql) ||
  (kind === 'RawNode' && /^\s*(select|pragma)\b/i.test(sql));

function noStream(): never {
  throw new Error('Rows of SQLite are not streamed');
}

class ReadingDriver implements Driver {
  readonly #connection: DatabaseConnection;

  constructor(statements: Statements) {
    this.#connection = { executeQuery: async (query) => statements.run(query), streamQuery: noStream };
  }

  async init(): Promise<void> {}
  async acquireConnection(): Promise<DatabaseConnection> {
    return this.#connection;
  }
  beginTransaction(): Promise<void> {
    return refused();
  }
  commitTransaction(): Promise<void> {
    return refused();
  }
  rollbackTransaction(): Promise<void> {
    return refused();
  }
  async releaseConnection(): Promise<void> {}
  async destroy(): Promise<void> {}
}

const refused = () => Promise.reject(new Error('This connection only reads'));

/** Exclusive use of the writing connection. */
class Turn implements DatabaseConnection {
  readonly #statements: Statements;
  hasTurn = true;
  fault: unknown;

  constructor(statements: Statements) {
    this.#statements = statements;
  }

  async executeQuery<R>(query: CompiledQuery): Promise<QueryResult<R>> {
    // On a full disk SQLite ends the transaction itself: a later statement would be written outside of it.
    if (this.fault !== undefined) throw this.fault;
    try {
      return this.#statements.run(query);
    } catch (error) {
      this.fault = error;
      throw error;
    }
  }

  readonly streamQuery = noStream;
}

class WritingDriver implements Driver {
  readonly #group: GroupCommit;
  readonly #statements: Statements;
  readonly #file: string;

  constructor(sqlite: DatabaseSync, statements: Statements, file: string) {
    this.#group = new GroupCommit(sqlite);
    this.#statements = statements;
    this.#file = file;
  }

  async init(): Promise<void> {}

  async acquireConnection(): Promise<Turn> {
    await this.#group.take();
    return new Turn(this.#statements);
  }

  async beginTransaction(): Promise<void> {
    await this.#group.begin().catch(this.#rethrow);
  }

  async commitTransaction(connection: DatabaseConnection): Promise<void> {
    const turn = connection as Turn;
    try {
      const committed = this.#group.release();
      this.#passOn(turn);
      await committed;
    } catch (error) {
      this.#rethrow(error);
    }
  }

  async rollbackTransaction(connection: DatabaseConnection): Promise<void> {
    const turn = connection as Turn;
    if (turn.hasTurn) this.#group.rollBack(turn.fault);
  }

  async releaseConnection(connection: DatabaseConnection): Promise<void> {
    this.#passOn(connection as Turn);
  }

  async destroy(): Promise<void> {
    await this.#group.take();
    this.#group.close();
  }

  #passOn(turn: Turn): void {
    if (!turn.hasTurn) return;
    turn.hasTurn = false;
    this.#group.pass();
  }

  readonly #rethrow = (error: unknown): never => {
    throw sqliteError(error, this.#file);
  };
}
