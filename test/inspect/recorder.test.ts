import fc from 'fast-check';
import superjson from 'superjson';
import t from 'tap';
import * as v from 'valibot';
import { type AnyActorRef, createActor, fromPromise } from 'xstate';
import { catalogue } from '../../machines/index.ts';
import {
  createInspectionSource,
  createRecorder,
  projections,
  type RecorderOptions,
  withoutCredentials,
} from '../../src/inspect/index.ts';
import { InspectionRecord } from '../../src/protocol/inspection.ts';
import { HandClock } from './hand-clock.ts';
import { doorMachine, lampMachine } from './helpers.ts';

const machines = { door: doorMachine, lamp: lampMachine };

function watchDoor(options: RecorderOptions & { secret?: string; project?: (context: never) => never } = {}) {
  const clock = new HandClock();
  const recorder = createRecorder({ clock, machines, ...options });
  const door = createActor(doorMachine, { input: options.secret === undefined ? {} : { secret: options.secret } });
  const end = recorder.observe(door, {
    id: 'd',
    parent: 'house',
    machine: 'door',
    title: 'Front door',
    ...(options.project && { project: options.project }),
  });
  t.teardown(() => {
    recorder.close();
    door.stop();
  });
  return { clock, recorder, door, end };
}

t.test('transitions of earlier processes, and a break after them, precede those of this one', async (t) => {
  const recorder = createRecorder({ clock: new HandClock(), machines, actorRingRecords: 3 });
  t.teardown(() => recorder.close());
  const door = createActor(doorMachine, { input: {} });
  const [shut, open] = [['shut'], ['open', 'open.bolt']];
  const earlier = [
    { at: new Date(1), event: 'OPEN', from: shut, to: open },
    { at: new Date(2), event: 'CLOSE', from: open, to: shut },
    { at: new Date(3), event: 'OPEN', from: shut, to: open },
  ];
  const place = { id: 'd', parent: null, machine: 'door', title: 'Front door' };
  recorder.observe(door, { ...place, past: { steps: earlier, endedAt: 9 } });
  t.match(recorder.actor('d'), { steps: 4, states: shut });
  door.start();
  door.send({ type: 'OPEN' });
  const transitions = recorder.snapshot().filter((record) => record.type === 'transition' && record.id === 'd');
  for (const record of transitions) v.assert(InspectionRecord, record);
  t.match(transitions, [
    ...earlier.map((step, index) => ({ ...step, step: index + 1 })),
    { step: 4, at: new Date(9), event: 'process.ended', from: open, to: shut },
    { step: 5, event: 'OPEN', from: shut, to: ['ajar'] },
    { step: 6, from: ['ajar'] },
  ]);
  t.match(
    recorder.history('d').map(({ step }) => step),
    [4, 5, 6],
    'the latest ones are the history',
  );
  door.send({ type: 'CLOSE' });
  t.match(
    recorder.history('d', 5).map(({ step }) => step),
    [6, 7],
    'after a position',
  );
});

