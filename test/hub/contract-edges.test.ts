/** Edges of the Hub's contract: spellings of a path, notifications, event streams of whole lives, failing starts. */
import { mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import t, { type Test } from 'tap';
import type { AnyHubEvent } from '../../src/protocol/index.ts';
import { acquireLock } from '../../src/supervise/index.ts';
import { anyWebUrl } from '../any-character.ts';
import { unusedPort } from '../ports.ts';
import {
  agentServerFixture,
  eventually,
  makeWorkspace,
  quick,
  startTestHub,
  type TestConfig,
  type TestHub,
  temporaryDirectory,
} from './harness.ts';

const agentServer = agentServerFixture('named.ts');
const post = (hub: TestHub, action: string, body: unknown) => hub.call('POST', `/v1/appservers/${action}`, body);

/** Home of all Hubs of this file; this one is killed in the last test. */
const home = temporaryDirectory(t);
const hub = await startTestHub(t, { home, agentServer });

/** A workspace whose agent server is of this kind. */
function workspaceWith(t: Test, kind = 'well-behaved', config: TestConfig = quick): string {
  const workspace = makeWorkspace(t, config);
  writeFileSync(join(workspace, 'agent-server'), kind);
  return workspace;
}

t.test('regression: edge 9 every answer has the workspace path of its request', async (t) => {
  const workspace = workspaceWith(t);
  const link = join(temporaryDirectory(t), 'link');
  symlinkSync(workspace, link);
  const spellings = [workspace, link, `${workspace}/`, `${workspace}/../workspace`];
  for (const round of [1, 2]) {
    for (const workspacePath of spellings) {
      const expected = { workspacePath, canonicalWorkspacePath: workspace };
      t.match((await post(hub, 'ensure', { workspacePath })).body, expected, `ensure ${round}`);
      t.match(await hub.record(workspacePath), expected, 'by-workspace');
    }
    for (const startIfMissing of [true, false])
      t.match((await post(hub, 'ensure', { workspacePath: link, startIfMissing })).body, { workspacePath: link });
  }
  const list = (await hub.call('GET', '/v1/appservers')).body;
  t.match(
    list,
    [{ workspacePath: link, canonicalWorkspacePath: workspace }],
    'a list shows the last requested spelling',
  );
  t.equal(list.length, 1);
  for (const workspacePath of spellings) {
    t.match((await post(hub, 'restart', { workspacePath })).body, { workspacePath, state: 'running' });
    t.match((await post(hub, 'stop', { workspacePath })).body, { workspacePath, state: 'stopped' });
    t.match(await hub.record(workspacePath), { workspacePath, state: 'stopped' });
  }
  // The Hub bounds the spellings it stores; each answer has the spelling of its request all the same.
  await post(hub, 'ensure', { workspacePath: workspace });
  for (let depth = 0; depth < 20; depth++) {
    const workspacePath = `${workspace}${'/.'.repeat(depth)}`;
    t.equal((await post(hub, 'ensure', { workspacePath })).body.workspacePath, workspacePath);
  }
  rmSync(workspace, { recursive: true });
  t.match((await post(hub, 'stop', { workspacePath: workspace })).body, { workspacePath: workspace });
});

t.test('regression: edge 14 a notification that violates the contract is refused', async (t) => {
  const workspace = makeWorkspace(t, quick);
  const notify = (body: unknown) => hub.call('POST', '/v1/notifications/request', body);
  const good = { title: 'Done', workspacePath: workspace, actionUrl: `oratorio://open?path=${workspace}` };
  t.match(await notify(good), { status: 200, body: { accepted: true } });
  t.match(await notify({ title: 'Done' }), { status: 200 });
  t.match(await notify({ ...good, actionUrl: 'x-my.app+desktop:open?path=%2Fw' }), { status: 200 });

  const notThere = join(workspace, 'nothing');
  const notWorkspace = temporaryDirectory(t);
  const paths: [unknown, number][] = [
    ['relative', 400],
    ['', 400],
    ['../..', 400],
    [notThere, 404],
    [notWorkspace, 404],
  ];
  for (const [workspacePath, status] of paths)
    t.match(await notify({ ...good, workspacePath }), { status, body: { error: { code: 'workspaceNotFound' } } });

  const urls = [
    'javascript:alert(1)',
    'JavaScript:alert(1)',
    'java\nscript:alert(1)',
    ' javascript:alert(1)',
    'http://evil.example/',
    'https://evil.example/',
    'data:text/html,secret',
    'file:///etc/passwd',
    'vbscript:x',
    'blob:x',
    'ms-msdt:/id',
    'search-ms:query',
    'c:\\windows',
    '/just/a/path',
    'not a url',
    '',
  ];
  for (const actionUrl of urls) {
    const answer = await notify({ ...good, actionUrl });
    t.match(answer, { status: 400, body: { error: { code: 'invalidNotification' } } }, actionUrl);
    if (actionUrl) t.notOk(JSON.stringify(answer.body).includes(JSON.stringify(actionUrl).slice(1, -1)));
  }
  for (const body of ['{"title": "x"', 'title=x', '', '\u0000', '[', '"x"', '{"title":{"secret":"S3CRET"}}']) {
    const answer = await notify(body);
    t.match(answer, { status: 400, body: { error: { code: 'invalidNotification' } } }, body);
    t.notOk(JSON.stringify(answer.body).includes('S3CRET'));
  }
});

t.test('regression: edge 14 a foreign address is refused and not quoted', async (t) => {
  const events = await hub.events();
  const secret = 'S3CRET-VALUE';
  const value = fc.oneof(fc.constant(secret), fc.json(), fc.integer(), fc.constant(null), fc.object(), anyWebUrl);
  const body = fc.record(
    { title: value, workspacePath: value, kind: value, body: value, severity: value, source: value, actionUrl: value },
    { requiredKeys: [] },
  );
  await fc.assert(
    fc.asyncProperty(body, async (notification) => {
      const answer = await hub.call('POST', '/v1/notifications/request', notification);
      if (answer.status === 200) return;
      const { code, message } = answer.body.error;
      if (answer.status !== 400 || !['invalidNotification', 'workspaceNotFound'].includes(code))
        throw new Error(`${answer.status} ${code}`);
      if (message.includes(secret)) throw new Error(`quoted: ${message}`);
    }),
    { numRuns: 150 },
  );
  await hub.call('POST', '/v1/notifications/request', { title: 'the last' });
  await events.wait('notification.requested', ({ data }) => data['title'] === 'the last');
  for (const { kind, data } of events.seen)
    if (kind === 'notification.requested') t.notMatch(data['actionUrl'] ?? '', /^(https?|javascript|data|file):/i);
});

t.test(
  'regression: edge 17 a failed start quotes its own output, and a locked workspace is not restarted',
  async (t) => {
    const never = { Supervision: { ...quick.Supervision, Restart: 'never' } };
    const workspace = workspaceWith(t, 'exits-at-once', never);
    const first = await post(hub, 'ensure', { workspacePath: workspace });
    t.match(first.body.error.details, { recentStderr: 'no licence for this machine' });
    await post(hub, 'stop', { workspacePath: workspace });

    writeFileSync(join(workspace, '.oratorio', 'config.json'), '{ broken');
    const broken = await post(hub, 'ensure', { workspacePath: workspace });
    t.match(broken, { status: 500, body: { error: { code: 'invalidConfig' } } });
    t.notOk('recentStderr' in broken.body.error.details, 'nothing ran, so nothing was said');
    t.match(await hub.record(workspace), { state: 'exited', recentStderr: null, restartCount: 0 });

    writeFileSync(join(workspace, '.oratorio', 'config.json'), '{}');
    const locked = join(workspace, '.oratorio', 'appserver.mutex');
    mkdirSync(join(workspace, '.oratorio'), { recursive: true });
    const lock = acquireLock(locked);
    t.not(lock, 'held');
    const answer = await post(hub, 'ensure', { workspacePath: workspace });
    t.match(answer, { status: 409, body: { error: { code: 'workspaceLocked' } } });
    t.match(await hub.record(workspace), {
      state: 'unhealthy',
      restartCount: 0,
      nextAttemptAt: null,
      recentStderr: null,
    });
    if (lock !== 'held') lock.release();
  },
);

/** Event as text, with names instead of pids. */
const brief = ({ kind, data }: AnyHubEvent, names: Map<unknown, string>) => {
  const pid = data['pid'] === null ? null : names.get(data['pid']);
  return [kind, ...(pid === undefined ? [] : [pid]), ...(data['stopped'] ? ['stopped'] : [])].join(' ');
};

t.test('regression: edge 16 the events of an agent server are correct, complete and in order', async (t) => {
  const workspace = workspaceWith(t);
  const failing = makeWorkspace(t);
  writeFileSync(join(failing, '.oratorio', 'config.json'), '{ broken');
  const directory = temporaryDirectory(t);
  const port = await unusedPort();
  const binaryPath = join(directory, 'proxy.mjs');
  const configPath = join(directory, 'config.json');
  writeFileSync(
    binaryPath,
    `#!${process.execPath}\nimport { createServer } from 'node:http';\ncreateServer((_, r) => r.end('{}')).listen(${port}, '127.0.0.1');\n`,
    { mode: 0o755 },
  );
  writeFileSync(configPath, '{}');
  const apiProxy = { enabled: true, binaryPath, configPath, endpoint: `http://127.0.0.1:${port}`, apiKey: 'k' };

  const events = await hub.events();
  const { pid } = await hub.ensure(workspace, { apiProxy });
  const proxyPid = (await events.wait('apiProxy.running')).data['pid'];
  t.match(await post(hub, 'ensure', { workspacePath: failing }), {
    status: 500,
    body: { error: { code: 'invalidConfig' } },
  });
  await events.wait('appserver.exited');
  await hub.kill('SIGKILL');
  await events.ended;
  const names = new Map<unknown, string>([
    [pid, 'server'],
    [proxyPid, 'sidecar'],
    [null, 'none'],
  ]);
  t.same(
    events.seen
      .filter(({ kind, workspacePath }) => workspacePath === workspace && kind !== 'port.allocated')
      .map((event) => brief(event, names)),
    ['appserver.starting', 'apiProxy.running sidecar', 'appserver.running server'],
  );
  const failed = events.seen.filter((event) => event.workspacePath === failing);
  t.match(
    failed,
    [{ kind: 'appserver.exited', data: { pid: null, error: /config\.json/ } }],
    'a failed start has its reason',
  );
  t.equal(failed.length, 1);

  const second = await startTestHub(t, { home, agentServer });
  await second.ensure(workspace);
  // Everything since the start of this Hub, from its ring.
  const heard = (await import('eventsource')).EventSource;
  const seen: AnyHubEvent[] = [];
  const source = new heard(`${second.lock.apiBaseUrl}/v1/events?lastEventId=x-1`, {
    fetch: (url, init) =>
      fetch(url, { ...init, headers: { ...init.headers, authorization: `Bearer ${second.lock.token}` } }),
  });
  for (const kind of [
    'hub.gap',
    'hub.started',
    'hub.stopping',
    'appserver.running',
    'appserver.exited',
    'apiProxy.running',
    'apiProxy.exited',
  ])
    source.addEventListener(kind, ({ data }) => seen.push(JSON.parse(data)));
  await eventually(
    () => seen.some(({ kind }) => kind === 'apiProxy.running') || undefined,
    'the adopted sidecar is announced',
  );
  await post(second, 'ensure', { workspacePath: failing });
  process.kill(Number(proxyPid), 'SIGKILL');
  const revived = await eventually(
    () => seen.find(({ kind, data }) => kind === 'apiProxy.running' && data['pid'] !== proxyPid),
    'the sidecar is revived',
  );
  names.set(revived.data['pid'], 'second sidecar');
  await second.shutdown();
  await eventually(
    () => seen.filter(({ kind }) => kind === 'apiProxy.exited').length >= 2 || undefined,
    'the ends are read',
  );
  source.close();

  const [gap, started] = seen;
  t.match(
    [gap?.kind, started?.kind],
    ['hub.gap', 'hub.started'],
    'the start of the Hub is the first event of its life',
  );
  const life = seen.filter((event) => event.workspacePath === workspace).map((event) => brief(event, names));
  t.same(
    life.filter((line) => line.startsWith('apiProxy')),
    [
      'apiProxy.running sidecar',
      'apiProxy.exited sidecar',
      'apiProxy.running second sidecar',
      'apiProxy.exited second sidecar stopped',
    ],
  );
  t.same(
    life.filter((line) => line.startsWith('appserver')),
    ['appserver.running server', 'appserver.exited server stopped'],
  );
  for (const { kind, data } of seen)
    if (kind.startsWith('apiProxy.')) t.equal(data['endpoint'], apiProxy.endpoint, 'never without its address');
  t.equal(seen.filter((event) => event.workspacePath === failing).length, 1, 'a shutdown ends nothing that had ended');

  const third = await startTestHub(t, { home, agentServer });
  t.match(await third.record(failing), { state: 'stopped', lastError: /config\.json/ }, 'the reason outlives the Hub');
});
