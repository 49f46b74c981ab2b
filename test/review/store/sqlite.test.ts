import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { DatabaseSync } from 'node:sqlite';
import { setImmediate as turn } from 'node:timers/promises';
import { Kysely, sql } from 'kysely';
import t, { type Test } from 'tap';
import { openReviewStore } from '../../../src/review/store/index.ts';
import { migrate, migrations } from '../../../src/review/store/migrations.ts';
import { nodeSqliteDialect } from '../../../src/review/store/sqlite/dialect.ts';
import { openSqlite } from '../../../src/review/store/sqlite/open.ts';
import { program } from '../../programs.ts';
import { facts, quiet, sqliteSubject, temporaryDirectory, wanted } from './databases.ts';

const modeOf = (path: string) => statSync(path).mode & 0o777;
const open = (directory: string) => openReviewStore({ directory, owner: 'one', logger: quiet });

t.test('only the owner can access the database files', async (t) => {
  const directory = join(temporaryDirectory(t), 'deep', 'state');
  const store = await open(directory);
  await store.setFact('a', 'b');
  const file = join(directory, 'backend.db');
  for (const each of [file, `${file}-wal`, `${file}-shm`]) t.equal(modeOf(each), 0o600);
  t.equal(modeOf(directory), 0o700);
  await store.close();
  chmodSync(file, 0o644);
  await (await open(directory)).close();
  t.equal(modeOf(file), 0o600, 'one that others could read is closed to them');
});

t.test('an unusable file is a typed error and stays unchanged', async (t) => {
  const directory = temporaryDirectory(t);
  const file = join(directory, 'backend.db');
  writeFileSync(file, 'this is no database, but it is somebody’s text. '.repeat(100));
  const before = readFileSync(file);
  await t.rejects(open(directory), { name: 'ReviewStoreError', code: 'databaseCorrupt', isRetryable: false });
  t.strictSame(readFileSync(file), before);
  const taken = join(directory, 'taken');
  mkdirSync(join(taken, 'backend.db'), { recursive: true });
  await t.rejects(open(taken), { name: 'ReviewStoreError' });
  await t.rejects(open(join(file, 'below')), { name: 'ReviewStoreError' });
  await t.rejects(openReviewStore({ owner: 'one', logger: quiet }), TypeError);
});

t.test('opening the database alone makes work of an exited process available at once', async (t) => {
  const directory = temporaryDirectory(t);
  const hour = 3_600_000;
  const gone = await open(directory);
  await gone.enqueueJob({ kind: 'sync', key: 'a', payload: {} });
  const [job] = await gone.claimJobs('gone', ['sync'], 1, hour);
  await gone.takeRoles(['sync'], 'gone', hour);
  const others = await open(directory);
  t.strictSame(await others.claimJobs('other', ['sync'], 1, hour), []);
  const alone = await openReviewStore({ directory, owner: 'new', isAlone: true, logger: quiet });
  t.ok((await alone.takeRoles(['sync'], 'new', hour)).has('sync'));
  t.match(await alone.claimJobs('new', ['sync'], 1, hour), [{ jobId: job?.jobId, attempt: 2 }]);
  t.equal(job && (await gone.completeJob(job)), false, 'its token is worth nothing');
  await Promise.all([gone, others, alone].map((store) => store.close()));
});

t.test('an older schema is migrated; a newer one is rejected', async (t) => {
  const directory = temporaryDirectory(t);
  const stores = await Promise.all([open(directory), open(directory)]);
  await stores[0]?.setFact('a', 'b');
  await Promise.all(stores.map((store) => store.close()));
  const file = join(directory, 'backend.db');
  const database = await openSqlite(file);
  const steps = [...migrations, () => ['ALTER TABLE "facts" ADD COLUMN "more" text', 'UPDATE "facts" SET "more" = 1']];
  await t.rejects(
    database.write((rows) => migrate(rows, 'sqlite', file, [...steps, () => ['SELECT nothing']])),
    { name: 'ReviewStoreError' },
    'a step that fails',
  );
  const columns = (names: string) =>
    database.read(async (rows) => (await sql`SELECT ${sql.raw(names)} FROM "facts"`.execute(rows)).rows);
  t.match(await columns('count(*) AS "count"'), [{ count: 1 }]);
  await t.rejects(columns('"more"'), { code: 'databaseFailed' }, 'takes all of it back');
  await database.write((rows) => migrate(rows, 'sqlite', file, steps));
  t.match(await columns('"name", "value", "more"'), [{ name: 'a', value: 'b', more: '1' }]);
  await database.close();
  await t.rejects(open(directory), { code: 'databaseNewer', message: /newer version/, isRetryable: false });
});

