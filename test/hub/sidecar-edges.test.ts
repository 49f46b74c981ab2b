/** Results of `ensure` and `restart` with sidecars that fail, hang or print their key. */
import { chmodSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { unusedPort } from '../ports.ts';
import {
  agentServerFixture,
  eventually,
  fixture,
  hubStatePath,
  isAlive,
  makeWorkspace,
  quick,
  startTestHub,
  type TestHub,
  temporaryDirectory,
} from './harness.ts';

const agentServer = agentServerFixture('well-behaved.ts');
const standIn = `await import(${JSON.stringify(fixture('sidecars/stand-in.mjs'))});`;

interface Teardown {
  teardown(callback: () => unknown): void;
}

async function sidecar(t: Teardown, script = standIn, settings: Record<string, unknown> = {}) {
  const directory = temporaryDirectory(t);
  const port = await unusedPort();
  const apiKey = `sk-sidecar-${port}-"do not show"`;
  const binaryPath = join(directory, 'proxy.mjs');
  const configPath = join(directory, 'config.json');
  writeFileSync(binaryPath, `#!${process.execPath}\n${script}\n`);
  writeFileSync(configPath, JSON.stringify({ port, key: apiKey, ...settings }));
  chmodSync(binaryPath, 0o755);
  return { enabled: true, binaryPath, configPath, endpoint: `http://127.0.0.1:${port}`, apiKey };
}

const ensure = (hub: TestHub, workspacePath: string, more: Record<string, unknown> = {}) =>
  hub.call('POST', '/v1/appservers/ensure', { workspacePath, ...more });
const restart = (hub: TestHub, workspacePath: string, more: Record<string, unknown> = {}) =>
  hub.call('POST', '/v1/appservers/restart', { workspacePath, ...more });

/** Everything in the files below a directory. */
function contentOf(directory: string): string {
  return readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => readFileSync(join(entry.parentPath, entry.name), 'latin1'))
    .join('\n');
}

/** Hub of the tests after the first one, which has killed its own. */
let hub: TestHub;
const stop = (workspacePath: string) => hub.call('POST', '/v1/appservers/stop', { workspacePath });
const all = t;
const home = temporaryDirectory(t);
const killed = await startTestHub(t, { home, agentServer });
const talker = { workspace: makeWorkspace(t, quick), apiProxy: await sidecar(t, standIn, { lines: 2_000 }) };
const { pid: talkerPid } = await killed.ensure(talker.workspace, { apiProxy: talker.apiProxy });
const logs = join(hubStatePath(home), 'logs');

t.test('regression: edge 22 the key a sidecar prints never reaches its log file', async (t) => {
  const { workspace, apiProxy } = talker;
  await eventually(() => contentOf(logs).includes('[redacted] done') || undefined, 'the last line is logged');
  const log = contentOf(logs);
  t.ok(log.includes('line 1999: key [redacted]'), 'nothing else is lost');
  for (const spelling of [apiProxy.apiKey, encodeURIComponent(apiProxy.apiKey), JSON.stringify(apiProxy.apiKey)])
    t.notOk(log.includes(spelling.replaceAll(/^"|"$/g, '')), 'no spelling of the key');
  const shown = await killed.call(
    'GET',
    `/v1/appservers/logs?process=sidecar&stream=stdout&path=${encodeURIComponent(workspace)}`,
  );
  t.match(shown.body, /line 1999: key \[redacted\]/);

  await killed.kill('SIGKILL');
  const models = await fetch(`${apiProxy.endpoint}/models`, {
    headers: { authorization: `Bearer ${apiProxy.apiKey}` },
  });
  t.equal(models.status, 200, 'the sidecar outlives its Hub');
  hub = await startTestHub(all, { home, agentServer });
  t.match(await hub.ensure(workspace), { pid: talkerPid, serviceStatus: { apiProxy: { state: 'running' } } });
  await stop(workspace);
  t.notOk(contentOf(logs).includes(apiProxy.apiKey));
});

