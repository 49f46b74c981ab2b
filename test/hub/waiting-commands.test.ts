/** Commands that wait for the next agent server of a workspace end when none comes. */
import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { closeSync, existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import {
  keptDirectory,
  keptMarker,
  markerVariable,
  ownIdentity,
  ownKept,
  readIdentity,
  writeKeeper,
  writeKept,
} from '../../src/supervise/index.ts';
import { agentServerFixture, isAlive, makeWorkspace, quick, startTestHub } from './harness.ts';

const hub = await startTestHub(t, { agentServer: agentServerFixture('named.ts') });
const onPosix = { skip: process.platform === 'win32' && 'there is no keeper' };

/** A running command of an agent server that has ended. */
function waitingCommand(t: Test, workspace: string) {
  const directory = keptDirectory(hub.home, workspace);
  const id = randomUUID();
  ownKept(directory);
  const call = { threadId: 'thread', turnId: 'turn_001', callId: 'call' };
  const fd = writeKept(directory, {
    ...{ version: 1, id, starter: ownIdentity(), ...call, startedAt: Date.now(), timeoutMs: null },
  });
  const env = { PATH: process.env['PATH'], [markerVariable]: keptMarker(directory, id) };
  const child = spawn('sleep', ['3013'], { detached: true, stdio: 'ignore', env });
  t.teardown(() => child.kill('SIGKILL'));
  const pid = child.pid ?? 0;
  const keeper = readIdentity(pid);
  if (typeof keeper === 'string') throw new Error('the command has not started');
  writeKeeper(fd, keeper);
  closeSync(fd);
  return { pid, directory, ended: once(child, 'exit') };
}

const stop = (workspacePath: string) => hub.call('POST', '/v1/appservers/stop', { workspacePath });

t.test('a stop of a workspace without an agent server ends its waiting commands', onPosix, async (t) => {
  const workspace = makeWorkspace(t, quick);
  const other = waitingCommand(t, makeWorkspace(t, quick));
  const { ended, directory } = waitingCommand(t, workspace);
  t.match(await stop(workspace), { status: 200, body: { state: 'stopped' } });
  t.strictSame(await ended, [null, 'SIGKILL']);
  t.notOk(existsSync(directory));
  t.ok(isAlive(other.pid), 'commands of another workspace run on');
});

t.test('a stop of a running agent server ends the commands that it has left', onPosix, async (t) => {
  const workspace = makeWorkspace(t, quick);
  writeFileSync(join(workspace, 'agent-server'), 'well-behaved');
  await hub.ensure(workspace);
  const { ended, pid } = waitingCommand(t, workspace);
  await hub.ensure(workspace);
  t.ok(isAlive(pid), 'the command runs while the workspace is served');
  await stop(workspace);
  t.strictSame(await ended, [null, 'SIGKILL']);
});

t.test('commands of a workspace that the Hub gives up end', onPosix, async (t) => {
  const workspace = makeWorkspace(t, { Supervision: { ...quick.Supervision, MaxRestarts: 1 } });
  writeFileSync(join(workspace, 'agent-server'), 'exits-at-once');
  const { ended } = waitingCommand(t, workspace);
  await hub.call('POST', '/v1/appservers/ensure', { workspacePath: workspace });
  t.strictSame(await ended, [null, 'SIGKILL']);
  t.match(await hub.record(workspace), { phase: 'exited.givenUp' });
});
