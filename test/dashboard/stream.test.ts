/** The event stream: each client receives all events, independent of other clients, also after a reconnect. */
import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import t, { type Test } from 'tap';
import { EventStream } from '../../src/dashboard/index.ts';
import type { TraceEvent } from '../../src/protocol/index.ts';
import type { Adapter } from '../http/support.ts';
import { type Bare, bare, someEvents, token } from './bare.ts';
import { type Body, Stream } from './harness.ts';

const idsOf = (events: readonly Body[]): number[] => events.map(({ id }) => id);
const upTo = (last: number) => Array.from({ length: last }, (_, index) => index + 1);
const hasEvent = (id: number) => (records: readonly { readonly data: Body }[]) =>
  records.at(-1)?.data.id >= id || records.some(({ data }) => data.id === id);

/** Lets the loop turn between portions, as a runtime does. */
async function append({ traces }: Bare, count: number, options?: { readonly chars?: number }): Promise<void> {
  for (let left = count; left > 0; left -= 500) {
    for (const event of someEvents(Math.min(left, 500), options)) traces.append(event);
    await new Promise((resolve) => setImmediate(resolve));
  }
  traces.flush();
}

/** Asserts like `t.same`, which prepares a report of thousands of values, which takes seconds, where no value differs. */
function sameList(t: Test, found: readonly unknown[], wanted: readonly unknown[], message = 'all of them'): void {
  if (isDeepStrictEqual(found, wanted)) t.pass(message);
  else t.same(found, wanted, message);
}

function withBoth(name: string, play: (t: Test, scene: Bare) => Promise<void>): void {
  for (const adapter of ['uws', 'node'] satisfies Adapter[]) {
    t.test(`${name} (${adapter})`, async (t) => {
      await play(t, await bare(t, adapter, {}, { sseBufferBytes: 4 * 1_048_576 }));
    });
  }
}

withBoth('two clients both get all 10 000 events, once and in order', async (t, scene) => {
  const clients = [await Stream.open(t, scene.url, token), await Stream.open(t, scene.url, token)];
  await append(scene, 10_000);
  for (const client of clients) {
    await client.until(hasEvent(10_000), 'the last event');
    sameList(t, idsOf(client.events()), upTo(10_000));
    t.match(client.records[0], { event: 'stream.hello', data: { newest: 0 } });
    t.match(client.headers.get('content-type'), 'text/event-stream');
  }
  sameList(t, clients[0]?.records ?? [], clients[1]?.records ?? [], 'the same records with the same ids');
});

withBoth(
  'a client that does not read is disconnected without a delay for others, and resumes without a loss',
  async (t, scene) => {
    const fast = await Stream.open(t, scene.url, token);
    const slow = await Stream.open(t, scene.url, token, { isPaused: true });
    for (let count = 250; count <= 2_500; count += 250) {
      await append(scene, 250, { chars: 8_000 });
      await fast.until(hasEvent(count), `event ${count}`);
    }
    sameList(t, idsOf(fast.events()), upTo(2_500));
    slow.resume();
    // 20 MB were meant for it, far more than the server queues for one client.
    await slow.until(() => slow.isOver, 'it is cut off').catch(() => undefined);
    t.ok(slow.isOver);
    const got = idsOf(slow.events());
    sameList(t, got, upTo(got.length), 'what it got is the beginning');
    t.ok(got.length < 2_500);
    const back = await Stream.open(t, scene.url, token, { lastEventId: slow.lastId });
    await back.until(hasEvent(2_500), 'the rest');
    sameList(t, [...got, ...idsOf(back.events())], upTo(2_500));
  },
);

withBoth('a client disconnected again and again receives each event once', async (t, scene) => {
  const seen: number[] = [];
  let lastEventId = '000000000000-0';
  const writing = append(scene, 3_000);
  while ((seen.at(-1) ?? 0) < 3_000) {
    const stream = await Stream.open(t, scene.url, token, { lastEventId });
    const wanted = 1 + Math.floor(Math.random() * 400);
    const isEnough = () => stream.events().length >= wanted || hasEvent(3_000)(stream.records);
    await stream.until(isEnough, 'some events');
    stream.close();
    const events = stream.records.filter(({ event }) => !event.startsWith('stream.'));
    seen.push(...idsOf(events.map(({ data }) => data)));
    lastEventId = stream.lastId || lastEventId;
    t.notOk(stream.records.some(({ event }) => event === 'stream.gap'));
  }
  await writing;
  sameList(t, seen, upTo(3_000));
});

withBoth('a client resumes from the database after a restart, and gets a gap for an unknown id', async (t, scene) => {
  await append(scene, 100);
  const newest = await Stream.open(t, scene.url, token);
  await newest.until((records) => records.length > 0, 'hello');
  t.match(newest.records[0], { event: 'stream.hello', data: { newest: 100 } });
  const boot: string = newest.records[0]?.data.bootId;
  for (const lastEventId of [`${boot}-40`, '0123456789ab-40', '0123456789ab-40.3']) {
    const back = await Stream.open(t, scene.url, token, { lastEventId });
    await back.until(hasEvent(100), 'the rest');
    t.same(idsOf(back.events()), upTo(100).slice(40));
    t.equal(
      back.records[0]?.id,
      lastEventId,
      'the greeting has the id of the request, so that a client can resume after it',
    );
  }
  for (const lastEventId of ['nonsense', '40', `${boot}-101`, `${boot}--1`, `${boot}-40x`, "x' OR 1=1"]) {
    const lost = await Stream.open(t, scene.url, token, { lastEventId });
    await lost.until((records) => records.length > 1, 'two records');
    t.same(
      lost.records.map(({ event, id }) => [event, id]),
      [
        ['stream.hello', `${boot}-100`],
        ['stream.gap', `${boot}-100`],
      ],
      lastEventId,
    );
  }
});

