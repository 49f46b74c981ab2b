/** Requests of another machine, decided once by its own Hub; texts and floods of a hostile Hub. */
import { existsSync, readFileSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { join } from 'node:path';
import t from 'tap';
import { AppServerClient, startThread, startTurn } from '../../src/client/index.ts';
import { version } from '../../src/protocol/index.ts';
import { pageToken } from '../../src/supervise/index.ts';
import { launchBrowser } from '../browser.ts';
import { fakeHub, sendJson } from '../client/fake-hub.ts';
import { answered, startMockUpstream } from '../fixtures/upstream/mock-upstream.ts';
import { eventually, readHubLock } from '../hub/harness.ts';
import { shows } from '../ui/shows.ts';
import { answerOf, oratorio, oratorioJson, runningHub } from './harness.ts';
import { makeMachines } from './ssh-machine.ts';

t.setTimeout(600_000);

const machines = await makeMachines(t);
const { here, there, program } = machines;
const add = (name: string) =>
  oratorio(here, ['hosts', 'add', 'ssh://box', '--name', name, '--program', program, '--json']);
const stateOf = async (name: string): Promise<string> =>
  (await oratorioJson(here, 'hosts')).find((host: { name: string }) => host.name === name)?.phase;

/** Model that runs one command and then answers. */
const upstream = await startMockUpstream(t, (request) =>
  request.body.messages.at(-1)?.role === 'tool'
    ? answered(request, { text: 'Done.' })
    : answered(request, { toolCalls: [{ id: 'c', name: 'Exec', arguments: { command: 'touch made #\u001b[2J' } }] }),
);

t.test('a remote request is decided once from this machine, and its command runs on the host', async (t) => {
  const config = { EndPoint: upstream.url, ApiKey: 'key-of-the-upstream', Model: 'mock-model', UpstreamRetries: 0 };
  const site = there.workspace('site', config);
  t.match(await add('build'), { code: 0 });
  await oratorioJson(here, 'up', `build:${site}`);
  const [own] = await runningHub(there).client.list();
  const client = await AppServerClient.connect(own?.endpoints['appServerWebSocket'] ?? '');
  t.teardown(() => client.close());
  const turn = await startTurn(client, await startThread(client, { workspacePath: site }), 'go');
  const [item] = await eventually(async () => {
    const items = await oratorioJson(here, 'inbox');
    return items.length > 0 ? items : undefined;
  }, 'the local inbox has the request');
  t.match(item, { host: 'build', asOf: null, workspacePath: site, actionUrl: /^\/h\/build\/w\// });
  const { stdout } = await oratorio(here, ['inbox']);
  t.match(stdout, /build:site/, 'the name of the host comes first');
  t.notOk(stdout.includes('\u001b[2J'));

  await machines.cut();
  await eventually(
    async () => (await stateOf('build')).startsWith('unreachable') || undefined,
    'the connection is lost',
  );
  const late = await oratorio(here, ['inbox', 'allow', item.request.requestId, '--json']);
  t.match(JSON.parse(late.stdout || late.stderr), { error: { code: 'hostUnreachable' } });
  t.match(await oratorioJson(here, 'inbox'), [{ host: 'build', asOf: /^\d{4}-/ }], 'the request stays, with its time');
  await machines.mend();
  await eventually(
    async () => (await stateOf('build')).startsWith('connected') || undefined,
    'the host is connected again',
  );
  t.notOk(existsSync(join(site, 'made')), 'the refused answer was not stored');

  const path = `/v1/fleet/inbox/build/${item.workspaceId}/${item.request.requestId}`;
  const answers = await Promise.all(
    ['accept', 'decline'].map((decision) => runningHub(here).call('POST', path, { decision })),
  );
  const allowed = answers[0]?.status === 200;
  t.same(answers.map(({ status }) => status).sort(), [200, 409], 'exactly one answer counts');
  t.match(answers.find(({ status }) => status === 409)?.body, { error: { code: 'alreadyDecided' } });
  await answerOf(turn);
  t.equal(existsSync(join(site, 'made')), allowed);
  await eventually(async () => (await oratorioJson(here, 'inbox')).length === 0 || undefined, 'nothing waits');
  const threads = await runningHub(here).call('GET', '/v1/fleet/threads');
  t.match(threads.body, { threads: [{ host: 'build', actionUrl: /^\/h\/build\/w\// }], missing: [] });
  const [{ page }] = await oratorioJson(here, 'list', '--host', 'build');
  const origin = readHubLock(here.home)?.apiBaseUrl ?? '';
  const document = await fetch(`${origin}${page}`);
  t.match(await document.text(), /<script/, 'this Hub serves its page');
  t.match(document.headers.get('content-security-policy'), /default-src/);
  t.equal((await fetch(`${origin}${page}dashboard/api/summary`)).status, 401, 'data requires the token of this Hub');
  t.equal((await runningHub(here).call('GET', `${page}dashboard/api/summary`)).status, 200);
});

t.test('a browser shows a conversation of another machine on the origin of this Hub', async (t) => {
  const { body } = await runningHub(here).call('GET', '/v1/fleet/threads');
  const { origin, pathname, hash } = new URL(body.threads[0].actionUrl, readHubLock(here.home)?.apiBaseUrl);
  const browser = await launchBrowser();
  t.teardown(() => browser.close());
  const page = await browser.newPage({ viewport: { width: 390, height: 844 } });
  const origins = new Set<string>();
  page.on('request', (request) => origins.add(new URL(request.url()).origin));
  page.on('websocket', (socket) => origins.add(new URL(socket.url()).origin.replace(/^ws/, 'http')));
  await page.goto(`${origin}${pathname}#token=${pageToken(here.home)}&at=${hash.slice(1)}`);
  await page.locator('.connection.live').waitFor({ timeout: 300_000 });
  await page.getByText('Done.').first().waitFor({ timeout: 300_000 });
  t.same([...origins], [origin], 'one origin');
  await shows(
    t,
    'equal',
    () => page.evaluate(() => document.documentElement.scrollWidth),
    390,
    'the page is not wider than a phone',
  );
});

t.test('chat runs the remote program at this terminal', async (t) => {
  const [{ canonicalWorkspacePath }] = await oratorioJson(here, 'list', '--host', 'build');
  const { code, stdout, stderr } = await oratorio(here, [
    'chat',
    '--workspace',
    `build:${canonicalWorkspacePath}`,
    '--plan',
    "it's",
  ]);
  t.match(stdout, 'Done.', stdout + stderr);
  t.equal(code, 0);
});

t.test('a hostile remote Hub cannot control the terminal or exhaust the memory', async (t) => {
  const token = 'x'.repeat(40);
  const record = {
    ...{
      workspacePath: '/srv/\u001b]0;owned\u0007',
      canonicalWorkspacePath: '/srv/\u001b]0;owned\u0007',
      state: 'running',
    },
    ...{
      displayName: '\u001b[2J\u202eevil',
      endpoints: { appServerWebSocket: 'ws://127.0.0.1:1/ws?token=secret-of-it' },
    },
    page: '/w/../../etc/',
  };
  const other = { ...record, canonicalWorkspacePath: '/srv/other', page: `/w/${'a'.repeat(16)}/../../../etc/` };
  let mode: 'calm' | 'flood' | 'huge' = 'calm';
  const flooding = Promise.withResolvers<void>();
  const flood = (response: ServerResponse) => {
    flooding.resolve();
    const frame = `id: e-1\nevent: x\ndata: ${JSON.stringify({ kind: 'x', at: '', data: { text: '\u001b'.repeat(900) } })}\n\n`;
    const more = () => {
      while (!response.destroyed && response.write(frame.repeat(50)));
    };
    response.on('drain', more);
    more();
  };
  const fake = await fakeHub(
    ({ url = '' }, response) => {
      if (url.startsWith('/v1/events')) {
        response.writeHead(200, { 'content-type': 'text/event-stream' });
        response.write(': connected\n\n');
        if (mode === 'flood') flood(response);
      } else if (url.startsWith('/v1/inbox')) sendJson(response, 200, []);
      else sendJson(response, 200, mode === 'huge' ? [{ ...record, filler: 'x'.repeat(40_000_000) }] : [record, other]);
    },
    [token],
  );
  t.teardown(() => fake.close());
  const address = { apiBaseUrl: fake.baseUrl, version, tokenId: 't', token };
  machines.install(`echo '${JSON.stringify(address)}'`);
  t.match(await add('evil'), { code: 0 });
  const { stdout } = await oratorio(here, ['list', '--host', 'evil']);
  t.match(stdout, /evil/);
  for (const hostile of ['\u001b', '\u0007', '\u202e']) t.notOk(stdout.includes(hostile), JSON.stringify(hostile));
  const listed = JSON.stringify(await oratorioJson(here, 'list', '--host', 'evil'));
  t.notMatch(listed, 'secret-of-it');
  t.notMatch(listed, '/etc/', 'a link to another address is left out');

  const memory = () => Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${runningHub(here).pid}/status`, 'utf8'))?.[1]);
  mode = 'flood';
  // On a busy machine, a Hub that floods proves itself too late, and is tried again.
  await oratorio(here, ['hosts', 'enable', 'evil']);
  await flooding.promise;
  const began = performance.now();
  let slowest = 0;
  while (performance.now() - began < 6_000) {
    const asked = performance.now();
    t.equal((await runningHub(here).call('GET', '/v1/hosts')).status, 200);
    slowest = Math.max(slowest, performance.now() - asked);
  }
  t.ok(slowest < 3_000, `slowest answer ${Math.round(slowest)} ms`);
  t.ok(memory() < 400_000, `${memory()} KiB`);
  mode = 'huge';
  t.match(await oratorio(here, ['hosts', 'enable', 'evil']), { code: 1 });
  t.match(await stateOf('evil'), /^(?:unreachable|connecting)/, 'an oversized answer counts as a lost connection');
  t.ok(memory() < 500_000, `${memory()} KiB`);
  t.match(await stateOf('build'), /^connected/, 'the other host stays connected');
});
