import { once } from 'node:events';
import { Agent, get, type IncomingMessage } from 'node:http';
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

t.test('a request refused by the parser gets the error object of the contract', async (t) => {
  const { port } = await start(t, 'node', { routes: [{ method: 'GET', path: '/', handler: () => text(200, 'fine') }] });
  const cases: [string, number, string][] = [
    ['GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nno colon\r\n\r\n', 400, 'invalidRequest'],
    ['nonsense\r\n\r\n', 400, 'invalidRequest'],
    ['OPTIONS * HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n', 400, 'invalidRequest'],
    ['GET http://evil.example/ HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n', 403, 'hostNotAllowed'],
    ['GET / HTTP/1.1\r\nConnection: close\r\n\r\n', 403, 'hostNotAllowed'],
    [rawRequest('GET', '/', { 'X-Long': 'a'.repeat(20_000) }), 431, 'headersTooLarge'],
  ];
  for (const [request, status, code] of cases) {
    const answer = await exchange(port, request);
    t.equal(answer.status, status);
    t.equal(codeOf(answer.body), code);
  }
});

t.test('many requests on one connection leave no listener', async (t) => {
  const { port } = await start(t, 'node', { routes: [{ method: 'GET', path: '/', handler: () => text(200, 'fine') }] });
  const warnings: Error[] = [];
  const note = (warning: Error) => warnings.push(warning);
  process.on('warning', note);
  t.teardown(() => process.off('warning', note));
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  t.teardown(() => agent.destroy());
  const ports = new Set<number | undefined>();
  for (let times = 0; times < 20; times += 1) {
    const [response] = (await once(get({ port, agent, host: '127.0.0.1' }), 'response')) as [IncomingMessage];
    ports.add(response.socket.localPort);
    t.equal(response.statusCode, 200);
    await once(response.resume(), 'end');
  }
  t.equal(ports.size, 1, 'on one connection');
  t.same(warnings, []);
});

t.test('regression: edge 10b node:http answers HTTP/1.0 and absolute-form targets', async (t) => {
  const { port } = await start(t, 'node', {
    routes: [
      { method: 'GET', path: '/a', handler: ({ query }) => text(200, `query ${query}`) },
      { method: 'POST', path: '/b', handler: async (context) => text(200, (await context.bytes()).toString()) },
    ],
  });
  const cases: [string, string][] = [
    ['GET /a?x=1 HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n', 'query x=1'],
    ['GET /a HTTP/1.0\r\n\r\n', 'query '],
    ['POST /b HTTP/1.0\r\nHost: 127.0.0.1\r\nContent-Length: 3\r\n\r\nabc', 'abc'],
    ['GET http://127.0.0.1/a?x=2 HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n', 'query x=2'],
    ['GET HTTP://localhost:80/a HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n', 'query '],
    ['GET /a HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n', 'query '],
  ];
  for (const [request, body] of cases) {
    const client = await RawClient.connect(t, port);
    client.send(request);
    const answer = await client.untilClosed();
    t.match(answer, /^HTTP\/1\.1 200 /, request);
    t.equal(answer.slice(answer.indexOf('\r\n\r\n') + 4), body, request);
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

t.test('an offered upgrade to another protocol than WebSocket is ignored', async (t) => {
  const { port } = await start(t, 'node', { routes: [{ method: 'GET', path: '/', handler: () => text(200, 'fine') }] });
  const offer = { Connection: 'Upgrade, HTTP2-Settings', Upgrade: 'h2c', 'HTTP2-Settings': 'AAMAAABkAARAAAAAAAIAAAAA' };
  t.equal((await exchange(port, rawRequest('GET', '/', offer))).body, 'fine');
  t.equal((await exchange(port, rawRequest('POST', '/', { ...offer, 'Content-Length': '1' }, 'x'))).status, 400);
});
