/** Workspaces that other processes own, requests that overtake each other, and records of processes that ended unseen. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { lstatSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import {
  agentServerFixture,
  eventually,
  isAlive,
  killIfThere,
  makeWorkspace,
  readHubLock,
  startTestHub,
  type TestHub,
} from './harness.ts';
import { sidecar } from './sidecars.ts';

const agentServer = agentServerFixture('named.ts');
/** A workspace whose agent server behaves as the fixture of this name. */
function workspaceOf(t: Test, kind = 'well-behaved'): string {
  const workspace = makeWorkspace(t);
  writeFileSync(join(workspace, 'agent-server'), kind);
  return workspace;
}
const post = (hub: TestHub, action: string, workspacePath: string, more = {}) =>
  hub.call('POST', `/v1/appservers/${action}`, { workspacePath, ...more });

/** Hubs of two homes for all tests. The last test that needs one ends it. */
const [hub, other] = [await startTestHub(t, { agentServer }), await startTestHub(t, { agentServer })];

t.test(
  'a workspace that a live server of another home owns is reported with its pid, and no event names that server',
  async (t) => {
    const workspace = workspaceOf(t);
    const { pid } = await hub.ensure(workspace);
    const events = await other.events();
    const owned = { state: 'unhealthy', pid, lastError: new RegExp(`Process ${pid} owns the workspace lock`) };
    const details = { pid, workspacePath: workspace };
    for (const round of ['unknown to the Hub', 'after an ensure']) {
      t.match(
        await other.record(workspace),
        { ...owned, startedByHub: false, problems: [{ code: 'workspaceLocked' }] },
        round,
      );
      t.match(await post(other, 'ensure', workspace, { startIfMissing: false }), { status: 200, body: owned }, round);
      for (const action of ['stop', 'ensure', 'restart'])
        t.match(
          await post(other, action, workspace),
          { status: 409, body: { error: { code: 'workspaceLocked', details } } },
          action,
        );
    }
    t.ok(isAlive(pid ?? 0), 'it was not touched');
    t.same(
      events.seen.filter(({ workspacePath }) => workspacePath === workspace),
      [],
      'nothing happened to a server of this Hub',
    );
    t.match(await post(hub, 'stop', workspace), { status: 200, body: { state: 'stopped' } });
    t.match(
      await other.record(workspace),
      { state: 'stopped', pid: null, lastError: null },
      'the refusal ends with its reason',
    );
    t.match(await other.ensure(workspace), { state: 'running' }, 'positive control');
    await post(other, 'stop', workspace);
  },
);

t.test('a stop that a later ensure or restart overtakes reports the end of the run that it stopped', async (t) => {
  const workspace = workspaceOf(t);
  let { pid } = await hub.ensure(workspace);
  for (const later of ['ensure', 'restart', 'ensure']) {
    const [stopped, started] = await Promise.all([post(hub, 'stop', workspace), post(hub, later, workspace)]);
    t.match(stopped, { status: 200, body: { state: 'stopped', pid: null, endpoints: {} } }, later);
    t.match(started, { status: 200, body: { state: 'running' } }, later);
    t.not(started.body.pid, pid, 'another process');
    pid = started.body.pid;
  }
  const [, stopped] = await Promise.all([post(hub, 'restart', workspace), post(hub, 'stop', workspace)]);
  t.match(stopped, { status: 200, body: { state: 'stopped' } }, 'a stop that comes second ends the server');
  t.match(await hub.record(workspace), { state: 'stopped' });
});

t.test('inspection and a stop of a workspace that never ran write nothing into it', async (t) => {
  const workspace = workspaceOf(t);
  writeFileSync(join(workspace, '.oratorio', 'appserver.mutex'), '', { mode: 0o644 });
  const shot = () =>
    ['', '.oratorio', ...readdirSync(join(workspace, '.oratorio')).map((name) => join('.oratorio', name))].map(
      (name) => {
        const { mode, mtimeMs, ctimeMs } = lstatSync(join(workspace, name));
        return { name, mode, mtimeMs, ctimeMs };
      },
    );
  const before = shot();
  t.match(await hub.record(workspace), { state: 'stopped' });
  for (const [action, more] of [
    ['ensure', { startIfMissing: false }],
    ['stop', {}],
  ] as const)
    t.match(await post(hub, action, workspace, more), { status: 200, body: { state: 'stopped' } });
  t.same(shot(), before);
  await hub.ensure(workspace);
  t.ok(readdirSync(join(workspace, '.oratorio')).includes('appserver.lock'), 'positive control: a start does');
  await post(hub, 'stop', workspace);
});

