import t from 'tap';
import {
  type AnyActorRef,
  assign,
  createActor,
  createMachine,
  fromCallback,
  fromEventObservable,
  fromObservable,
  fromPromise,
  fromTransition,
  setup,
} from 'xstate';
import { createWatch } from '../../src/inspector/watch.ts';
import { HandClock } from '../inspect/hand-clock.ts';

const toggle = createMachine({
  id: 'toggle',
  initial: 'off',
  states: { off: { on: { FLIP: 'on' } }, on: { on: { FLIP: 'off', FAIL: { actions: () => fail() } } } },
});
const fail = () => {
  throw new Error('it broke');
};

function watch() {
  const faults: unknown[] = [];
  const made = createWatch({ onFault: (error) => faults.push(error) }, new HandClock());
  const actors = () =>
    made.recorder
      .snapshot()
      .flatMap((record) => (record.type === 'actor' ? [[record.title, record.machine, record.states.join()]] : []));
  return { ...made, actors, faults };
}

t.test('an actor that is created but never started is not shown', async (t) => {
  const { inspect, actors, recorder } = watch();
  const idle = createActor(toggle, { inspect });
  idle.send({ type: 'FLIP' });
  t.strictSame(actors(), []);
  const started = createActor(toggle, { inspect, id: 'mine' }).start();
  t.strictSame(actors(), [['mine', 'toggle', 'off']]);
  started.stop();
  t.match(recorder.snapshot().at(-1), { type: 'gone', id: '1' });
});

t.test('a child of an actor that never starts is not shown', async (t) => {
  const { inspect, actors } = watch();
  createActor(createMachine({ invoke: { src: toggle } }), { inspect });
  t.strictSame(actors(), []);
});

t.test('an actor that React restarts in Strict Mode is shown as one actor', async (t) => {
  const { inspect, recorder, faults } = watch();
  const parent = setup({ actors: { toggle } }).createMachine({ id: 'parent', invoke: { id: 'child', src: 'toggle' } });
  const actor = createActor(parent, { inspect }).start();
  rehydrate(actor);
  actor.start();
  actor.getSnapshot().children['child']?.send({ type: 'FLIP' });
  const shown = recorder.snapshot().filter((record) => record.type === 'actor');
  t.match(shown, [
    { id: '1', states: [], endedAt: undefined, restarts: undefined },
    { id: '1/child', states: ['on'], endedAt: undefined, restarts: undefined },
  ]);
  t.equal(recorder.history('1/child').length, 1, 'each step is recorded once');
  t.strictSame(faults, []);
});

t.test('with an XState whose inspection cannot be ended, a restarted actor has each step once', async (t) => {
  const { inspect, recorder, faults } = watch();
  const actor = createActor(toggle, { inspect });
  const { system } = actor as AnyActorRef;
  const { inspect: watchSystem } = system;
  Object.assign(system, { inspect: (observer: Parameters<typeof watchSystem>[0]) => void watchSystem(observer) });
  actor.start();
  rehydrate(actor);
  actor.start();
  actor.send({ type: 'FLIP' });
  t.match(recorder.history('1'), [{ event: 'FLIP', to: ['on'] }]);
  t.equal(recorder.history('1').length, 1);
  t.strictSame(faults, []);
});

/** Stops an actor so that it can be started again, as `useActorRef` of @xstate/react does. */
function rehydrate(root: AnyActorRef): void {
  interface Inner extends AnyActorRef {
    observers: Set<unknown>;
    _snapshot: unknown;
    _processingStatus: number;
  }
  const all: { readonly ref: Inner; readonly snapshot: unknown }[] = [];
  const collect = (ref: Inner) => {
    const snapshot = ref.getSnapshot() as { readonly children?: Readonly<Record<string, Inner>> };
    all.push({ ref, snapshot });
    ref.observers = new Set();
    for (const child of Object.values(snapshot.children ?? {})) collect(child);
  };
  collect(root as Inner);
  root.stop();
  for (const { ref, snapshot } of all) {
    ref._processingStatus = 0;
    ref._snapshot = snapshot;
  }
}

t.test('an unobserved error of an actor is reported in the same way as without the inspector', async (t) => {
  const { inspect, recorder } = watch();
  const actor = createActor(toggle, { inspect }).start();
  actor.send({ type: 'FLIP' });
  // XState rethrows it from a timer.
  const uncaught = new Promise((resolve) => {
    const before = process.listeners('uncaughtException');
    process.removeAllListeners('uncaughtException');
    process.once('uncaughtException', (error) => {
      for (const listener of before) process.on('uncaughtException', listener);
      resolve(error);
    });
  });
  actor.send({ type: 'FAIL' });
  t.match(await uncaught, { message: 'it broke' });
  t.match(recorder.snapshot().at(-1), { type: 'gone', id: '1', error: 'it broke' });
});

