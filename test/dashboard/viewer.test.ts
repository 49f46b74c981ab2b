/** `oratorio dashboard`: recorded sessions, with and without a running agent server. */
import { once } from 'node:events';
import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import * as v from 'valibot';
import { Config } from '../../src/config/index.ts';
import { openViewer } from '../../src/dashboard/index.ts';
import { createLogger } from '../../src/log/index.ts';
import { dashboardToken, dashboardTokenFile, watchedDashboardTokens } from '../../src/supervise/index.ts';
import { eventually, makeWorkspace, stateOf, temporaryDirectory } from '../appserver/harness.ts';
import { runInProcess } from '../cli/in-process.ts';
import { unusedPort } from '../ports.ts';
import { oratorio, request, Stream, scene } from './harness.ts';

const logger = createLogger({ name: 'test', pretty: false, stream: { write: () => undefined } });

async function view(t: Test, workspacePath: string, home: string, config: unknown = {}, port = 0) {
  const viewer = await openViewer({
    workspacePath,
    home,
    env: {},
    config: v.parse(Config, config),
    tokens: watchedDashboardTokens(home, workspacePath),
    address: { host: '127.0.0.1', port },
    takesAnyPort: true,
    logger,
  });
  t.teardown(() => viewer.close());
  return { viewer, url: `http://127.0.0.1:${viewer.port}`, token: dashboardToken(home, workspacePath) };
}

t.test('the viewer beside a running server shows new events and refuses changes', async (t) => {
  const { path, home, say } = await scene(t);
  const sessionKey = await say('think\nrun: echo one');
  const { url, token } = await view(t, path, home);
  // Traces of a turn are written a moment after its end is notified.
  await eventually(async () => {
    const { body } = await request(url, `/DashBoard/api/sessions/${sessionKey}/events`, { token });
    return body.events.at(-1)?.type === 'turn.completed' || undefined;
  }, 'all of the first turn is written');
  t.match(await request(url, '/dashboard/api/page', { token }), {
    status: 200,
    body: {
      kind: 'workspace',
      readOnly: /read-only/,
      views: ['overview', 'chat', 'sessions', 'automations', 'settings', 'events'],
    },
  });
  t.match(await request(url, '/DashBoard/api/summary', { token }), {
    status: 200,
    body: {
      sessionCount: 1,
      turnCount: 1,
      modules: [{ name: 'agentServer', state: 'running', url: /DashBoard$/ }, {}],
    },
  });
  const stream = await Stream.open(t, url, token);
  await stream.until((records) => records.length > 0, 'hello');
  const second = await say('echo two');
  await stream.until(
    (records) => records.some(({ event }) => event === 'turn.completed'),
    'the turn of another process',
  );
  t.ok(stream.events().every((event) => event.sessionKey === second));
  const { body } = await request(url, `/DashBoard/api/sessions/${sessionKey}/events`, { token });
  t.match(body, { session: { sessionKey, isRunning: false }, events: [{ type: 'session.started' }] });
  for (const [method, at] of [
    ['DELETE', '/api/sessions'],
    ['DELETE', `/dashboard/api/sessions/${sessionKey}`],
    ['DELETE', '/dashboard/api/automations/x'],
    ['POST', '/dashboard/api/automations/x/run'],
    ['POST', '/dashboard/api/orchestrators/automations/refresh'],
    ['PUT', '/dashboard/api/config'],
  ] as const) {
    t.match(await request(url, at, { token, method, headers: { 'if-match': 'x' }, body: { set: {} } }), {
      status: 403,
      body: { error: { code: 'readOnly', message: /read-only/ } },
    });
  }
  t.match((await request(url, '/dashboard/api/config', { token })).body, { readOnly: /read-only/ });
  for (const at of ['/dashboard/api/logs', '/dashboard/api/inspect', '/metrics']) {
    t.equal((await request(url, at, { token })).status, 404, `${at} is of a server only`);
  }
  t.equal((await request(url, '/DashBoard/api/summary', {})).status, 401);
});

