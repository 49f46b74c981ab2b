import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, existsSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { DatabaseSync } from 'node:sqlite';
import t, { type Test } from 'tap';
import { openHistory, openStore } from '../../../src/agent/index.ts';
import { migrations } from '../../../src/agent/store/migrations.ts';
import { program } from '../../programs.ts';
import { event, temporaryDirectory } from './helpers.ts';

const appender = program('test/agent/store/appender.ts');

/** Another process that has the store open: `appender.ts`. */
function otherProcess(t: Test, directory: string) {
  const child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', appender, directory], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  t.teardown(() => child.kill('SIGKILL'));
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  return {
    async append(sessionKey: string): Promise<number> {
      child.stdin.write(`${sessionKey}\n`);
      return Number((await lines.next()).value);
    },
    async end(): Promise<void> {
      child.stdin.end();
      await once(child, 'close');
    },
  };
}

t.test('a reader sees the events of another process and continues after its end', async (t) => {
  const directory = temporaryDirectory(t);
  const writer = otherProcess(t, directory);
  t.equal(await writer.append('a'), 1);
  const history = openHistory(directory);
  t.teardown(() => history.close());
  const reader = history.traces;
  t.equal(reader.newestId, 1);
  t.match(reader.session('a'), { turnCount: 1, firstInput: 'a', lastStatus: 'running' });
  let seen = reader.newestId;
  for (const key of ['b', 'a', 'c']) {
    const id = await writer.append(key);
    const [next, ...rest] = reader.since(seen, 100);
    t.match(next, { id, sessionKey: key, data: { text: key } });
    t.same(rest, []);
    seen = reader.newestId;
    t.equal(seen, id);
  }
  t.match(reader.totals(), { sessionCount: 3, turnCount: 4, eventCount: 4 });
  await writer.end();
  t.equal(reader.recent(9).length, 4);
  const again = otherProcess(t, directory);
  t.equal(await again.append('d'), 5, 'nor does it keep another from starting');
  t.match(reader.since(seen, 9), [{ id: 5 }]);
  await again.end();
});

t.test('a reader works without an agent server and changes nothing', async (t) => {
  const directory = temporaryDirectory(t);
  const store = openStore(directory);
  store.traces.append(event('a'));
  store.close();
  const history = openHistory(directory);
  const reader = history.traces;
  t.equal(reader.sessions({ limit: 9 }).length, 1);
  history.close();
  history.close();
  t.throws(() => reader.totals(), { name: 'StorageError', code: 'failed' });
  const files = readdirSync(directory).filter((name) => !/^state\.db(-wal|-shm)?$/.test(name));
  t.same(files, []);
  t.notOk('append' in reader || 'deleteSession' in reader);
});

t.test('a missing database is not created', async (t) => {
  const directory = temporaryDirectory(t);
  const missing = { name: 'StorageError', code: 'failed', message: /no agent server has run/ } as const;
  t.throws(() => openHistory(directory), missing);
  t.throws(() => openHistory(join(directory, 'none')), missing);
  t.same(readdirSync(directory), []);
});

t.test('a database of another version is refused by name and unchanged', async (t) => {
  const directory = temporaryDirectory(t);
  openStore(directory).close();
  const versionOf = (version?: number) => {
    const other = new DatabaseSync(join(directory, 'state.db'));
    if (version !== undefined) other.exec(`PRAGMA user_version = ${version}`);
    const row = other.prepare('PRAGMA user_version').get();
    other.close();
    return row?.['user_version'];
  };
  versionOf(migrations.length + 1);
  t.throws(() => openHistory(directory), { name: 'StorageError', code: 'failed', message: /newer version/ });
  t.equal(versionOf(), migrations.length + 1);
  versionOf(migrations.length - 1);
  t.throws(() => openHistory(directory), { code: 'failed', message: /older version.*start the agent server/ });
  t.equal(versionOf(), migrations.length - 1);
});

t.test('an invalid or unreadable database is a typed error', async (t) => {
  const directory = temporaryDirectory(t);
  const file = join(directory, 'state.db');
  writeFileSync(file, 'my diary, and long enough to be the header of something '.repeat(100));
  t.throws(() => openHistory(directory), { name: 'StorageError', code: 'corrupt' });
  t.notOk(existsSync(`${file}-wal`));
  // Permissions do not bind root.
  if (process.getuid?.() === 0) return;
  chmodSync(file, 0o000);
  t.throws(() => openHistory(directory), { name: 'StorageError' });
});