t.test(
  'a foreign lock on the mutex is named with the pid of the kernel at once, with a missing or an invalid record',
  async (t) => {
    if (process.platform !== 'linux') return t.pass('only Linux has a table of locks');
    const times: number[] = [];
    for (const record of [undefined, 'rubbish', JSON.stringify({ version: 1, pid: 1 })]) {
      const workspace = workspaceOf(t);
      const mutex = join(workspace, '.oratorio', 'appserver.mutex');
      if (record !== undefined) writeFileSync(join(workspace, '.oratorio', 'appserver.lock'), record);
      // struct flock of 64 bits: l_type F_WRLCK, l_whence SEEK_SET, l_start 0, l_len 0.
      const script = `use Fcntl; open(my $f, '+>', $ARGV[0]) or die; my $l = pack('s s x4 q q l x4', F_WRLCK, 0, 0, 0, 0);
      fcntl($f, F_SETLK, $l) or die "lock: $!"; $| = 1; print "held\\n"; sleep 600;`;
      const holder = spawn('perl', ['-e', script, mutex], { stdio: ['ignore', 'pipe', 'inherit'] });
      t.teardown(() => holder.kill('SIGKILL'));
      await once(holder.stdout, 'data');
      const details = { pid: holder.pid };
      const began = performance.now();
      t.match(
        await post(hub, 'ensure', workspace),
        { status: 409, body: { error: { code: 'workspaceLocked', details } } },
        record ?? 'no record',
      );
      times.push(performance.now() - began);
      t.match(await hub.record(workspace), { pid: holder.pid, lastError: new RegExp(`Process ${holder.pid}`) });
      holder.kill('SIGKILL');
      await once(holder, 'exit');
      t.match(await hub.ensure(workspace), { state: 'running' }, 'positive control: free again');
      await post(hub, 'stop', workspace);
    }
    // A busy machine may delay one answer by as long as that wait.
    t.ok(Math.min(...times) < 9_000, 'without the wait for a server that starts');
  },
);

t.test(
  'after kill -9 of the Hub, a server and a sidecar, the next Hub reports both ends with their pids, and no end after a failed start',
  async (t) => {
    const { home } = other;
    const both = workspaceOf(t);
    const sidecarOnly = workspaceOf(t);
    const pids: Record<string, { server: number; sidecar: number; endpoint: string }> = {};
    for (const workspace of [both, sidecarOnly]) {
      const events = await other.events();
      const apiProxy = await sidecar(t);
      const { pid } = await other.ensure(workspace, { apiProxy });
      const running = await events.wait('apiProxy.running', ({ workspacePath }) => workspacePath === workspace);
      pids[workspace] = { server: pid ?? 0, sidecar: Number(running.data['pid']), endpoint: apiProxy.endpoint };
      events.close();
    }
    const occupied = await sidecar(t);
    const holder = createServer().listen(Number(new URL(occupied.endpoint).port), '127.0.0.1');
    await once(holder, 'listening');
    t.teardown(() => holder.close());
    const failed = new Map<string, unknown>();
    for (const [workspace, more] of [
      [workspaceOf(t), { apiProxy: await sidecar(t, 'process.exit(3);') }],
      [workspaceOf(t), { apiProxy: occupied }],
      [workspaceOf(t, 'exits-at-once'), {}],
    ] as const) {
      t.ok((await post(other, 'ensure', workspace, more)).status >= 400, 'the start fails');
      failed.set(workspace, (await other.record(workspace)).lastError);
    }
    t.equal(new Set(failed.values()).size, 3, 'each has its own reason');
    const file = join(home, 'hub', 'appservers.json');
    const stored = () => JSON.stringify(JSON.parse(readFileSync(file, 'utf8')));
    for (const reason of failed.values())
      await eventually(() => stored().includes(JSON.stringify(reason)) || undefined, `on disk: ${reason}`);
    await other.kill('SIGKILL');
    for (const pid of [pids[both]?.server, pids[both]?.sidecar, pids[sidecarOnly]?.sidecar]) killIfThere(pid ?? 0);
    await eventually(() => !isAlive(pids[both]?.sidecar ?? 0) || undefined, 'they have ended');
    const second = await startTestHub(t, { home, agentServer });
    const of = (workspace: string, kind: string) => () =>
      second
        .call('GET', '/v1/events/recent')
        .then(({ body }) =>
          body.find(
            (event: { kind: string; workspacePath: string }) =>
              event.kind === kind && event.workspacePath === workspace,
          ),
        );
    t.match(await eventually(of(both, 'appserver.exited'), 'the server’s end'), { data: { pid: pids[both]?.server } });
    for (const workspace of [both, sidecarOnly]) {
      const ended = await eventually(of(workspace, 'apiProxy.exited'), 'the sidecar’s end');
      t.match(ended, { data: { pid: pids[workspace]?.sidecar, endpoint: pids[workspace]?.endpoint } });
    }
    for (const [workspace, lastError] of failed) {
      const rested = await eventually(async () => {
        const record = await second.record(workspace);
        return ['stopped', 'exited'].includes(record.state) ? record : undefined;
      }, 'the adoption without a process is over');
      t.match(rested, { lastError }, 'a start that failed keeps its reason');
      t.equal(
        await of(workspace, 'appserver.exited')(),
        undefined,
        'the next Hub reports no end of a server that it never saw',
      );
    }
  },
);

t.test('a Hub whose terminal closes stops its agent servers and withdraws its address', async (t) => {
  const { pid } = await hub.ensure(workspaceOf(t));
  await hub.kill('SIGHUP');
  t.equal(hub.child.exitCode, 0, hub.output());
  t.notOk(isAlive(pid ?? 0));
  t.equal(readHubLock(hub.home), undefined);
});
