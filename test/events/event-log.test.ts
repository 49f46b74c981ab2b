import t from 'tap';
import { EventLog, type EventLogOptions } from '../../src/events/index.ts';

interface Thing {
  readonly kind: string;
  readonly n?: number;
  readonly reason?: string;
}

function log(options: Partial<EventLogOptions<Thing>> = {}): EventLog<Thing> {
  return new EventLog<Thing>({
    maxEvents: 5,
    maxBytes: 1_000_000,
    epoch: 'e1',
    gap: ({ reason }) => ({ kind: 'gap', reason }),
    ...options,
  });
}

const turn = () => new Promise((resolve) => setImmediate(resolve));
const textOf = (frames: readonly Uint8Array[]) => frames.map((frame) => Buffer.from(frame).toString());

t.test('an appended event gets the next id and one frame', async (t) => {
  const events = log();
  t.equal(events.lastId, 'e1-0');
  t.equal(events.append({ kind: 'a', n: 1 }), 'e1-1');
  t.equal(events.append({ kind: 'b', n: 2 }), 'e1-2');
  t.strictSame(textOf(events.replay('e1-1')), ['event: b\nid: e1-2\ndata: {"kind":"b","n":2}\n\n']);
  t.equal(events.replay('e1-1')[0], events.replay('e1-0')[1], 'serialised once');
  t.not(log({ epoch: 'a' }).epoch, 'b');
  t.match(new EventLog<Thing>({ maxEvents: 1, maxBytes: 1, gap: () => ({ kind: 'gap' }) }).epoch, /^[0-9a-f]{8}$/);
});

t.test('replay returns the events after an id, with a gap for an evicted or unknown one', async (t) => {
  const events = log();
  for (let n = 1; n <= 8; n += 1) events.append({ kind: 'a', n });
  const numbers = (id: string | undefined) =>
    textOf(events.replay(id)).map((frame) => /"(?:n|reason)":"?(\w+)/.exec(frame)?.[1]);
  t.strictSame(numbers(undefined), [], 'a new reader: nothing');
  t.strictSame(numbers('e1-8'), []);
  t.strictSame(numbers('e1-6'), ['7', '8']);
  t.strictSame(numbers('e1-3'), ['4', '5', '6', '7', '8'], 'itself evicted, but nothing after it');
  t.strictSame(numbers('e1-2'), ['evicted', '4', '5', '6', '7', '8']);
  t.strictSame(numbers('e0-7'), ['otherEpoch', '4', '5', '6', '7', '8']);
  for (const id of ['e1-9', 'e1-', 'e1', '', 'e1-07', 'e1-1e3', 'e1-99999999999999999999']) {
    t.equal(numbers(id)[0], 'unknownId', id);
  }
  t.match(textOf(events.replay('e0-7'))[0], /^event: gap\nid: e1-3\n/, 'resuming from the gap misses nothing');
  t.strictSame(events.since('e1-7'), { gap: undefined, events: [{ id: 'e1-8', event: { kind: 'a', n: 8 } }] });
  t.equal(events.since('e1-1').gap?.reason, 'evicted');
  t.strictSame(
    events.recent(2).map(({ id }) => id),
    ['e1-7', 'e1-8'],
  );
  t.equal(events.recent(100).length, 5);
  t.strictSame(events.recent(0), []);
});

t.test('the log is bounded by bytes, and an event beyond the bound is delivered but not retained', async (t) => {
  const events = log({ maxEvents: 100, maxBytes: 150 });
  for (let n = 1; n <= 10; n += 1) events.append({ kind: 'a', n });
  t.equal(events.recent(100).length, 3);
  const live: string[] = [];
  events.subscribe(
    (batch) => live.push(Buffer.from(batch).toString()),
    () => {},
  );
  events.append({ kind: 'x'.repeat(200) });
  t.equal(events.recent(100).length, 0);
  await turn();
  t.equal(live.length, 1, 'a subscriber receives it');
  t.match(textOf(events.replay('e1-10')), [/evicted/]);
  t.strictSame(events.replay('e1-11'), []);
});

t.test('events of one turn are delivered as one batch, or each by itself without batching', async (t) => {
  const batched = log();
  const batches: string[] = [];
  batched.subscribe(
    (batch) => batches.push(Buffer.from(batch).toString()),
    () => {},
  );
  batched.append({ kind: 'a', n: 1 });
  await Promise.resolve();
  batched.append({ kind: 'a', n: 2 });
  t.equal(batches.length, 0);
  await turn();
  t.equal(batches.length, 1);
  t.match(batches[0], /"n":1\}\n\nevent: a\nid: e1-2\ndata: \{"kind":"a","n":2\}\n\n$/);
  const single = log({ batch: false });
  const each: number[] = [];
  single.subscribe(
    (batch) => each.push(batch.byteLength),
    () => {},
  );
  single.append({ kind: 'a', n: 1 });
  single.append({ kind: 'a', n: 2 });
  t.equal(each.length, 2);
});

