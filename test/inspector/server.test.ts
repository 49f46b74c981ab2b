/** The inspector's server in Node: only the user's browser can read its page and records. */
import { request } from 'node:http';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { createOutlet } from '../../src/inspector/outlet.ts';
import { serveInspector } from '../../src/inspector/server.ts';
import { createWatch } from '../../src/inspector/watch.ts';
import { HandClock } from '../inspect/hand-clock.ts';

const token = 'a'.repeat(32);
const question = JSON.stringify({ ask: 'records', viewer: 'page', after: null });

async function serve(t: Test) {
  const clock = new HandClock();
  const outlet = createOutlet(createWatch({}, clock), () => '', clock);
  const directory = t.testdir({ page: { 'index.html': '<p>', assets: { 'a.js': '1' } }, secret: 'outside' });
  const server = serveInspector({ outlet, directory: join(directory, 'page'), token, port: 0 });
  t.teardown(() => server.close());
  const { port } = new URL(await server.origin);
  return { send: (path: string, options: Sent = {}) => send(Number(port), path, options), port, server, outlet };
}

interface Sent {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

/** Sends a request unchanged: `fetch` would correct its path and headers. */
function send(port: number, path: string, { method = 'GET', headers = {}, body }: Sent) {
  return new Promise<{ status: number; headers: Readonly<Record<string, unknown>>; text: string }>(
    (resolve, reject) => {
      const sent = request({ host: '127.0.0.1', port, path, method, headers, agent: false }, async (response) => {
        let text = '';
        for await (const part of response) text += String(part);
        resolve({ status: response.statusCode ?? 0, headers: response.headers, text });
      });
      sent.on('error', reject);
      sent.end(body);
    },
  );
}

const ask = (headers: Readonly<Record<string, string>> = {}, body = question) => ({
  method: 'POST',
  headers: { authorization: `Bearer ${token}`, ...headers },
  body,
});

t.test('the page is served under a strict policy, and files outside of it are not served', async (t) => {
  const { send } = await serve(t);
  const page = await send('/');
  t.equal(page.text, '<p>');
  t.match(page.headers['content-security-policy'], /default-src 'none'.*frame-ancestors 'none'/);
  t.notMatch(page.text, token);
  for (const path of ['/../secret', '/%2e%2e/secret', '/assets/../../secret', '/secret', '/other']) {
    t.equal((await send(path)).status, 404, path);
  }
  t.equal((await send('/', { method: 'POST' })).status, 405);
});

t.test('a request without the token, with a foreign Host or from another origin is refused', async (t) => {
  const { send, port } = await serve(t);
  t.match(await send('/ask', ask()), { status: 200, text: /"isReset":true/, headers: { 'cache-control': 'no-store' } });
  t.equal((await send('/ask', ask({ 'sec-fetch-site': 'same-origin' }))).status, 200);
  t.equal((await send('/ask', ask({ origin: `http://127.0.0.1:${port}` }))).status, 200);
  t.match(await send('/ask', ask({ authorization: 'Bearer wrong' })), { status: 401, text: /open the address/ });
  t.equal((await send('/ask', { method: 'POST', body: question })).status, 401);
  t.equal((await send(`/ask?token=${token}`, { method: 'POST', body: question })).status, 401);
  t.equal((await send('/ask', ask({ host: 'evil.example' }))).status, 403);
  t.equal((await send('/', { headers: { host: 'evil.example' } })).status, 403);
  t.equal((await send('/ask', ask({ origin: 'http://evil.example' }))).status, 403);
  t.equal((await send('/ask', ask({ 'sec-fetch-site': 'cross-site' }))).status, 403);
  t.equal((await send('/ask', { headers: ask().headers })).status, 405);
  t.notOk((await send('/ask', { method: 'OPTIONS' })).headers['access-control-allow-origin']);
});

t.test('an invalid or oversized request is refused', async (t) => {
  const { send } = await serve(t);
  for (const body of [
    '',
    '{',
    '[]',
    '{"ask":"send"}',
    JSON.stringify({ ask: 'fact', actor: 'x'.repeat(3_000), fact: 'a' }),
  ]) {
    t.match(await send('/ask', ask({}, body)), { status: 400, text: /invalidQuestion/ }, body.slice(0, 20));
  }
  t.equal((await send('/ask', ask({}, 'x'.repeat(20_000)))).status, 413);
});

t.test('the end of the server aborts a waiting request', async (t) => {
  const { send, server, outlet } = await serve(t);
  const { cursor } = JSON.parse((await send('/ask', ask())).text);
  const waiting = send('/ask', ask({}, JSON.stringify({ ask: 'records', viewer: 'page', after: cursor })));
  const isCut = t.rejects(waiting);
  await server.close();
  await isCut;
  outlet.close();
});

t.test('a taken port rejects only the address', async (t) => {
  const { port } = await serve(t);
  const clock = new HandClock();
  const outlet = createOutlet(createWatch({}, clock), () => '', clock);
  const second = serveInspector({ outlet, directory: '', token, port: Number(port) });
  await t.rejects(second.origin, { code: 'EADDRINUSE' });
  await second.close();
});