t.test('every step is recorded in order, with states, actions and readable events', async (t) => {
  const { recorder, door } = watchDoor({ projections: { door: ({ knocks }: { knocks: number }) => ({ knocks }) } });
  door.start();
  door.send({ type: 'KNOCK' });
  door.send({ type: 'OPEN' });
  door.send({ type: 'KNOCK' });
  door.send({ type: 'OPEN' });
  door.send({ type: 'CLOSE' });
  const records = recorder.snapshot();
  for (const record of records) v.assert(InspectionRecord, record);
  t.match(records.slice(0, 2), [
    {
      type: 'actor',
      id: 'd',
      parent: 'house',
      machine: 'door',
      title: 'Front door',
      states: ['shut'],
      projection: { knocks: 1 },
    },
    { type: 'actor', id: 'd/lamp', parent: 'd', machine: 'lamp', title: 'lamp', states: ['dark'], projection: {} },
  ]);
  const open = ['open', 'open.hinge', 'open.hinge.dry', 'open.bolt', 'open.bolt.out'];
  const oiled = ['open', 'open.hinge', 'open.hinge.oiled', 'open.bolt', 'open.bolt.in'];
  const steps = recorder.history('d').map(({ step, event, from, to, actions }) => ({ step, event, from, to, actions }));
  t.same(steps, [
    { step: 1, event: 'KNOCK', from: ['shut'], to: ['shut'], actions: ['count', 'keepSecret'] },
    { step: 2, event: 'OPEN', from: ['shut'], to: ['ajar'], actions: ['sigh', 'keepSecret', 'squeak'] },
    { step: 3, event: 'always', from: ['ajar'], to: open, actions: ['squeak', 'squeak'] },
    { step: 4, event: 'KNOCK', from: open, to: oiled, actions: [] },
    { step: 5, event: 'OPEN', from: oiled, to: open, actions: ['sigh', 'squeak'] },
    { step: 6, event: 'CLOSE', from: open, to: ['shut'], actions: ['sigh'] },
  ]);
});

t.test('machines below a root have their own records, other children do not', async (t) => {
  const { recorder, door } = watchDoor();
  door.start();
  door.send({ type: 'BLINK' });
  door.send({ type: 'OPEN' });
  t.match(recorder.history('d/lamp'), [{ id: 'd/lamp', event: 'BLINK', from: ['dark'], to: ['lit'] }]);
  const actors = recorder.snapshot().filter((record) => record.type === 'actor');
  t.same(
    actors.map((record) => record.id),
    ['d', 'd/lamp'],
    'the invoked promise is not reported',
  );
});

t.test('a stopped, finished or failed actor and all actors below it are recorded as gone', async (t) => {
  for (const finish of ['stop', 'done', 'error'] as const) {
    const faults: unknown[] = [];
    const { recorder, door, clock } = watchDoor({ onFault: (error) => faults.push(error) });
    const gone: string[] = [];
    recorder.subscribe((records) => {
      for (const { record } of records) if (record.type === 'gone') gone.push(record.id);
    });
    door.start();
    if (finish === 'stop') door.stop();
    else if (finish === 'done') door.send({ type: 'BREAK' });
    else (door as unknown as { _error(error: unknown): void })._error(new Error('died'));
    clock.pass(20);
    t.same(gone.sort(), ['d', 'd/lamp'], finish);
    t.match(
      recorder.snapshot().filter((record) => record.type === 'actor'),
      [
        { id: 'd', endedAt: Date },
        { id: 'd/lamp', endedAt: Date },
      ],
      `${finish}: it is shown with its end`,
    );
    t.same(faults, [], 'the failure of an actor is not a fault of the recorder');
  }
});

t.test('an actor that starts again under its id replaces the former one', async (t) => {
  const { recorder, door, end } = watchDoor();
  door.start();
  door.send({ type: 'KNOCK' });
  const second = createActor(doorMachine, { input: {} });
  recorder.observe(second, { id: 'd', parent: null, machine: 'door', title: 'Again' });
  second.start();
  t.equal(recorder.history('d').length, 0);
  door.send({ type: 'KNOCK' });
  t.equal(recorder.history('d').length, 0, 'the former actor is ignored');
  end();
  t.match(recorder.snapshot()[0], { id: 'd', title: 'Again' }, 'the end of the former watch leaves the new one');
});

t.test('a fault in projection, listener or fault handler never reaches the actor', async (t) => {
  let faults = 0;
  const { recorder, door, clock } = watchDoor({
    project: () => {
      throw new Error('projection');
    },
    onFault: () => {
      faults += 1;
      throw new Error('handler');
    },
  });
  const gone: string[] = [];
  recorder.subscribe(() => {
    throw new Error('listener');
  });
  recorder.subscribe((records) => gone.push(...records.map(({ record }) => record.type)));
  door.start();
  door.send({ type: 'KNOCK' });
  door.send({ type: 'OPEN' });
  clock.pass(20);
  door.send({ type: 'CLOSE' });
  clock.pass(20);
  t.equal(door.getSnapshot().value, 'shut', 'the actor continues');
  t.equal(door.getSnapshot().status, 'active');
  t.same(
    recorder.history('d').map((record) => record.projection),
    [{}, {}, {}, {}],
  );
  t.ok(gone.filter((type) => type === 'transition').length >= 4, 'the other listener is gone');
  t.ok(faults > 0);
});

