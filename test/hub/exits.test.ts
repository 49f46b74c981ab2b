/** Ends of agent servers: on disk, in the log, and on the page of a workspace that is down, also under a later Hub. */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { workspaceKey } from '../../src/config/index.ts';
import type { AppServerRecord } from '../../src/protocol/index.ts';
import { pageToken } from '../../src/supervise/index.ts';
import {
  agentServerFixture,
  eventually,
  hubStatePath,
  killIfThere,
  makeWorkspace,
  startTestHub,
  type TestHub,
  temporaryDirectory,
} from './harness.ts';

const agentServer = agentServerFixture('named.ts');
const home = temporaryDirectory(t);
const supervision = { BackoffBaseMs: 20, MaxRestarts: 2, WithinSeconds: 3_600 };

function workspaceWith(kind: string, name: string): string {
  const workspace = makeWorkspace(t, { Supervision: supervision }, name);
  writeFileSync(join(workspace, 'agent-server'), kind);
  return workspace;
}

const logDirectory = (path: string) => join(hubStatePath(home), 'logs', workspaceKey(path));
const exitsOf = async (hub: TestHub, path: string) =>
  (await hub.call('GET', `/v1/appservers/exits?path=${encodeURIComponent(path)}`)).body;
const logOf = (path: string) => readFileSync(join(logDirectory(path), 'stderr.log'), 'utf8');
const problemOf = ({ problems }: AppServerRecord) => problems[0];

/** Kills the running process of a workspace. */
async function killServer(hub: TestHub, path: string): Promise<void> {
  const { pid } = await eventually(async () => {
    const record = await hub.record(path);
    return record.state === 'running' ? record : undefined;
  }, 'the server runs');
  killIfThere(pid ?? 0);
  await eventually(async () => (await hub.record(path)).pid !== pid || undefined, 'the end is noticed');
}

const infra = workspaceWith('well-behaved', 'infra');
const living = workspaceWith('well-behaved', 'living');
const first = await startTestHub(t, { home, agentServer });
const events = await first.events();
await first.ensure(infra);
await first.ensure(living);
await killServer(first, living);
for (let kill = 0; kill < 3; kill += 1) await killServer(first, infra);
const before = await first.record(infra);
const livingBefore = await eventually(async () => {
  const record = await first.record(living);
  return record.state === 'running' ? record : undefined;
}, 'the living server runs again');

/** The reports that a Hub gives must not depend on the Hub that has seen the ends. */
async function sameReport(t: Test, hub: TestHub): Promise<void> {
  const record = await hub.record(infra);
  t.match(record, { state: 'exited', phase: 'exited.givenUp', pid: null, restartCount: 2 });
  t.same(record.incident, before.incident);
  t.same(problemOf(record), problemOf(before));
  t.equal((await exitsOf(hub, infra)).length, 3);
  const now = await hub.record(living);
  t.match(now, { pid: livingBefore.pid, lastStartedAt: livingBefore.lastStartedAt, restartCount: 1 });
}

t.test('regression: every end is reported with its signal, life span, last line and place in the log', async (t) => {
  t.match(problemOf(before), {
    code: 'gaveUp',
    what: /^infra is down: its process was killed \(SIGKILL\) 3 times in \d+(\.\d)? s\. The Hub gave up; the limit is 3 in 60 min\.$/,
    remedy: { act: 'start' },
    next: `oratorio up ${infra}`,
  });
  const { exits = [], remedies = [] } = before.incident ?? {};
  t.equal(exits.length, 3);
  const log = readFileSync(join(logDirectory(infra), 'stderr.log'));
  for (const { signal, livedMs, log: place, at } of exits) {
    t.equal(signal, 'SIGKILL');
    t.ok(livedMs !== null && livedMs >= 0 && livedMs < Date.now() - Date.parse(at) + 600_000);
    const line =
      log
        .subarray(place?.offset ?? 0)
        .toString()
        .split('\n')[0] ?? '';
    t.match(JSON.parse(line), { name: 'hub', msg: 'the agent server has ended', signal: 'SIGKILL' });
  }
  t.match((await events.wait('notification.requested')).data, {
    ...{ kind: 'workspaceDown', severity: 'error', title: before.incident?.what, body: before.incident?.note },
  });
  t.same(
    remedies.map(({ act }) => act),
    ['start', 'raiseLimit', 'openLog'],
  );
  t.match(remedies[1], { file: join(infra, '.oratorio', 'config.json'), line: 1, keyPath: 'Supervision.MaxRestarts' });
});

