/**
 * A proxy as `apiProxy` sidecar, in the first test a real third-party one: started first, ready-checked, killed, revived, stopped
 * (specification §4.2 rule 1, design §5).
 */
import { once } from 'node:events';
import { createServer } from 'node:http';
import t from 'tap';
import { commandLine } from '../../src/supervise/index.ts';
import {
  agentServerFixture,
  eventually,
  fixture,
  isAlive,
  killIfThere,
  makeWorkspace,
  processesOf,
  quick,
  startTestHub,
  type TestHub,
} from './harness.ts';
import { sidecar, standIn } from './sidecars.ts';

const agentServer = agentServerFixture('well-behaved.ts');

/** Resolves when the sidecar runs: an adopted server serves before its sidecar has been probed. */
function sidecarRuns(hub: TestHub, workspace: string) {
  return eventually(async () => {
    const { serviceStatus } = await hub.record(workspace);
    return serviceStatus['apiProxy']?.state === 'running' || undefined;
  }, 'the sidecar runs');
}

const portkey = `await import(${JSON.stringify(fixture('sidecars/portkey.mjs'))});`;

/** Hub of the tests that need no Hub of their own. */
const hub = await startTestHub(t, { agentServer });

t.test(
  'a sidecar starts before the server, restarts after a kill and stops with it, and its key is never shown',
  async (t) => {
    const workspace = makeWorkspace(t, quick);
    const events = await hub.events();
    const apiProxy = await sidecar(t, portkey);
    const record = await hub.ensure(workspace, { apiProxy });
    t.match(record, {
      endpoints: { apiProxy: apiProxy.endpoint },
      serviceStatus: { apiProxy: { state: 'running', url: apiProxy.endpoint, reason: null } },
    });
    const models = await fetch(`${apiProxy.endpoint}/v1/models`, {
      headers: { authorization: `Bearer ${apiProxy.apiKey}` },
    });
    t.match(await models.json(), { data: [{ id: 'fixture-model' }] });
    await events.wait('appserver.running');
    const kinds = events.seen.map(({ kind }) => kind);
    t.ok(kinds.indexOf('apiProxy.running') < kinds.indexOf('appserver.running'), 'the sidecar is ready first');

    const first = (await events.wait('apiProxy.running')).data['pid'] as number;
    process.kill(first, 'SIGKILL');
    t.match((await events.wait('apiProxy.exited')).data, {
      pid: first,
      signal: 'SIGKILL',
      endpoint: apiProxy.endpoint,
    });
    const revived = (await events.wait('apiProxy.running', ({ data }) => data['pid'] !== first)).data['pid'] as number;
    t.equal((await hub.record(workspace)).pid, record.pid, 'the agent server was not touched');

    t.match((await hub.call('POST', '/v1/appservers/stop', { workspacePath: workspace })).body, { state: 'stopped' });
    t.notOk(isAlive(revived));
    t.equal(processesOf(hub.home).length, 1, 'only the Hub is left');
    for (const shown of [hub.output(), JSON.stringify(events.seen), JSON.stringify(record)])
      t.notOk(shown.includes(apiProxy.apiKey));
    const log = await hub.call('GET', `/v1/appservers/logs?process=sidecar&path=${encodeURIComponent(workspace)}`);
    t.notOk(String(log.body).includes(apiProxy.apiKey));
  },
);

t.test('a sidecar that ends at once fails the ensure without starting a server', async (t) => {
  const workspace = makeWorkspace(t, quick);
  const events = await hub.events();
  const apiProxy = await sidecar(t, `console.error('bad licence'); process.exit(2);`);
  const answer = await hub.call('POST', '/v1/appservers/ensure', { workspacePath: workspace, apiProxy });
  t.match(answer, {
    status: 500,
    body: {
      error: {
        code: 'appServerStartFailed',
        details: { workspacePath: workspace, stage: 'apiProxy', error: /exited \(code 2\)/ },
      },
    },
  });
  t.match((await events.wait('apiProxy.exited')).data, { exitCode: 2, recentStderr: 'bad licence' });
  t.notOk(events.seen.some(({ kind }) => kind === 'appserver.running'));
  t.equal(processesOf(hub.home).length, 1);
});

t.test('a sidecar that never answers fails the ensure at its deadline, and is killed', async (t) => {
  const hub = await startTestHub(t, { agentServer, policy: { proxyDeadlineMs: 500 } });
  const workspace = makeWorkspace(t, quick);
  const events = await hub.events();
  const apiProxy = await sidecar(t, `setInterval(() => {}, 1000);`);
  const answer = await hub.call('POST', '/v1/appservers/ensure', { workspacePath: workspace, apiProxy });
  t.match(answer.body.error, { code: 'appServerStartFailed', message: /The sidecar was not ready within 500 ms/ });
  t.match((await events.wait('apiProxy.exited')).data, { error: /not ready within 500 ms/ });
  t.notOk(events.seen.some(({ kind }) => kind === 'appserver.running'));
  t.equal(processesOf(hub.home).length, 1);
});

