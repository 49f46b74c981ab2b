/** Where the dashboard listens: on a port of its own, on one it shares with the chat API, on another when that is taken. */
import { once } from 'node:events';
import { createServer } from 'node:net';
import OpenAI from 'openai';
import t, { type Test } from 'tap';
import { dashboardToken } from '../../src/supervise/index.ts';
import { launchDocument, makeWorkspace, startServer } from '../appserver/harness.ts';
import { exchange, rawRequest } from '../http/support.ts';
import { unusedPort } from '../ports.ts';
import { request, scene } from './harness.ts';

async function occupied(t: Test): Promise<number> {
  const port = await unusedPort();
  const server = createServer().listen(port, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => server.close());
  return port;
}

t.test('chat API and dashboard on one port apply their own rules', async (t) => {
  const port = await unusedPort();
  const { server, home } = await startServer(t, undefined, {
    mode: 'gateway',
    config: {
      Api: { Enabled: true, Port: port, ApiKey: 'the-api-key' },
      DashBoard: { Port: port, AllowedHosts: ['box.example'] },
    },
  });
  const url = `http://127.0.0.1:${port}`;
  t.same(server.endpoints, { api: url, dashboard: `${url}/DashBoard` });
  const token = dashboardToken(home, server.workspacePath);
  const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: 'the-api-key', maxRetries: 0 });
  const said = await client.chat.completions.create({
    model: 'demo',
    messages: [{ role: 'user', content: 'echo hi' }],
  });
  t.match(said.choices[0]?.message.content, /hi/);
  const stream = await client.chat.completions.create({
    model: 'demo',
    messages: [{ role: 'user', content: 'echo streamed' }],
    stream: true,
  });
  let text = '';
  for await (const chunk of stream) text += chunk.choices[0]?.delta.content ?? '';
  t.match(text, /streamed/);

  const summary = await request(url, '/DashBoard/api/summary', { token });
  t.match(summary, { status: 200, body: { turnCount: 2 } });
  t.equal((await request(url, '/DashBoard/api/summary', { token: 'the-api-key' })).status, 401);
  const refused = await request(url, '/v1/models', { token });
  t.match(refused, { status: 401, body: { error: { type: 'invalid_request_error', param: null } } });
  t.notOk(refused.headers.has('content-security-policy'), 'the API answers as it always does');
  t.match(await request(url, '/v1/nothing', { token: 'the-api-key' }), {
    status: 404,
    body: { error: { type: /./, param: null } },
  });
  t.match(await request(url, '/dashboard/api/nothing', { token }), {
    status: 404,
    body: { error: { code: 'notFound', details: {} } },
  });
  t.equal((await request(url, '/DashBoard', { token: null })).status, 200);
  t.equal((await request(url, '/', { token: null })).status, 404, 'the root of a shared port is not found');
  for (const path of ['/v1/health', '/v1/models', '/DashBoard', '/api/sessions']) {
    const authorization = 'Bearer the-api-key';
    const evil = await exchange(port, rawRequest('GET', path, { Host: 'evil.example', authorization }));
    t.equal(evil.status, 403, path);
    const known = await exchange(port, rawRequest('GET', path, { Host: 'box.example', authorization }));
    t.not(known.status, 403, path);
  }
  const foreign = { 'sec-fetch-site': 'same-site', authorization: `Bearer ${token}` };
  t.equal((await exchange(port, rawRequest('DELETE', '/api/sessions', foreign))).status, 403);
  const typed = { 'sec-fetch-site': 'none' };
  t.equal((await exchange(port, rawRequest('GET', '/v1/health', typed))).status, 200, 'its health can be looked at');
});

t.test('on a taken port the dashboard uses another one and reports it, and the chat API fails', async (t) => {
  const port = await occupied(t);
  const { server, log } = await startServer(t, undefined, { config: { DashBoard: { Port: port } } });
  const taken = new URL(server.endpoints.dashboard ?? '');
  t.not(Number(taken.port), port);
  t.match(log.join(''), /"level":"warn".*the port cannot be had; taking a free one/);
  t.equal((await fetch(taken)).status, 200);
  await t.rejects(
    startServer(t, undefined, {
      mode: 'gateway',
      config: { Api: { Enabled: true, Port: port }, DashBoard: { Port: port } },
    }),
    { name: 'StartupError', message: /the port is taken; see Api\.Port/ },
  );
});

t.test('each way to run a server has a dashboard or not', async (t) => {
  for (const [mode, has] of [
    ['appServer', true],
    ['gateway', true],
    ['api', false],
  ] as const) {
    const [api, dashboard] = [await unusedPort(), await unusedPort()];
    const config = { Api: { Port: api }, DashBoard: { Port: dashboard } };
    const { server } = await startServer(t, undefined, { mode, config });
    t.equal(server.endpoints.dashboard !== undefined, has, mode);
    if (has) t.equal(server.endpoints.dashboard, `http://127.0.0.1:${dashboard}/DashBoard`);
  }
  const { path } = makeWorkspace(t);
  t.notOk('dashboard' in launchDocument(path).services);
});

