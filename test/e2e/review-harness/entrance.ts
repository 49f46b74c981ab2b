import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import type { Teardown } from '../harness.ts';

/**
 * One webhook for several replicas: each request goes to all of them at the same moment, as a balancer that repeats requests
 * would do at its worst. The first good answer is the answer.
 */
export async function startEntrance(t: Teardown, replicas: readonly string[]): Promise<string> {
  const server = createServer(async (request, response) => {
    const body = await buffer(request);
    const headers = Object.fromEntries(
      Object.entries(request.headers).flatMap(([name, value]) =>
        typeof value === 'string' && !['host', 'connection', 'content-length'].includes(name) ? [[name, value]] : [],
      ),
    );
    const attempts = replicas.map(async (url) => {
      const answer = await fetch(url + request.url, { method: 'POST', headers, body });
      if (answer.status >= 500) throw new Error(`${answer.status}`);
      return { status: answer.status, text: await answer.text() };
    });
    const answer = await Promise.any(attempts).catch(() => ({ status: 502, text: '{}' }));
    response.writeHead(answer.status, { 'content-type': 'application/json' }).end(answer.text);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}