t.test('migrating version 1 to the present one adds columns and retains the rows', async (t) => {
  const directory = temporaryDirectory(t);
  const file = join(directory, 'backend.db');
  const database = await openSqlite(file);
  await database.write(async (rows) => {
    for (const table of ['items', 'runs'])
      await sql.raw(`ALTER TABLE "${table}" DROP COLUMN "deliveryId"`).execute(rows);
    await sql.raw(`ALTER TABLE "drafts" DROP COLUMN "dropped"`).execute(rows);
    await sql.raw(`DROP INDEX "deliveriesByDigest"`).execute(rows);
    await sql.raw(`ALTER TABLE "deliveries" DROP COLUMN "digest"`).execute(rows);
    await sql`UPDATE "schemaVersion" SET "version" = 1`.execute(rows);
    await sql`INSERT INTO "facts" VALUES ('a', 'b')`.execute(rows);
  });
  await database.close();
  const store = await open(directory);
  t.teardown(() => store.close());
  t.equal(await store.fact('a'), 'b');
  await store.syncRepositories([wanted()]);
  t.match(await store.upsertItem(facts(1), 'delivery'), { item: { deliveryId: 'delivery' } });
});

t.test('a failing transaction leaves others of its commit intact', async (t) => {
  const store = await sqliteSubject(t).open();
  await store.syncRepositories([wanted()]);
  const results = await Promise.allSettled([
    store.upsertItem(facts(1)),
    store.upsertItem({ ...facts(2), repositoryKey: 'github:github.com/octo/none' }),
    store.upsertItem(facts(3)),
  ]);
  t.strictSame(
    results.map(({ status }) => status),
    ['fulfilled', 'rejected', 'fulfilled'],
  );
  t.strictSame(
    (await store.items({ limit: 9 })).rows.map(({ number }) => number),
    [3, 1],
  );
});

t.test('a write resolves after its commit', async (t) => {
  const subject = sqliteSubject(t);
  const store = await subject.open();
  if (!('directory' in subject.where)) return;
  const other = new DatabaseSync(join(subject.where.directory, 'backend.db'));
  t.teardown(() => other.close());
  const count = other.prepare('SELECT count(*) AS "count" FROM "facts"');
  await Promise.all(
    Array.from({ length: 700 }, async (_, n) => {
      await store.setFact(`fact ${n}`, '');
      if (Number(count.get()?.['count']) <= n) t.fail(`fact ${n} was reported and is not there`);
    }),
  );
  t.equal(count.get()?.['count'], 700);
});

t.test('a write waits for another writer without blocking the event loop', async (t) => {
  const subject = sqliteSubject(t);
  const store = await subject.open();
  if (!('directory' in subject.where)) return;
  const other = new DatabaseSync(join(subject.where.directory, 'backend.db'));
  t.teardown(() => other.close());
  other.exec('BEGIN IMMEDIATE');
  let isWritten = false;
  const writing = store.setFact('a', 'b').then(() => {
    isWritten = true;
  });
  for (let n = 0; n < 20; n += 1) await turn();
  t.equal(await store.fact('a'), undefined, 'reading goes on');
  t.equal(isWritten, false);
  other.exec('COMMIT');
  await writing;
  t.equal(await store.fact('a'), 'b');
});

t.test('a nested transaction is rejected, and so is any on the reading connection', async (t) => {
  const sqlite = new DatabaseSync(':memory:');
  const kysely = new Kysely<Record<string, never>>({ dialect: nodeSqliteDialect(sqlite, { file: 'x', writes: true }) });
  t.teardown(() => sqlite.close());
  await t.rejects(kysely.transaction().execute((rows: typeof kysely) => rows.transaction().execute(async () => {})));
  const reader = new Kysely<Record<string, never>>({
    dialect: nodeSqliteDialect(sqlite, { file: 'x', writes: false }),
  });
  await t.rejects(reader.transaction().execute(async () => {}));
});

const worker = program('test/review/store/store-worker.ts');

async function untilItEnds(
  t: Test,
  directory: string,
): Promise<{ readonly accepted: string[]; readonly errors: string }> {
  const order = JSON.stringify({ where: { directory }, owner: 'full', mode: 'intake' });
  // Blocks of 512 bytes (POSIX), or of 1024: half a megabyte or one.
  const limited = ['-c', 'ulimit -f 1024; exec "$@"', 'sh', process.execPath, '--disable-warning=ExperimentalWarning'];
  const child = spawn('sh', [...limited, worker, order], { stdio: ['ignore', 'pipe', 'pipe'] });
  t.teardown(() => child.kill('SIGKILL'));
  const accepted: string[] = [];
  let errors = '';
  child.stderr.on('data', (bytes) => {
    errors += bytes;
  });
  createInterface({ input: child.stdout }).on('line', (line) => accepted.push(line));
  await once(child, 'close');
  return { accepted, errors };
}

t.test('a full disk is a typed error, and accepted writes stay', { timeout: 120_000 }, async (t) => {
  const directory = temporaryDirectory(t);
  const { accepted, errors } = await untilItEnds(t, directory);
  t.match(errors, /databaseFull/);
  t.ok(accepted.length > 0);
  const store = await open(directory);
  t.teardown(() => store.close());
  const kept = new Set<string>();
  for (let cursor: string | undefined; ; ) {
    const page = await store.deliveries({ limit: 1_000, ...(cursor !== undefined && { cursor }) });
    for (const { deliveryId } of page.rows) kept.add(deliveryId);
    cursor = page.next;
    if (cursor === undefined) break;
  }
  t.strictSame(
    accepted.filter((id) => !kept.has(id)),
    [],
  );
  await store.setFact('room', 'again');
});
