import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, readdirSync, readFileSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import t, { type Test } from 'tap';
import { Database } from '../../../src/agent/store/database.ts';
import { openStore } from '../../../src/agent/store/index.ts';
import { migrate, migrations } from '../../../src/agent/store/migrations.ts';
import { SqliteStore } from '../../../src/agent/store/sqlite-store.ts';
import { StorageError, type ThreadStore } from '../../../src/agent/thread-store.ts';
import { programEnvironment } from '../../programs.ts';
import { message, opened, temporaryDirectory, thread, turn } from './helpers.ts';

const modeOf = (file: string): number => statSync(file).mode & 0o777;

/** A closed database with one thread of many turns. @returns its file */
function filled(directory: string): string {
  const { threads, close } = openStore(directory);
  threads.transaction(() => {
    threads.putThread(thread('a'));
    for (let number = 1; number <= 200; number += 1) {
      threads.putTurn(turn('a', number));
      threads.putItem('a', message(number, number, 'x'.repeat(1_000)));
    }
  });
  close();
  return join(directory, 'state.db');
}

/** A store whose database a test can bring to refuse. */
function refusable(t: Test): { database: Database; threads: ThreadStore } {
  const database = new Database(join(temporaryDirectory(t), 'state.db'));
  const ignore = (): void => {};
  const threads = new SqliteStore(database, () => database.close(), ignore);
  t.teardown(() => threads.close());
  return { database, threads };
}

t.test('the database files are readable by their owner only', async (t) => {
  const directory = join(temporaryDirectory(t), 'new', '.oratorio');
  const store = opened(t, directory);
  store.threads.putThread(thread('a'));
  t.equal(modeOf(directory), 0o700);
  t.strictSame(readdirSync(directory).sort(), ['state.db', 'state.db-shm', 'state.db-wal']);
  for (const name of readdirSync(directory)) t.equal(modeOf(join(directory, name)), 0o600, name);
  store.close();
  t.strictSame(readdirSync(directory), ['state.db'], 'one file is left when it is closed');
  chmodSync(join(directory, 'state.db'), 0o644);
  opened(t, directory);
  t.equal(modeOf(join(directory, 'state.db')), 0o600, 'and is tightened');
});

t.test('a reopened store has all data; a closed store can be closed again but not used', async (t) => {
  const directory = temporaryDirectory(t);
  const { threads, traces, close } = openStore(directory);
  threads.putThread(thread('a'));
  threads.close();
  t.equal(threads.threads().length, 1, 'the traces still need the database');
  traces.close();
  close();
  close();
  t.throws(() => threads.threads(), { name: 'StorageError', code: 'failed' });
  t.strictSame(opened(t, directory).threads.threads(), [thread('a')]);
});

t.test('a database is migrated once', async (t) => {
  const file = join(temporaryDirectory(t), 'old.db');
  const sqlite = new DatabaseSync(file);
  t.teardown(() => sqlite.close());
  const steps = ['CREATE TABLE one (x); INSERT INTO one VALUES (1)', 'ALTER TABLE one ADD COLUMN y DEFAULT 2'];
  migrate(sqlite, file, steps.slice(0, 1));
  migrate(sqlite, file, steps);
  migrate(sqlite, file, steps);
  t.match(sqlite.prepare('SELECT * FROM one').all(), [{ x: 1, y: 2 }]);
  t.match(sqlite.prepare('PRAGMA user_version').get(), { user_version: 2 });
});

t.test('a new database has the objects and rows that the migrations make one after the other', async (t) => {
  const [made, migrated] = [new DatabaseSync(':memory:'), new DatabaseSync(':memory:')];
  t.teardown(() => [made, migrated].map((each) => each.close()));
  migrate(made, 'made');
  for (const version of migrations.keys()) migrate(migrated, 'migrated', migrations.slice(0, version + 1));
  const all = (sqlite: DatabaseSync, sql: string) => sqlite.prepare(sql).all();
  const schema = 'SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY type, name';
  t.strictSame(all(made, schema), all(migrated, schema));
  for (const { name } of all(migrated, "SELECT name FROM sqlite_schema WHERE type = 'table'")) {
    t.strictSame(all(made, `SELECT * FROM "${name}"`), all(migrated, `SELECT * FROM "${name}"`), String(name));
  }
  t.match(all(made, 'PRAGMA user_version'), all(migrated, 'PRAGMA user_version'));
  migrate(migrated, 'migrated');
  t.match(
    all(migrated, 'SELECT count(*) AS count FROM traceTotals'),
    [{ count: 1 }],
    'and is accepted as one of the newest version',
  );
});