t.test('regression: edge 2 a bad sidecar request is refused or waits, without effect on other requests', async (t) => {
  const workspace = makeWorkspace(t, quick);
  const good = await sidecar(t);
  const bad = await sidecar(t, `console.error('bad licence'); process.exit(2);`);
  const first = await hub.ensure(workspace, { apiProxy: good });

  const broken = [
    { ...bad, binaryPath: join(bad.binaryPath, 'missing') },
    { ...bad, binaryPath: bad.configPath },
    { ...bad, configPath: hub.home },
    { ...bad, endpoint: 'http://192.0.2.1:80' },
    { ...bad, apiKey: ' ' },
  ];
  for (const apiProxy of broken) {
    t.match(await ensure(hub, workspace, { apiProxy }), {
      status: 400,
      body: { error: { code: 'invalidProxySidecar' } },
    });
    t.match(await restart(hub, workspace, { apiProxy }), { status: 400 });
  }
  t.same(await hub.record(workspace), first, 'a refused request changes nothing');
  const typed = await ensure(hub, workspace, { apiProxy: { ...bad, apiKey: 77_443_311 } });
  t.equal(typed.status, 400);
  t.notOk(JSON.stringify(typed.body).includes('77443311'), 'no value is quoted');

  t.match((await ensure(hub, workspace, { apiProxy: bad })).body, {
    pid: first.pid,
    endpoints: { apiProxy: good.endpoint },
    serviceStatus: { apiProxy: { state: 'restartRequired', url: good.endpoint } },
  });
  const restarted = await restart(hub, workspace);
  t.match(restarted, { status: 200, body: { state: 'running', endpoints: { apiProxy: good.endpoint } } });
  t.not(restarted.body.pid, first.pid);
  t.match(await ensure(hub, workspace), {
    status: 200,
    body: { pid: restarted.body.pid, serviceStatus: { apiProxy: { state: 'running' } } },
  });

  t.match(await restart(hub, workspace, { apiProxy: bad }), {
    status: 500,
    body: { error: { code: 'appServerStartFailed', details: { stage: 'apiProxy', workspacePath: workspace } } },
  });
  t.match(await ensure(hub, workspace), {
    status: 200,
    body: { state: 'running', endpoints: { apiProxy: good.endpoint } },
  });
  const other = await sidecar(t);
  t.match(
    await restart(hub, workspace, { apiProxy: other }),
    { status: 200, body: { endpoints: { apiProxy: other.endpoint } } },
    'a restart that names a good one applies it',
  );

  const plain = makeWorkspace(t, quick);
  t.match(await ensure(hub, plain, { apiProxy: bad }), { status: 500 });
  t.match(await ensure(hub, plain), { status: 200, body: { serviceStatus: { apiProxy: { state: 'disabled' } } } });
  await Promise.all([workspace, plain].map(stop));
});

t.test(
  'regression: edge 2 a plain ensure that shares a start succeeds although the sidecar of another caller fails',
  async (t) => {
    const workspace = makeWorkspace(t, quick);
    const events = await hub.events();
    const endOf = join(temporaryDirectory(t), 'end');
    const waits = `const { existsSync } = await import('node:fs');
      setInterval(() => existsSync(${JSON.stringify(endOf)}) && process.exit(2), 20);`;
    const silent = ensure(hub, workspace, { apiProxy: await sidecar(t, waits) });
    await events.wait('appserver.starting');
    const plain = ensure(hub, workspace);
    await hub.call('GET', '/v1/status');
    writeFileSync(endOf, '');
    t.match(await plain, {
      status: 200,
      body: { serviceStatus: { apiProxy: { state: 'disabled' } } },
    });
    t.match(await silent, { status: 500, body: { error: { details: { stage: 'apiProxy' } } } });
    await stop(workspace);
  },
);

