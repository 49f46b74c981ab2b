import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import t from 'tap';
import { isAlive, ownIdentity, readIdentity } from '../../src/supervise/index.ts';
import { parseStat } from '../../src/supervise/procfs.ts';
import { parsePsLine } from '../../src/supervise/ps.ts';
import { startPlain, until } from './helpers.ts';

t.test('a running process is alive, and its identity does not change', async (t) => {
  const own = ownIdentity();
  t.equal(own.pid, process.pid);
  t.strictSame(readIdentity(process.pid), own);
  t.equal(isAlive(own), 'alive');
});

t.test('an identity whose pid belongs to another process is gone', async (t) => {
  t.equal(isAlive({ ...ownIdentity(), startedTicks: '1' }), 'gone');
});

t.test('an identity of another boot is gone', async (t) => {
  t.equal(isAlive({ ...ownIdentity(), bootId: '00000000-0000-0000-0000-000000000000' }), 'gone');
});

t.test('an identity of another pid namespace is unknown', async (t) => {
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
  // Without a turn of the event loop the child is not reaped and stays a zombie.
  const deadline = performance.now() + 60_000;
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

t.test('a process is a zombie once its last thread is', async (t) => {
  const line = (state: string, threads: number) =>
    `5 (a) ${state} 1 5 5 0 -1 4194560 ${Array.from({ length: 10 }, () => 0).join(' ')} ${threads} 0 987654 0 0`;
  t.match(parseStat(line('Z', 1)), { zombie: true, startedTicks: '987654' });
  t.match(parseStat(line('Z', 11)), { zombie: false }, 'the first thread has ended, others hold ports and locks');
  t.match(parseStat(line('X', 0)), { zombie: true });
});

t.test('the port of a process is free once the process is gone', async (t) => {
  const pause = new Int32Array(new SharedArrayBuffer(4));
  for (let round = 0; round < 10; round++) {
    const { child, pid, line } = await startPlain(t, 'never-answers');
    const identity = readIdentity(pid);
    if (typeof identity === 'string') return t.fail(identity);
    child.kill('SIGKILL');
    // Without a turn of the event loop, to see the very moment; its threads need a processor to die.
    while (isAlive(identity) !== 'gone') Atomics.wait(pause, 0, 0, 0.1);
    if (isListening(Number(line))) t.fail(`round ${round}: port ${line} outlives its process`);
    if (child.signalCode === null) await once(child, 'exit');
  }
  t.pass('10 rounds');
});

/** Whether some socket of this machine is in state LISTEN (0A) on this port of 127.0.0.1. */
function isListening(port: number): boolean {
  if (process.platform !== 'linux') return false;
  const address = `0100007F:${port.toString(16).toUpperCase().padStart(4, '0')}`;
  return readFileSync('/proc/net/tcp', 'utf8')
    .split('\n')
    .map((row) => row.trim().split(/\s+/))
    .some(([, local, , state]) => local === address && state === '0A');
}

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
