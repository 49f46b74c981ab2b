/** Details of records: sender, edges, statistics, dead letters and errors. */
import t from 'tap';
import * as v from 'valibot';
import { type AnyActorRef, type AnyStateMachine, assign, createActor, sendTo, setup } from 'xstate';
import { catalogue } from '../../machines/index.ts';
import { createRecorder, graphOf, type RecorderOptions } from '../../src/inspect/index.ts';
import { type ActorRecord, InspectionRecord } from '../../src/protocol/inspection.ts';
import { HandClock } from './hand-clock.ts';
import { doorMachine, lampMachine } from './helpers.ts';

const machines = { door: doorMachine, lamp: lampMachine };

function recording(options: RecorderOptions = {}) {
  const clock = new HandClock();
  const recorder = createRecorder({ clock, machines, ...options });
  t.teardown(() => recorder.close());
  const watch = <A extends AnyActorRef>(actor: A, id: string, machine = 'door'): A => {
    recorder.observe(actor, { id, parent: null, machine, title: id });
    // The timers of the actor would hold the process for a minute.
    t.teardown(() => actor.stop());
    return actor;
  };
  const actors = () => recorder.snapshot().filter((record): record is ActorRecord => record.type === 'actor');
  return { clock, recorder, watch, actors };
}

const door = () => createActor(doorMachine, { input: {} });

t.test('a transition names the sender of its event if that is an observed actor', async (t) => {
  const { recorder, watch } = recording();
  const front = watch(door(), 'front').start();
  front.send({ type: 'BLINK' });
  t.match(recorder.history('front'), [{ event: 'BLINK', source: null }], 'from outside');
  t.match(recorder.history('front/lamp'), [{ event: 'BLINK', source: 'front' }]);
  front.send({ type: 'OPEN' });
  t.match(
    recorder.history('front').slice(1),
    [
      { event: 'OPEN', source: null },
      { event: 'always', source: null },
    ],
    'from itself',
  );
});

t.test('an event of another root has that sender, also after a wait and between other events', async (t) => {
  const { recorder, watch } = recording();
  const receiver = watch(door(), 'receiver');
  const sender = setup({ types: { events: {} as { type: 'GO' } } }).createMachine({
    id: 'sender',
    on: { GO: { actions: sendTo(receiver as AnyActorRef, { type: 'KNOCK' }) } },
  });
  const go = watch(createActor(sender), 'sender', 'sender').start();
  receiver.send({ type: 'KNOCK' });
  // Both events wait until the receiver is started.
  go.send({ type: 'GO' });
  receiver.start();
  receiver.send({ type: 'KNOCK' });
  t.same(
    recorder.history('receiver').map(({ source }) => source),
    [null, 'sender', null],
  );
});

t.test('the edges of a transition are those of the chart', async (t) => {
  const { recorder, watch } = recording();
  const front = watch(door(), 'd').start();
  for (const type of ['KNOCK', 'OPEN', 'KNOCK', 'OPEN', 'BREAK'] as const) front.send({ type });
  const edges = new Map(graphOf('door', doorMachine).edges.map((edge) => [edge.id, edge]));
  const edgesTaken = recorder.history('d').map((record) => record.edges.map((id) => edges.get(id)));
  t.match(edgesTaken, [
    [{ source: 'shut', target: 'shut', event: 'KNOCK', internal: true }],
    [{ source: 'shut', target: 'ajar', event: 'OPEN', guard: 'isPatient' }],
    [{ source: 'ajar', target: 'open', event: 'always' }],
    [
      { source: 'open.hinge.dry', target: 'open.hinge.oiled', event: 'KNOCK' },
      { source: 'open.bolt.out', target: 'open.bolt.in', event: 'KNOCK' },
    ],
    [{ source: 'open', target: 'open', event: 'OPEN' }],
    [{ source: '', target: 'broken', event: 'BREAK' }],
  ]);
});

