/** Serialised records, and streams of slow and late viewers and of many actors. */
import fc from 'fast-check';
import superjson from 'superjson';
import t from 'tap';
import * as v from 'valibot';
import { createActor } from 'xstate';
import { packHistory, unpackHistory } from '../../src/inspect/history.ts';
import { createInspectionSource, createRecorder, type NumberedRecord } from '../../src/inspect/index.ts';
import { wireOf } from '../../src/inspect/wire.ts';
import { InspectionRecord, type TransitionRecord } from '../../src/protocol/inspection.ts';
import { HandClock } from './hand-clock.ts';
import { doorMachine, lampMachine } from './helpers.ts';

const machines = { door: doorMachine, lamp: lampMachine };

const text = fc.oneof(fc.string(), fc.constantFrom('a.b', 'a\\b', '__proto__x', '“”\u2028', ''));
const date = fc.date({ noInvalidDate: true });
const fact = fc.oneof(text, fc.double(), fc.integer(), fc.boolean(), fc.constant(null), date);
// superjson refuses keys that could change a prototype; projections and states are made by us and have no such name.
const name = text.filter((name) => !['__proto__', 'constructor', 'prototype'].includes(name));
const projection = fc.dictionary(name, fact, { noNullPrototype: true });
const texts = fc.array(text, { maxLength: 3 });
const optional = <T>(name: string, value: fc.Arbitrary<T>) =>
  fc.option(value).map((made) => (made === null ? {} : { [name]: made }));

const record: fc.Arbitrary<InspectionRecord> = fc.oneof(
  fc
    .tuple(
      fc.record({
        type: fc.constant('actor' as const),
        id: text,
        parent: fc.option(text),
        machine: text,
        title: text,
        states: texts,
        at: date,
        projection,
        steps: fc.nat(),
        since: date,
        statistics: fc.dictionary(name, fc.record({ visits: fc.nat(), ms: fc.nat() }), { noNullPrototype: true }),
      }),
      optional('endedAt', date),
      optional('restarts', fc.nat()),
    )
    .map(([actor, ended, restarts]) => ({ ...actor, ...ended, ...restarts })),
  fc.record({
    type: fc.constant('transition' as const),
    id: text,
    step: fc.nat(),
    at: date,
    event: text,
    source: fc.option(text),
    edges: texts,
    from: texts,
    to: texts,
    entered: texts,
    actions: texts,
    projection,
  }),
  fc.record({ type: fc.constant('deadLetter' as const), id: text, at: date, event: text, source: fc.option(text) }),
  fc
    .tuple(fc.record({ type: fc.constant('gone' as const), id: text, at: date }), optional('error', text))
    .map(([gone, error]) => ({ ...gone, ...error })),
  fc.record({ type: fc.constant('dropped' as const), count: fc.nat(), at: date }),
);

t.test('a record is serialised byte for byte like superjson, and parsed unchanged by superjson', async (t) => {
  fc.assert(
    fc.property(record, (made) => {
      const written = wireOf(made);
      t.equal(written, superjson.stringify(made));
      return JSON.stringify(superjson.parse(written)) === JSON.stringify(superjson.parse(superjson.stringify(made)));
    }),
    { numRuns: 1_000 },
  );
});

/** Replaces some fields by others of the same kind, so that one object occurs at several places. */
function withShared(made: InspectionRecord, picks: readonly number[]): InspectionRecord {
  const fields: Record<string, unknown> = { ...made };
  const projection = 'projection' in made ? { ...made.projection } : undefined;
  const isDate = (value: unknown) => value instanceof Date;
  for (const isKind of [isDate, Array.isArray]) {
    const names = Object.keys(fields).filter((name) => isKind(fields[name]));
    for (const [index, name] of names.entries()) {
      const from = names[(picks[index] ?? 0) % names.length];
      if (from !== undefined) fields[name] = fields[from];
    }
  }
  for (const [name, value] of Object.entries(projection ?? {})) {
    if (projection && isDate(value) && (picks[0] ?? 0) % 2 === 0) projection[name] = made.at;
  }
  return { ...fields, ...(projection && { projection }) } as InspectionRecord;
}

