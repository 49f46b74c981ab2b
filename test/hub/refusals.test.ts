/** Requests that are refused with the true reason and its limit, the rights of the page token, and the words of notifications. */
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { pageToken } from '../../src/supervise/index.ts';
import { agentServerFixture, makeWorkspace, request, startTestHub, temporaryDirectory } from './harness.ts';
import { sidecar } from './sidecars.ts';

const hub = await startTestHub(t, { agentServer: agentServerFixture('well-behaved.ts') });
const workspace = makeWorkspace(t);

t.test(
  'a field of the wrong type and a path that cannot be one are refused with the reason and the limit',
  async (t) => {
    const ensure = (workspacePath: string, more = {}) =>
      hub.call('POST', '/v1/appservers/ensure', { workspacePath, startIfMissing: false, ...more });
    t.match(await ensure(workspace, { startIfMissing: null }), {
      status: 400,
      body: { error: { code: 'invalidRequest', message: /startIfMissing/ } },
    });
    const directory = temporaryDirectory(t);
    writeFileSync(join(directory, 'file'), '');
    for (const [path, status, message] of [
      [`/${'a'.repeat(4_999)}`, 400, /has 5000 bytes; the limit is 3840/],
      [`/${'a/'.repeat(1_950)}`, 400, /has 3901 bytes; the limit is 3840/],
      ['relative', 400, /absolute path/],
      ['/nul\0', 400, /NUL/],
      [join(directory, 'file'), 404, /is not a directory/],
      [join(directory, 'missing'), 404, /does not exist/],
    ] as const)
      t.match(await ensure(path), { status, body: { error: { code: 'workspaceNotFound', message } } });
    t.match(await ensure(workspace), { status: 200 }, 'positive control');
  },
);

t.test('a notification is refused with its limit, and its severity takes the words of logs', async (t) => {
  const notify = (body: object) => hub.call('POST', '/v1/notifications/request', body);
  for (const [body, message] of [
    [{ title: 'x'.repeat(1_025) }, /title is longer than 1024 characters/],
    [{ title: 'x', body: 'y'.repeat(16_385) }, /body is longer than 16384 characters/],
    [{ title: 'x', actionUrl: `app://${'y'.repeat(8_192)}` }, /actionUrl is longer than 8192 characters/],
  ] as const)
    t.match(await notify(body), { status: 400, body: { error: { code: 'invalidNotification', message } } });
  const tap = await hub.events();
  for (const [word, severity] of Object.entries({
    err: 'error',
    critical: 'error',
    FATAL: 'error',
    ' warn ': 'warning',
    success: 'success',
    constructor: 'info',
    odd: 'info',
  })) {
    t.match(await notify({ title: word, severity: word }), { status: 200 });
    const { data } = await tap.wait('notification.requested', (event) => event.data['title'] === word.trim());
    t.equal(data['severity'], severity, word);
  }
});

t.test('a notification through a link names the canonical path, and is found by either path', async (t) => {
  const link = join(temporaryDirectory(t), 'link');
  symlinkSync(workspace, link);
  await hub.call('POST', '/v1/notifications/request', { title: 'linked', workspacePath: link });
  for (const path of [workspace, link]) {
    const { body } = await hub.call(
      'GET',
      `/v1/events/recent?kind=notification.requested&path=${encodeURIComponent(path)}`,
    );
    t.match(body, [{ workspacePath: workspace, data: { title: 'linked', workspacePath: workspace } }], path);
  }
});

t.test('the page token starts no program of its own, ends no Hub and reads no token', async (t) => {
  const page = { ...hub.lock, token: pageToken(hub.home) };
  const apiProxy = await sidecar(t);
  const marker = join(temporaryDirectory(t), 'ran');
  mkdirSync(marker);
  for (const action of ['ensure', 'restart'])
    t.match(await request(page, 'POST', `/v1/appservers/${action}`, { workspacePath: workspace, apiProxy }), {
      status: 403,
      body: { error: { code: 'scopeMissing', details: { scope: 'apiProxy' } } },
    });
  for (const [method, path] of [
    ['POST', '/v1/shutdown'],
    ['GET', '/v1/tokens'],
    ['GET', '/v1/metrics'],
    ['GET', '/v1/openapi.json'],
    ['POST', '/v1/notifications/request'],
  ] as const)
    t.equal((await request(page, method, path, method === 'POST' ? {} : undefined)).status, 401, path);
  const started = await request(page, 'POST', '/v1/appservers/ensure', { workspacePath: workspace });
  t.match(started, { status: 200, body: { state: 'running' } }, 'positive control: it starts the server as configured');
  t.notMatch(JSON.stringify(started.body), /token=(?!\*\*\*)/);
  t.match(
    await hub.ensure(workspace, { apiProxy }),
    { serviceStatus: { apiProxy: { state: 'restartRequired' } } },
    'the Hub token may',
  );
});