withBoth('deletions have their own ids and are included in a resume', async (t, scene) => {
  await append(scene, 3);
  const stream = await Stream.open(t, scene.url, token);
  await stream.until((records) => records.length > 0, 'hello');
  const boot: string = stream.records[0]?.data.bootId;
  await scene.ask('/api/sessions/s', { method: 'DELETE' });
  await scene.ask('/api/sessions', { method: 'DELETE' });
  await append(scene, 1);
  await stream.until(hasEvent(4), 'the last event');
  t.same(
    stream.records.map(({ id, event }) => [id, event]),
    [
      [`${boot}-3`, 'stream.hello'],
      [`${boot}-3.1`, 'session.deleted'],
      [`${boot}-3.2`, 'session.deleted'],
      [`${boot}-4`, 'response'],
    ],
  );
  const back = await Stream.open(t, scene.url, token, { lastEventId: `${boot}-3.1` });
  await back.until(hasEvent(4), 'the last event');
  t.same(
    back.records.slice(1).map(({ id }) => id),
    [`${boot}-3.2`, `${boot}-4`],
  );
});

/** Database in memory that notifies listeners of new events. */
class Feed {
  readonly events: TraceEvent[] = [];
  readonly #listeners = new Set<(events: readonly TraceEvent[]) => void>();

  get newestId(): number {
    return this.events.length;
  }

  since(id: number, limit: number): TraceEvent[] {
    return this.events.slice(id, id + limit);
  }

  subscribe(listener: (events: readonly TraceEvent[]) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  add(count: number): void {
    const events = someEvents(count).map((event, index) => ({ id: this.events.length + index + 1, ...event }));
    this.events.push(...events);
    for (const listener of this.#listeners) listener(events);
  }

  get isWatched(): boolean {
    return this.#listeners.size > 0;
  }
}

const recordsOf = (frames: readonly Uint8Array[]): { id: string; event: string }[] =>
  Buffer.concat(frames)
    .toString()
    .split('\n\n')
    .filter((frame) => frame !== '')
    .map((frame) => ({
      id: /^id: (.*)$/m.exec(frame)?.[1] ?? '',
      event: /^event: (.*)$/m.exec(frame)?.[1] ?? '',
    }));

t.test('a reader that reconnects gets the missed events or a gap', async (t) => {
  const step = fc.oneof(
    {
      weight: 4,
      arbitrary: fc.record({ kind: fc.constant('events' as const), count: fc.integer({ min: 1, max: 9 }) }),
    },
    { weight: 2, arbitrary: fc.record({ kind: fc.constant('deleted' as const) }) },
    { weight: 3, arbitrary: fc.record({ kind: fc.constantFrom('leave', 'come', 'other', 'otherLeaves') }) },
  );
  fc.assert(
    fc.property(fc.array(step, { maxLength: 40 }), fc.integer({ min: 1, max: 12 }), (steps, ringEvents) => {
      const feed = new Feed();
      const stream = new EventStream({ traces: feed, feed, ringEvents });
      const received: string[] = [];
      let happened: string[] = [];
      let lastId: string | undefined;
      let leave: (() => void) | undefined;
      let otherLeaves: (() => void) | undefined;
      const take = (frames: readonly Uint8Array[]) => {
        for (const { id, event } of recordsOf(frames)) {
          if (event === 'stream.gap') {
            // The reader reads the database again after a gap: the comparison starts over.
            received.length = 0;
            happened = [];
          } else if (event !== 'stream.hello')
            received.push(event === 'session.deleted' ? event : id.replace(/^.*-/, ''));
          lastId = id;
        }
      };
      const come = () => {
        if (leave) return;
        if (lastId === undefined) happened = [];
        take(stream.replay(lastId));
        leave = stream.subscribe(
          (batch) => take([batch]),
          () => undefined,
        );
      };
      for (const each of steps) {
        if (each.kind === 'events') {
          feed.add(each.count);
          for (let id = feed.newestId - each.count + 1; id <= feed.newestId; id += 1) happened.push(String(id));
        } else if (each.kind === 'deleted') {
          stream.deleted('x');
          happened.push('session.deleted');
        } else if (each.kind === 'come') come();
        else if (each.kind === 'leave') {
          // Pending events are delivered before the reader leaves.
          stream.replay(undefined);
          leave?.();
          leave = undefined;
        } else if (each.kind === 'other') {
          otherLeaves ??= stream.subscribe(
            () => undefined,
            () => undefined,
          );
        } else {
          stream.replay(undefined);
          otherLeaves?.();
          otherLeaves = undefined;
        }
      }
      come();
      stream.replay(undefined);
      const isRight = JSON.stringify(received) === JSON.stringify(happened);
      leave?.();
      otherLeaves?.();
      return isRight && !feed.isWatched;
    }),
    { numRuns: 2_000 },
  );
  t.pass('held');
});

t.test('no event is serialised without a reader, and the stream ends with the server', async (t) => {
  const feed = new Feed();
  const stream = new EventStream({ traces: feed, feed });
  feed.add(3);
  t.notOk(feed.isWatched);
  let isOver = false;
  stream.subscribe(
    () => undefined,
    () => {
      isOver = true;
    },
  );
  t.ok(feed.isWatched);
  stream.close();
  stream.close();
  t.ok(isOver);
  t.notOk(feed.isWatched);
  const late = await new Promise<string>((resolve) => {
    stream.subscribe(
      () => undefined,
      () => resolve('ended'),
    );
  });
  t.equal(late, 'ended');
});