t.test('the taken transitions of XState (its private `_transitions`) have the ids of the graph', async (t) => {
  for (const [name, machine] of Object.entries({ ...catalogue, door: doorMachine })) {
    const ids = new Set(graphOf(name, machine).edges.map(({ id }) => id));
    const { recorder } = recording();
    // Any input will do: the test compares the names of transitions only.
    const actor = createActor(machine as AnyStateMachine, { input: { policy: {}, seed: 1 } });
    actor.subscribe({ error: () => {} });
    recorder.observe(actor, { id: name, parent: null, machine: name, title: name });
    actor.start();
    for (const type of (machine as AnyStateMachine).events) actor.send({ type });
    const edgesTaken = recorder.history(name).flatMap((record) => record.edges);
    t.ok(
      edgesTaken.every((id) => ids.has(id)),
      `${name}: ${edgesTaken.length} edges`,
    );
    t.ok(
      recorder.history(name).every((record) => record.edges.length > 0 && record.event !== 'transition'),
      `${name}: no step is unexplained`,
    );
    actor.stop();
  }
});

t.test('visits and times are counted per state up to the last transition', async (t) => {
  const { clock, watch, actors } = recording();
  const front = watch(door(), 'd').start();
  clock.pass(100);
  front.send({ type: 'KNOCK' });
  clock.pass(20);
  front.send({ type: 'OPEN' });
  clock.pass(7);
  front.send({ type: 'OPEN' });
  clock.pass(3);
  front.send({ type: 'CLOSE' });
  clock.pass(1_000);
  const [actor] = actors();
  t.equal(actor?.steps, 5);
  t.equal(actor?.since.getTime(), 1_130, 'the knock changed nothing');
  t.match(actor?.statistics, {
    shut: { visits: 2, ms: 120 },
    ajar: { visits: 1, ms: 0 },
    open: { visits: 2, ms: 10 },
    'open.hinge.dry': { visits: 2, ms: 10 },
  });
  t.notOk(actor && 'broken' in actor.statistics, 'a state never entered has no statistics');
  front.stop();
  t.match(actors()[0], { statistics: { shut: { visits: 2, ms: 1_120 } } }, 'up to its end');
});

t.test('a re-entered state is recorded as entered', async (t) => {
  const { recorder, watch } = recording();
  const front = watch(door(), 'd').start();
  front.send({ type: 'OPEN' });
  front.send({ type: 'OPEN' });
  const [, , again] = recorder.history('d');
  t.same(again?.from, again?.to);
  t.same(again?.entered, again?.to);
});

t.test('an event for an actor that has ended is a dead letter that names it', async (t) => {
  const { recorder, watch } = recording();
  const front = watch(door(), 'd').start();
  front.send({ type: 'BREAK' });
  front.send({ type: 'KNOCK', secret: 'SECRET' });
  (front as AnyActorRef).send({ type: 'CUSTOM.SECRET' });
  const letters = recorder.snapshot().filter((record) => record.type === 'deadLetter');
  t.match(letters, [
    { id: 'd', event: 'KNOCK', source: null },
    { id: 'd', event: '(unknown)', source: null },
  ]);
  for (const letter of letters) v.assert(InspectionRecord, letter);
  t.notMatch(JSON.stringify(recorder.snapshot()), 'SECRET');
});

t.test('a dead letter names its sender, and is retained after the records of its actor', async (t) => {
  const { recorder, watch, actors } = recording({ endedActors: 1 });
  const receiver = watch(door(), 'receiver').start();
  const sender = setup({ types: { events: {} as { type: 'GO' } } }).createMachine({
    id: 'sender',
    on: { GO: { actions: sendTo(receiver as AnyActorRef, { type: 'KNOCK' }) } },
  });
  const go = watch(createActor(sender), 'sender', 'sender').start();
  receiver.stop();
  watch(door(), 'other').start().stop();
  go.send({ type: 'GO' });
  t.notOk(actors().some(({ id }) => id === 'receiver'));
  t.match(
    recorder.snapshot().filter(({ type }) => type === 'deadLetter'),
    [{ id: 'receiver', source: 'sender' }],
  );
});

const fragile = setup({
  types: { context: {} as { count: number }, events: {} as { type: 'FAIL' | 'ASK' } },
  actions: {
    throwUp: () => {
      throw new Error('refused: ws://host/ws?token=abcdef, Authorization: Bearer ghijkl');
    },
    count: assign({ count: ({ context }) => context.count + 1 }),
  },
}).createMachine({
  id: 'fragile',
  context: { count: 0 },
  initial: 'well',
  states: { well: { on: { FAIL: { actions: 'throwUp' }, ASK: { actions: 'count' } } } },
});