t.test('regression: edge 3 an ensure never answers 200 with a sidecar that has failed permanently', async (t) => {
  const workspace = makeWorkspace(t, { Supervision: { ...quick.Supervision, MaxRestarts: 0 } });
  const events = await hub.events();
  const apiProxy = await sidecar(t);
  const { pid } = await hub.ensure(workspace, { apiProxy });
  const proxyPid = (await events.wait('apiProxy.running')).data['pid'] as number;
  writeFileSync(apiProxy.configPath, 'not a configuration any more');
  process.kill(proxyPid, 'SIGKILL');
  await events.wait('apiProxy.exited');
  t.match(await ensure(hub, workspace), {
    status: 500,
    body: { error: { code: 'appServerStartFailed', details: { stage: 'apiProxy', workspacePath: workspace } } },
  });
  const record = await hub.record(workspace);
  t.match(record, { state: 'running', pid, serviceStatus: { apiProxy: { state: 'exited' } } });
  t.notOk('apiProxy' in record.endpoints);

  writeFileSync(apiProxy.configPath, JSON.stringify({ port: new URL(apiProxy.endpoint).port, key: apiProxy.apiKey }));
  t.match(
    await ensure(hub, workspace),
    {
      status: 200,
      body: { pid, endpoints: { apiProxy: apiProxy.endpoint }, serviceStatus: { apiProxy: { state: 'running' } } },
    },
    'once it can start again an ensure waits for it',
  );
  await stop(workspace);
});

t.test('regression: edge 3 a suspended sidecar is detected, and an ensure replaces it', async (t) => {
  const workspace = makeWorkspace(t, {
    Supervision: { ProbeIntervalMs: 100, ProbeTimeoutMs: 3_000, LivenessFailures: 2, UnhealthyGraceMs: 3_600_000 },
  });
  const events = await hub.events();
  const apiProxy = await sidecar(t);
  const { pid } = await hub.ensure(workspace, { apiProxy });
  const hung = (await events.wait('apiProxy.running')).data['pid'] as number;
  process.kill(hung, 'SIGSTOP');
  t.match((await events.wait('apiProxy.unhealthy')).data, {
    pid: hung,
    endpoint: apiProxy.endpoint,
    error: /does not answer/,
    consecutiveFailures: 2,
  });
  const record = await hub.record(workspace);
  t.match(record.serviceStatus['apiProxy'], { state: 'unavailable', reason: /does not answer/ });
  t.notOk('apiProxy' in record.endpoints);

  const answer = await ensure(hub, workspace);
  t.match(answer, { status: 200, body: { pid, serviceStatus: { apiProxy: { state: 'running' } } } });
  t.match((await events.wait('apiProxy.exited')).data, { pid: hung, endpoint: apiProxy.endpoint });
  t.notOk(isAlive(hung));
  const models = await fetch(`${apiProxy.endpoint}/models`, {
    headers: { authorization: `Bearer ${apiProxy.apiKey}` },
  });
  t.equal(models.status, 200, 'the sidecar that is handed out answers');
  await stop(workspace);
});

t.test('regression: edge 3 a suspended sidecar is replaced without a request after the grace period', async (t) => {
  const workspace = makeWorkspace(t, {
    Supervision: {
      ...quick.Supervision,
      ...{ ProbeTimeoutMs: 5_000, LivenessFailures: 1, UnhealthyGraceMs: 100, MaxRestarts: 100 },
    },
  });
  const events = await hub.events();
  await hub.ensure(workspace, { apiProxy: await sidecar(t) });
  const hung = (await events.wait('apiProxy.running')).data['pid'] as number;
  process.kill(hung, 'SIGSTOP');
  await events.wait('apiProxy.running', ({ data }) => data['pid'] !== hung);
  t.equal(events.seen.filter(({ kind, data }) => kind === 'apiProxy.exited' && data['pid'] === hung).length, 1);
  await stop(workspace);
});
