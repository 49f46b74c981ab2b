/** Dashboards of agent servers that a Hub manages. */
import t from 'tap';
import { dashboardToken, pageToken } from '../../src/supervise/index.ts';
import { runInProcess } from '../cli/in-process.ts';
import { eventually, makeWorkspace, quick, startTestHub } from '../hub/harness.ts';
import { request } from './harness.ts';

const hub = await startTestHub(t);

t.test('the Hub reports address and state of a dashboard, which keeps its port', async (t) => {
  const workspace = makeWorkspace(t, quick);
  const first = await hub.ensure(workspace);
  const url = first.endpoints['dashboard'] ?? '';
  t.match(url, /^http:\/\/127\.0\.0\.1:\d+\/DashBoard$/);
  t.match(first.serviceStatus['dashboard'], { state: 'running', url, reason: null });
  const tokenOf = () => dashboardToken(hub.home, first.canonicalWorkspacePath);
  const { origin } = new URL(url);
  const pidOf = async () => (await request(origin, '/DashBoard/api/summary', { token: tokenOf() })).body.pid;
  const firstToken = tokenOf();
  t.equal(await pidOf(), first.pid);
  t.equal((await request(origin, '/DashBoard/api/summary', { token: hub.lock.token })).status, 401, 'another audience');

  const restarted = await hub.call('POST', '/v1/appservers/restart', { workspacePath: workspace });
  if (restarted.status !== 200) throw new Error(`${JSON.stringify(restarted.body)} ${hub.output()}`);
  const second = restarted.body;
  t.equal(second.endpoints.dashboard, url);
  t.not(second.pid, first.pid);
  t.equal(await pidOf(), second.pid);
  t.not(tokenOf(), firstToken, 'a token per start');
  const stale = await request(origin, '/DashBoard/api/summary', { token: firstToken });
  t.equal(stale.status, 401, 'the token of the earlier start opens nothing');

  process.kill(second.pid, 'SIGKILL');
  const third = await eventually(async () => {
    const record = await hub.record(workspace);
    return record.state === 'running' && record.pid !== second.pid ? record : undefined;
  }, 'the Hub starts it again');
  t.equal(third.endpoints['dashboard'], url, 'after a crash too: an open page finds it again');
  t.equal(await pidOf(), third.pid);

  const other = makeWorkspace(t, quick);
  const { endpoints, canonicalWorkspacePath } = await hub.ensure(other);
  t.not(endpoints['dashboard'], url);
  const elsewhere = new URL(endpoints['dashboard'] ?? '').origin;
  const status = async (token: string) => (await request(elsewhere, '/DashBoard/api/summary', { token })).status;
  t.equal(await status(tokenOf()), 401, 'the token of one workspace opens no other');
  t.equal(await status(dashboardToken(hub.home, canonicalWorkspacePath)), 200);
  t.notMatch(hub.output(), tokenOf());
});

t.test('a workspace without a dashboard has no endpoint for it', async (t) => {
  const workspace = makeWorkspace(t, { DashBoard: { Enabled: false } });
  const { endpoints, serviceStatus } = await hub.ensure(workspace);
  t.notOk('dashboard' in endpoints);
  t.match(serviceStatus['dashboard'], { state: 'disabled', url: null, reason: 'DashBoard is disabled.' });
});

t.test('inspect prints the address of the actors with the token of the dashboard', async (t) => {
  const workspace = makeWorkspace(t, quick);
  const none = makeWorkspace(t, { ...quick, DashBoard: { Enabled: false } });
  const stopped = await runInProcess(hub.home, 'inspect', workspace, '--print-url');
  t.match(stopped, { code: 6, text: /No agent server runs for/ });
  const { endpoints, canonicalWorkspacePath, page } = await hub.ensure(workspace);
  const token = dashboardToken(hub.home, canonicalWorkspacePath);
  const url = `${hub.lock.apiBaseUrl}${page}#token=${pageToken(hub.home)}&at=/actors`;
  t.match(await runInProcess(hub.home, 'inspect', workspace, '--print-url'), { code: 0, text: `${url}\n` });
  t.match(JSON.parse((await runInProcess(hub.home, 'inspect', workspace, '--print-url', '--json')).text), { url });
  const record = await runInProcess(hub.home, 'inspect', workspace);
  t.match(record, { code: 0, text: `${endpoints['dashboard']}` });
  t.notMatch(record.text, token);
  await hub.ensure(none);
  t.match(await runInProcess(hub.home, 'inspect', none, '--print-url'), { code: 6, text: /serves no dashboard/ });
  await hub.shutdown();
});
