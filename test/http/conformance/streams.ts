/** Event streams: resumption, heartbeat, slow and stalled readers, the end. */
import { once } from 'node:events';
import { EventSource } from 'eventsource';
import type { Test } from 'tap';
import { EventLog } from '../../../src/events/index.ts';
import { bearer, type Route, sse } from '../../../src/http/index.ts';
import { type Adapter, eventually, RawClient, rawRequest, start } from '../support.ts';

interface Thing {
  readonly kind: string;
  readonly n: number;
  readonly fill?: string;
}

function things(maxEvents = 1_000, maxBytes = 64 * 1_048_576): EventLog<Thing> {
  return new EventLog<Thing>({ maxEvents, maxBytes, gap: () => ({ kind: 'gap', n: -1 }) });
}

function stream(log: EventLog<Thing>): Route<undefined> {
  return {
    method: 'GET',
    path: '/events',
    handler: (context) => sse(log, context.header('last-event-id') ?? context.query.get('lastEventId') ?? undefined),
  };
}

/** Whole numbers of a text: a connection that is cut may end in the middle of one. */
const numbers = (received: string) => [...received.matchAll(/"n":(-?\d+)(?=[,}])/g)].map((match) => Number(match[1]));
const upTo = (first: number, last: number) => Array.from({ length: last - first + 1 }, (_, index) => first + index);

