import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import { type AddressInfo, createServer as createNetServer } from 'node:net';
import fc from 'fast-check';
import t, { type Test } from 'tap';
import { type HttpProbeResult, keepConnection, probeHttp } from '../../src/lib/index.ts';
import { monotonicMs, pollUntil } from '../../src/supervise/index.ts';
import { firstLine, nothingLeft, start, until } from './helpers.ts';

/** These servers are well, however long a busy machine makes them wait. */
const probe = (url: string, options: Partial<Parameters<typeof probeHttp>[1]> = {}): Promise<HttpProbeResult> =>
  probeHttp(url, { timeoutMs: 120_000, ...options });

/** A server with one way to answer, its URL and the number of its open connections. */
async function serve(t: Test, answer: RequestListener) {
  const server = createServer({ keepAliveTimeout: 120_000 }, answer).listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`, server };
}

t.test('a probe succeeds with status 2xx only, and closes its connection', async (t) => {
  const { url, server } = await serve(t, (request, response) => {
    response.writeHead(request.headers.authorization === 'Bearer x' ? 204 : 401).end();
  });
  let open = 0;
  server.on('connection', (socket) => {
    open++;
    socket.on('close', () => open--);
  });
  t.strictSame(await probe(url, { headers: { authorization: 'Bearer x' } }), { ok: true, status: 204 });
  t.strictSame(await probe(url), { ok: false, status: 401, error: 'HTTP 401' });
  await until('no connection is open', () => open === 0);
});

t.test('a body is read up to the requested length', async (t) => {
  const { url } = await serve(t, (request, response) => {
    if (request.url === '/endless') setInterval(() => response.write('more '), 1).unref();
    else response.end('{"instance":"abc"}');
  });
  t.strictSame(await probe(url, { bodyBytes: 1_000 }), { ok: true, status: 200, body: '{"instance":"abc"}' });
  t.strictSame(await probe(url, { bodyBytes: 3 }), { ok: true, status: 200, body: '{"i' });
  t.match(await probe(`${url}endless`), { ok: true }, 'the status is enough');
  t.match(await probe(`${url}endless`, { bodyBytes: 8 }), { ok: true, body: 'more mor' });
  t.match(await probe(`${url}endless`, { bodyBytes: 10 }), { ok: true, body: 'more more ' });
  t.match(await probe(`${url}endless`, { bodyBytes: 1e9, timeoutMs: 50 }), { ok: false, error: /within 50 ms/ });
});

t.test('a connection is reused while its answers are plain and complete', async (t) => {
  const ports: (number | undefined)[] = [];
  const { url, server } = await serve(t, (request, response) => {
    ports.push(request.socket.remotePort);
    if (request.url === '/chunked') response.write('{"instance":');
    if (request.url === '/refused') response.statusCode = 503;
    response.end(request.url === '/chunked' ? '"abc"}' : '{"instance":"ab€"}');
  });
  const connection = keepConnection();
  t.teardown(() => connection.destroy());
  const ask = (path: string, bodyBytes = 1_000) => probe(url + path, { connection, bodyBytes });
  for (const _ of [1, 2]) t.strictSame(await ask(''), { ok: true, status: 200, body: '{"instance":"ab€"}' });
  t.equal(ports[0], ports[1]);
  t.strictSame(await ask('chunked'), { ok: true, status: 200, body: '{"instance":"abc"}' });
  t.strictSame(await ask('refused'), { ok: false, status: 503, error: 'HTTP 503', body: '{"instance":"ab€"}' });
  t.strictSame(await ask('', 3), { ok: true, status: 200, body: '{"i' });
  t.match(await ask(''), { ok: true });
  const last = ports.at(-1);
  t.not(last, ports[0], 'one with an answer that is not understood is of no use any more');
  server.closeAllConnections();
  t.match(await ask(''), { ok: true }, 'a connection that the server has closed is replaced');
  t.not(ports.at(-1), last);
});

t.test('a reused connection without an answer fails at the deadline or the abort', async (t) => {
  const child = await start(t, 'never-answers');
  const url = `http://127.0.0.1:${await firstLine(child)}/`;
  const connection = keepConnection();
  t.teardown(() => connection.destroy());
  const error = 'no answer within 100 ms';
  t.strictSame(await probe(url, { connection, timeoutMs: 100 }), { ok: false, error });
  const stop = new AbortController();
  const asking = probe(url, { connection, timeoutMs: 600_000, signal: stop.signal });
  stop.abort();
  t.strictSame(await asking, { ok: false, error: 'aborted' });
  t.match(await probe('nonsense', { connection }), { ok: false, error: 'ERR_INVALID_URL' });
  await child.kill();
  t.strictSame(await probe(url, { connection }), { ok: false, error: 'ECONNREFUSED' });
});