t.test('an actor that throws is gone with its error, without credentials', async (t) => {
  const { recorder, watch } = recording();
  const actor = createActor(fragile);
  actor.subscribe({ error: () => {} });
  watch(actor, 'f', 'fragile').start();
  actor.send({ type: 'FAIL' });
  t.match(
    recorder.snapshot().filter(({ type }) => type === 'gone'),
    [{ id: 'f', error: 'refused: ws://host/ws?token=…, Authorization: Bearer …' }],
  );
  actor.send({ type: 'ASK' });
  t.match(recorder.snapshot().at(-1), { type: 'deadLetter', id: 'f', event: 'ASK' });
});

t.test('a child that throws is gone with its error, with and without a handler in its parent', async (t) => {
  for (const minds of [true, false]) {
    const parent = setup({ actors: { fragile }, types: { events: {} as { type: 'HURT' } } }).createMachine({
      id: 'parent',
      initial: 'one',
      invoke: { id: 'child', src: 'fragile', ...(minds && { onError: '.two' }) },
      on: { HURT: { actions: sendTo('child', { type: 'FAIL' }) } },
      states: { one: {}, two: {} },
    });
    const { recorder, watch } = recording({ machines: { fragile } });
    const actor = createActor(parent);
    actor.subscribe({ error: () => {} });
    watch(actor, 'p', 'parent').start();
    actor.send({ type: 'HURT' });
    const gone = recorder.snapshot().filter(({ type }) => type === 'gone');
    t.match(gone[0], { id: 'p/child', error: /^refused/ });
    t.equal(gone.length, minds ? 1 : 2);
    if (minds) t.match(recorder.history('p').at(-1), { event: 'error(child)', source: 'p/child', to: ['two'] });
    else t.match(gone[1], { id: 'p', error: /^refused/ });
    actor.stop();
  }
});

t.test('any thrown value is recorded as an error, also undefined', async (t) => {
  for (const thrown of [undefined, null, 0, { token: 'SECRET' }, 'password=hunter2 is wrong']) {
    const { recorder, watch } = recording();
    const front = watch(door(), 'd').start();
    (front as unknown as { _error(error: unknown): void })._error(thrown);
    const gone = recorder.snapshot().find((record) => record.type === 'gone' && record.id === 'd');
    t.match(gone, { error: thrown === 'password=hunter2 is wrong' ? 'password=… is wrong' : 'unknown error' });
  }
});

t.test('the latest ended actors are retained with their records', async (t) => {
  const { clock, recorder, watch, actors } = recording({ endedActors: 3 });
  for (let count = 1; count <= 5; count += 1) {
    const front = watch(door(), `d${count}`);
    front.start();
    front.send({ type: 'KNOCK' });
    clock.pass(5);
    front.stop();
  }
  t.same(
    actors().map(({ id }) => id),
    ['d4', 'd5', 'd5/lamp'],
    'the parent of a retained actor is retained',
  );
  const story = recorder.snapshot().filter((record) => 'id' in record && record.id === 'd5');
  t.match(story, [
    { type: 'actor', endedAt: Date, steps: 1 },
    { type: 'transition', event: 'KNOCK' },
    { type: 'gone' },
  ]);
});

t.test('the records of an ended actor are retained after they have left the ring', async (t) => {
  const { recorder, watch } = recording({ ringRecords: 64 });
  const brief = watch(door(), 'brief').start();
  brief.send({ type: 'KNOCK' });
  brief.stop();
  const busy = watch(door(), 'busy').start();
  for (let count = 0; count < 1_000; count += 1) busy.send({ type: 'KNOCK' });
  const records = recorder.snapshot();
  t.match(
    records.filter((record) => 'id' in record && record.id === 'brief').map(({ type }) => type),
    ['actor', 'transition', 'gone'],
  );
  const steps = records.flatMap((record) =>
    record.type === 'transition' && record.id === 'busy' ? [record.step] : [],
  );
  t.equal(steps.at(-1), 1_000);
  t.same(
    steps,
    steps.map((_, index) => (steps[0] ?? 0) + index),
    'without gaps, none twice',
  );
});

t.test('an actor created again under its id has the number of restarts', async (t) => {
  const { watch, actors } = recording();
  for (let count = 0; count < 3; count += 1) {
    const front = watch(door(), 'd').start();
    if (count < 2) front.stop();
  }
  t.equal(actors().find(({ id }) => id === 'd')?.restarts, 2);
  t.notOk(actors().find(({ id }) => id === 'd')?.endedAt);
});

t.test('the id of each machine is its name in the catalogue', async (t) => {
  for (const [name, machine] of Object.entries(catalogue)) t.equal(machine.id, name);
});
