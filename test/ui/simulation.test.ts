/** The copy of an actor that the page steps: it follows XState where everything is known, and asks where it is not. */
import t from 'tap';
import { type AnyMachineSnapshot, type AnyStateMachine, assign, createMachine, setup, transition } from 'xstate';
import { catalogue } from '../../machines/index.ts';
import { graphOf, transitionsOf } from '../../src/inspect/graph.ts';
import { eventName } from '../../src/inspect/names.ts';
import {
  advance,
  begin,
  choose,
  eventsOf,
  send,
  statesOf,
  timersOf,
} from '../../src/ui/views/actors/simulation/engine.ts';
import { attempt, changedBy, partlyKnown } from '../../src/ui/views/actors/simulation/known.ts';

const counter = setup({
  types: {
    context: {} as { readonly count: number; readonly secret: string },
    events: {} as
      | { readonly type: 'ADD' }
      | { readonly type: 'TRY' }
      | { readonly type: 'LEARN'; readonly secret: string },
  },
  guards: {
    isFull: ({ context }) => context.count >= 2,
    isRight: ({ context }) => context.secret === 'x',
  },
  actions: {
    add: assign({ count: ({ context }) => context.count + 1 }),
    learn: assign(({ event }) => ('secret' in event ? { secret: event.secret, count: 0 } : {})),
  },
  delays: { pause: 5_000, hidden: ({ context }) => context.secret.length },
}).createMachine({
  id: 'counter',
  context: { count: 0, secret: '' },
  initial: 'open',
  states: {
    open: {
      initial: 'idle',
      on: { ADD: [{ guard: 'isFull', target: 'full' }, { actions: 'add' }], LEARN: { actions: 'learn' } },
      after: { pause: 'full' },
      states: {
        idle: { on: { TRY: [{ guard: 'isRight', target: 'right' }, { target: 'wrong' }] } },
        right: {},
        wrong: {},
      },
    },
    full: { after: { hidden: 'open' }, always: { guard: 'isRight', target: 'done' } },
    done: { type: 'final' },
  },
});

t.test('a guard over known facts decides, one over hidden facts is asked', async (t) => {
  const start = begin(counter, ['open.idle'], { count: 1 });
  const once = send(counter, start, 'ADD');
  t.same([once.leaves, once.known], [['open.idle'], { count: 2 }]);
  const full = send(counter, once, 'ADD');
  t.same(full.leaves, ['full']);
  t.match(full.choice, { event: 'always', candidates: [{ guard: 'isRight', verdict: 'unknown', missing: 'secret' }] });
  const tried = send(counter, start, 'TRY');
  t.same(tried.leaves, ['open.idle'], 'nothing is guessed');
  t.same(
    tried.choice?.candidates.map(({ verdict, target }) => [verdict, target]),
    [
      ['unknown', 'open.right'],
      ['yes', 'open.wrong'],
    ],
  );
  const [, other] = tried.choice?.candidates ?? [];
  const chosen = choose(counter, tried, other?.id ?? '');
  t.same([chosen.leaves, chosen.choice, chosen.steps.length], [['open.wrong'], null, 1]);
});

t.test('the result of an assignment from a hidden payload is unknown', async (t) => {
  const after = send(counter, begin(counter, ['open.idle'], { count: 1, secret: 'x' }), 'LEARN');
  t.same(after.known, {}, 'neither the field nor what is set with it');
  t.match(send(counter, after, 'ADD').choice?.candidates[0], { guard: 'isFull', missing: 'count' });
});

t.test('the clock takes delays of known length in their order and leaves the others', async (t) => {
  const start = begin(counter, ['open.idle'], { count: 0 });
  t.same(timersOf(counter, start), [{ event: 'after(pause)', due: 5_000 }]);
  const early = advance(counter, start, 4_999);
  t.same([early.leaves, early.now], [['open.idle'], 4_999]);
  const late = advance(counter, begin(counter, ['open.idle'], { count: 0, secret: 'no' }), 5_001);
  t.same([late.leaves, late.steps.map(({ event, at }) => [event, at])], [['full'], [['after(pause)', 5_000]]]);
  const hidden = send(counter, start, 'after(pause)');
  t.same(timersOf(counter, hidden), [{ event: 'after(hidden)', due: null }]);
});

t.test('an event that no condition lets through changes nothing, and is named', async (t) => {
  const start = begin(counter, ['full'], { count: 2, secret: 'no' });
  t.match(send(counter, start, 'ADD'), { leaves: ['full'], ignored: 'ADD', steps: [] });
  t.same(eventsOf(counter, start), ['after(hidden)']);
});

const regions = setup({
  types: { context: {} as { readonly isA: boolean; readonly isB: boolean } },
  guards: { isA: ({ context }) => context.isA, isB: ({ context }) => context.isB },
  actions: { leaveA: () => {}, enterB: () => {}, both: () => {} },
}).createMachine({
  id: 'regions',
  context: { isA: true, isB: true },
  type: 'parallel',
  on: { STOP: '.a.off' },
  states: {
    a: {
      initial: 'off',
      states: { off: { on: { GO: { guard: 'isA', target: 'on' } }, exit: 'leaveA' }, on: { on: { GO: 'off' } } },
    },
    b: {
      initial: 'off',
      states: {
        off: { on: { GO: [{ guard: 'isB', target: 'on' }, { target: 'other' }] } },
        on: { entry: 'enterB', on: { STOP: { actions: 'both' } } },
        other: {},
      },
    },
  },
});

