/** Listening and closing. */
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { createServer as createTcpServer } from 'node:net';
import type { Test } from 'tap';
import { WebSocket as WsClient } from 'ws';
import { EventLog } from '../../../src/events/index.ts';
import { createServer, type Route, sse, text } from '../../../src/http/index.ts';
import { type Adapter, eventually, optionsFrom, RawClient, rawRequest, start } from '../support.ts';

const now: Route<undefined> = { method: 'GET', path: '/now', handler: () => text(200, 'now;') };

export function closing(t: Test, adapter: Adapter): void {
  t.test('a taken port is EADDRINUSE', async (t) => {
    const { port } = await start(t, adapter, { routes: [now] });
    const other = createTcpServer().listen(0, '127.0.0.1');
    t.teardown(() => other.close());
    await once(other, 'listening');
    for (const taken of [port, (other.address() as AddressInfo).port]) {
      const second = await createServer(optionsFrom({ routes: [now] }, []), adapter);
      await t.rejects(second.listen({ host: '127.0.0.1', port: taken }), { code: 'EADDRINUSE' });
      await second.close(0);
    }
  });

  t.test('an address of another machine is EADDRNOTAVAIL', async (t) => {
    const server = await createServer(optionsFrom({ routes: [now] }, []), adapter);
    await t.rejects(server.listen({ host: '192.0.2.1', port: 0 }), { code: 'EADDRNOTAVAIL' });
    await server.close(0);
  });

  t.test('close is immediate without active requests, also with idle connections', async (t) => {
    const { port, server, url } = await start(t, adapter, { routes: [now] });
    const idle = await RawClient.connect(t, port);
    idle.send(rawRequest('GET', '/now'));
    await idle.until(/now;/);
    const silent = await RawClient.connect(t, port);
    // A close that waited for this grace period would exceed the time limit of the test.
    await Promise.all([server.close(86_400_000), server.close(86_400_000)]);
    await Promise.all([idle.untilClosed(), silent.untilClosed()]);
    await t.rejects(fetch(`${url}/now`));
    t.strictSame(server.stats(), { connections: 0, sseReaders: 0, webSockets: 0 });
  });

  t.test('close completes active requests, sends queued stream data, and closes sockets with 1001', async (t) => {
    const log = new EventLog<{ kind: string }>({ maxEvents: 10, maxBytes: 10_000, gap: () => ({ kind: 'gap' }) });
    let finish = () => {};
    const { server, url, port } = await start(t, adapter, {
      routes: [
        { method: 'GET', path: '/events', handler: () => sse(log, undefined) },
        {
          method: 'GET',
          path: '/slow',
          handler: async () => {
            await new Promise<void>((resolve) => {
              finish = resolve;
            });
            return text(200, 'finished');
          },
        },
      ],
      webSockets: [
        {
          path: '/ws',
          auth: () => undefined,
          maxPayloadBytes: 100,
          maxBufferedBytes: 100,
          open: () => {},
          message: () => {},
          close: () => {},
        },
      ],
    });
    const events = await fetch(`${url}/events`);
    const socket = new WsClient(`ws://127.0.0.1:${port}/ws`);
    await once(socket, 'open');
    const heard = once(socket, 'close') as Promise<[number]>;
    const client = await RawClient.connect(t, port);
    client.send(rawRequest('GET', '/slow'));
    await eventually(() => server.stats().connections === 3, 'three connections');
    const initial = finish;
    await eventually(() => finish !== initial || finish.name !== 'finish', 'the slow handler runs');
    log.append({ kind: 'last.words' });
    const closed = server.close(600_000);
    t.match(await events.text(), /event: last\.words/);
    t.equal((await heard)[0], 1001);
    finish();
    t.match(await client.until(/finished/), /connection: close/i);
    await closed;
    await client.untilClosed();
  });

  t.test('connections open after the grace period are cut and reported', async (t) => {
    let signal: AbortSignal | undefined;
    const { server, port } = await start(t, adapter, {
      routes: [
        {
          method: 'GET',
          path: '/never',
          handler: (context: { signal: AbortSignal }) => {
            signal = context.signal;
            return new Promise<never>(() => {});
          },
        },
      ],
    });
    const client = await RawClient.connect(t, port);
    client.send(rawRequest('GET', '/never'));
    await eventually(() => signal !== undefined, 'the handler runs');
    await server.close(50);
    await client.untilClosed();
    await eventually(() => signal?.aborted === true, 'the handler is notified');
  });
}