t.test('a broken inspection event from XState never reaches the actor', async (t) => {
  const faults: unknown[] = [];
  const { door } = watchDoor({ onFault: (error) => faults.push(error) });
  door.start();
  const system = door.system as unknown as { _sendInspectionEvent(event: unknown): void };
  t.doesNotThrow(() => system._sendInspectionEvent({ type: '@xstate.microstep', actorRef: null }));
  t.doesNotThrow(() => system._sendInspectionEvent({ type: '@xstate.snapshot', actorRef: { getSnapshot: null } }));
  t.ok(faults.length > 0);
  door.send({ type: 'OPEN' });
  t.ok(door.getSnapshot().matches('open'));
});

t.test('without XState’s private list of transitions a record has the states', async (t) => {
  const { recorder, door } = watchDoor();
  door.start();
  const system = door.system as unknown as { _sendInspectionEvent(event: object): void };
  const send = system._sendInspectionEvent;
  const inner = door as unknown as { _actorScope: { system: { _sendInspectionEvent(event: object): void } } };
  inner._actorScope.system._sendInspectionEvent = (event) => send({ ...event, _transitions: undefined });
  door.send({ type: 'OPEN' });
  t.match(recorder.history('d'), [
    { from: ['shut'], to: ['ajar'], actions: [] },
    { from: ['ajar'], actions: [] },
  ]);
});

t.test('rings are bounded, and a late viewer receives the number of missing records', async (t) => {
  const { recorder, door } = watchDoor({ ringRecords: 10, actorRingRecords: 4 });
  door.start();
  for (let count = 0; count < 100; count += 1) door.send({ type: 'KNOCK' });
  t.equal(recorder.history('d').length, 4);
  t.equal(recorder.history('d').at(-1)?.step, 100);
  const records = recorder.snapshot();
  t.match(records[0], { type: 'dropped', count: 92 });
  t.same(
    records.map((record) => record.type),
    ['dropped', 'actor', 'actor', ...Array<string>(10).fill('transition')],
  );
  t.equal(recorder.since(recorder.sequence)?.length, 0);
  t.equal(recorder.since(recorder.sequence - 10)?.length, 10);
  t.equal(recorder.since(recorder.sequence - 11), undefined, 'no longer held');
  t.equal(recorder.since(recorder.sequence + 1), undefined, 'never was');
});

t.test('records are batched for 16 ms, and no timer is set without a viewer', async (t) => {
  const { recorder, door, clock } = watchDoor();
  door.start();
  t.equal(clock.armed, 0);
  const batches: number[] = [];
  const unsubscribe = recorder.subscribe((records) => batches.push(records.length));
  for (let count = 0; count < 5; count += 1) door.send({ type: 'KNOCK' });
  clock.pass(15);
  t.same(batches, []);
  clock.pass(1);
  t.same(batches, [5]);
  door.send({ type: 'KNOCK' });
  recorder.snapshot();
  t.same(batches, [5, 1], 'a snapshot sends pending records first');
  unsubscribe();
  door.send({ type: 'KNOCK' });
  t.equal(clock.armed, 0);
});

