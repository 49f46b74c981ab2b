/**
 * A control group holds all descendants of a process, however they were started. Where this user may make none, as in most
 * containers, a process is ended as without it: each test states the result there.
 */
import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import t from 'tap';
import type { ProcessIdentity } from '../../src/protocol/index.ts';
import {
  ControlGroup,
  commandLine,
  endControlGroup,
  endRecorded,
  PipedProcess,
  ProcessRecord,
  readIdentity,
} from '../../src/supervise/index.ts';
import { listPids } from '../../src/supervise/procfs.ts';
import { temporaryDirectory } from './helpers.ts';

const word = `4321.${process.pid}`;
const sleepers = (): readonly number[] => listPids().filter((pid) => commandLine(pid) === `sleep ${word}`);

async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await new Promise((resolve) => setTimeout(resolve, 20));
}

const groupOf = (pid: number): string => {
  try {
    return /^0::(.*)$/m.exec(readFileSync(`/proc/${pid}/cgroup`, 'utf8'))?.[1] ?? '';
  } catch {
    return '';
  }
};

/** Tries the facts that the module should find out: a directory below the control group of this process. */
function mayHaveGroups(): boolean {
  if (process.platform !== 'linux') return false;
  const mount = readFileSync('/proc/mounts', 'utf8')
    .split('\n')
    .map((line) => line.split(' '))
    .find(([, , type]) => type === 'cgroup2');
  const directory = join(mount?.[1] ?? '/nowhere', groupOf(process.pid), `test-${process.pid}`);
  try {
    mkdirSync(directory);
  } catch {
    return false;
  }
  const canEnd = existsSync(join(directory, 'cgroup.kill'));
  rmdirSync(directory);
  return canEnd;
}

const hasGroups = mayHaveGroups();

/** Begins a process that waits for a line, then forks twice, into a session of its own without an environment. */
const start = (record?: ProcessRecord): Promise<PipedProcess> =>
  PipedProcess.start({
    record,
    command: 'sh',
    args: ['-c', `read line; setsid env -i sh -c 'sleep ${word} & exit' & wait; echo done; cat`],
    cwd: '/',
    env: { PATH: process.env['PATH'] ?? '' },
    parentMarker: undefined,
    stderrBytes: 100,
    sweepGraceMs: 100,
  });

function identityOf(pid: number | undefined): ProcessIdentity {
  const identity = readIdentity(pid ?? 0);
  if (typeof identity === 'string') throw new Error(`process ${pid} is ${identity}`);
  return identity;
}

t.test('a group is made where this user may, and removed', async (t) => {
  const group = ControlGroup.make();
  t.equal(group !== undefined, hasGroups);
  if (group === undefined) return;
  mkdirSync(join(group.directory, 'part'));
  t.equal(await group.end(), true, 'with what is made in it');
  t.notOk(existsSync(group.directory));
  t.equal(await group.end(), true, 'once more');
  t.equal(await group.add(identityOf(process.pid)), false, 'nothing can be moved into it any more');
});

t.test('an agent is ended with a descendant that nothing has seen', async (t) => {
  const directory = join(temporaryDirectory(t), 'records');
  const agent = await start(new ProcessRecord(directory, (error) => t.fail(String(error))));
  if (hasGroups) await until(() => basename(groupOf(agent.pid)).startsWith('oratorio-'));
  agent.input.write('now\n');
  await new Promise((resolve) => agent.output.once('data', resolve));
  await until(() => sleepers().length === 1);
  const [escaped = 0] = sleepers();
  t.same(agent.descendants?.known, [], 'it was never seen below the agent');
  agent.kill();
  await agent.gone;
  t.same(sleepers(), hasGroups ? [] : [escaped]);
  if (!hasGroups) process.kill(escaped, 'SIGKILL');
});

t.test('a number that another process has by now is not moved', async (t) => {
  const other = spawn('sleep', [word], { detached: true, stdio: 'ignore' });
  t.teardown(() => other.kill('SIGKILL'));
  const identity = identityOf(other.pid);
  const group = ControlGroup.make();
  t.not(await group?.add({ ...identity, startedTicks: `${identity.startedTicks}1` }), true);
  t.equal(groupOf(identity.pid), groupOf(process.pid));
  t.not(await group?.end(), false);
  t.equal(other.exitCode ?? other.signalCode, null);
  const ended = new Promise((resolve) => other.once('exit', resolve));
  other.kill('SIGKILL');
  await ended;
});

t.test('a process without a record has the group of its parent', async (t) => {
  const server = await start();
  t.equal(groupOf(server.pid), groupOf(process.pid));
  server.kill();
  await server.gone;
});

t.test('a record of a dead server ends the processes of the control group that it names', async (t) => {
  const directory = temporaryDirectory(t);
  const gone = spawn('sleep', [word]);
  const owner = identityOf(gone.pid);
  gone.kill('SIGKILL');
  await new Promise((resolve) => gone.once('exit', resolve));
  const group = ControlGroup.make();
  const left = spawn('sleep', [word], { detached: true, stdio: 'ignore' });
  t.teardown(() => left.kill('SIGKILL'));
  const ended = new Promise((resolve) => left.once('exit', resolve));
  await group?.add(identityOf(left.pid));
  const record = { version: 1, owner, leader: owner, processes: [], controlGroup: group?.directory };
  const file = join(directory, 'one.json');
  writeFileSync(file, JSON.stringify(record), { mode: 0o600 });
  await endRecorded(directory);
  if (group === undefined) left.kill('SIGKILL');
  await ended;
  t.same(sleepers(), []);
  t.notOk(existsSync(group?.directory ?? '/nowhere'));
  t.notOk(existsSync(file), 'a record is used once');
});

t.test('a directory that is not a control group of ours is left alone', async (t) => {
  const parent = temporaryDirectory(t);
  const id = '01234567-89ab-cdef-0123-456789abcdef';
  const namedAsOurs = join(parent, `oratorio-${id}`);
  const other = join(parent, 'other');
  for (const directory of [namedAsOurs, other]) mkdirSync(directory);
  writeFileSync(join(other, 'cgroup.kill'), '');
  t.equal(await endControlGroup(namedAsOurs), true);
  t.equal(await endControlGroup(other), true);
  t.ok(existsSync(namedAsOurs) && existsSync(other));
  t.equal(readFileSync(join(other, 'cgroup.kill'), 'utf8'), '');
});
