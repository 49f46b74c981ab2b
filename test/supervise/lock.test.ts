import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { acquireLock, LockError, lockHolder, probeLock } from '../../src/supervise/index.ts';
import { parseLocks } from '../../src/supervise/lock-holder.ts';
import { programEnvironment } from '../programs.ts';
import { fixture, startPlain, temporaryDirectory } from './helpers.ts';

t.test('a lock excludes all others until its release, and leaves only its file', async (t) => {
  const directory = temporaryDirectory(t);
  const file = join(directory, 'hub.mutex');
  t.equal(probeLock(file), 'free');
  t.notOk(existsSync(file), 'asking does not make the file');
  const lock = acquireLock(file);
  if (lock === 'held') return t.fail('held');
  t.equal(acquireLock(file), 'held', 'also for ourselves');
  t.equal(probeLock(file), 'held', 'a probe does not release it');
  const other = await startPlain(t, 'takes-lock', [file]);
  t.equal(other.line, 'held');
  t.equal(statSync(file).mode & 0o777, 0o600);
  t.strictSame(readdirSync(directory), ['hub.mutex'], 'no journal beside it');
  t.ok(lock.intact());
  lock.release();
  lock.release();
  t.notOk(lock.intact());
  t.equal(probeLock(file), 'free');
  t.strictSame(readdirSync(directory), ['hub.mutex']);
});

t.test('regression: edge 1 the kernel names the holder of a lock', async (t) => {
  const file = join(temporaryDirectory(t), 'hub.mutex');
  t.equal(lockHolder(file), null, 'no file');
  const { child, pid } = await startPlain(t, 'takes-lock', [file]);
  t.equal(lockHolder(file), process.platform === 'linux' ? pid : null);
  child.kill('SIGKILL');
  await once(child, 'exit');
  t.equal(lockHolder(file), null, 'a dead process holds nothing');
  t.same(
    parseLocks(
      '1: POSIX  ADVISORY  WRITE 4711 fd:01:131 1073741824 1073742335\n1: -> POSIX  ADVISORY  WRITE 9 fd:01:131 0 EOF\n2: FLOCK  ADVISORY  WRITE 8 fd:01:132 0 EOF\n',
    ),
    [{ pid: 4711, device: 'fd:01', inode: 131n }],
    'one that waits, and a lock of another kind, hold nothing',
  );
});

t.test('the lock of a killed holder is free at once', async (t) => {
  const directory = temporaryDirectory(t);
  const file = join(directory, 'hub.mutex');
  const holder = await startPlain(t, 'takes-lock', [file]);
  t.equal(holder.line, 'locked');
  t.equal(probeLock(file), 'held');
  t.equal(acquireLock(file), 'held');
  holder.child.kill('SIGKILL');
  await once(holder.child, 'exit');
  t.strictSame(readdirSync(directory), ['hub.mutex'], 'and it leaves no journal');
  const lock = acquireLock(file);
  t.not(lock, 'held');
  if (lock !== 'held') lock.release();
});

t.test('a deleted lock file is detected', async (t) => {
  const file = join(temporaryDirectory(t), 'hub.mutex');
  const lock = acquireLock(file);
  if (lock === 'held') return t.fail('held');
  rmSync(file);
  t.notOk(lock.intact());
  writeFileSync(file, '');
  t.notOk(lock.intact(), 'another file of that name is not it');
  lock.release();
});

t.test('a path that cannot be locked is an error that names it, and unknown to a probe', async (t) => {
  const directory = temporaryDirectory(t);
  const file = join(directory, 'not-a-lock');
  writeFileSync(file, 'something else entirely, and long enough to be a header of some kind '.repeat(20));
  t.throws(() => acquireLock(file), LockError);
  t.throws(() => acquireLock(file), { message: new RegExp(file) });
  t.equal(probeLock(file), 'unknown');
  t.throws(() => acquireLock(file), { message: /is not empty.*Move it aside/ });
  mkdirSync(join(directory, 'folder'));
  t.throws(() => acquireLock(join(directory, 'folder')), LockError);
  t.throws(() => acquireLock(join(directory, 'nowhere', 'x.mutex')), LockError);
});

t.test('the mode of a lock file open to others is restricted', async (t) => {
  const file = join(temporaryDirectory(t), 'hub.mutex');
  writeFileSync(file, '', { mode: 0o644 });
  const lock = acquireLock(file);
  t.equal(statSync(file).mode & 0o777, 0o600);
  if (lock !== 'held') lock.release();
});

t.test('sqlite is loaded with the first lock, without its warning and with all other warnings', async (t) => {
  const args = ['--disable-warning=StripTypes', fixture('first-lock'), join(temporaryDirectory(t), 'x.mutex')];
  const output = execFileSync(process.execPath, args, {
    env: programEnvironment,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  t.notMatch(output, /SQLite/);
  t.match(output, 'warning mine');
  t.match(output, 'false true');
});