t.test('a reused connection has the same result as a new one for any answer', async (t) => {
  let answer = Buffer.alloc(0);
  const server = createNetServer((socket) => {
    socket.on('error', () => {});
    socket.once('data', () => socket.end(answer));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => server.close());
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  const part = fc.constantFrom(
    'HTTP/1.1 200 OK\r\n',
    'HTTP/1.1 503 No\r\n',
    'HTTP/1.0 200 OK\r\n',
    'Content-Length: 2\r\n',
    'content-length: 4\r\n',
    'Transfer-Encoding: chunked\r\n',
    'Connection: close\r\n',
    'X: y\r\n',
    '\r\n',
    '{}',
    '4\r\nabcd\r\n',
    '0\r\n\r\n',
    '\n',
    'é',
  );
  await fc.assert(
    fc.asyncProperty(fc.array(part, { maxLength: 7 }), async (parts) => {
      answer = Buffer.from(parts.join(''));
      const connection = keepConnection();
      const kept = await probe(url, { connection, bodyBytes: 100 });
      connection.destroy();
      const once = await probe(url, { bodyBytes: 100 });
      // A parser of a whole protocol refuses more: that is said only of an answer that was taken.
      if (once.ok && kept.ok) t.strictSame(kept, once, JSON.stringify(parts));
      else if (once.ok) t.fail(JSON.stringify(parts));
    }),
    { numRuns: 200, endOnFailure: true },
  );
});

t.test('an incomplete answer fails the probe', async (t) => {
  const { url } = await serve(t, (request, response) => {
    if (request.url === '/before') return request.socket.destroy();
    response.writeHead(200, { 'content-length': 100 });
    response.write('half', () => request.socket.destroy());
  });
  t.match(await probe(`${url}before`), { ok: false, error: 'ECONNRESET' });
  t.match(await probe(url, { bodyBytes: 1_000 }), { ok: false, error: String });
});

t.test('a server that accepts but never answers fails the probe at the deadline', async (t) => {
  const child = await start(t, 'never-answers');
  const url = `http://127.0.0.1:${await firstLine(child)}/`;
  const began = monotonicMs();
  t.strictSame(await probe(url, { timeoutMs: 100 }), { ok: false, error: 'no answer within 100 ms' });
  t.ok(monotonicMs() - began >= 99);
  const stop = new AbortController();
  const asking = probe(url, { timeoutMs: 60_000, signal: stop.signal });
  stop.abort();
  t.strictSame(await asking, { ok: false, error: 'aborted' });
  t.strictSame(await probe(url, { signal: stop.signal }), { ok: false, error: 'aborted' });
  await child.kill();
  t.strictSame(await probe(url), { ok: false, error: 'ECONNREFUSED' });
});

t.test('an invalid request fails without quoting its headers', async (t) => {
  t.match(await probe('nonsense'), { ok: false, error: 'ERR_INVALID_URL' });
  t.match(await probe('https://127.0.0.1/'), { ok: false, error: 'ERR_INVALID_PROTOCOL' });
  const answer = await probe('http://127.0.0.1:1/', { headers: { authorization: 'secret\n' } });
  t.match(answer, { ok: false, error: 'ERR_INVALID_CHAR' });
});

t.test('pollUntil repeats until the probe succeeds', async (t) => {
  let left = 3;
  const result = await pollUntil(async () => ({ ok: --left === 0 }), { deadlineMs: 60_000, everyMs: 1 });
  t.match(result, { ok: true, last: { ok: true }, attempts: 3 });
});

t.test('pollUntil ends at its deadline with a failing and with a hanging probe', async (t) => {
  const failing = await pollUntil(async () => ({ ok: false, why: 'no' }), {
    deadlineMs: 1_000,
    everyMs: 5,
    maxEveryMs: 20,
  });
  t.match(failing, { ok: false, last: { why: 'no' } });
  t.ok(failing.attempts >= 2);
  let aborted = false;
  const hanging = await pollUntil(
    (signal) => {
      signal.addEventListener('abort', () => {
        aborted = true;
      });
      return new Promise<{ ok: boolean }>(() => {});
    },
    { deadlineMs: 30, everyMs: 1 },
  );
  t.match(hanging, { ok: false, last: undefined, attempts: 1 });
  t.ok(aborted);
});

t.test('pollUntil ends with its signal, and rethrows a bug', async (t) => {
  const stop = new AbortController();
  const polling = pollUntil(async () => ({ ok: false }), { deadlineMs: 60_000, everyMs: 5, signal: stop.signal });
  stop.abort(new Error('enough'));
  await t.rejects(polling, { message: 'enough' });
  const options = { deadlineMs: 60_000, everyMs: 5 };
  await t.rejects(
    pollUntil(() => Promise.reject(new Error('bug')), options),
    { message: 'bug' },
  );
});

nothingLeft(t);
