/** Health, problems and configuration in the records of a Hub, and servers that it does not manage. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { trustWorkspace, workspaceKey } from '../../src/config/index.ts';
import type { HealthReport } from '../../src/protocol/index.ts';
import { readAppServer, workspaceFiles } from '../../src/supervise/index.ts';
import { spawnServer } from '../appserver/harness.ts';
import { runInProcess } from '../cli/in-process.ts';
import {
  agentServerFixture,
  configText,
  eventually,
  makeWorkspace,
  startTestHub,
  type TestHub,
  temporaryDirectory,
} from './harness.ts';

const agentServer = agentServerFixture('has-feed.ts');

const refused = { code: 'upstreamUnauthorized', message: 'The upstream answered 401: wrong key.' };
const failing = (incarnation: string): HealthReport => ({
  ...{ incarnation, health: 'failing', failure: refused, failuresInARow: 6 },
  lastTurn: { status: 'failed', endedAt: '2026-01-01T00:00:00.000Z', ...refused },
  model: { name: 'gpt-x', provider: 'openai', host: 'api.openai.com' },
  agent: { kind: 'acp', name: 'codex', version: '2.6.0', state: 'busy', approvals: 'asks' },
  ...{ mcpServers: { total: 0, down: [], toolProblems: [] }, pendingApprovals: 0, costUsd: 0.5, sandbox: null },
});
const shown = {
  ...{ state: 'running', health: 'failing', failuresInARow: 6, costUsd: 0.5 },
  lastTurn: { status: 'failed', code: 'upstreamUnauthorized' },
  agent: { kind: 'acp', name: 'codex', version: '2.6.0', state: 'busy', approvals: 'asks' },
  problems: [
    { code: 'upstreamUnauthorized', what: /^api\.openai\.com refuses the key: .*401/, next: 'oratorio login' },
  ],
};

/** The feed of a workspace's agent server. */
function feedOf({ home }: TestHub, workspace: string) {
  const published = readAppServer(workspaceFiles(home, workspace));
  if (published.kind !== 'ok') throw new Error(`the address is ${published.kind}`);
  const { incarnation, endpoints } = published.value;
  const { host } = new URL(endpoints.appServerWebSocket);
  const send = (event: string, data: unknown) =>
    eventually(async () => {
      const body = `event: ${event}\ndata: ${JSON.stringify(data)}\n\n`;
      const answer = await fetch(`http://${host}/events`, { method: 'POST', body });
      return (await answer.text()) !== '0' || undefined;
    }, 'the Hub reads the feed');
  return { incarnation: incarnation ?? '', send };
}

/** Hub of all tests; it is killed in the last one. */
const hub = await startTestHub(t, { agentServer });

t.test('a restart is refused for settings that cannot be used, and a changed configuration is shown', async (t) => {
  const workspace = makeWorkspace(t);
  const file = join(workspace, '.oratorio', 'config.json');
  const { pid } = await hub.ensure(workspace);
  const restart = () => hub.call('POST', '/v1/appservers/restart', { workspacePath: workspace });
  writeFileSync(file, '{"MaxToolCallRounds": "many"}');
  const { status, body } = await restart();
  t.equal(status, 500);
  t.match(body.error, { code: 'invalidConfig', message: /MaxToolCallRounds.*was not changed/ });
  t.match(body.error.details, { file, key: 'MaxToolCallRounds' });
  t.match(await hub.record(workspace), { state: 'running', pid, problems: [{ code: 'configUnusable' }] });

  writeFileSync(join(hub.home, 'config.json'), JSON.stringify({ Hosts: { build: { Ssh: 'ssh://box' } } }), {
    mode: 0o600,
  });
  writeFileSync(file, configText({}));
  trustWorkspace({ home: hub.home, workspace });
  const unchanged = { configChanged: false, problems: [] };
  t.match(await hub.record(workspace), unchanged, 'regression: a new host changes no setting of an agent server');

  writeFileSync(file, configText({ MaxToolCallRounds: 7 }));
  trustWorkspace({ home: hub.home, workspace });
  const changed = { configChanged: true, problems: [{ code: 'configChanged', next: `oratorio restart ${workspace}` }] };
  t.match(await hub.record(workspace), { state: 'running', pid, ...changed });
  t.equal((await restart()).status, 200);
  t.match(await hub.record(workspace), { state: 'running', configChanged: false, problems: [] });
  await hub.call('POST', '/v1/appservers/stop', { workspacePath: workspace });
});

