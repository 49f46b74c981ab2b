import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import t from 'tap';
import * as v from 'valibot';
import { ModelError } from '../../src/agent/index.ts';
import { chatErrorBody, chatErrors, chatRoutes, isChatPath } from '../../src/chat/index.ts';
import { Config } from '../../src/config/index.ts';
import { createLogger } from '../../src/log/index.ts';
import { service, tool } from '../agent/helpers.ts';
import { callTool, say, script } from '../agent/scripted-provider.ts';
import { exchange, RawClient, rawRequest, start } from '../http/support.ts';
import { chat, eventually, requestStore, user } from './harness.ts';

const key = 'a-key-of-some-length';
const body = JSON.stringify({ messages: [user('hi')] });
const json = { 'content-type': 'application/json' };

t.test('with a key every path below /v1/ but health requires it, existing or not', async (t) => {
  const { url } = await chat(t, script(), { api: { ApiKey: key } });
  const paths = ['/v1/chat/completions', '/v1/models', '/v1/models/x', '/v1/approvals', '/v1/nothing', '/v1', '/v1/'];
  for (const path of paths) {
    for (const method of ['GET', 'POST', 'PUT', 'DELETE', 'OPTIONS', 'HEAD']) {
      for (const authorization of [
        undefined,
        'Bearer',
        `Bearer ${key}x`,
        `Basic ${key}`,
        'Bearer a-key-of-some-lengtH',
      ]) {
        const answer = await fetch(url + path, { method, headers: authorization ? { authorization } : {} });
        if (answer.status !== 401) t.fail(`${method} ${path} ${authorization}: ${answer.status}`);
        if (!answer.headers.get('www-authenticate')?.startsWith('Bearer')) t.fail('no challenge');
        const text = await answer.text();
        if (method !== 'HEAD') t.match(JSON.parse(text), { error: { code: 'invalid_api_key', param: null } });
      }
    }
  }
  for (const path of ['/v1/models', '/v1/models/scripted']) {
    t.equal((await fetch(url + path, { headers: { authorization: `bEaReR  ${key} ` } })).status, 200);
  }
  t.equal((await fetch(`${url}/v1/health`)).status, 200);
  t.equal((await fetch(`${url}/v1/nothing`, { headers: { authorization: `Bearer ${key}` } })).status, 404);
});

t.test('the routes require the key also without the guard of the server', async (t) => {
  const { Api: api } = v.parse(Config, { Api: { ApiKey: key } });
  const logger = createLogger({ name: 'chat', level: 'silent' });
  const { runtime } = service(script());
  const { chatRequests: requests, responses } = requestStore(t);
  const { url } = await start(t, 'uws', {
    routes: chatRoutes({ runtime, requests, responses, api, isPublic: false, version: '1', mode: 'api', logger }),
    errorBody: (error) => (isChatPath(error.path) ? chatErrorBody(error) : 'not ours'),
  });
  for (const path of ['/v1/chat/completions', '/v1/models', '/v1/nothing']) {
    const answer = await fetch(url + path, { method: path.endsWith('s') && !path.includes('chat') ? 'GET' : 'POST' });
    t.equal(answer.status, 401, path);
    t.match(await answer.json(), { error: { code: 'invalid_api_key' } });
  }
  t.equal((await fetch(`${url}/v1/health`)).status, 200);
  t.equal(await (await fetch(`${url}/elsewhere`)).json(), 'not ours');
});

t.test('without a configured key requests need none', async (t) => {
  const { url } = await chat(t, script());
  t.equal((await fetch(`${url}/v1/models`)).status, 200);
});

