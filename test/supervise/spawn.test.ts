import { chmodSync, readdirSync, readFileSync, realpathSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { adoptManaged, isAlive, readIdentity, SpawnError, spawnManaged } from '../../src/supervise/index.ts';
import {
  endWithTest,
  firstLine,
  fixture,
  isStopped,
  newMarker,
  nothingLeft,
  start,
  startPlain,
  temporaryDirectory,
  until,
} from './helpers.ts';

t.test('the exit of a process is reported also to a later listener', async (t) => {
  const child = await start(t, 'exits-at-once');
  t.equal(child.identity.pid, child.pid);
  t.match(child.identity.startedTicks, /^\d+$/);
  t.strictSame(await child.exited, { exitCode: 0, signal: null, observed: true });
  await child.gone();
  t.equal(isAlive(child.identity), 'gone');
});

t.test('exit codes and signals are distinguished', async (t) => {
  const failing = await start(t, 'exits-with-code', ['3']);
  t.strictSame(await failing.exited, { exitCode: 3, signal: null, observed: true });
  const waiting = await start(t, 'waits');
  await firstLine(waiting);
  t.equal(waiting.terminate(), 'sent');
  t.strictSame(await waiting.exited, { exitCode: null, signal: 'SIGTERM', observed: true });
  t.equal(waiting.terminate(), 'gone', 'signalling what has gone is no error');
  t.strictSame(await waiting.kill(), { ended: 0, remaining: [], uncertain: false });
});

t.test(
  'a managed process leads its own group, appends to private logs, and gets input, directory and environment',
  async (t) => {
    const logDirectory = temporaryDirectory(t);
    writeFileSync(join(logDirectory, 'stdout.log'), 'before\n', { mode: 0o644 });
    const marker = newMarker();
    const input = `${'é'.repeat(200_000)}\n`;
    const child = await start(t, 'echoes-stdin', [], { logDirectory, stdin: input, marker });
    t.not(readIdentity(child.pid), 'gone');
    t.match(await child.exited, { exitCode: 0 });
    t.equal(readFileSync(child.logs.stdout, 'utf8'), `before\n${input}|${marker}`);
    t.equal(statSync(child.logs.stdout).mode & 0o777, 0o600);
    t.equal(statSync(child.logs.stderr).mode & 0o777, 0o600);
  },
);

t.test('a child that never reads its input causes no error', async (t) => {
  const child = await start(t, 'closes-stdin', [], { stdin: 'x'.repeat(2_000_000) });
  t.equal(await firstLine(child), 'ready');
  const lazy = await start(t, 'waits', [], { stdin: 'x'.repeat(2_000_000) });
  t.equal(await firstLine(lazy), 'ready');
  await lazy.kill();
  t.match(await lazy.exited, { signal: 'SIGKILL' });
});

t.test('a failed spawn is a typed error that names the faulty file', async (t) => {
  const directory = realpathSync(temporaryDirectory(t));
  const plain = join(directory, 'plain');
  const script = join(directory, 'script');
  writeFileSync(plain, 'not a program');
  writeFileSync(script, '#!/nowhere/interpreter\n');
  chmodSync(script, 0o755);
  const attempt = (changes: object) =>
    spawnManaged({
      command: process.execPath,
      args: [],
      cwd: directory,
      env: {},
      logDirectory: directory,
      marker: newMarker(),
      logBytes: 1_000,
      ...changes,
    });
  await t.rejects(attempt({ command: join(directory, 'absent') }), {
    name: 'SpawnError',
    code: 'ENOENT',
    message: /absent: no such program/,
  });
  await t.rejects(attempt({ command: plain }), { code: 'EACCES', message: /plain: it is not executable/ });
  await t.rejects(attempt({ command: script }), { code: 'ENOENT', message: /script: its interpreter/ });
  await t.rejects(attempt({ cwd: join(directory, 'left') }), { code: 'ENOENT', message: /its directory .*left/ });
  await t.rejects(attempt({ logDirectory: join(directory, 'nowhere') }), { code: 'ENOENT', message: /nowhere.stdout/ });
  await t.rejects(attempt({ args: ['nul\0byte'] }), SpawnError);
  const before = openFiles();
  await t.rejects(attempt({ command: join(directory, 'absent') }), SpawnError);
  await until('no file is leaked', () => openFiles() <= before);
});

t.test('a process suspended by SIGSTOP is resumed to be terminated', async (t) => {
  const child = await start(t, 'stops-itself');
  await firstLine(child);
  await until('stopped', () => isStopped(child.pid));
  child.terminate();
  t.match(await child.exited, { exitCode: 7 });
});

t.test('the exit is reported while a descendant holds the output open', async (t) => {
  const child = await start(t, 'holds-stdout-after-exit');
  t.match(await child.exited, { exitCode: 0 });
  t.match(await child.sweep(), { ended: 1, remaining: [] });
  await child.gone();
});

t.test('a managed process and its log outlive their parent, killed by SIGKILL', async (t) => {
  const logDirectory = temporaryDirectory(t);
  const marker = newMarker();
  const parent = await startPlain(t, 'spawns-counter', [fixture('counts'), logDirectory, marker]);
  const child = adoptManaged(JSON.parse(parent.line), { logDirectory, marker, pollMs: 20 });
  endWithTest(t, child);
  await firstLine(child);
  parent.child.kill('SIGKILL');
  await until('the parent has gone', () => parent.child.signalCode !== null);
  const lines = () => readFileSync(child.logs.stdout, 'utf8').split('\n').length;
  const soFar = lines();
  await until('it keeps writing', () => lines() > soFar + 3);
  t.equal(isAlive(child.identity), 'alive');
  t.equal(child.terminate(), 'sent');
  t.strictSame(await child.exited, { exitCode: null, signal: null, observed: false });
  await child.gone();
});

/** Descriptors that this process has open. */
const openFiles = (): number => (process.platform === 'linux' ? readdirSync('/proc/self/fd').length : 0);

nothingLeft(t);