t.test('a failed migration step changes nothing', async (t) => {
  const file = join(temporaryDirectory(t), 'old.db');
  const sqlite = new DatabaseSync(file);
  t.throws(() => migrate(sqlite, file, ['CREATE TABLE one (x)', 'CREATE TABLE one (x)']));
  sqlite.close();
  const again = new DatabaseSync(file);
  t.teardown(() => again.close());
  t.strictSame(again.prepare('SELECT name FROM sqlite_schema').all(), []);
  t.match(again.prepare('PRAGMA user_version').get(), { user_version: 0 });
});

t.test('a database of a newer version is refused and unchanged', async (t) => {
  const directory = temporaryDirectory(t);
  const file = filled(directory);
  const newer = new DatabaseSync(file);
  newer.exec(`PRAGMA user_version = ${migrations.length + 1}`);
  newer.close();
  const before = readFileSync(file);
  t.throws(() => openStore(directory), { name: 'StorageError', code: 'failed', message: /newer version of Oratorio/ });
  t.ok(readFileSync(file).equals(before));
});

t.test('a file that is not a database is refused by name and unchanged', async (t) => {
  const directory = temporaryDirectory(t);
  const file = join(directory, 'state.db');
  writeFileSync(file, 'my diary, and long enough to be the header of something '.repeat(100));
  const before = readFileSync(file);
  t.throws(() => openStore(directory), { name: 'StorageError', code: 'corrupt', message: new RegExp(file) });
  t.throws(() => openStore(directory), { message: /move it aside/ });
  t.ok(readFileSync(file).equals(before));
  t.strictSame(readdirSync(directory), ['state.db']);
});

t.test('damage is a typed error where it is read; the rest stays readable', async (t) => {
  const directory = temporaryDirectory(t);
  const file = filled(directory);
  const bytes = readFileSync(file);
  // The pages in the middle hold items.
  bytes.fill(0x5a, Math.floor(bytes.length / 2 / 4_096) * 4_096, bytes.length - 8 * 4_096);
  writeFileSync(file, bytes);
  const { threads } = opened(t, directory);
  t.equal(threads.threads().length, 1);
  t.throws(() => threads.turnsSince('a', undefined), { name: 'StorageError', code: 'corrupt', message: /recover/ });
  t.equal(threads.threads().length, 1, 'afterwards too');
});

t.test('a truncated database is a typed error', async (t) => {
  const directory = temporaryDirectory(t);
  const file = filled(directory);
  truncateSync(file, 20 * 4_096);
  t.throws(
    () => {
      const { threads } = opened(t, directory);
      threads.turnsSince('a', undefined);
    },
    { name: 'StorageError', code: 'corrupt' },
  );
});

t.test('an invalid row is a typed error', async (t) => {
  const directory = temporaryDirectory(t);
  const other = new DatabaseSync(filled(directory));
  other.exec(`UPDATE threads SET json = '{"secret'`);
  other.close();
  const { threads } = opened(t, directory);
  t.throws(() => threads.threads(), { name: 'StorageError', code: 'corrupt' });
  t.throws(() => threads.threads(), { message: /^(?!.*secret)/ }, 'that does not quote it');
});

t.test('a full disk undoes the whole transaction; reads continue, and writes succeed once there is room', async (t) => {
  const { database, threads } = refusable(t);
  threads.putThread(thread('a'));
  threads.putTurn(turn('a', 1, { status: 'running' }));
  threads.putItem('a', message(1, 1, 'so ', { status: 'streaming' }));
  threads.appendItemText('a', 'item_1', 'far');
  const before = threads.turns('a', { limit: 9 });
  const pages = Number(database.get('PRAGMA page_count')?.['page_count']);
  database.get(`PRAGMA max_page_count = ${pages + 2}`);
  const refused = { name: 'StorageError', code: 'diskFull', message: /state\.db.*Make room/ } as const;
  const big = 'x'.repeat(100_000);
  t.throws(() => threads.putItem('a', message(1, 2, big)), refused);
  t.throws(() => threads.appendItemText('a', 'item_1', big), refused);
  const attempt = () =>
    threads.transaction(() => {
      threads.putTurn(turn('a', 2));
      try {
        threads.putItem('a', message(2, 2, big));
      } catch {
        // The disk has ended the transaction: later writes must not be committed on their own.
        threads.putTurn(turn('a', 3));
      }
    });
  t.throws(attempt, refused);
  t.strictSame(threads.turns('a', { limit: 9 }), before);
  t.match(threads.unfinishedTurns(), [{ id: 'turn_001' }]);
  database.get(`PRAGMA max_page_count = ${pages + 1_000}`);
  threads.transaction(() => threads.putItem('a', message(1, 1, big)));
  t.match(threads.turns('a', { limit: 9 })[0]?.items, [{ text: big }]);
});