t.test('health reports provider, model and tools, also for HEAD', async (t) => {
  const tools = ['ReadFile', 'Exec'].map((name) => tool({ name }));
  const setup = {
    api: { EnabledTools: ['readfile'] },
    runtime: { tools: () => tools },
    health: () => ({ sandbox: 'off' }),
  };
  const { url } = await chat(t, script(), setup);
  const answer = await fetch(`${url}/v1/health`);
  t.match(await answer.json(), {
    status: 'ok',
    version: '9.9.9',
    mode: 'api',
    protocol: 'openai-compatible',
    model: 'scripted',
    provider: 'scripted',
    tools: { enabled: 1, names: ['ReadFile'] },
    sandbox: 'off',
    activeTurns: 0,
    uptimeMs: Number,
  });
  const head = await fetch(`${url}/v1/health`, { method: 'HEAD' });
  t.equal(head.status, 200);
  t.equal(await head.text(), '');
});

t.test('health reports an invalid configuration of the provider, which fails requests', async (t) => {
  const fault = () => Promise.reject(new ModelError('upstreamUnauthorized', 'no key'));
  const { url, post } = await chat(t, script(), { runtime: { provider: fault } });
  const answer = await fetch(`${url}/v1/health`);
  t.equal(answer.status, 200);
  t.match(await answer.json(), {
    status: 'ok',
    model: null,
    problem: { code: 'upstreamUnauthorized', message: 'no key' },
  });
  t.equal((await fetch(`${url}/v1/models`)).status, 502);
  t.equal((await post(body)).status, 502);
});

t.test('models are listed, and found also by ids with a slash or a space', async (t) => {
  const provider = script(say('a'), say('b'), say('c'));
  const listed = [
    { id: 'org/big', ownedBy: 'org', createdAt: '2026-01-01T00:00:00.000Z' },
    { id: 'odd id', ownedBy: '' },
  ];
  provider.listModels = async () => listed;
  const { url, ask } = await chat(t, provider);
  t.strictSame(await (await fetch(`${url}/v1/models`)).json(), {
    object: 'list',
    data: [
      { id: 'scripted', object: 'model', created: 0, owned_by: 'scripted' },
      { id: 'org/big', object: 'model', created: 1767225600, owned_by: 'org' },
      { id: 'odd id', object: 'model', created: 0, owned_by: 'scripted' },
    ],
  });
  for (const [path, id] of [
    ['org/big', 'org/big'],
    ['org%2Fbig', 'org/big'],
    ['odd%20id', 'odd id'],
    ['scripted', 'scripted'],
  ]) {
    t.match(await (await fetch(`${url}/v1/models/${path}`)).json(), { id });
  }
  const missing = await fetch(`${url}/v1/models/gpt-4o`);
  t.equal(missing.status, 404);
  t.match(await missing.json(), { error: { code: 'model_not_found' } });
  t.equal((await ask('hi', { model: 'org/big' })).body.model, 'org/big');
  t.equal((await ask('hi', { model: 'gpt-4o' })).body.model, 'scripted', 'the model really used is told');
  t.equal((await ask('hi', { model: null })).body.model, 'scripted');
  t.strictSame(
    provider.requests.map(({ model }) => model),
    ['org/big', undefined, undefined],
  );
});

t.test('unknown paths and methods are errors in the format of the API', async (t) => {
  const { url } = await chat(t, script());
  const missing = await fetch(`${url}/v1/embeddings`, { method: 'POST', headers: json, body });
  t.equal(missing.status, 404);
  const { error } = await missing.json();
  t.match(error, { type: 'invalid_request_error', code: 'unknown_url', param: null });
  t.match(error.message, '/v1/chat/completions');
  for (const [method, path, allow] of [
    ['GET', '/v1/chat/completions', 'POST'],
    ['HEAD', '/v1/chat/completions', 'POST'],
    ['OPTIONS', '/v1/chat/completions', 'POST'],
    ['POST', '/v1/health', 'GET, HEAD'],
    ['DELETE', '/v1/models', 'GET, HEAD'],
  ] as const) {
    const answer = await fetch(url + path, { method });
    t.equal(answer.status, 405, `${method} ${path}`);
    t.equal(answer.headers.get('allow'), allow);
    const text = await answer.text();
    if (method !== 'HEAD') t.match(JSON.parse(text).error, { code: 'method_not_allowed' });
  }
});