t.test('a record with shared lists and dates is serialised byte for byte like superjson', async (t) => {
  fc.assert(
    fc.property(record, fc.array(fc.nat(9), { minLength: 8, maxLength: 8 }), (made, picks) => {
      const shared = withShared(made, picks);
      t.equal(wireOf(shared), superjson.stringify(shared));
    }),
    { numRuns: 1_000 },
  );
});

t.test('a viewer that has missed records receives their number and all present records', async (t) => {
  const clock = new HandClock();
  const recorder = createRecorder({ clock, machines, ringRecords: 10 });
  const door = createActor(doorMachine, { input: {} });
  recorder.observe(door, { id: 'd', parent: null, machine: 'door', title: 'd' });
  door.start();
  const batches: (readonly NumberedRecord[])[] = [];
  recorder.subscribe((batch) => batches.push(batch));
  // All at once, more than the ring holds.
  for (let count = 0; count < 50; count += 1) door.send({ type: 'KNOCK' });
  clock.pass(16);
  t.equal(batches.length, 1);
  const types = batches[0]?.map(({ record }) => record.type);
  t.same(types?.slice(0, 3), ['dropped', 'actor', 'actor']);
  t.same(types?.filter((type) => type === 'transition').length, 10);
  t.ok(batches[0]?.every(({ sequence }) => sequence === recorder.sequence));
  door.send({ type: 'KNOCK' });
  clock.pass(16);
  t.match(batches[1], [{ record: { type: 'transition', step: 51 } }], 'later records follow as usual');
  recorder.close();
  door.stop();
});

t.test('history is retained after the last viewer has left', async (t) => {
  const clock = new HandClock();
  const recorder = createRecorder({ clock, machines });
  const source = createInspectionSource(recorder);
  const door = createActor(doorMachine, { input: {} });
  recorder.observe(door, { id: 'd', parent: null, machine: 'door', title: 'd' });
  door.start();
  const leave = source.subscribe(
    () => {},
    () => {},
  );
  door.send({ type: 'KNOCK' });
  clock.pass(16);
  leave();
  t.equal(recorder.viewers, 0);
  door.send({ type: 'KNOCK' });
  const text = Buffer.concat(source.replay(undefined) as Uint8Array[]).toString();
  t.equal(text.match(/^event: transition$/gm)?.length, 2);
  recorder.close();
  door.stop();
});

t.test('of a thousand actors each has its records, and the whole is bounded', async (t) => {
  const recorder = createRecorder({ machines, ringRecords: 256 });
  const doors = Array.from({ length: 1_000 }, (_, index) => {
    const door = createActor(doorMachine, { input: {} });
    recorder.observe(door, { id: `d${index}`, parent: null, machine: 'door', title: 'd' });
    return door.start();
  });
  for (let round = 0; round < 3; round += 1) for (const door of doors) door.send({ type: 'KNOCK' });
  const records = recorder.snapshot();
  for (const each of records) v.assert(InspectionRecord, each);
  const last = new Map(records.flatMap((each) => (each.type === 'transition' ? [[each.id, each.step]] : [])));
  t.equal(last.size, 1_000);
  t.ok([...last.values()].every((step) => step === 3));
  t.ok(records.length <= 1 + 2_000 + 2_000 + 256, `${records.length} records`);
  recorder.close();
  for (const door of doors) door.stop();
});

const step = fc.record({
  afterMs: fc.nat(1_000),
  event: text,
  source: fc.option(text),
  edges: texts,
  to: texts,
  entered: fc.option(texts),
  actions: texts,
  facts: fc.tuple(fact, fact),
});

t.test('successive transitions are packed without a loss, and those before a lost fact are left out', async (t) => {
  fc.assert(
    fc.property(fc.array(step, { minLength: 1, maxLength: 20 }), texts, fc.nat(9), (steps, begin, lost) => {
      let from = begin;
      let at = 0;
      const records = steps.map(({ afterMs, facts: [a, b], entered, ...rest }, index): TransitionRecord => {
        at += afterMs;
        const before = from;
        from = rest.to;
        const projection = index < lost ? { a, b, lost: 1 } : { a, b };
        const optional = entered === null ? {} : { entered };
        return {
          type: 'transition',
          id: 'x',
          step: index + 3,
          at: new Date(at),
          from: before,
          projection,
          ...optional,
          ...rest,
        };
      });
      const packed = packHistory(records);
      if (packed === null) return false;
      const restored = unpackHistory(superjson.parse(superjson.stringify(packed)));
      t.same(restored, records.slice(lost < records.length ? lost : 0));
      return true;
    }),
  );
  t.equal(packHistory([]), null);
});