t.test('states side by side take their transitions together, and each region asks for itself', async (t) => {
  const start = begin(regions, ['a.off', 'b.off'], { isA: true, isB: true });
  const both = send(regions, start, 'GO');
  t.same(both.leaves, ['a.on', 'b.on']);
  t.match(both.steps, [{ from: 'a.off + b.off', to: 'a.on + b.on', actions: ['leaveA', 'enterB'] }]);
  t.same(send(regions, both, 'GO').leaves, ['a.off', 'b.on'], 'a region without a transition stays');
  const inner = send(regions, both, 'STOP');
  t.same([inner.leaves, inner.steps.at(-1)?.actions], [['a.on', 'b.on'], ['both']], 'the inner state has precedence');

  const asked = send(regions, begin(regions, ['a.off'], {}), 'GO');
  t.match(asked.choice?.candidates, [{ guard: 'isA', target: 'a.on' }]);
  const again = choose(regions, asked, asked.choice?.candidates[0]?.id ?? '');
  t.match(again.choice?.candidates, [{ guard: 'isB' }, { guard: null, verdict: 'yes' }]);
  t.same(again.leaves, ['a.off', 'b.off'], 'nothing moves before everything is decided');
  const decided = choose(regions, again, again.choice?.candidates[1]?.id ?? '');
  t.same([decided.leaves, decided.steps.length], [['a.on', 'b.other'], 1]);
});

t.test('only known fields can be read, and code that reads others is unknown', async (t) => {
  t.same(
    attempt(() => partlyKnown({ a: 1 })['a']),
    { value: 1 },
  );
  t.same(
    attempt(() => partlyKnown({ a: 1 })['b']),
    { unknown: 'b' },
  );
  t.same(
    attempt(() => 'b' in partlyKnown({ a: 1 })),
    { unknown: 'b' },
  );
  t.same(
    attempt(() => ({ ...partlyKnown({ a: 1 }) })),
    { unknown: '…' },
  );
  t.same(
    changedBy(() => ({ a: 1 }), ['a', 'b']),
    ['a', 'a'],
  );
  t.equal(
    changedBy(() => {
      throw new Error('no');
    }, ['a']),
    null,
  );
});

/** Stands for any part of a context: the values that machines read of it do not matter here. */
const anything: never = new Proxy(() => {}, {
  get: (_, field) =>
    field === Symbol.toPrimitive ? () => 1 : field === Symbol.iterator ? () => [][Symbol.iterator]() : anything,
  apply: () => anything,
}) as never;

for (const holds of [true, false]) {
  t.test(`it goes where XState goes, in every state and for every event, when every guard is ${holds}`, async (t) => {
    for (const [name, original] of Object.entries(catalogue)) {
      const machine = withGuards(original, holds);
      const { nodes } = graphOf(name, machine);
      const leaves = nodes.filter(({ id }) => id !== '' && !nodes.some(({ parent }) => parent === id));
      for (const { id: leaf } of leaves) {
        for (const type of typesOf(machine, leaf)) {
          const expected = nextOf(machine, leaf, type.eventType);
          const simulated = send(machine, begin(machine, [leaf], {}), type.name);
          t.same(statesOf(machine, simulated), expected, `${name} ${leaf} ${type.name}`);
        }
      }
    }
  });
}

/** The machine with guards that all say the same, and without effects: no more than its states and transitions. */
function withGuards(machine: AnyStateMachine, holds: boolean): AnyStateMachine {
  const { guards, actions, delays } = machine.implementations;
  const all = <T>(names: object, value: T) => Object.fromEntries(Object.keys(names).map((each) => [each, value]));
  const plain = machine.provide({
    guards: all(guards, () => holds),
    actions: all(actions, () => {}),
    delays: all(delays, 1_000),
  } as never);
  return createMachine(stripped(plain.config) as never).provide(plain.implementations as never) as AnyStateMachine;
}

/** A configuration without the parts that start other actors; their ends stay, as events. */
function stripped(config: unknown): unknown {
  if (typeof config !== 'object' || config === null) return config;
  if (Array.isArray(config)) return config.map(stripped);
  return Object.fromEntries(
    Object.entries(config).map(([key, value]) => {
      if (key === 'params' || key === 'context') return [key, () => anything];
      if (key === 'input') return [key, undefined];
      return [key, stripped(value)];
    }),
  );
}

function typesOf(machine: AnyStateMachine, leaf: string): { name: string; eventType: string }[] {
  const keys = leaf.split('.');
  let node = machine.root;
  const nodes = [node];
  for (const key of keys) {
    const child = node.states[key];
    if (!child) throw new Error(`${machine.id} has no ${leaf}`);
    node = child;
    nodes.push(node);
  }
  const transitions = nodes.flatMap(transitionsOf).filter(({ eventType }) => eventType !== '');
  return [
    ...new Map(
      transitions.map((each) => {
        const name = eventName(each, nodes);
        // The actor that failed stands in the name.
        return [name, { name, eventType: each.eventType.replace('*', name.slice('error('.length, -1)) }];
      }),
    ).values(),
  ];
}

function nextOf(machine: AnyStateMachine, leaf: string, type: string): string[] {
  const value = leaf
    .split('.')
    .reduceRight<unknown>((inner, key) => (inner === undefined ? key : { [key]: inner }), undefined);
  const before = machine.resolveState({ value: value as never, context: anything });
  // An actor that has ended takes no event; the pure function takes one.
  const isDone = before.status === 'done';
  const [after] = isDone ? [before] : (transition(machine, before, { type } as never) as [AnyMachineSnapshot, unknown]);
  return after._nodes
    .filter(({ parent }) => parent)
    .sort((a, b) => a.order - b.order)
    .map(({ path }) => path.join('.'));
}