export function streams(t: Test, adapter: Adapter): void {
  t.test('a stream sends first bytes, live events and heartbeats', async (t) => {
    const log = things();
    const { port, server } = await start(t, adapter, { routes: [stream(log)], limits: { sseHeartbeatMs: 30 } });
    log.append({ kind: 'thing', n: 0 });
    const client = await RawClient.connect(t, port);
    client.send(rawRequest('GET', '/events'));
    await client.until(/: connected\n\nretry: 2000\n\n/);
    t.match(client.received, /^HTTP\/1\.1 200 OK\r\n/);
    t.match(client.received, /content-type: text\/event-stream\r\n/i);
    t.match(client.received, /cache-control: no-store\r\n/i);
    t.match(client.received, /x-accel-buffering: no\r\n/i);
    t.equal(server.stats().sseReaders, 1);
    const id = log.append({ kind: 'thing', n: 1 });
    t.match(await client.until(/"n":1/), `event: thing\nid: ${id}\ndata: {"kind":"thing","n":1}\n\n`);
    await client.until(/"n":1[\s\S]*:\n\n/);
    t.strictSame(numbers(client.received), [1], 'a new reader gets nothing of before');
    client.socket.destroy();
    await eventually(() => server.stats().sseReaders === 0, 'the reader is forgotten');
    t.equal(log.subscribers, 0, 'and with the last one the subscription');
  });

  t.test('an asynchronous handler may return a stream', async (t) => {
    const log = things();
    const { port, server } = await start(t, adapter, {
      routes: [
        {
          method: 'GET',
          path: '/events',
          deadlineMs: 1_500,
          handler: async (context) => {
            await new Promise((resolve) => setImmediate(resolve));
            return sse(log, context.header('last-event-id'));
          },
        },
      ],
    });
    const client = await RawClient.connect(t, port);
    client.send(rawRequest('GET', '/events'));
    await client.until(/: connected\n\nretry: 2000\n\n/);
    await new Promise((resolve) => setTimeout(resolve, 2_000));
    log.append({ kind: 'thing', n: 1 });
    await client.until(/"n":1/);
    client.socket.destroy();
    await eventually(() => server.stats().sseReaders === 0, 'the reader is forgotten');
  });

  t.test('HEAD of a stream has the headers and ends', async (t) => {
    const log = things();
    const { url } = await start(t, adapter, { routes: [stream(log)] });
    const answer = await fetch(`${url}/events`, { method: 'HEAD' });
    t.equal(answer.headers.get('content-type'), 'text/event-stream');
    t.equal(await answer.text(), '');
  });

  t.test('a resumption in the turn of an append misses and repeats no event', async (t) => {
    const log = things();
    const { port } = await start(t, adapter, {
      routes: [
        {
          method: 'GET',
          path: '/events',
          handler: (context) => {
            log.append({ kind: 'thing', n: 2 });
            const reply = sse(log, context.header('last-event-id'));
            log.append({ kind: 'thing', n: 3 });
            queueMicrotask(() => log.append({ kind: 'thing', n: 4 }));
            return reply;
          },
        },
      ],
    });
    const first = log.append({ kind: 'thing', n: 0 });
    log.append({ kind: 'thing', n: 1 });
    const client = await RawClient.connect(t, port);
    client.send(rawRequest('GET', '/events', { 'Last-Event-ID': first }));
    await client.until(/"n":4/);
    t.strictSame(numbers(client.received), [1, 2, 3, 4]);
    const other = await RawClient.connect(t, port);
    other.send(rawRequest('GET', '/events', { 'Last-Event-ID': log.lastId }));
    await other.until(/"n":4/);
    t.strictSame(numbers(other.received), [2, 3, 4]);
    await client.until(/"n":4[\s\S]*"n":4/);
    t.strictSame(numbers(client.received), [1, 2, 3, 4, 2, 3, 4]);
  });

  t.test('an EventSource with a token resumes automatically', async (t) => {
    const log = things();
    const guarded = { ...stream(log), auth: bearer('secret') };
    const { url, port, server } = await start(t, adapter, { routes: [guarded], limits: { sseRetryMs: 20 } });
    const source = new EventSource(`${url}/events`, {
      fetch: (input, init) => fetch(input, { ...init, headers: { ...init.headers, authorization: 'Bearer secret' } }),
    });
    t.teardown(() => source.close());
    const seen: number[] = [];
    source.addEventListener('thing', (event) => seen.push((JSON.parse(event.data) as Thing).n));
    source.addEventListener('gap', () => seen.push(-1));
    await once(source, 'open');
    log.append({ kind: 'thing', n: 0 });
    await eventually(() => seen.length === 1, 'the first event');
    // Before the other one gives its port up, which any server may get.
    const again = await start(t, adapter, { routes: [guarded], limits: { sseRetryMs: 20 } });
    t.not(again.port, port);
    await server.close(0);
    log.append({ kind: 'thing', n: 1 });
    const resumed = new EventSource(`${again.url}/events?lastEventId=${log.epoch}-1`, {
      fetch: (input, init) => fetch(input, { ...init, headers: { ...init.headers, authorization: 'Bearer secret' } }),
    });
    t.teardown(() => resumed.close());
    resumed.addEventListener('thing', (event) => seen.push((JSON.parse(event.data) as Thing).n));
    await eventually(() => seen.length === 2, 'the missed event');
    t.strictSame(seen, [0, 1]);
    source.close();
    resumed.close();
  });

  t.test('an EventSource refused with 401 gets an error', async (t) => {
    const { url } = await start(t, adapter, { routes: [{ ...stream(things()), auth: bearer('secret') }] });
    const source = new EventSource(`${url}/events`);
    const [event] = (await once(source, 'error')) as [{ code?: number }];
    t.equal(event.code, 401);
    source.close();
  });

  t.test('a reader with an unknown id gets a gap first', async (t) => {
    const log = things(3);
    const { port } = await start(t, adapter, { routes: [stream(log)] });
    for (const n of upTo(0, 9)) log.append({ kind: 'thing', n });
    const client = await RawClient.connect(t, port);
    client.send(rawRequest('GET', `/events?lastEventId=${log.epoch}-2`));
    await client.until(/"n":9/);
    t.strictSame(numbers(client.received), [-1, 7, 8, 9]);
    t.match(client.received, /event: gap\nid: \w+-7\n/);
  });

  t.test('a slow reader receives a long history completely and in order', async (t) => {
    const log = things(20_000);
    const { port } = await start(t, adapter, { routes: [stream(log)], limits: { sseBufferBytes: 65_536 } });
    const fill = 'x'.repeat(1_000);
    for (const n of upTo(0, 11_999)) log.append({ kind: 'thing', n, fill });
    const client = await RawClient.connect(t, port);
    client.socket.pause();
    client.send(rawRequest('GET', `/events?lastEventId=${log.epoch}-0`));
    await new Promise((resolve) => setTimeout(resolve, 300));
    client.socket.resume();
    await client.untilText('"n":11999');
    t.strictSame(numbers(client.received), upTo(0, 11_999));
    log.append({ kind: 'thing', n: 12_000 });
    await client.untilText('"n":12000');
  });

  t.test('a batch larger than one write is sent completely', async (t) => {
    const log = things();
    const { port } = await start(t, adapter, { routes: [stream(log)] });
    const client = await RawClient.connect(t, port);
    client.send(rawRequest('GET', '/events'));
    await client.until(/retry/);
    log.append({ kind: 'thing', n: 1, fill: 'y'.repeat(300_000) });
    log.append({ kind: 'thing', n: 2 });
    await client.until(/"n":2/);
    const payload = client.received.replace(/\r\n[0-9a-f]+\r\n/g, '');
    t.ok(payload.includes(`"fill":"${'y'.repeat(300_000)}"}`));
  });

  t.test('a stalled reader is cut at its bound without a delay for others', async (t) => {
    const log = things(100_000);
    const { port, server } = await start(t, adapter, { routes: [stream(log)], limits: { sseBufferBytes: 262_144 } });
    const healthy = await RawClient.connect(t, port);
    const stalled = await RawClient.connect(t, port);
    for (const client of [healthy, stalled]) {
      client.send(rawRequest('GET', '/events'));
      await client.until(/retry/);
    }
    stalled.socket.pause();
    const fill = 'x'.repeat(4_000);
    const before = process.memoryUsage().external;
    let n = 0;
    while (server.stats().sseReaders === 2 && n < 20_000) {
      for (const until = n + 20; n < until; n += 1) log.append({ kind: 'thing', n, fill });
      await eventually(() => numbers(healthy.received.slice(-6_000)).at(-1) === n - 1, `event ${n - 1}`);
      healthy.received = healthy.received.slice(-6_000);
    }
    t.equal(server.stats().sseReaders, 1, 'only the stalled one is gone');
    t.comment(
      `cut after ${n * 4} kB; external memory grew by ${(process.memoryUsage().external - before) >> 10} KiB with the log`,
    );
    stalled.socket.resume();
    await stalled.untilClosed();
    const got = numbers(stalled.received);
    t.strictSame(got, upTo(0, got.length - 1), 'what it got has no hole');
  });

  t.test('a reader that was slow once is not cut later and receives the rest', async (t) => {
    const log = things(100_000);
    const { port, server } = await start(t, adapter, {
      routes: [stream(log)],
      limits: { sseBufferBytes: 64 * 1_048_576 },
    });
    const client = await RawClient.connect(t, port);
    client.send(rawRequest('GET', '/events'));
    await client.until(/retry/);
    client.socket.pause();
    const fill = 'x'.repeat(10_000);
    for (const n of upTo(0, 1_499)) {
      log.append({ kind: 'thing', n, fill });
      if (n % 50 === 49) await new Promise((resolve) => setImmediate(resolve));
    }
    client.socket.resume();
    await client.untilText(`"n":1499,"fill":"${fill}"}`);
    t.strictSame(numbers(client.received), upTo(0, 1_499));
    const closed = once(client.socket, 'close').then(() => 'closed');
    const outcome = await Promise.race([closed, new Promise((resolve) => setTimeout(() => resolve('open'), 13_000))]);
    t.equal(outcome, 'open', 'thirteen seconds of silence');
    log.append({ kind: 'thing', n: 1_500 });
    await client.untilText('"n":1500');
    t.equal(server.stats().sseReaders, 1);
  });

  t.test('with more readers than one turn serves each receives all events in order', async (t) => {
    const log = things();
    const { port, server } = await start(t, adapter, { routes: [stream(log)] });
    const clients: RawClient[] = [];
    for (let index = 0; index < 450; index += 1) {
      const client = await RawClient.connect(t, port);
      client.send(rawRequest('GET', '/events'));
      clients.push(client);
    }
    await eventually(() => server.stats().sseReaders === 450, '450 readers');
    for (const n of upTo(0, 29)) {
      log.append({ kind: 'thing', n });
      if (n % 3 === 0) await new Promise((resolve) => setImmediate(resolve));
    }
    // Joins while rounds are under way.
    const late = await RawClient.connect(t, port);
    late.send(rawRequest('GET', '/events', { 'Last-Event-ID': `${log.epoch}-0` }));
    await late.until(/"n":29/);
    t.strictSame(numbers(late.received), upTo(0, 29));
    for (const client of clients) {
      await client.until(/"n":29/);
      if (numbers(client.received).join() !== upTo(0, 29).join()) t.fail(`out of order: ${numbers(client.received)}`);
    }
  });

  t.test('a thousand readers that connect and leave hold no resource', async (t) => {
    const log = things();
    const { port, server } = await start(t, adapter, { routes: [stream(log)] });
    for (let wave = 0; wave < 4; wave += 1) {
      const clients = await Promise.all(
        Array.from({ length: 250 }, async () => {
          const client = await RawClient.connect(t, port);
          client.send(rawRequest('GET', '/events'));
          await client.until(/retry/);
          return client;
        }),
      );
      t.equal(server.stats().sseReaders, 250);
      log.append({ kind: 'thing', n: wave });
      for (const client of clients) client.socket.destroy();
      await eventually(() => server.stats().connections === 0, 'all are gone');
    }
    t.strictSame(server.stats(), { connections: 0, sseReaders: 0, webSockets: 0 });
    t.equal(log.subscribers, 0);
  });

  t.test('the end of the source sends queued frames, then ends the stream', async (t) => {
    const log = things();
    const { url, server } = await start(t, adapter, { routes: [stream(log)] });
    const answer = await fetch(`${url}/events`);
    log.append({ kind: 'thing', n: 1 });
    log.append({ kind: 'thing', n: 2 });
    log.end();
    t.strictSame(numbers(await answer.text()), [1, 2]);
    t.equal(server.stats().sseReaders, 0);
    const late = await fetch(`${url}/events?lastEventId=${log.epoch}-1`);
    t.strictSame(numbers(await late.text()), [2], 'a late reader gets the rest and the end');
  });

  t.test('a source that throws is a 500', async (t) => {
    const broken = {
      replay: () => {
        throw new Error('broken');
      },
      subscribe: () => () => {},
    };
    const { url, bugs } = await start(t, adapter, {
      routes: [{ method: 'GET', path: '/events', handler: () => sse(broken, undefined) }],
    });
    t.equal((await fetch(`${url}/events`)).status, 500);
    t.equal(bugs.length, 1);
  });
}
