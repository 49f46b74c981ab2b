/** The two databases that every test of the store runs on, and things to put into them. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as pause, setImmediate as turn } from 'node:timers/promises';
import pg from 'pg';
import type { Test } from 'tap';
import { createLogger, type Logger } from '../../../src/log/index.ts';
import { type ItemFacts, openReviewStore, type ReviewStore, type StoredItem } from '../../../src/review/store/index.ts';
import { type Postgres, startPostgres } from '../postgres.ts';

export const quiet: Logger = createLogger({ name: 'test', level: 'silent' });

/** One empty database. */
export interface Subject {
  readonly kind: 'sqlite' | 'postgres';
  /** Options that open it. */
  readonly where: { readonly connectionString: string } | { readonly directory: string };
  /** A store on it, closed at the end of the test; several of them are replicas. */
  open(owner?: string): Promise<ReviewStore>;
  /** SQL past the store: makes time pass, or breaks things. */
  sql(text: string): Promise<readonly Record<string, unknown>[]>;
}

type Body = (t: Test, subject: Subject) => Promise<unknown>;

/** Runs `body` on an empty database of either kind. It must not change tables. `isNew`: without tables. */
export function onBoth(t: Test, name: string, body: Body, { isNew = false } = {}): void {
  t.test(`${name} (SQLite)`, (t) => body(t, sqliteSubject(t)));
  t.test(`${name} (PostgreSQL)`, async (t) => await body(t, await postgresSubject(t, { isNew })));
}

/** The server learns a moment later than its client that a connection was closed. */
const others = `SELECT 1 FROM pg_stat_activity
  WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'`;
/** `TRUNCATE` would make new files for every table and index, which costs more than the few rows that a test leaves. */
const emptyAll = `DO $$
  DECLARE each record;
  BEGIN
    SET LOCAL session_replication_role = replica;
    FOR each IN SELECT tablename FROM pg_tables WHERE schemaname = 'public' AND tablename <> 'schemaVersion' LOOP
      EXECUTE format('DELETE FROM %I', each.tablename);
    END LOOP;
    FOR each IN SELECT sequencename, start_value FROM pg_sequences WHERE schemaname = 'public' LOOP
      PERFORM setval(format('%I', each.sequencename)::regclass, each.start_value, false);
    END LOOP;
  END $$`;

/** Databases of tests that have ended. */
const used: string[] = [];

/** A used database without its rows, which costs a tenth of a new one; undefined while a client is connected to it. */
async function emptied(): Promise<string | undefined> {
  const connectionString = used.pop();
  if (connectionString === undefined) return undefined;
  const client = new pg.Client(connectionString);
  await client.connect();
  try {
    for (let look = 1; (await client.query(others)).rows.length > 0; look += 1) {
      if (look === 100) return undefined;
      await pause(10);
    }
    await client.query(emptyAll);
    return connectionString;
  } finally {
    await client.end();
  }
}

/** Histories that a property is tried with: the statements are the same, and each costs a way to the server and back. */
export const runsOn = ({ kind }: Subject): number => (kind === 'sqlite' ? 40 : 10);

let server: Promise<Postgres> | undefined;

/** The server of this test file, started when it is first asked for. `t`: the one that ends last. */
export function postgres(): Promise<Postgres> {
  server ??= startPostgres();
  return server;
}
/** To be the teardown of the file. */
export async function stopPostgres(): Promise<void> {
  const running = server;
  // The next file of this process starts its own.
  server = undefined;
  used.length = 0;
  await (await running)?.stop();
}

export function temporaryDirectory(t: Test): string {
  const directory = mkdtempSync(join(tmpdir(), 'oratorio-store-'));
  t.teardown(() => rmSync(directory, { recursive: true, force: true }));
  return directory;
}

const busy = 5;