t.test('another content type than JSON is refused', async (t) => {
  const { url, runtime } = await chat(t, script(say('ok'), say('ok')));
  const types = [
    'text/plain',
    'application/x-www-form-urlencoded',
    'text/plain; application/json',
    'application/jsonp',
  ];
  for (const type of types) {
    const answer = await fetch(`${url}/v1/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': type },
      body,
    });
    t.equal(answer.status, 415, type);
    t.match(await answer.json(), { error: { code: 'unsupported_media_type' } });
  }
  const blob = await fetch(`${url}/v1/chat/completions`, { method: 'POST', body: new Blob([body]) });
  t.equal(blob.status, 415, 'no content type at all, as a page can send it');
  t.equal(runtime.turns.count, 0);
  for (const type of ['application/json; charset=utf-8', 'Application/JSON']) {
    const answer = await fetch(`${url}/v1/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': type },
      body,
    });
    t.equal(answer.status, 200, type);
  }
});

t.test('a body that is not a JSON object is refused', async (t) => {
  const { post } = await chat(t, script());
  for (const [text, code] of [
    ['', 'invalid_json'],
    ['{', 'invalid_json'],
    ['{"messages":[]}x', 'invalid_json'],
    [`{"a":"${'\ud800'}"}`, 'missing_required_parameter'],
    ['null', 'invalid_parameter'],
    ['"x"', 'invalid_parameter'],
    ['[]', 'missing_required_parameter'],
  ] as const) {
    const answer = await post(text);
    t.equal(answer.status, 400, text);
    t.equal((await answer.json()).error.code, code, text);
  }
});

t.test('a body that is too large is refused before it is read', async (t) => {
  const { port } = await chat(t, script());
  const head = { ...json, 'content-length': String(33 * 1_048_576) };
  const client = await RawClient.connect(t, port);
  client.send(rawRequest('POST', '/v1/chat/completions', head, '{'));
  const answer = await client.until(/"code":"request_too_large"/);
  t.match(answer, /^HTTP\/1\.1 413 /);
});

t.test('a body of many megabytes is served', async (t) => {
  const provider = script(say('ok'));
  const { ask } = await chat(t, provider);
  const { status } = await ask(`see ${'x'.repeat(20 * 1_048_576)}`);
  t.equal(status, 200);
});

t.test('pages of other origins are refused, with and without a key; no CORS header is sent', async (t) => {
  for (const ApiKey of ['', key]) {
    const { port, runtime } = await chat(t, script(say('ok'), say('ok')), { api: { ApiKey } });
    const authorization: Record<string, string> = ApiKey ? { authorization: `Bearer ${ApiKey}` } : {};
    const length = { 'content-length': String(body.length) };
    for (const foreign of [
      { origin: 'https://evil.example' },
      { origin: 'null' },
      { 'sec-fetch-site': 'cross-site' },
      { 'sec-fetch-site': 'same-site', origin: 'http://127.0.0.1:1' },
    ]) {
      const headers = { ...json, ...authorization, ...length, ...(foreign as Record<string, string>) };
      const answer = await exchange(port, rawRequest('POST', '/v1/chat/completions', headers, body));
      t.equal(answer.status, 403, JSON.stringify(foreign));
      t.equal(JSON.parse(answer.body).error.code, 'origin_not_allowed');
      t.notMatch(answer.head, /access-control/i);
      const read = await exchange(port, rawRequest('GET', '/v1/models', { ...authorization, ...foreign } as never));
      t.equal(read.status, 403);
    }
    t.equal(runtime.turns.count, 0);
    const own = { ...json, ...authorization, ...length, Host: `127.0.0.1:${port}`, origin: `http://127.0.0.1:${port}` };
    t.equal((await exchange(port, rawRequest('POST', '/v1/chat/completions', own, body))).status, 200);
  }
});