t.test('the listener of the WebSocket serves actors, also for the tools of Stately, but no page', async (t) => {
  const { server } = await scene(t);
  const token = new URL(server.webSocketUrl).searchParams.get('token') ?? '';
  t.equal((await request(server.baseUrl, '/', { token })).status, 404);
  t.equal((await request(server.baseUrl, '/DashBoard', { token })).status, 404);
  for (const format of ['', '?format=stately']) {
    const abort = new AbortController();
    t.teardown(() => abort.abort());
    const headers = { authorization: `Bearer ${token}` };
    const answer = await fetch(`${server.baseUrl}/v1/inspect${format}`, { headers, signal: abort.signal });
    t.equal(answer.status, 200);
    t.equal(answer.headers.get('content-type'), 'text/event-stream');
  }
  t.equal((await request(server.baseUrl, '/v1/inspect?format=other', { token })).status, 400);
  t.equal((await request(server.baseUrl, '/v1/inspect/stately', { token })).status, 426);
  const socket = new WebSocket(`${server.baseUrl.replace('http', 'ws')}/v1/inspect/stately?token=${token}`);
  await new Promise((resolve, reject) => {
    socket.onopen = resolve;
    socket.onerror = () => reject(new Error('refused'));
  });
  socket.close();
});

t.test('metrics for Prometheus require the token', async (t) => {
  const { ask, say } = await scene(t);
  await say('echo one');
  const answer = await ask('/metrics');
  t.match(answer.headers.get('content-type'), /^text\/plain; version=0\.0\.4/);
  t.match(answer.text, /^# HELP oratorio_\w+ /m);
  t.match(answer.text, /^oratorio_\w*turn\w* /m);
  t.equal((await ask('/metrics', { token: null })).status, 401);
});

t.test('automations can be read, run, enabled and removed', async (t) => {
  const { ask, server, url, token } = await scene(t);
  const { Session } = await import('../appserver/session.ts');
  const { Stream } = await import('./harness.ts');
  const session = await Session.open(t, server.webSocketUrl);
  const stream = await Stream.open(t, url, token);
  const { job } = await session.call('cron/add', {
    name: 'greet',
    prompt: 'echo good morning',
    enabled: true,
    binding: { mode: 'new' },
    deleteAfterRun: false,
    schedule: { kind: 'every', everyMs: 3_600_000 },
  });
  await stream.until((records) => records.some(({ event }) => event === 'automations.changed'), 'a change');
  const state = (await ask('/dashboard/api/orchestrators/automations/state')).body;
  t.match(state, { isRunning: true, tasks: [], cron: [{ id: job.id, name: 'greet', state: 'waiting' }] });
  t.match(await ask('/Dashboard/API/Orchestrators/Automations/Refresh', { method: 'POST' }), {
    status: 202,
    body: { triggered: true, name: 'automations' },
  });
  const at = `/dashboard/api/automations/${job.id}`;
  t.match(await ask(at), { status: 200, body: { automation: { id: job.id } } });
  t.match(await ask(`${at}/enable`, { method: 'POST', body: { enabled: false } }), {
    status: 200,
    body: { automation: { enabled: false } },
  });
  t.match(await ask(`${at}/enable`, { method: 'POST', body: { enabled: 'yes' } }), { status: 400 });
  t.match(await ask(`${at}/enable`, { method: 'POST', body: { enabled: true } }), { status: 200 });
  t.match(await ask(`${at}/run`, { method: 'POST' }), { status: 200, body: { automation: { id: job.id } } });
  const done = async () => {
    for (;;) {
      const { body } = await ask(`${at}/runs?limit=5`);
      if (body.data[0]?.status === 'completed') return body;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  };
  t.match(await done(), {
    data: [{ automationId: job.id, status: 'completed', trigger: 'manual', result: /good morning/ }],
  });
  t.match(await ask(`${at}/runs?limit=none`), { status: 400 });
  t.match(await ask(at, { method: 'DELETE' }), { status: 200, body: { removed: true } });
  t.match(await ask(at), { status: 404, body: { error: { code: 'automationNotFound' } } });
  t.match(await ask(`${at}/run`, { method: 'POST' }), { status: 404 });
  t.match(await ask(at, { method: 'DELETE' }), { status: 200, body: { removed: false } });
});

t.test('with automations disabled changes are refused', async (t) => {
  const { ask } = await scene(t, { Automations: { Enabled: false } });
  t.match(await ask('/dashboard/api/orchestrators/automations/state'), { status: 200, body: { isRunning: false } });
  t.match(await ask('/dashboard/api/automations/x/run', { method: 'POST' }), {
    status: 409,
    body: { error: { code: 'automationsDisabled' } },
  });
  const { modules } = (await ask('/DashBoard/api/summary')).body;
  t.match(modules, [{}, {}, {}, { name: 'automations', state: 'disabled' }]);
  const sandbox = modules.find(({ name }: { name: string }) => name === 'sandbox');
  t.match(sandbox, { state: 'disabled', reason: 'The first turn tries it.', facts: { mode: 'auto' } });
});