/** A Hub that knows a workspace whose server was started by hand. */
async function byHand(t: Test, { inOtherHome = false } = {}) {
  const workspace = makeWorkspace(t);
  await hub.ensure(workspace);
  t.match((await hub.call('POST', '/v1/appservers/stop', { workspacePath: workspace })).body, { state: 'stopped' });
  const home = inOtherHome ? temporaryDirectory(t) : hub.home;
  const server = spawnServer(t, { path: workspace, home });
  await eventually(
    () => {
      const read = readAppServer(workspaceFiles(home, workspace));
      return (read.kind === 'ok' && read.value.pid === server.child.pid) || undefined;
    },
    () => `the server serves: ${server.output()}`,
  );
  return { workspace, server };
}

t.test('a server that was started by hand is listed, and stop ends it', async (t) => {
  const { workspace, server } = await byHand(t);
  const { body } = await hub.call('GET', '/v1/appservers');
  const listed = body.find(({ workspacePath }: { workspacePath: string }) => workspacePath === workspace);
  t.match(listed, { state: 'running', pid: server.child.pid, startedByHub: false });
  const stopped = await runInProcess(hub.home, 'stop', workspace);
  t.match(stopped, { code: 0, stdout: /state +stopped/ });
  t.equal(await server.ended, 0);
});

t.test('stop of a server that is not provably the user’s exits with 5 and names the process', async (t) => {
  const { workspace, server } = await byHand(t, { inOtherHome: true });
  const { code, stderr } = await runInProcess(hub.home, 'stop', workspace);
  t.equal(code, 5);
  t.match(stderr, new RegExp(`Process ${server.child.pid} owns the workspace lock[\\s\\S]*kill ${server.child.pid}`));
  t.equal(server.child.exitCode, null, 'it runs on');
});

t.test('the record of a started workspace names its agent, at its first start and later', async (t) => {
  const real = await startTestHub(t);
  const events = await real.events();
  const workspace = makeWorkspace(t, { Provider: 'demo', DashBoard: { Enabled: false } });
  const agent = { kind: 'oratorio', name: 'oratorio', state: 'ready' };
  t.match(await real.ensure(workspace), { state: 'running', agent });
  t.match(await real.ensure(workspace), { state: 'running', agent });
  await events.wait('appserver.running');
  const kinds = events.seen.map(({ kind }) => kind).filter((kind) => /^appserver\.(running|health)$/.test(kind));
  t.equal(kinds[0], 'appserver.running', 'no health of a server that does not run');
  events.close();
});

t.test('a report of an agent server is in the record, in events and metrics, and outlives the Hub', async (t) => {
  const workspace = makeWorkspace(t);
  const other = makeWorkspace(t, {}, 'other');
  await hub.ensure(workspace);
  await hub.ensure(other);
  const events = await hub.events();
  const { incarnation, send } = feedOf(hub, workspace);
  await send('report', failing('of another start'));
  await send('report', { ...failing(incarnation), health: 'splendid' });
  await send('notification', { kind: 'turnFailed', title: 'A turn failed', severity: 'error' });
  t.match(await events.wait('notification.requested'), { workspacePath: workspace, data: { title: 'A turn failed' } });
  t.match(await hub.record(workspace), { health: 'unknown', problems: [], lastTurn: null, agent: null });

  await send('report', failing(incarnation));
  await events.wait('appserver.health');
  t.match(await hub.record(workspace), shown);
  t.match(await hub.record(other), { health: 'unknown', problems: [] }, 'the feed is of one workspace');
  const recent = await hub.call('GET', '/v1/events/recent?kind=appserver.health');
  const ofWorkspace = recent.body.filter(({ workspacePath }: { workspacePath: string }) => workspacePath === workspace);
  t.match(ofWorkspace, [
    { id: /-\d+$/, workspacePath: workspace, data: { health: 'failing', code: refused.code, agent: 'busy' } },
  ]);
  const { body: metrics } = await hub.call('GET', '/v1/metrics');
  const id = workspaceKey(workspace);
  t.match(metrics, `oratorio_hub_workspace_healthy{workspace="${id}"} 0`);
  t.match(metrics, `oratorio_hub_workspace_state{workspace="${id}",state="failing"} 1`);
  t.match(metrics, `oratorio_hub_workspace_turn_failures_in_a_row{workspace="${id}"} 6`);

  events.close();
  await eventually(
    () => readFileSync(join(hub.home, 'hub', 'appservers.json'), 'utf8').includes('"failing"') || undefined,
    'the report is on disk',
  );
  await hub.kill('SIGKILL');
  const next = await startTestHub(t, { home: hub.home, agentServer });
  await eventually(async () => (await next.record(workspace)).state === 'running' || undefined, 'it is adopted');
  t.match(await next.record(workspace), { adopted: true, ...shown, agent: { ...shown.agent, state: 'ready' } });
});
