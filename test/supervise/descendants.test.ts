/** Processes that leave the group of their ancestor and clear their environment are found and ended; no other process is touched. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import type { ProcessIdentity } from '../../src/protocol/index.ts';
import {
  commandLine,
  endRecorded,
  ownIdentity,
  PipedProcess,
  ProcessRecord,
  readIdentity,
} from '../../src/supervise/index.ts';
import { listPids, readEntry } from '../../src/supervise/procfs.ts';

import { temporaryDirectory } from './helpers.ts';

const word = `1234.${process.pid}`;

/** Processes that sleep for the time of this test, besides zombies. */
const sleepers = (): readonly number[] =>
  listPids().filter((pid) => {
    const entry = readEntry(pid);
    return typeof entry !== 'string' && !entry.zombie && commandLine(pid) === `sleep ${word}`;
  });

async function untilCount(count: number): Promise<void> {
  while (sleepers().length !== count) await new Promise((resolve) => setTimeout(resolve, 20));
}

const start = (script: string, record?: ProcessRecord): Promise<PipedProcess> =>
  PipedProcess.start({
    record,
    command: 'sh',
    args: ['-c', `${script}\ncat`],
    cwd: '/',
    env: { PATH: process.env['PATH'] ?? '' },
    parentMarker: undefined,
    stderrBytes: 100,
    sweepGraceMs: 100,
  });

t.test('descendants of an agent are ended with it', async (t) => {
  const another = spawn('sleep', [word], { detached: true, stdio: 'ignore' });
  const ended = once(another, 'exit');
  // The next test counts sleepers.
  t.teardown(() => {
    another.kill('SIGKILL');
    return ended;
  });
  await untilCount(1);

  t.test('a member of its session with another group and no environment', async (t) => {
    // A shell with job control gives each command a group of its own.
    const one = await start(`env -i bash -c 'set -m; sleep ${word} & exec sleep ${word}' &`);
    await untilCount(3);
    one.kill();
    await one.gone;
    t.same(sleepers(), [another.pid]);
  });

  t.test('a descendant in a session of its own, once it was seen', async (t) => {
    const two = await start(`setsid env -i sh -c 'sleep ${word} & exec sleep ${word}' &`);
    await untilCount(3);
    const seen = await two.descendants?.poll();
    t.ok((seen?.length ?? 0) >= 2, 'both were seen');
    two.kill();
    await two.gone;
    t.same(sleepers(), [another.pid]);
  });
});

/** Identity of a process that lives. */
function identityOf(pid: number): ProcessIdentity {
  const identity = readIdentity(pid);
  if (typeof identity === 'string') throw new Error(`process ${pid} is ${identity}`);
  return identity;
}

/** A process that has ended. */
async function dead(): Promise<ProcessIdentity> {
  const child = spawn('sleep', ['1000']);
  const identity = identityOf(child.pid ?? 0);
  child.kill('SIGKILL');
  await new Promise((resolve) => child.once('exit', resolve));
  return identity;
}

t.test('the seen descendants are stored while the process lives, for the user alone', async (t) => {
  const directory = join(temporaryDirectory(t), 'records');
  const problems: unknown[] = [];
  const one = await start(
    `setsid env -i sleep ${word} &`,
    new ProcessRecord(directory, (error) => problems.push(error)),
  );
  await untilCount(1);
  await one.descendants?.poll();
  const [sleeper = 0] = sleepers();
  const stored = (): string | undefined =>
    existsSync(directory)
      ? readdirSync(directory)
          .filter((name) => name.endsWith('.json'))
          .map((name) => join(directory, name))
          .find((path) => readFileSync(path, 'utf8').includes(`"pid":${sleeper},`))
      : undefined;
  while (stored() === undefined) await new Promise((resolve) => setTimeout(resolve, 20));
  const file = stored() ?? '';
  t.equal(statSync(directory).mode & 0o777, 0o700);
  t.equal(statSync(file).mode & 0o777, 0o600);
  const { ino } = statSync(file);
  await one.descendants?.poll();
  t.equal(await endRecorded(directory), 0, 'nothing is touched while its writer lives');
  t.equal(statSync(file).ino, ino, 'the same processes are not written again');
  t.same(sleepers(), [sleeper]);
  one.kill();
  await one.gone;
  t.same(sleepers(), []);
  t.same(readdirSync(directory), [], 'removed with the last of them');
  t.same(problems, []);
});

t.test('a directory that cannot be written is reported, and the process runs', async (t) => {
  const problems: unknown[] = [];
  const one = await start(
    '',
    new ProcessRecord(join(temporaryDirectory(t), 'missing', 'records'), (error) => problems.push(error)),
  );
  await one.descendants?.poll();
  one.kill();
  await one.gone;
  t.match(problems[0], { code: 'ENOENT' });
});

t.test('a record of a dead server ends the processes that it names, and no others', async (t) => {
  const directory = temporaryDirectory(t);
  const file = join(directory, 'one.json');
  const [owner, leader] = [await dead(), await dead()];
  const begin = (program: string, args: readonly string[]) => {
    const child = spawn(program, args, { detached: true, stdio: 'ignore' });
    t.teardown(() => child.kill('SIGKILL'));
    return child;
  };
  const lives = ({ exitCode, signalCode }: ReturnType<typeof begin>) => exitCode === null && signalCode === null;
  const record = (more: object): void =>
    writeFileSync(file, JSON.stringify({ version: 1, owner, leader, processes: [], ...more }), { mode: 0o600 });
  const other = begin('sleep', [word]);
  const of = identityOf(other.pid ?? 0);
  for (const [what, strange] of Object.entries({
    'another start time': { ...of, startedTicks: `${of.startedTicks}1` },
    'another boot': { ...of, bootId: 'another' },
    'another pid namespace': { ...of, pidNamespace: '1' },
    'no boot': { ...of, bootId: '' },
  })) {
    record({ processes: [strange] });
    t.equal(await endRecorded(directory), 0, what);
    record({ leader: strange });
    t.equal(await endRecorded(directory), 0, `${what} of the leader`);
  }
  record({ owner: ownIdentity(), processes: [of] });
  t.equal(await endRecorded(directory), 0, 'a writer that lives');
  for (const text of ['', '{', '[]', JSON.stringify({ version: 2, owner, leader, processes: [of] })]) {
    writeFileSync(file, text);
    t.equal(await endRecorded(directory), 0, `unreadable: ${text}`);
  }
  t.equal(await endRecorded(join(directory, 'missing')), 0);
  t.ok(lives(other), 'none of these has touched it');

  const parent = begin('sh', ['-c', `sleep ${word} & wait`]);
  await untilCount(2);
  record({ processes: [identityOf(parent.pid ?? 0), { ...of, startedTicks: '1' }] });
  t.equal(await endRecorded(directory), 1);
  t.same(sleepers(), [other.pid], 'what descends from it is ended too');
  t.notOk(existsSync(file), 'a record is used once');

  const alone = begin('sh', ['-c', `sleep ${word} & wait`]);
  await untilCount(2);
  record({ leader: identityOf(alone.pid ?? 0) });
  t.equal(await endRecorded(directory), 1, 'a leader that lives');
  t.same(sleepers(), [other.pid]);
});
