import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import t, { type Test } from 'tap';
import { healthcheckByGet } from '../../../src/deploy/files/service.ts';
import { unusedPort } from '../../ports.ts';
import { type Ran, run } from '../run.ts';

const timeoutMs = 60_000;

/** Runs the check of a service that listens on `port`, as the engine does in its container. */
function check(port: number): Promise<Ran> {
  const [, program = '', ...words] = healthcheckByGet({ port, path: '/health?x=1' }).test;
  return run(program, words, { timeoutMs });
}

/** Resolves with the port of a server that ends with the test. */
async function serve(t: Test, listener: RequestListener): Promise<number> {
  const server = createServer(listener).listen(0, '127.0.0.1');
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  await new Promise((resolve) => server.once('listening', resolve));
  return (server.address() as AddressInfo).port;
}

t.test('a service is healthy when it answers the GET with 2xx', async (t) => {
  const seen: unknown[] = [];
  const statuses = [200, 204];
  const port = await serve(t, ({ method, url, headers: { host, connection } }, response) => {
    seen.push({ method, url, host, connection });
    response.writeHead(statuses.shift() ?? 500).end();
  });
  for (const _ of [200, 204]) t.match(await check(port), { exitCode: 0, stdout: '', stderr: '' });
  const asked = { method: 'GET', url: '/health?x=1', host: `127.0.0.1:${port}`, connection: 'close' };
  t.strictSame(seen, [asked, asked]);
});

t.test('a service that refuses, redirects or does not answer is unhealthy', async (t) => {
  const cases: readonly RequestListener[] = [
    (_, response) => response.writeHead(503, '2xx').end('HTTP/1.1 200 OK\r\n'),
    (_, response) => response.writeHead(302, { location: '/' }).end(),
    (_, response) => response.destroy(),
    () => {},
  ];
  const ports = await Promise.all(cases.map((listener) => serve(t, listener)));
  for (const { exitCode } of await Promise.all([...ports, await unusedPort()].map(check))) t.not(exitCode, 0);
});