t.test('a read-only database is a typed error for writes and can be read', async (t) => {
  const { database, threads } = refusable(t);
  threads.putThread(thread('a'));
  database.get('PRAGMA query_only = ON');
  const refused = { name: 'StorageError', code: 'readOnly' } as const;
  t.throws(() => threads.putThread(thread('b')), refused);
  t.throws(() => threads.transaction(() => threads.putThread(thread('b'))), refused);
  t.equal(threads.threads().length, 1);
  database.get('PRAGMA query_only = OFF');
  threads.transaction(() => threads.putThread(thread('b')));
  t.equal(threads.threads().length, 2);
});

t.test('an unusable directory is a typed error', async (t) => {
  const directory = temporaryDirectory(t);
  writeFileSync(join(directory, 'file'), '');
  t.throws(() => openStore(join(directory, 'file')), StorageError);
  t.throws(() => openStore(join(directory, 'file', 'below')), StorageError);
  mkdirSync(join(directory, 'state.db'));
  t.throws(() => openStore(directory), StorageError);
  // Permissions do not bind root.
  if (process.getuid?.() === 0) return;
  const closed = join(directory, 'closed');
  mkdirSync(closed, { mode: 0o500 });
  t.throws(() => openStore(closed), { name: 'StorageError', code: 'readOnly' });
});

t.test('a locked database is a typed error', async (t) => {
  const directory = temporaryDirectory(t);
  const { threads } = opened(t, directory);
  const other = new DatabaseSync(join(directory, 'state.db'));
  other.exec('BEGIN IMMEDIATE');
  t.throws(() => threads.putThread(thread('a')), { name: 'StorageError', code: 'busy', message: /locked/ });
  other.close();
  threads.putThread(thread('a'));
  t.equal(threads.threads().length, 1);
});

t.test('sqlite is loaded without a warning when the first store opens', async (t) => {
  const room = fileURLToPath(new URL('../../../src/agent/store/index.ts', import.meta.url));
  const script = `
    const loaded = () => process.moduleLoadList.includes('NativeModule sqlite');
    const { openStore, MemoryStore } = await import(${JSON.stringify(room)});
    new MemoryStore();
    const before = loaded();
    openStore(${JSON.stringify(temporaryDirectory(t))}).close();
    console.log(before, loaded());
  `;
  const output = execFileSync(
    'sh',
    [
      '-c',
      'exec "$0" "$@" 2>&1',
      process.execPath,
      '--input-type=module',
      '--disable-warning=StripTypes',
      '-e',
      script,
    ],
    { env: programEnvironment, encoding: 'utf8' },
  );
  t.match(output, 'false true');
  t.notMatch(output, /SQLite/);
});

t.test('background work of a store does not keep the process alive', { timeout: 100_000 }, async (t) => {
  const room = fileURLToPath(new URL('../../../src/agent/store/index.ts', import.meta.url));
  const helpers = fileURLToPath(new URL('./helpers.ts', import.meta.url));
  const script = `
    const { openStore } = await import(${JSON.stringify(room)});
    const { event, thread } = await import(${JSON.stringify(helpers)});
    const { threads, traces } = openStore(${JSON.stringify(temporaryDirectory(t))});
    for (let count = 0; count < 2000; count += 1) threads.putThread(thread('t' + count));
    traces.append(event('a'));
    traces.deleteSession('a');
    traces.append(event('a'));
  `;
  execFileSync(process.execPath, ['--input-type=module', '-e', script], { timeout: 90_000, stdio: 'ignore' });
  t.pass('it has ended by itself');
});

t.test('checkpoints run in another thread while writes continue', { timeout: 100_000 }, async (t) => {
  const directory = temporaryDirectory(t);
  const { threads, close } = opened(t, directory);
  const text = 'x'.repeat(2_000);
  threads.putThread(thread('a'));
  threads.putTurn(turn('a', 1));
  const size = () => statSync(join(directory, 'state.db')).size;
  const small = size();
  let written = 0;
  // Far less than SQLite would move automatically.
  while (written * text.length < 5_000_000) {
    threads.transaction(() => {
      for (let count = 0; count < 10; count += 1) threads.putItem('a', message(1, ++written, text));
    });
    await new Promise(setImmediate);
  }
  while (size() < small + 1_000_000) await sleep(10);
  close();
  t.strictSame(readdirSync(directory), ['state.db'], 'and the thread has let go of it when it is closed');
  t.equal(opened(t, directory).threads.turns('a', { limit: 1 })[0]?.items.length, written);
});
