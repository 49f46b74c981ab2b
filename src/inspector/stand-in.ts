import {
  type AnyActorRef,
  type AnyMachineSnapshot,
  type AnyStateMachine,
  createMachine,
  fromCallback,
  fromEventObservable,
  fromObservable,
  fromPromise,
  fromTransition,
} from 'xstate';
import type { StandIn } from '../inspect/index.ts';
import { limits } from './limits.ts';
import { cut } from './read-value.ts';

const subscribable = () => ({ subscribe: () => ({ unsubscribe() {} }) });

/** Samples of XState's kinds of logic without a statechart. Logic of one kind has functions with the same source text. */
const samples = {
  promise: fromPromise(async () => {}),
  callback: fromCallback(() => {}),
  observable: fromObservable(subscribable),
  'event observable': fromEventObservable(subscribable),
  transition: fromTransition((state) => state, null),
} as const;
type Kind = keyof typeof samples | 'actor';

const textOf = (logic: unknown): string => {
  const { transition, start } = logic as { readonly transition?: unknown; readonly start?: unknown };
  return `${String(transition)} ${String(start)}`;
};
const kinds: ReadonlyMap<string, Kind> = new Map(
  Object.entries(samples).map(([kind, sample]) => [textOf(sample), kind as Kind]),
);

const descriptions: Readonly<Record<Kind, string>> = {
  promise: 'A promise (fromPromise).',
  callback: 'Callback (fromCallback): received events do not change its state.',
  observable: 'Observable (fromObservable): each value is a step.',
  'event observable': 'Event observable (fromEventObservable): sends its events to its parent.',
  transition: 'Transition function (fromTransition): each event may change its context.',
  actor: 'Custom actor logic of the program.',
};

/** Statecharts that represent logic without a statechart, by kind. */
export const standInMachines: Readonly<Record<Kind, AnyStateMachine>> = {
  promise: machineOf('promise'),
  callback: machineOf('callback'),
  observable: machineOf('observable'),
  'event observable': machineOf('event observable'),
  transition: machineOf('transition'),
  actor: machineOf('actor'),
};

function machineOf(kind: Kind): AnyStateMachine {
  return createMachine({
    id: kind,
    description: descriptions[kind],
    initial: 'active',
    states: {
      active: { on: { ...(kind !== 'promise' && { event: {} }), done: 'done', error: 'failed' } },
      done: { type: 'final' },
      failed: { type: 'final' },
    },
  });
}

const byLogic = new WeakMap<object, StandIn>();
const standIns = new Map<Kind, StandIn>();

/** Statechart that represents the logic of an actor. */
export function standInOf({ logic }: AnyActorRef & { readonly logic?: object }): StandIn {
  const known = logic && byLogic.get(logic);
  if (known) return known;
  const kind = kinds.get(textOf(logic)) ?? 'actor';
  const made = standIns.get(kind) ?? createStandIn(kind);
  standIns.set(kind, made);
  if (logic) byLogic.set(logic, made);
  return made;
}

const stateOf = (status: string): string => (status === 'done' ? 'done' : status === 'error' ? 'failed' : 'active');

function createStandIn(kind: Kind): StandIn {
  const machine = standInMachines[kind];
  const { root } = machine;
  return {
    snapshotOf(snapshot) {
      const { status, error, output } = snapshot;
      const { input, context } = snapshot as { readonly input?: unknown; readonly context?: unknown };
      const value = stateOf(status);
      const facts = Object.entries({ input, context, output }).filter(([, fact]) => fact !== undefined);
      const shown = { status, error, machine, value, context: Object.fromEntries(facts) };
      // XState does not construct a snapshot without running the machine: these are the fields that the recorder reads.
      return { ...shown, _nodes: [root, root.states[value]] } as unknown as AnyMachineSnapshot;
    },
    stepTo({ status }, eventType) {
      if (status === 'stopped' || eventType === 'xstate.init') return undefined;
      const event = status === 'done' ? 'done' : status === 'error' ? 'error' : 'event';
      const [transition] = root.states['active']?.transitions.get(event) ?? [];
      if (!transition) return undefined;
      const name = eventType.replace(/^xstate\.(?:observable|promise)\./, '');
      return { event: event === 'event' ? cut(name, limits.nameChars) : event, transition };
    },
  };
}