t.test('the log has a line for each start and each end', async (t) => {
  const lines = logOf(infra)
    .split('\n')
    .filter((line) => line.includes('"name":"hub"'));
  t.same(
    lines.map((line) => JSON.parse(line).msg),
    Array.from({ length: 3 }, () => ['the Hub starts the agent server', 'the agent server has ended']).flat(),
  );
});

t.test('regression: the history survives kill -9 and a stop of the Hub', async (t) => {
  await first.kill('SIGKILL');
  const halfWritten = join(logDirectory(living), `.exits.json.${first.lock.pid}.0123456789ab.tmp`);
  writeFileSync(halfWritten, '{"version":1,');
  const second = await startTestHub(t, { home, agentServer });
  await sameReport(t, second);
  t.notOk(existsSync(halfWritten), 'a file that the killed Hub left half written is removed');
  await second.shutdown('detach');
  const third = await startTestHub(t, { home, agentServer });
  await sameReport(t, third);

  t.test('the page of the workspace is served from its database', async (t) => {
    const token = pageToken(home);
    const { page } = await third.record(infra);
    const info = await fetch(`${third.lock.apiBaseUrl}${page}dashboard/api/page`, {
      headers: { authorization: `Bearer ${token}`, connection: 'close' },
    });
    t.equal(info.status, 200);
    t.match(await info.json(), { kind: 'workspace', workspacePath: infra, readOnly: String });
  });

  t.test('a start ends the reader and the report', async (t) => {
    const record = await third.ensure(infra);
    t.match(record, { state: 'running', restartCount: 0, incident: null, problems: [] });
  });

  t.test('a stop of the Hub keeps the reason of a workspace that was given up', async (t) => {
    for (let kill = 0; kill < 3; kill += 1) await killServer(third, infra);
    const gaveUp = await third.record(infra);
    t.equal(problemOf(gaveUp)?.code, 'gaveUp');
    await third.shutdown('stop');
    const fourth = await startTestHub(t, { home, agentServer });
    t.same((await fourth.record(infra)).incident, gaveUp.incident);
    t.equal((await exitsOf(fourth, living)).at(-1).stopReason, 'hub');
    await fourth.shutdown('stop');
  });
});

t.test('a start that failed is stored with its reason; a secret of the workspace is not', async (t) => {
  const hub = await startTestHub(t, { home, agentServer });
  const broken = workspaceWith('exits-at-once', 'broken');
  await hub.call('POST', '/v1/appservers/ensure', { workspacePath: broken });
  await eventually(async () => problemOf(await hub.record(broken))?.code === 'gaveUp' || undefined, 'it was given up');
  t.match(await exitsOf(hub, broken), [{ exitCode: 3, lastLine: 'no licence for this machine' }, {}, {}]);
  writeFileSync(join(broken, '.oratorio', 'config.json'), '{"MaxToolCallRounds": "many"}');
  await hub.call('POST', '/v1/appservers/ensure', { workspacePath: broken });
  const record = await hub.record(broken);
  t.match(record.incident, { what: /^broken is down: .*MaxToolCallRounds/, remedies: [{ act: 'editSetting' }] });
  t.match((await exitsOf(hub, broken)).at(-1), { pid: null, livedMs: null, error: /MaxToolCallRounds/ });
  t.match(logOf(broken), /the agent server could not be started.*MaxToolCallRounds/);
  await hub.shutdown('stop');
});

t.test('an unusable file of ends hinders no start, and is replaced by the next end', async (t) => {
  for (const content of ['{"version":1,"exits":"many"}', '\0'.repeat(64), `[${'9'.repeat(2_000_000)}]`]) {
    writeFileSync(join(logDirectory(living), 'exits.json'), content);
    const hub = await startTestHub(t, { home, agentServer });
    t.same(await exitsOf(hub, living), []);
    await hub.ensure(living);
    await killServer(hub, living);
    t.match(await exitsOf(hub, living), [{ signal: 'SIGKILL' }]);
    await hub.shutdown('stop');
  }
  const directory = makeWorkspace(t, {}, 'odd');
  writeFileSync(join(directory, 'agent-server'), 'well-behaved');
  mkdirSync(join(logDirectory(directory), 'exits.json'), { recursive: true });
  const hub = await startTestHub(t, { home, agentServer });
  t.match(await hub.ensure(directory), { state: 'running' });
  t.same(await exitsOf(hub, directory), []);
  await hub.shutdown('stop');
});