t.test('foreign host names are refused on loopback and served on a public address', async (t) => {
  const { port } = await chat(t, script());
  for (const host of ['evil.example', `evil.example:${port}`, '127.0.0.1.evil.example']) {
    const answer = await exchange(port, rawRequest('GET', '/v1/health', { Host: host }));
    t.equal(answer.status, 403, host);
    t.equal(JSON.parse(answer.body).error.code, 'host_not_allowed');
  }
  const open = await chat(t, script(), { isPublic: true });
  t.equal((await exchange(open.port, rawRequest('GET', '/v1/health', { Host: 'build.example' }))).status, 200);
  t.ok(
    open.log.some((line) => /without a key/.test(line)),
    'an open door is mentioned in the log',
  );
});

t.test('an interactive approval is answered over HTTP once', async (t) => {
  const touch = tool({ name: 'Touch', needsApproval: true });
  const provider = script(callTool('Touch'), say('done'), callTool('Touch'), say('a pity'));
  const { url, ask, runtime } = await chat(t, provider, {
    api: { ApprovalMode: 'interactive', ApiKey: key },
    runtime: { tools: () => [touch] },
  });
  const authorization = { authorization: `Bearer ${key}` };
  const pending = async () => (await (await fetch(`${url}/v1/approvals`, { headers: authorization })).json()).approvals;
  const decide = (id: string, decision: unknown) =>
    fetch(`${url}/v1/approvals/${id}`, {
      method: 'POST',
      headers: { ...json, ...authorization },
      body: JSON.stringify(decision),
    });
  for (const [decision, words, outcome] of [
    [{ approved: true }, 'done', 'completed'],
    [{ decision: 'decline' }, 'a pity', 'declined'],
  ] as const) {
    const answer = ask('touch it', {}, { ...authorization, 'x-session-id': 's' });
    await eventually(() => runtime.turns.approvals().length === 1, 'an approval waits');
    const [waiting] = await pending();
    t.match(waiting, {
      type: 'shell',
      operation: 'run',
      detail: 'Touch',
      tool: 'Touch',
      sessionId: 's',
      createdAt: String,
    });
    t.equal((await decide(waiting.id, { approved: 'yes' })).status, 400);
    t.equal((await decide('approval_x', { approved: true })).status, 404);
    t.equal((await fetch(`${url}/v1/approvals/${waiting.id}`, { method: 'POST', body: '{}' })).status, 401);
    t.equal((await decide(waiting.id, decision)).status, 200);
    t.equal((await decide(waiting.id, { approved: true })).status, 404, 'the first answer counts');
    const { body } = await answer;
    t.equal(body.choices[0].message.content, words);
    t.equal(body.x_agent.steps[0].outcome, outcome);
    t.strictSame(await pending(), []);
  }
});

t.test('an approval without an answer is declined at the timeout', async (t) => {
  const touch = tool({ name: 'Touch', needsApproval: true });
  const { ask } = await chat(t, script(callTool('Touch'), say('a pity')), {
    api: { ApprovalMode: 'interactive', ApprovalTimeoutSeconds: 1 },
    runtime: { tools: () => [touch] },
  });
  t.equal((await ask('touch it')).body.x_agent.steps[0].outcome, 'declined');
});

t.test('without interactive mode there are no approvals', async (t) => {
  const { url } = await chat(t, script());
  t.equal((await fetch(`${url}/v1/approvals`)).status, 404);
});

t.test('the document lists exactly the errors of the table', (t) => {
  const document = readFileSync(fileURLToPath(new URL('../../docs/chat-api.md', import.meta.url)), 'utf8');
  const rows = Object.values(chatErrors)
    .toSorted((a, b) => a.status - b.status)
    .map(({ status, type, code, when }) => `| ${status} | \`${type}\` | \`${code}\` | ${when} |`);
  const written = document.split('\n').filter((line) => /^\| \d{3} \| `/.test(line));
  t.strictSame(written, rows);
  t.end();
});