t.test('the viewer of a killed server shows its turns as ended', async (t) => {
  const { path, home, say, server } = await scene(t);
  await say('echo one');
  await server.close();
  const files = () =>
    readdirSync(stateOf(path))
      .filter((name) => !name.startsWith('state.db-'))
      .sort();
  const before = files();
  const changed = statSync(join(stateOf(path), 'state.db')).mtimeMs;
  const { url, token, viewer } = await view(t, path, home);
  t.match(await request(url, '/DashBoard/api/summary', { token }), {
    status: 200,
    body: { turnCount: 1, activeTurns: 0, modules: [{ name: 'agentServer', state: 'disabled' }, {}] },
  });
  t.match((await request(url, '/DashBoard/api/sessions?status=running', { token })).body, { sessions: [] });
  await viewer.close();
  t.same(files(), before, 'nothing is left behind');
  t.equal(statSync(join(stateOf(path), 'state.db')).mtimeMs, changed, 'nothing is written');
});

t.test('a failed start of the viewer has its message', async (t) => {
  const { path, home } = makeWorkspace(t);
  await t.rejects(view(t, path, home), { name: 'ViewerError', message: /no agent server has run/ });
  const { path: used, home: other } = await scene(t);
  const shared = { DashBoard: { Enabled: true, Host: '0.0.0.0' } };
  const open = (config: unknown, address: { host: string; port: number }, takesAnyPort = true) =>
    openViewer({
      workspacePath: used,
      home: other,
      env: {},
      config: v.parse(Config, config),
      tokens: () => ({ current: 'x', earlier: [] }),
      address,
      takesAnyPort,
      logger,
    });
  await t.rejects(open(shared, { host: '0.0.0.0', port: 0 }), {
    name: 'ViewerError',
    message: /Username.*must be set/,
  });
  const taken = createServer().listen(0, '127.0.0.1');
  await once(taken, 'listening');
  t.teardown(() => taken.close());
  const { port } = taken.address() as { port: number };
  await t.rejects(open({}, { host: '127.0.0.1', port }, false), { name: 'ViewerError', message: /the port is taken/ });
  const viewer = await open({}, { host: '127.0.0.1', port });
  t.not(viewer.port, port, 'another one, unless that port was asked for');
  await viewer.close();
  const guarded = await open(
    { DashBoard: { Enabled: true, Host: '0.0.0.0', Username: 'ada', Password: 'right' } },
    { host: '0.0.0.0', port: 0 },
  );
  const answer = await request(`http://127.0.0.1:${guarded.port}`, '/dashboard/api/login', {
    method: 'POST',
    body: { username: 'ada', password: 'right' },
  });
  t.equal(answer.status, 200);
  await guarded.close();
});

t.test('the command prints an address that opens, refuses revoked tokens, and ends with Ctrl-C', async (t) => {
  const { path, home, say } = await scene(t);
  await say('echo one');
  const port = await unusedPort();
  const run = oratorio(t, home, 'dashboard', '--workspace', path, '--port', String(port), '--print-url');
  const [address = ''] = await run.until(/http:\S+/);
  t.equal(address, `http://127.0.0.1:${port}/DashBoard#token=${dashboardToken(home, path)}`);
  const old = dashboardToken(home, path);
  t.equal((await request(`http://127.0.0.1:${port}`, '/DashBoard/api/summary', { token: old })).status, 200);
  t.match(await runInProcess(home, 'dashboard', '--new-token'), { code: 0, text: /Made new tokens/ });
  t.not(readFileSync(dashboardTokenFile(home, path), 'utf8').trim(), old);
  t.equal((await request(`http://127.0.0.1:${port}`, '/DashBoard/api/summary', { token: old })).status, 401);
  const second = oratorio(t, home, 'dashboard', '--workspace', path, '--port', String(port));
  t.match(await second.ended, { code: 6, text: /the port is taken/ });
  run.child.kill('SIGINT');
  t.match(await run.ended, { code: 0 });

  const plain = oratorio(t, home, 'dashboard', '--workspace', path);
  const [shown = ''] = await plain.until(/http:\S+/);
  t.notMatch(shown, 'token', 'a pipe gets the bare address');
  await plain.until(/--print-url/);
  plain.child.kill('SIGTERM');
  t.match(await plain.ended, { code: 0 });

  const nowhere = temporaryDirectory(t);
  t.match(await runInProcess(home, 'dashboard', '--workspace', nowhere), {
    code: 4,
    text: /is not a workspace/,
  });
  mkdirSync(join(nowhere, '.oratorio'));
  writeFileSync(join(nowhere, '.oratorio', 'config.json'), '{}');
  t.match(await runInProcess(home, 'dashboard', '--workspace', nowhere), {
    code: 6,
    text: /no agent server has run/,
  });
  t.match(await runInProcess(home, 'dashboard', '--port', 'many', '--workspace', path), { code: 2 });
});
