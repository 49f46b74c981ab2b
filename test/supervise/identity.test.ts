import { once } from 'node:events';
import fc from 'fast-check';
import t from 'tap';
import { isAlive, ownIdentity, readIdentity } from '../../src/supervise/index.ts';
import { parseStat } from '../../src/supervise/procfs.ts';
import { parsePsLine } from '../../src/supervise/ps.ts';
import { startPlain, until } from './helpers.ts';

t.test('a live process is alive, and its identity does not change', async (t) => {
  const own = ownIdentity();
  t.equal(own.pid, process.pid);
  t.strictSame(readIdentity(process.pid), own);
  t.equal(isAlive(own), 'alive');
});

t.test('a pid that somebody else has now is gone', async (t) => {
  t.equal(isAlive({ ...ownIdentity(), startedTicks: '1' }), 'gone');
});

t.test('a record of another boot is gone, whatever has its pid', async (t) => {
  t.equal(isAlive({ ...ownIdentity(), bootId: '00000000-0000-0000-0000-000000000000' }), 'gone');
});

t.test('a pid of another namespace cannot be judged', async (t) => {
  t.equal(isAlive({ ...ownIdentity(), pidNamespace: '1' }), 'unknown');
});

t.test('an identity without start time is unknown while the pid exists, and gone when it does not', async (t) => {
  const { child, pid } = await startPlain(t, 'waits');
  const vague = { ...ownIdentity(), pid, startedTicks: '' };
  t.equal(isAlive(vague), 'unknown');
  t.equal(isAlive({ ...vague, bootId: '' }), 'unknown');
  child.kill('SIGKILL');
  await once(child, 'exit');
  t.equal(isAlive(vague), 'gone');
  t.equal(isAlive({ ...vague, bootId: '' }), 'gone');
});

t.test('a process that has ended is gone, before and after it is reaped', async (t) => {
  const { child, pid } = await startPlain(t, 'waits');
  const identity = readIdentity(pid);
  if (typeof identity === 'string') return t.fail(identity);
  const exit = once(child, 'exit');
  child.kill('SIGKILL');
  // Without a turn of the event loop nobody reaps it: it becomes a zombie under our eyes.
  const deadline = performance.now() + 10_000;
  while (isAlive(identity) !== 'gone' && performance.now() < deadline);
  t.equal(isAlive(identity), 'gone');
  t.equal(readIdentity(pid), 'gone');
  await exit;
  await until('gone', () => isAlive(identity) === 'gone');
});

t.test('a command name cannot forge the fields of /proc/PID/stat', async (t) => {
  const rest = `S 7 42 42 0 -1 4194560 ${Array.from({ length: 12 }, (_, i) => i).join(' ')} 987654 0 0`;
  fc.assert(
    fc.property(fc.string({ maxLength: 15 }), (name) => {
      const entry = parseStat(`1234 (${name}) ${rest}`);
      t.match(entry, { pid: 1234, parent: 7, group: 42, zombie: false, startedTicks: '987654' });
    }),
    { numRuns: 200 },
  );
  t.match(parseStat('5 (a) Z 1 5 5'), undefined);
  t.equal(parseStat(''), undefined);
});

t.test('lines of ps are read on systems without /proc', async (t) => {
  t.strictSame(parsePsLine('  501     1   501 Ss   Sat Nov 21 08:00:00 2026    '), {
    pid: 501,
    parent: 1,
    group: 501,
    zombie: false,
    startedTicks: 'Sat Nov 21 08:00:00 2026',
  });
  t.match(parsePsLine('7 1 7 Z+ Sat Nov  1 08:00:00 2026'), { zombie: true, startedTicks: 'Sat Nov 1 08:00:00 2026' });
  t.equal(parsePsLine('ps: illegal option'), undefined);
});