t.test('a restart uses the sidecar of its request, or none', async (t) => {
  const workspace = makeWorkspace(t, quick);
  const one = await sidecar(t, standIn);
  const two = await sidecar(t, standIn);
  await hub.ensure(workspace, { apiProxy: one });
  t.match((await hub.ensure(workspace, { apiProxy: two })).serviceStatus, {
    apiProxy: { state: 'restartRequired', url: one.endpoint },
  });
  const restarted = await hub.call('POST', '/v1/appservers/restart', { workspacePath: workspace, apiProxy: two });
  t.match(restarted.body, { endpoints: { apiProxy: two.endpoint }, serviceStatus: { apiProxy: { state: 'running' } } });
  const without = await hub.call('POST', '/v1/appservers/restart', {
    workspacePath: workspace,
    apiProxy: { enabled: false },
  });
  t.match(without.body, { serviceStatus: { apiProxy: { state: 'disabled' } } });
  await eventually(() => processesOf(hub.home).length === 2 || undefined, 'the Hub and one agent server');
  // The Hub runs on: it would poll the server during the tests after this one.
  await hub.call('POST', '/v1/appservers/stop', { workspacePath: workspace });
});

t.test(
  'a foreign program at the endpoint fails the ensure by name, before and after the start of the sidecar, and gets no key',
  async (t) => {
    if (process.platform !== 'linux') return t.pass('only Linux names the owner of a listener');
    const asked: unknown[] = [];
    const foreign = createServer((request, response) => {
      asked.push(request.headers.authorization);
      response.end('{"object":"list","data":[]}');
    });
    t.teardown(() => foreign.close());
    const apiProxy = await sidecar(t, 'setInterval(() => {}, 1000);');
    const listen = async () => {
      foreign.listen(Number(new URL(apiProxy.endpoint).port), '127.0.0.1');
      await once(foreign, 'listening');
    };
    const refusal = {
      status: 500,
      body: { error: { code: 'appServerStartFailed', message: new RegExp(`Process ${process.pid} .*listens at`) } },
    };
    await listen();
    const workspace = makeWorkspace(t);
    const ensure = () => hub.call('POST', '/v1/appservers/ensure', { workspacePath: workspace, apiProxy });
    t.match(await ensure(), refusal, 'taken before the start');
    foreign.close();
    await once(foreign, 'close');
    const pending = ensure();
    await eventually(
      () => processesOf(hub.home).some((pid) => commandLine(pid).includes(apiProxy.binaryPath)) || undefined,
      'the sidecar runs',
    );
    await listen();
    t.match(await pending, refusal, 'taken after the start');
    t.same(asked, [], 'nothing was sent');
    t.match(await hub.ensure(workspace, { apiProxy: await sidecar(t) }), { state: 'running' }, 'positive control');
    await hub.call('POST', '/v1/appservers/stop', { workspacePath: workspace });
  },
);

t.test('a sidecar whose child listens is ready', async (t) => {
  const workspacePath = makeWorkspace(t, quick);
  const script = `if (process.env.IS_CHILD) await import(${JSON.stringify(fixture('sidecars/stand-in.mjs'))});
    else { const { spawn } = await import('node:child_process');
      spawn(process.execPath, process.argv.slice(1), { stdio: 'ignore', detached: true, env: { ...process.env, IS_CHILD: '1' } }); setInterval(() => {}, 1000); }`;
  t.match(await hub.ensure(workspacePath, { apiProxy: await sidecar(t, script) }), { state: 'running' });
  await hub.call('POST', '/v1/appservers/stop', { workspacePath });
});

t.test('after kill -9 of the Hub the next one adopts server and sidecar, and replaces a killed sidecar', async (t) => {
  const { home } = hub;
  const [kept, bereft] = [makeWorkspace(t, quick), makeWorkspace(t, quick)];
  const { pid: keptPid } = await hub.ensure(kept, { apiProxy: await sidecar(t, standIn) });
  const others = new Set(processesOf(home));
  const { pid } = await hub.ensure(bereft, { apiProxy: await sidecar(t, standIn) });
  const before = processesOf(home);
  const doomed = before.filter((process) => process !== pid && !others.has(process));
  t.equal(doomed.length, 2, 'the sidecar and what it has started');
  await hub.kill('SIGKILL');
  for (const each of doomed) killIfThere(each);
  await eventually(() => !doomed.some(isAlive) || undefined, 'they are dead');
  const second = await startTestHub(t, { home, agentServer });
  t.match(await second.ensure(kept), { pid: keptPid, adopted: true });
  t.match(await second.ensure(bereft), { pid, adopted: true });
  await sidecarRuns(second, kept);
  await sidecarRuns(second, bereft);
  const now = processesOf(home);
  t.equal(now.length, before.length);
  t.same(
    now.filter((process) => doomed.includes(process)),
    [],
    'the sidecar is another one',
  );
  for (const workspacePath of [kept, bereft]) await second.call('POST', '/v1/appservers/stop', { workspacePath });
  t.equal(processesOf(home).length, 1);
});
