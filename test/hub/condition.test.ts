/** Health, problems and configuration in the records of a Hub, and servers that it does not manage. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { trustWorkspace, workspaceKey } from '../../src/config/index.ts';
import { loadCredentials } from '../../src/hub/credentials.ts';
import type { HealthReport } from '../../src/protocol/index.ts';
import { readAppServer, workspaceFiles } from '../../src/supervise/index.ts';
import { spawnServer } from '../appserver/harness.ts';
import { runInProcess } from '../cli/in-process.ts';
import {
  agentServerFixture,
  configText,
  eventually,
  hubStatePath,
  makeWorkspace,
  startTestHub,
  type TestHub,
  temporaryDirectory,
} from './harness.ts';

const agentServer = agentServerFixture('well-behaved.ts');

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

/** Reports as the agent server of a workspace does. */
function reporter({ home, call }: TestHub, workspace: string) {
  const token = loadCredentials(hubStatePath(home)).notificationToken(workspace);
  const published = readAppServer(workspaceFiles(home, workspace));
  const incarnation = published.kind === 'ok' ? (published.value.incarnation ?? '') : '';
  const send = (report: unknown) => call('POST', '/v1/appservers/report', report, { authorization: `Bearer ${token}` });
  return { incarnation, send };
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
  t.match(body.error, { code: 'invalidConfig', message: /MaxToolCallRounds.*was left as it is/ });
  t.match(body.error.details, { file, key: 'MaxToolCallRounds' });
  t.match(await hub.record(workspace), { state: 'running', pid, problems: [{ code: 'configUnusable' }] });

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
  const workspace = makeWorkspace(t, { Provider: 'demo', DashBoard: { Enabled: false } });
  const agent = { kind: 'oratorio', name: 'oratorio', state: 'ready' };
  t.match(await real.ensure(workspace), { state: 'running', agent });
  t.match(await real.ensure(workspace), { state: 'running', agent });
});

t.test('a report of an agent server is in the record, in events and metrics, and outlives the Hub', async (t) => {
  const workspace = makeWorkspace(t);
  const other = makeWorkspace(t, {}, 'other');
  await hub.ensure(workspace);
  await hub.ensure(other);
  const { incarnation, send } = reporter(hub, workspace);
  t.match(await send(failing('of another start')), { status: 200, body: { accepted: false } });
  t.match(await send({ ...failing(incarnation), health: 'splendid' }), { status: 400 });
  t.match(await hub.call('POST', '/v1/appservers/report', failing(incarnation)), { status: 400 }, 'not the Hub token');
  t.match(await hub.record(workspace), { health: 'unknown', problems: [], lastTurn: null, agent: null });

  t.match(await send(failing(incarnation)), { status: 200, body: { accepted: true } });
  t.match(await hub.record(workspace), shown);
  t.match(await hub.record(other), { health: 'unknown', problems: [] }, 'the token is of one workspace');
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

  await hub.kill('SIGKILL');
  const next = await startTestHub(t, { home: hub.home, agentServer });
  await eventually(async () => (await next.record(workspace)).state === 'running' || undefined, 'it is adopted');
  t.match(await next.record(workspace), { adopted: true, ...shown });
});
