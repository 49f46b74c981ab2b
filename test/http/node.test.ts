import t from 'tap';
import { json, text } from '../../src/http/index.ts';
import { bodies } from './conformance/bodies.ts';
import { closing } from './conformance/closing.ts';
import { requests } from './conformance/requests.ts';
import { sockets } from './conformance/sockets.ts';
import { streams } from './conformance/streams.ts';
import { codeOf, exchange, RawClient, rawRequest, start } from './support.ts';

requests(t, 'node');
bodies(t, 'node');
streams(t, 'node');
sockets(t, 'node');
closing(t, 'node');

t.test('what the parser refuses is worded by the contract too', async (t) => {
  const { port } = await start(t, 'node', { routes: [{ method: 'GET', path: '/', handler: () => text(200, 'fine') }] });
  const cases: [string, number, string][] = [
    ['GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nno colon\r\n\r\n', 400, 'invalidRequest'],
    ['nonsense\r\n\r\n', 400, 'invalidRequest'],
    ['GET http://127.0.0.1/ HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n', 400, 'invalidRequest'],
    ['GET / HTTP/1.1\r\nConnection: close\r\n\r\n', 403, 'hostNotAllowed'],
    [rawRequest('GET', '/', { 'X-Long': 'a'.repeat(20_000) }), 431, 'headersTooLarge'],
  ];
  for (const [request, status, code] of cases) {
    const answer = await exchange(t, port, request);
    t.equal(answer.status, status);
    t.equal(codeOf(answer.body), code);
  }
});

t.test('pipelined requests of asynchronous handlers are answered in order', async (t) => {
  const { port } = await start(t, 'node', {
    routes: [
      {
        method: 'GET',
        path: '/after/:ms',
        handler: async ({ params }) => {
          await new Promise((resolve) => setTimeout(resolve, Number(params['ms'])));
          return json(200, { after: params['ms'] });
        },
      },
    ],
  });
  const client = await RawClient.connect(t, port);
  client.send(rawRequest('GET', '/after/40') + rawRequest('GET', '/after/0'));
  t.match(await client.until(/"after":"0"/), /"after":"40"[\s\S]*"after":"0"/);
});

t.test('an offered upgrade that is no WebSocket is ignored', async (t) => {
  const { port } = await start(t, 'node', { routes: [{ method: 'GET', path: '/', handler: () => text(200, 'fine') }] });
  const offer = { Connection: 'Upgrade, HTTP2-Settings', Upgrade: 'h2c', 'HTTP2-Settings': 'AAMAAABkAARAAAAAAAIAAAAA' };
  t.equal((await exchange(t, port, rawRequest('GET', '/', offer))).body, 'fine');
  t.equal((await exchange(t, port, rawRequest('POST', '/', { ...offer, 'Content-Length': '1' }, 'x'))).status, 400);
});
