/** Supervision of agent servers that behave and that fail (design §3; specification §3, §6.1 and §7.1). */
import { mkdirSync, renameSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import {
  agentServerFixture,
  eventually,
  hubStatePath,
  isAlive,
  makeWorkspace,
  processesOf,
  quick,
  startTestHub,
  type TestConfig,
  temporaryDirectory,
} from './harness.ts';

/** Command of the Hub's agent servers: a link, which a test can take away. */
const command = join(temporaryDirectory(t), 'node');
symlinkSync(process.execPath, command);
/** Hub of all tests. A test ends the servers that it has started, and the last test ends the Hub. */
const hub = await startTestHub(t, { agentServer: { ...agentServerFixture('named.ts'), command } });

/** A workspace with an agent server of this kind. */
function workspaceWith(t: Test, kind: string, config: TestConfig = quick): string {
  const workspace = makeWorkspace(t, config);
  writeFileSync(join(workspace, 'agent-server'), kind);
  return workspace;
}

const stop = (workspacePath: string) => hub.call('POST', '/v1/appservers/stop', { workspacePath });

t.test('startIfMissing: false changes nothing', async (t) => {
  const workspace = workspaceWith(t, 'exits-at-once', { Supervision: { Restart: 'never' } });
  t.match(await hub.ensure(workspace, { startIfMissing: false }), { state: 'stopped', pid: null });
  t.same((await hub.call('GET', '/v1/appservers')).body, []);
  await hub.call('POST', '/v1/appservers/ensure', { workspacePath: workspace });
  t.match(await hub.ensure(workspace, { startIfMissing: false }), { state: 'exited', exitCode: 3 });
  mkdirSync(join(workspace, 'sub'));
  t.match(await hub.call('POST', '/v1/appservers/ensure', { workspacePath: join(workspace, 'sub') }), {
    status: 404,
    body: { error: { code: 'workspaceNotFound' } },
  });
});

t.test('ensure starts a server, stop ends it, and events report both (specification §4.2 and §6.1)', async (t) => {
  const events = await hub.events();
  const workspace = workspaceWith(t, 'well-behaved');
  const record = await hub.ensure(workspace);
  t.match(record, {
    state: 'running',
    workspacePath: workspace,
    startedByHub: true,
    serverVersion: '0.0.1',
    exitCode: null,
  });
  t.ok(isAlive(record.pid ?? 0));
  t.same((await hub.ensure(workspace)).pid, record.pid, 'a second ensure finds the first one');
  const running = await events.wait('appserver.running');
  t.equal(running.workspacePath, workspace);
  t.match(running.data, { pid: record.pid, endpoints: { appServerWebSocket: /^ws:\/\/127\.0\.0\.1:\d+\/ws\?token=/ } });

  const stopped = await stop(workspace);
  t.match(stopped.body, { state: 'stopped', pid: null, endpoints: {}, startedByHub: false });
  t.match((await events.wait('appserver.exited')).data, { stopped: true, pid: record.pid });
  t.notOk(isAlive(record.pid ?? 0));
  t.same(
    events.seen.map(({ kind }) => kind),
    ['port.allocated', 'port.allocated', 'appserver.starting', 'appserver.running', 'appserver.exited'],
  );
});

t.test('100 concurrent ensures through different spellings and symlinks start one process', async (t) => {
  const workspace = workspaceWith(t, 'well-behaved');
  const links = temporaryDirectory(t);
  const spellings = [workspace, `${workspace}/`, `${workspace}/../workspace`, `${workspace}/.oratorio/..`];
  for (let index = 0; index < 6; index++) {
    const link = join(links, `link-${index}`);
    symlinkSync(workspace, link);
    spellings.push(link);
  }
  const answers = await Promise.all(
    Array.from({ length: 100 }, (_, index) => hub.ensure(spellings[index % spellings.length] ?? workspace)),
  );
  t.equal(new Set(answers.map(({ pid }) => pid)).size, 1);
  t.equal(new Set(answers.map(({ canonicalWorkspacePath }) => canonicalWorkspacePath)).size, 1);
  t.equal(processesOf(hub.home).length, 2, 'the Hub and one agent server');
  await stop(workspace);
});

t.test(
  'a server that exits at once is appServerStartFailed with its standard error, backs off, then is given up',
  async (t) => {
    const events = await hub.events();
    const workspace = workspaceWith(t, 'exits-at-once', { Supervision: { ...quick.Supervision, MaxRestarts: 2 } });
    const answer = await hub.call('POST', '/v1/appservers/ensure', { workspacePath: workspace });
    t.equal(answer.status, 500);
    t.match(answer.body.error, {
      code: 'appServerStartFailed',
      details: { workspacePath: workspace, exitCode: 3, recentStderr: 'no licence for this machine' },
    });
    const last = await events.wait('appserver.exited', ({ data }) => String(data['error']).startsWith('Gave up'));
    t.match(last.data, { exitCode: 3, nextAttemptAt: null });
    const starts = events.seen.filter(({ kind }) => kind === 'appserver.starting');
    t.same(
      starts.map(({ data }) => data['attempt']),
      [undefined, 1, 2],
    );
    const record = await hub.record(workspace);
    t.match(record, {
      state: 'exited',
      phase: 'exited.givenUp',
      exitCode: 3,
      recentStderr: 'no licence for this machine',
      restartCount: 2,
    });
    t.equal(processesOf(hub.home).length, 1, 'only the Hub is left');
  },
);

t.test('a server that never becomes ready is appServerUnhealthy at the deadline, and is killed', async (t) => {
  const workspace = workspaceWith(t, 'never-ready', {
    Supervision: { ...quick.Supervision, Restart: 'never', StartDeadlineMs: 500 },
  });
  const answer = await hub.call('POST', '/v1/appservers/ensure', { workspacePath: workspace });
  t.equal(answer.status, 500);
  t.match(answer.body.error, { code: 'appServerUnhealthy', message: /not ready within 500 ms/ });
  t.match(await hub.record(workspace), { state: 'exited', phase: 'exited.resting', pid: null });
  t.equal(processesOf(hub.home).length, 1);
});

t.test('a missing program is not retried', async (t) => {
  rmSync(command);
  const workspace = workspaceWith(t, 'well-behaved');
  const answer = await hub.call('POST', '/v1/appservers/ensure', { workspacePath: workspace });
  symlinkSync(process.execPath, command);
  t.match(answer, { status: 500, body: { error: { code: 'appServerStartFailed', message: /no such program/ } } });
  t.match(await hub.record(workspace), { state: 'exited', phase: 'exited.resting', nextAttemptAt: null });
});

t.test('a server that ignores SIGTERM is killed after the grace period and leaves nothing', async (t) => {
  const workspace = workspaceWith(t, 'ignores-sigterm');
  const { pid } = await hub.ensure(workspace);
  const stopped = await stop(workspace);
  t.match(stopped.body, { state: 'stopped' });
  t.notOk(isAlive(pid ?? 0));
});

t.test(
  'a daemon forked by the server ends with it',
  { skip: process.platform === 'linux' ? false : 'needs /proc' },
  async (t) => {
    const workspace = workspaceWith(t, 'forks-daemon');
    await hub.ensure(workspace);
    await eventually(() => processesOf(hub.home).length === 3 || undefined, 'the daemon runs');
    await stop(workspace);
    t.equal(processesOf(hub.home).length, 1);
  },
);

t.test('a flood on standard error stays within its bounds and does not affect other requests', async (t) => {
  const workspace = workspaceWith(t, 'floods-stderr');
  const { pid } = await hub.ensure(workspace);
  const log = join(hubStatePath(hub.home), 'logs');
  t.ok(statSync(log).isDirectory());
  const tail = await eventually(async () => {
    const { body } = await hub.call('GET', `/v1/appservers/logs?path=${encodeURIComponent(workspace)}&bytes=1000`);
    return String(body).includes('xxx') ? String(body) : undefined;
  }, 'the log shows the flood');
  t.ok(tail.length <= 1000);
  t.equal((await hub.record(workspace)).pid, pid);
  await stop(workspace);
});

t.test('a killed server restarts after a pause, with the events exited, starting and running', async (t) => {
  const workspace = workspaceWith(t, 'well-behaved');
  const first = await hub.ensure(workspace);
  const events = await hub.events();
  process.kill(first.pid ?? 0, 'SIGKILL');
  t.match((await events.wait('appserver.exited')).data, {
    pid: first.pid,
    signal: 'SIGKILL',
    exitCode: null,
    nextAttemptAt: String,
  });
  t.match((await events.wait('appserver.starting')).data, { attempt: 1, delayMs: Number });
  const again = await events.wait('appserver.running');
  t.not(again.data['pid'], first.pid);
  t.equal(processesOf(hub.home).length, 2);
  await stop(workspace);
});

t.test(
  'a server that accepts but never answers becomes unhealthy, recovers, and is restarted when it does not',
  async (t) => {
    const sick = (UnhealthyGraceMs: number) =>
      workspaceWith(t, 'stops-answering', {
        Supervision: { ...quick.Supervision, ProbeTimeoutMs: 1000, UnhealthyGraceMs },
      });
    const patient = sick(600_000);
    const impatient = sick(100);
    const neighbour = workspaceWith(t, 'stops-answering');
    const [first, second, healthy] = await Promise.all([patient, impatient, neighbour].map((path) => hub.ensure(path)));
    const events = await hub.events();
    const heard = (kind: string, workspacePath: string) =>
      events.wait(kind, (event) => event.workspacePath === workspacePath);
    for (const record of [first, second]) process.kill(record?.pid ?? 0, 'SIGUSR2');
    t.match((await heard('appserver.unhealthy', patient)).data, {
      pid: first?.pid,
      consecutiveFailures: 3,
      error: /no answer within/,
    });
    process.kill(first?.pid ?? 0, 'SIGUSR1');
    t.match((await heard('appserver.running', patient)).data, { pid: first?.pid, recovered: true });

    const restarted = await heard('appserver.running', impatient);
    t.notMatch(restarted.data, { recovered: true });
    t.not(restarted.data['pid'], second?.pid);
    t.notOk(isAlive(second?.pid ?? 0));
    t.equal((await hub.record(neighbour)).pid, healthy?.pid, 'the neighbour was not touched');
    await Promise.all([patient, impatient, neighbour].map(stop));
  },
);

t.test('the server of a deleted or renamed workspace can be stopped', async (t) => {
  const deleted = workspaceWith(t, 'well-behaved');
  const renamed = workspaceWith(t, 'well-behaved');
  const pids = [(await hub.ensure(deleted)).pid, (await hub.ensure(renamed)).pid];
  rmSync(deleted, { recursive: true, force: true });
  renameSync(renamed, `${renamed}-elsewhere`);
  const elsewhere = await hub.call('POST', '/v1/appservers/ensure', { workspacePath: `${renamed}-elsewhere` });
  t.match(elsewhere, {
    status: 409,
    body: { error: { code: 'workspaceLocked', details: { pid: pids[1], lockPath: String } } },
  });
  for (const workspacePath of [deleted, renamed]) {
    t.match(await stop(workspacePath), {
      status: 200,
      body: { state: 'stopped' },
    });
  }
  for (const pid of pids) t.notOk(isAlive(pid ?? 0));
});

t.test('subscribers receive all events of a shutdown, which leaves no process', async (t) => {
  const { pid } = await hub.ensure(workspaceWith(t, 'well-behaved'));
  const events = await hub.events();
  t.same((await hub.call('POST', '/v1/shutdown')).body, { ok: true });
  await events.ended;
  t.same(
    events.seen.map(({ kind }) => kind),
    ['hub.stopping', 'appserver.exited'],
  );
  t.match(events.seen.at(-1)?.data, { stopped: true, hubStopping: true });
  await eventually(() => hub.child.exitCode === 0 || undefined, 'the Hub exits with 0');
  t.notOk(isAlive(pid ?? 0));
  t.same(processesOf(hub.home), []);
});
