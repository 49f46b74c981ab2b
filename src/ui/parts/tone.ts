import { signal } from '@preact/signals';
import type { Chart, ChartNode } from '../../protocol/index.ts';

/** Shape and colour of each state, so that neither alone has to distinguish states. */
export type Tone = 'neutral' | 'progress' | 'ok' | 'warn' | 'danger';
export type Shape = 'ring' | 'arc' | 'disc' | 'triangle' | 'square' | 'cross' | 'diamond';

export interface Look {
  readonly tone: Tone;
  readonly shape: Shape;
}

/** Fields of an actor that decide its tone. */
export interface TonedActor {
  /** Name of the machine. Absent: only the names of the states determine the tone. */
  readonly machine?: string;
  readonly states: readonly string[];
  readonly projection: Readonly<Record<string, unknown>>;
}

/** Meaning of a tone where it stands alone (filters, counts). */
export const toneWords: Readonly<Record<Tone, string>> = {
  ok: 'up',
  progress: 'changing',
  warn: 'waiting or unwell',
  danger: 'down',
  neutral: 'at rest',
};

const rest: Look = { tone: 'neutral', shape: 'ring' };
const moving: Look = { tone: 'progress', shape: 'arc' };
const well: Look = { tone: 'ok', shape: 'disc' };
const attention: Look = { tone: 'warn', shape: 'triangle' };
const broken: Look = { tone: 'danger', shape: 'cross' };
const finished: Look = { tone: 'neutral', shape: 'square' };

/** Looks by outermost state, for all machines: a state's name means the same in each. */
const looks: Readonly<Record<string, Look>> = {
  stopped: rest,
  asleep: rest,
  starting: moving,
  running: well,
  unhealthy: attention,
  stopping: moving,
  exited: broken,
  booting: moving,
  claiming: moving,
  listening: moving,
  serving: well,
  draining: moving,
  closing: moving,
  yielded: rest,
  failed: broken,
  // Turns.
  preparing: moving,
  compacting: moving,
  inferring: moving,
  reviewing: moving,
  awaitingApproval: attention,
  securing: moving,
  runningTools: moving,
  cancelling: moving,
  storing: moving,
  completed: finished,
  cancelled: finished,
  // Servers of tools.
  disabled: rest,
  ready: well,
  clearing: moving,
  down: broken,
  // Slots of sidecars.
  held: well,
  emptying: moving,
  // Automations, and who keeps them.
  deciding: moving,
  paused: rest,
  waiting: rest,
  active: moving,
  backingOff: attention,
  finished,
  removed: rest,
  recovering: moving,
  watching: well,
};
/** The look of a word for a workspace's state, by how good it is. */
export const lookOfTone = (tone: Tone): Look =>
  ({ neutral: rest, progress: moving, ok: well, warn: attention, danger: broken })[tone];

const unknown: Look = { tone: 'neutral', shape: 'diamond' };

type Kind = NonNullable<ChartNode['meta']>['kind'];

/** Looks by the kind of a state, the most serious kind first. */
const kindLooks: Readonly<Record<Kind, Look>> = {
  ...{ failed: broken, asks: attention, unwell: attention, pauses: attention },
  ...{ works: moving, thinks: moving, serves: well, rests: rest, ended: finished },
};

/** Kinds of the atomic states of all machines, by `<machine> <state>`. */
const kinds = signal<ReadonlyMap<string, Kind>>(new Map());

/** Reads the kinds of states from the charts of their machines. */
export function learnKinds(charts: readonly Chart[]): void {
  kinds.value = new Map(
    charts.flatMap(({ name, nodes }) => nodes.flatMap(({ id, meta }) => (meta ? [[`${name} ${id}`, meta.kind]] : []))),
  );
}

/** Look of the most serious active atomic state; undefined if the kinds are unknown. */
function lookOfKind({ machine, states }: TonedActor): Look | undefined {
  const found = new Set(leavesOf(states).map((leaf) => kinds.value.get(`${machine} ${leaf}`)));
  const kind = (Object.keys(kindLooks) as Kind[]).find((each) => found.has(each));
  return kind && kindLooks[kind];
}

/** Composite states of a turn, which only hold transitions: lists show the state inside. */
const frames = ['working', 'working.requesting', 'working.held'];
const withoutFrames = (state: string): string => state.replace(/^working\.((requesting|held)\.)?/, '');

/** The public state of an actor: its outermost active state. */
export const publicState = (states: readonly string[]): string =>
  withoutFrames(states.find((state) => !frames.includes(state)) ?? states[0] ?? '–');

/** The innermost active states: one, or one of each region side by side. */
export const leavesOf = (states: readonly string[]): string[] =>
  states.filter((state) => !states.some((other) => other.startsWith(`${state}.`)));

/** Words for states whose names are those of the machine. */
const stateNames: Readonly<Record<string, string>> = { 'exited.givenUp': 'gave up' };

/** The state in full: `starting · probing`; regions side by side are joined by a comma. */
export function fullState(states: readonly string[]): string {
  return (
    leavesOf(states)
      .map((leaf) => stateNames[leaf] ?? withoutFrames(leaf).split('.').join(' · '))
      .join(', ') || '–'
  );
}

export function lookOf(actor: TonedActor): Look {
  const state = publicState(actor.states);
  const isAtRest = state === 'exited' && actor.projection['exitCode'] === 0;
  return isAtRest ? finished : (looks[state] ?? lookOfKind(actor) ?? unknown);
}