/** A store of this very process may be writing: it can only end that when the event loop turns. */
async function pastTheStore(file: string, text: string): Promise<readonly Record<string, unknown>[]> {
  for (;;) {
    await turn();
    const sqlite = new DatabaseSync(file, { timeout: 0 });
    try {
      return sqlite.prepare(text).all();
    } catch (error) {
      if (((error as { errcode?: number }).errcode ?? 0) % 256 !== busy) throw error;
    } finally {
      sqlite.close();
    }
  }
}

export function sqliteSubject(t: Test): Subject {
  const directory = temporaryDirectory(t);
  return {
    kind: 'sqlite',
    where: { directory },
    open: (owner = 'one') => opened(t, { directory, owner }),
    sql: (text) => pastTheStore(join(directory, 'backend.db'), text),
  };
}

/** An empty database. `isNew`: without tables; `changesTables`: no later test gets it. */
export async function postgresSubject(
  t: Test,
  { isNew = false, changesTables = false }: { readonly isNew?: boolean; readonly changesTables?: boolean } = {},
): Promise<Subject> {
  const connectionString = (isNew ? undefined : await emptied()) ?? (await (await postgres()).database());
  if (!changesTables) t.teardown(() => used.push(connectionString));
  return subjectAt(t, connectionString);
}

function subjectAt(t: Test, connectionString: string): Subject {
  const pool = new pg.Pool({ connectionString, max: 1 });
  // The server may be stopped; the next query connects again.
  pool.on('error', () => {});
  t.teardown(() => pool.end());
  return {
    kind: 'postgres',
    where: { connectionString },
    open: (owner = 'one') => opened(t, { connectionString, owner }),
    sql: async (text) => (await pool.query(text)).rows,
  };
}

async function opened(
  t: Test,
  options: { readonly owner: string } & Partial<Record<'connectionString' | 'directory', string>>,
): Promise<ReviewStore> {
  const store = await openReviewStore({ ...options, logger: quiet });
  t.teardown(() => store.close());
  return store;
}

export const repositoryKey = 'github:github.com/octo/hello';

export const wanted = (name = 'hello', autoReview = false) => ({
  repositoryKey: `github:github.com/octo/${name}`,
  instance: 'github.com',
  owner: 'octo',
  name,
  autoReview,
});

export const facts = (number: number, change: Partial<ItemFacts> = {}): ItemFacts => ({
  repositoryKey,
  number,
  title: `Change ${number}`,
  description: '',
  author: 'alice',
  authorAssociation: 'MEMBER',
  isBot: false,
  state: 'open',
  isDraft: false,
  isFork: false,
  labels: [],
  baseRef: 'main',
  baseSha: 'base',
  headRef: `feature-${number}`,
  headSha: `head-${number}`,
  url: `https://github.com/octo/hello/pull/${number}`,
  updatedAt: 1_700_000_000_000 + number,
  ...change,
});

/** A store with a repository and an item in it. */
export async function withItem(subject: Subject, number = 1): Promise<{ store: ReviewStore; item: StoredItem }> {
  const store = await subject.open();
  await store.syncRepositories([wanted()]);
  const { item } = await store.upsertItem(facts(number));
  return { store, item };
}

export const wishFor = (item: StoredItem, change: Partial<Parameters<ReviewStore['enqueueRun']>[0]> = {}) => ({
  itemId: item.itemId,
  repositoryKey: item.repositoryKey,
  number: item.number,
  trigger: 'manual' as const,
  scope: 'full' as const,
  focus: null,
  headSha: item.headSha,
  baseSha: item.baseSha,
  sinceSha: null,
  ...change,
});

export const many = { global: 1_000, perRepository: 1_000, perSource: 1_000 };

/** Claims the next run, which there must be. */
export async function claimed(store: ReviewStore, owner = 'one', leaseMs = 60_000) {
  const claim = await store.claimRun(owner, leaseMs, many);
  if (!claim) throw new Error('There is no run to claim');
  return claim;
}