t.test('replay and subscribe in one turn miss and repeat no event, also for earlier subscribers', async (t) => {
  const events = log();
  const early: string[] = [];
  const late: string[] = [];
  events.subscribe(
    (batch) => early.push(...(Buffer.from(batch).toString().match(/e1-\d/g) ?? [])),
    () => {},
  );
  events.append({ kind: 'a' });
  late.push(...textOf(events.replay('e1-0')).flatMap((frame) => frame.match(/e1-\d/g) ?? []));
  events.subscribe(
    (batch) => late.push(...(Buffer.from(batch).toString().match(/e1-\d/g) ?? [])),
    () => {},
  );
  t.strictSame(early, ['e1-1']);
  events.append({ kind: 'a' });
  await turn();
  t.strictSame(early, ['e1-1', 'e1-2']);
  t.strictSame(late, ['e1-1', 'e1-2']);
});

t.test('a subscriber that throws, appends, subscribes or leaves does not affect others', async (t) => {
  for (const batch of [true, false]) {
    const failures: unknown[] = [];
    const events = log({ batch, onSubscriberError: (error) => failures.push(error) });
    const seen: string[] = [];
    const nested: string[] = [];
    const record = (into: string[]) => (frames: Uint8Array) => {
      into.push(...(Buffer.from(frames).toString().match(/e1-\d/g) ?? []));
    };
    let first = true;
    const leave = events.subscribe(
      () => {
        if (!first) return;
        first = false;
        events.append({ kind: 'reaction' });
        events.subscribe(record(nested), () => {});
        leave();
        throw new Error('mine');
      },
      () => {},
    );
    events.subscribe(record(seen), () => {});
    events.append({ kind: 'a' });
    await turn();
    await turn();
    events.append({ kind: 'b' });
    await turn();
    t.strictSame(seen, ['e1-1', 'e1-2', 'e1-3'], `in order, batch ${batch}`);
    t.strictSame(nested, ['e1-3'], 'only events after its subscription');
    t.equal(failures.length, 1);
    t.equal(events.subscribers, 2);
  }
});

t.test('the end delivers pending events, then calls onEnd of all subscribers', async (t) => {
  const failures: unknown[] = [];
  const events = log({ onSubscriberError: (error) => failures.push(error) });
  const calls: string[] = [];
  events.subscribe(
    () => calls.push('batch'),
    () => {
      throw new Error('mine');
    },
  );
  events.subscribe(
    () => calls.push('batch'),
    () => calls.push('end'),
  );
  events.append({ kind: 'a' });
  events.end();
  events.end();
  t.strictSame(calls, ['batch', 'batch', 'end']);
  t.equal(failures.length, 1);
  t.equal(events.append({ kind: 'b' }), 'e1-2', 'retained, not delivered');
  await turn();
  t.equal(calls.length, 3);
  events.subscribe(
    () => calls.push('batch'),
    () => calls.push('late end'),
  );
  t.equal(calls.length, 3);
  await Promise.resolve();
  t.equal(calls.at(-1), 'late end');
  t.equal(events.replay('e1-1').length, 1);
});

t.test('an event that cannot be framed is refused', async (t) => {
  t.throws(() => log({ serialise: (event) => JSON.stringify(event, null, 2) }).append({ kind: 'a', n: 1 }), TypeError);
  t.throws(() => log().append({ kind: 'a\nid: 7' }), TypeError);
  t.equal(log().append({ kind: 'a', reason: 'two\nlines\r\u2028' }), 'e1-1', 'JSON escapes what is inside');
  t.throws(() => log({ epoch: 'a-b' }), TypeError);
  t.throws(() => log({ maxEvents: 0 }), RangeError);
});