t.test('promises, callbacks, observables and transition functions are shown with their kind', async (t) => {
  const { inspect, recorder, graphOf, faults } = watch();
  const values = {
    subscribe: (observer: { next(value: number): void }) => {
      observer.next(7);
      return { unsubscribe() {} };
    },
  };
  const parent = setup({
    actors: {
      pay: fromPromise(async ({ input }: { input: { amount: number } }) => `paid ${input.amount}`),
      fail: fromPromise(async () => fail()),
      listen: fromCallback(() => {}),
      values: fromObservable(() => values as never),
      events: fromEventObservable(() => ({ subscribe: () => ({ unsubscribe() {} }) })),
      sum: fromTransition((sum: number, event: { type: 'ADD'; by: number }) => sum + event.by, 1),
    },
  }).createMachine({
    id: 'parent',
    invoke: [
      { id: 'pay', src: 'pay', input: { amount: 3 }, onDone: { actions: assign({}) } },
      { id: 'fail', src: 'fail', onError: { actions: assign({}) } },
      { id: 'listen', src: 'listen' },
      { id: 'values', src: 'values' },
      { id: 'events', src: 'events' },
      { id: 'sum', src: 'sum' },
    ],
  });
  const actor = createActor(parent, { inspect }).start();
  const { children } = actor.getSnapshot();
  (children['sum'] as AnyActorRef).send({ type: 'ADD', by: 4 });
  (children['listen'] as AnyActorRef).send({ type: 'PING' });
  await new Promise((resolve) => setImmediate(resolve));

  const kinds = recorder
    .snapshot()
    .flatMap((record) => (record.type === 'actor' ? [[record.title, record.machine]] : []));
  t.strictSame(kinds.slice(1), [
    ['pay', 'promise'],
    ['fail', 'promise'],
    ['listen', 'callback'],
    ['values', 'observable'],
    ['events', 'event observable'],
    ['sum', 'transition'],
  ]);
  t.match(recorder.actor('1/pay'), { states: ['done'], projection: { output: 'paid 3' }, endedAt: Date });
  t.match(recorder.history('1/pay'), [{ event: 'done', from: ['active'], to: ['done'] }]);
  t.match(recorder.actor('1/fail'), { endedAt: Date });
  t.ok(recorder.snapshot().some((record) => record.type === 'gone' && record.error === 'it broke'));
  t.match(recorder.history('1/listen'), [{ event: 'PING', to: ['active'] }]);
  t.match(recorder.actor('1/sum'), { states: ['active'], projection: { context: 5 } });
  t.match(recorder.actor('1/values'), { projection: { context: 7 } });
  t.match(graphOf('promise'), { nodes: [{ label: 'promise' }, { id: 'active' }, { id: 'done' }, { id: 'failed' }] });
  t.strictSame(faults, []);
  actor.stop();
});

t.test('a promise or a transition function as root is shown with its kind', async (t) => {
  const { inspect, recorder } = watch();
  const promise = createActor(
    fromPromise(async () => 5),
    { inspect, id: 'root promise' },
  ).start();
  createActor(
    fromTransition((state: object) => state, {}),
    { inspect },
  ).start();
  await new Promise<void>((resolve) => promise.subscribe({ complete: resolve }));
  t.match(recorder.snapshot().slice(0, 2), [
    { title: 'root promise', machine: 'promise', states: ['done'], projection: { output: 5 } },
    { title: 'transition', machine: 'transition', states: ['active'] },
  ]);
});

t.test('different machines with one id have separate charts, and variants of a machine share a chart', async (t) => {
  const { inspect, actors, graphOf } = watch();
  const other = createMachine({ id: 'toggle', meta: { secret: 1 } });
  for (const machine of [toggle, other, toggle.provide({}), other]) createActor(machine, { inspect }).start();
  t.strictSame(
    actors().map(([, machine]) => machine),
    ['toggle', 'toggle 2', 'toggle', 'toggle 2'],
  );
  t.notMatch(JSON.stringify(graphOf('toggle 2')), /secret/);
});

t.test('a hostile context breaks neither the actor nor the recorder', async (t) => {
  const { inspect, recorder, faults } = watch();
  const circular: Record<string, unknown> = {};
  circular['self'] = circular;
  const context = {
    circular,
    huge: Array.from({ length: 1_000_000 }, (_, index) => index),
    run: () => {},
    big: 1n,
    user: {
      get trap(): never {
        throw new Error('no');
      },
    },
  };
  const machine = createMachine({
    id: 'hostile',
    context: () => context,
    on: { GO: { actions: assign(() => context) } },
  });
  const actor = createActor(machine, { inspect }).start();
  actor.send({ type: 'GO' });
  t.match(recorder.actor('1')?.projection, { big: '1n', run: 'ƒ run', user: '{trap: (getter)}' });
  t.strictSame(faults, []);
  t.equal(actor.getSnapshot().status, 'active');
});
