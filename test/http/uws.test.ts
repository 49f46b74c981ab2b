import t from 'tap';
import { json, jsonBytes } from '../../src/http/index.ts';
import { bodies } from './conformance/bodies.ts';
import { closing } from './conformance/closing.ts';
import { requests } from './conformance/requests.ts';
import { sockets } from './conformance/sockets.ts';
import { streams } from './conformance/streams.ts';
import { eventually, exchange, RawClient, rawRequest, start } from './support.ts';

requests(t, 'uws');
bodies(t, 'uws');
streams(t, 'uws');
sockets(t, 'uws');
closing(t, 'uws');

const constant = jsonBytes(200, Buffer.from('{"ok":true}'));

t.test('a request that uWebSockets.js refuses in C++ gets an HTML body', async (t) => {
  const { port } = await start(t, 'uws', { routes: [{ method: 'GET', path: '/', handler: () => constant }] });
  const cases: [string, number][] = [
    ['GET / HTTP/1.1\r\nAccept: */*\r\n\r\n', 400],
    ['GET / HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n', 505],
    ['GET http://127.0.0.1/ HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n', 505],
    [rawRequest('GET', '/', { 'X-Long': 'a'.repeat(80_000) }), 431],
    [rawRequest('GET', '/', Object.fromEntries(Array.from({ length: 120 }, (_, n) => [`x-${n}`, '1']))), 431],
  ];
  for (const [request, status] of cases) {
    const client = await RawClient.connect(t, port);
    client.send(request);
    const answer = await client.untilClosed();
    t.match(answer, new RegExp(`^HTTP/1\\.1 ${status} `));
    t.match(answer, '<h1>');
  }
});

t.test(
  'a pipelined request during an asynchronous handler drops the connection, and the server keeps serving',
  async (t) => {
    let signal: AbortSignal | undefined;
    const { port, url } = await start(t, 'uws', {
      routes: [
        { method: 'GET', path: '/', handler: () => constant },
        {
          method: 'GET',
          path: '/slow',
          handler: async (context) => {
            signal = context.signal;
            await new Promise((resolve) => setTimeout(resolve, 50));
            return json(200, 'late');
          },
        },
      ],
    });
    const client = await RawClient.connect(t, port);
    client.send(rawRequest('GET', '/slow') + rawRequest('GET', '/slow'));
    t.equal(await client.untilClosed(), '');
    await eventually(() => signal?.aborted === true, 'the handler is notified');
    t.equal((await exchange(port, rawRequest('GET', '/'))).status, 200);
    t.equal((await fetch(url)).status, 200);
  },
);

t.test('a method with the name of an object property is unknown', async (t) => {
  const { port } = await start(t, 'uws', { routes: [{ method: 'GET', path: '/', handler: () => constant }] });
  t.equal((await exchange(port, rawRequest('constructor', '/'))).status, 405);
  t.equal((await exchange(port, rawRequest('get', '/'))).status, 405);
});

t.test('the variable for the size of headers is not passed to child processes', async (t) => {
  t.equal(process.env['UWS_HTTP_MAX_HEADERS_SIZE'], undefined);
});