t.test(
  'the stream of one actor begins with at most 10 KiB among a thousand, and has no record of another',
  async (t) => {
    const clock = new HandClock();
    const recorder = createRecorder({ clock, machines });
    const source = createInspectionSource(recorder);
    const doors = Array.from({ length: 1_000 }, (_, index) => {
      const door = createActor(doorMachine, { input: {} });
      recorder.observe(door, { id: `d${index}`, parent: null, machine: 'door', title: 'd' });
      return door.start();
    });
    for (const door of doors) door.send({ type: 'KNOCK' });
    for (let round = 1; round < 100; round += 1) doors[7]?.send({ type: 'KNOCK' });
    const textOf = (frames: readonly Uint8Array[]) => Buffer.concat(frames).toString();
    const eventsOf = (text: string) =>
      [...text.matchAll(/^id: (.*)\nevent: (.*)\ndata: (.*)$/gm)].map((match) => match.slice(1));
    const stream = source.ofActor('d7');
    const begin = textOf(stream.replay(undefined));
    t.ok(Buffer.byteLength(begin) <= 10 * 1_024, `${Buffer.byteLength(begin)} bytes`);
    const [[lastId = '', , actor = ''] = [], [, name, history = ''] = []] = eventsOf(begin);
    t.match(superjson.parse(actor), { type: 'actor', id: 'd7', steps: 100 });
    t.equal(name, 'history');
    t.same(unpackHistory(superjson.parse(history)), recorder.history('d7'), 'all its stored transitions');
    t.same(source.ofActor('nobody').replay(undefined), [], 'an unknown actor has no record yet');

    const heard: string[] = [];
    const leave = stream.subscribe(
      (batch) => heard.push(textOf([batch])),
      () => {},
    );
    for (const door of doors.slice(0, 20)) door.send({ type: 'KNOCK' });
    clock.pass(16);
    t.match(
      eventsOf(heard.join('')).map(([, event, data = '']) => [event, superjson.parse(data)]),
      [['transition', { id: 'd7', step: 101 }]],
    );
    t.equal(eventsOf(heard.join('')).length, 1);
    t.equal(textOf(source.ofActor('d7').replay(lastId)), heard.join(''), 'it resumes after its last event');
    t.match(eventsOf(textOf(source.ofActor('d7').replay('another-1')))[0]?.[1], 'dropped', 'else it begins again');
    doors[7]?.stop();
    t.match(
      eventsOf(textOf(source.ofActor('d7').replay(undefined))).map(([, event]) => event),
      ['actor', 'history', 'gone'],
    );
    leave();
    recorder.close();
    for (const door of doors) door.stop();
  },
);

t.test('the beginning of the stream of one actor has as many of its last transitions as fit', async (t) => {
  const recorder = createRecorder({ clock: new HandClock(), machines });
  const door = createActor(doorMachine, { input: {} });
  let round = 0;
  const project = () => ({ text: `${'x'.repeat(400)}${round}` });
  recorder.observe(door, { id: 'd', parent: null, machine: 'door', title: 'd', project });
  door.start();
  for (round = 1; round <= 60; round += 1) door.send({ type: 'KNOCK' });
  const text = Buffer.concat(
    createInspectionSource(recorder).ofActor('d').replay(undefined) as Uint8Array[],
  ).toString();
  t.ok(Buffer.byteLength(text) <= 10 * 1_024);
  const [, history = ''] = /event: history\ndata: (.*)/.exec(text) ?? [];
  const steps = unpackHistory(superjson.parse(history));
  t.ok(steps.length >= 10, `${steps.length} transitions`);
  t.equal(steps.at(-1)?.step, 60);
  recorder.close();
  door.stop();
});