t.test('no record has a secret of a context or an event', async () => {
  const marker = 'SECRET-b64f2c';
  await fc.assert(
    fc.property(fc.array(fc.constantFrom('OPEN', 'CLOSE', 'KNOCK', 'BLINK', 'CUSTOM'), { maxLength: 20 }), (types) => {
      const recorder = createRecorder({
        machines,
        // A careless projection: whole objects are cut out as well.
        projections: { door: (context: { knocks: number }) => ({ knocks: context.knocks, all: context as never }) },
      });
      const source = createInspectionSource(recorder);
      const frames: Uint8Array[] = [];
      source.subscribe(
        (batch) => frames.push(batch),
        () => {},
      );
      const door = createActor(doorMachine, { input: { secret: marker } });
      recorder.observe(door, { id: 'd', parent: null, machine: 'door', title: 'd' });
      door.start();
      for (const type of types) {
        const name = type === 'CUSTOM' ? `CUSTOM.${marker}` : type;
        (door as AnyActorRef).send({ type: name, secret: marker, deep: { [marker]: marker } });
      }
      frames.push(...source.replay(undefined));
      door.stop();
      const everything = [
        superjson.stringify(recorder.snapshot()),
        ...frames.map((frame) => Buffer.from(frame).toString()),
      ];
      recorder.close();
      return everything.every((text) => !text.includes(marker));
    }),
    { numRuns: 60 },
  );
});

t.test('the projections of the catalogue show plain facts and redact credentials in errors', async (t) => {
  t.same(Object.keys(projections).sort(), Object.keys(catalogue).sort(), 'each machine of the catalogue has one');
  t.equal(withoutCredentials(null), null);
  t.equal(
    withoutCredentials('ws://127.0.0.1:1/ws?token=abc&x=1 refused, Authorization: Bearer xyz'),
    'ws://127.0.0.1:1/ws?token=…&x=1 refused, Authorization: Bearer …',
  );
});

t.test('an actor without a statechart is refused', async (t) => {
  const recorder = createRecorder();
  const actor = createActor(fromPromise(async () => 1));
  t.throws(() => recorder.observe(actor, { id: 'p', parent: null, machine: 'p', title: 'p' }), { name: 'TypeError' });
});

t.test('the stream resumes by id, restarts for an unknown id, and ends with the recorder', async (t) => {
  const { recorder, door, clock } = watchDoor({ ringRecords: 8 });
  const source = createInspectionSource(recorder);
  const parse = (frames: readonly Uint8Array[]) =>
    Buffer.concat(frames)
      .toString()
      .split('\n\n')
      .filter(Boolean)
      .map((frame) => {
        const [id = '', event = '', data = ''] = frame.split('\n').map((line) => line.replace(/^\w+: /, ''));
        return { id, event, record: v.parse(InspectionRecord, superjson.parse(data)) };
      });
  door.start();
  door.send({ type: 'KNOCK' });
  const first = parse(source.replay(undefined));
  t.same(
    first.map(({ event }) => event),
    ['actor', 'actor', 'transition'],
  );
  t.ok(first.every(({ event, record }) => event === record.type && record.at instanceof Date));
  const lastId = first.at(-1)?.id;

  const batches: Uint8Array[] = [];
  let ended = 0;
  source.subscribe(
    (batch) => batches.push(batch),
    () => (ended += 1),
  );
  source.subscribe(
    (batch) => batches.push(batch),
    () => (ended += 1),
  );
  t.equal(recorder.viewers, 1, 'serialised once for all viewers');
  door.send({ type: 'KNOCK' });
  clock.pass(16);
  t.equal(batches.length, 2);
  t.equal(batches[0], batches[1]);

  t.same(
    parse(source.replay(lastId)).map(({ event }) => event),
    ['transition'],
    'what was missed, no more',
  );
  t.same(source.replay(parse(batches.slice(0, 1)).at(-1)?.id), [], 'nothing was missed');
  const other = parse(source.replay('another-epoch-7')).map(({ event }) => event);
  t.same(other, ['dropped', 'actor', 'actor', 'transition', 'transition']);
  for (let count = 0; count < 20; count += 1) door.send({ type: 'KNOCK' });
  t.match(
    parse(source.replay(lastId)).slice(0, 3),
    [{ event: 'dropped' }, { event: 'actor' }, { event: 'actor' }],
    'too slow',
  );

  recorder.close();
  t.equal(ended, 2);
});
