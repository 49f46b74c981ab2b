/** A host with an earlier Hub: its workspaces are listed without the missing fields, and each missing function is named with the next step. */
import type { ServerResponse } from 'node:http';
import t from 'tap';
import { launchBrowser } from '../browser.ts';
import { fakeHub, sendJson } from '../client/fake-hub.ts';
import { oratorio, oratorioJson, runningHub } from './harness.ts';
import { makeMachines } from './ssh-machine.ts';
import { openPage } from './trouble.ts';

t.setTimeout(600_000);

const machines = await makeMachines(t);
const { here, program } = machines;
const token = 'x'.repeat(40);
const olderVersion = '0.0.9';

/** Record with the fields of the specification only. */
const record = {
  ...{ workspacePath: '/srv/site', canonicalWorkspacePath: '/srv/site', state: 'running', pid: 7 },
  ...{ endpoints: {}, serviceStatus: {}, serverVersion: olderVersion, startedByHub: true },
  ...{ exitCode: null, lastError: null, recentStderr: null },
};

/** Routes of the earlier Hub. All others are missing. */
const routes = new Map<string, (response: ServerResponse) => void>([
  ['GET /v1/appservers', (response) => sendJson(response, 200, [record])],
  ['GET /v1/inbox', (response) => sendJson(response, 200, [])],
  ['POST /v1/appservers/ensure', (response) => sendJson(response, 200, record)],
  [
    'GET /v1/events',
    (response) => response.writeHead(200, { 'content-type': 'text/event-stream' }).write(': connected\n\n'),
  ],
]);

/** Starts an earlier Hub, and makes it the Hub of the second machine. */
const older = await fakeHub(
  ({ method, url = '' }, response) => {
    const answer = routes.get(`${method} ${url.split('?')[0]}`);
    if (answer) answer(response);
    else sendJson(response, 404, { error: { code: 'notFound', message: 'There is no such route.', details: null } });
  },
  [token],
);
t.teardown(() => older.close());
// Earlier versions do not name the time.
const address = { apiBaseUrl: older.baseUrl, version: olderVersion, tokenId: 't', token };
machines.install(`echo '${JSON.stringify(address)}'`);

const mine = here.workspace('mine');

const install = /hosts add \S+ --name old --install/;

t.test('an earlier Hub is connected, and its workspaces are listed beside the local ones', async (t) => {
  await oratorioJson(here, 'up', mine, '--no-follow');
  const added = await oratorioJson(here, 'hosts', 'add', 'ssh://box', '--name', 'old', '--program', program);
  t.match(added, { state: 'connected', version: olderVersion, workspaces: 1 });
  const { stdout } = await oratorio(here, ['list']);
  t.match(stdout, /^old:site\tready/m);
  t.match(stdout, /^mine\tready/m);
  t.match(await oratorioJson(here, 'inbox'), []);
  t.match(await runningHub(here).call('GET', '/v1/fleet/threads'), { status: 200, body: { missing: ['old'] } });
  t.match(await oratorio(here, ['up', 'old:/srv/site']), { code: 0, stdout: /ready/ });
});

t.test('the page shows the workspaces of an earlier Hub', async (t) => {
  const browser = await launchBrowser();
  t.teardown(() => browser.close());
  const page = await openPage(browser, here);
  await page.locator('.vrow', { hasText: 'old:site' }).waitFor();
  await page.locator('.vrow', { hasText: 'mine' }).waitFor();
});

t.test('a move to an earlier Hub is refused with the next step, and the conversation stays', async (t) => {
  await oratorio(here, ['chat', '--workspace', mine, '--yes', 'run: echo hi']);
  const [{ threadId }] = (await runningHub(here).call('GET', '/v1/fleet/threads')).body.threads;
  const moved = await oratorio(here, ['move', threadId, 'old:/srv/site']);
  t.match(moved, { code: 1, stderr: /was not moved\. The Hub of old is of an earlier version/ });
  t.match(moved.stderr, install);
  t.match(await oratorio(here, ['chat', '--workspace', mine, '--yes', '--thread', threadId, 'run: echo on']), {
    code: 0,
    stdout: /on/,
  });
});

t.test('an action that an earlier Hub does not have is refused with the next step', async (t) => {
  const { code, stderr } = await oratorio(here, ['stop', 'old:/srv/site']);
  t.not(code, 0);
  t.match(stderr, install);
});

t.test('a Hub without an inbox is refused as too old, not tried without end', async (t) => {
  routes.delete('GET /v1/inbox');
  const { code, stderr } = await oratorio(here, ['hosts', 'enable', 'old']);
  t.equal(code, 1);
  t.match(stderr, /does not have the list and inbox/);
  t.match(stderr, install);
  t.match(await oratorioJson(here, 'hosts'), [{ phase: 'refused.version', version: olderVersion }]);
  const listed = await oratorio(here, ['list']);
  t.match(listed.stdout, /^mine\tready/m, 'local workspaces are still listed');
  t.match(listed.stdout, /^old:site\t/m, 'the last known state stays');
});
