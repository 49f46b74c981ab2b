import {
  type AnyActorRef,
  type AnyMachineSnapshot,
  type AnyStateMachine,
  type AnyStateNode,
  type AnyTransitionDefinition,
  type InspectionEvent,
  isMachineSnapshot,
} from 'xstate';
import { type ActorRecord, defaults, type InspectionRecord, type TransitionRecord } from '../protocol/index.ts';
import { Ring } from './ring.ts';
import { StateLists, Steps } from './steps.ts';

export type Projection = ActorRecord['projection'];

/** Time as the recorder sees it. */
export interface RecorderClock {
  /** Milliseconds since the Unix epoch. */
  now(): number;
  setTimeout(callback: () => void, milliseconds: number): unknown;
  clearTimeout(timer: unknown): void;
}

export interface RecorderOptions {
  readonly clock?: RecorderClock;
  /** Records kept for viewers that join or come back; default `defaults.inspect.ringRecords`. */
  readonly ringRecords?: number;
  /** Transitions kept of each actor, whatever the others do; default 64. */
  readonly actorRingRecords?: number;
  /** Machines by chart name: tells which chart a child machine has. */
  readonly machines?: Readonly<Record<string, AnyStateMachine>>;
  /** What of the context may be seen, by chart name. A machine without one shows nothing of its context. */
  readonly projections?: Readonly<Record<string, (context: never) => Projection>>;
  /** A fault of the recorder, of a projection or of a listener. The actor that was watched is not affected. */
  readonly onFault?: (error: unknown) => void;
}

export interface Observation {
  /** Unique while the process lives. */
  readonly id: string;
  /** Id of the actor this one is shown under; null for the top. */
  readonly parent: string | null;
  /** Name of the machine's chart. */
  readonly machine: string;
  /** For people. */
  readonly title: string;
  /** Overrides the projection that `RecorderOptions.projections` has for the machine. */
  readonly project?: (context: never) => Projection;
}

/** A record with its position among all records of this recorder, from 1. */
export interface NumberedRecord {
  readonly sequence: number;
  readonly record: InspectionRecord;
}

export interface Recorder {
  /**
   * Watches a root actor and every machine below it; its own record is made at once. Returns a function that ends the
   * watch. Best called between `createActor` and `start`: transitions taken before are not in the history.
   */
  observe(actor: AnyActorRef, observation: Observation): () => void;
  /** Calls `listener` with the records made from now on, gathered for 16 ms. Returns a function that ends it. */
  subscribe(listener: (records: readonly NumberedRecord[]) => void, onEnd?: () => void): () => void;
  /**
   * What a new viewer must know: every living actor, then the transitions that are still held. Records that wait to be
   * told are told first, so `snapshot` followed by `subscribe` in the same turn misses and repeats nothing.
   */
  snapshot(): InspectionRecord[];
  /** Records made after `sequence`; undefined when some of them are no longer held. Tells waiting records first. */
  since(sequence: number): NumberedRecord[] | undefined;
  /** The last transitions of one actor, oldest first: why it is in the state it is in. */
  history(id: string): readonly TransitionRecord[];
  /** Sequence number of the last record. */
  readonly sequence: number;
  readonly viewers: number;
  /** Ends every watch and every subscription. */
  close(): void;
}

interface Watched {
  readonly ref: AnyActorRef;
  readonly id: string;
  readonly parent: string | null;
  readonly machine: string;
  readonly title: string;
  readonly project: ((context: never) => Projection) | undefined;
  readonly history: Ring<TransitionRecord>;
  readonly lists: StateLists;
  nodes: readonly AnyStateNode[];
  states: string[];
  context: unknown;
  projection: Projection;
  step: number;
  readonly createdAt: Date;
}

const systemClock: RecorderClock = {
  now: () => Date.now(),
  setTimeout: (callback, milliseconds) => setTimeout(callback, milliseconds).unref(),
  clearTimeout: (timer) => clearTimeout(timer as NodeJS.Timeout),
};

/** Longest text of a projection, in characters. */
const textLimit = 1024;

/**
 * Turns what XState tells its inspectors into records that may leave the process: states, event names and action names
 * as the machine declares them, and the allow-listed projection. Contexts and event payloads are never copied.
 * A fault in here never reaches the actor: an inspector that throws would wedge it for ever.
 */
export function createRecorder(options: RecorderOptions = {}): Recorder {
  const clock = options.clock ?? systemClock;
  const ring = new Ring<NumberedRecord>(options.ringRecords ?? defaults.inspect.ringRecords);
  const charts = new Map(Object.entries(options.machines ?? {}).map(([name, machine]) => [machine.config, name]));
  const actors = new Map<string, Watched>();
  /** What is known of an actor reference; null: it is not a machine and never reported. */
  const known = new WeakMap<object, Watched | null>();
  const lists = new WeakMap<object, StateLists>();
  const steps = new Steps();
  const listeners = new Map<(records: readonly NumberedRecord[]) => void, (() => void) | undefined>();
  const watches = new Set<() => void>();
  let waiting: NumberedRecord[] = [];
  let timer: unknown;
  let sequence = 0;

  function fault(error: unknown): void {
    try {
      options.onFault?.(error);
    } catch {
      // Whoever reports faults has one itself; there is nobody left to tell.
    }
  }

  function append(record: InspectionRecord): void {
    const numbered = { sequence: ++sequence, record };
    ring.push(numbered);
    if (listeners.size === 0) return;
    waiting.push(numbered);
    timer ??= clock.setTimeout(flush, defaults.inspect.coalesceMs);
  }

  function flush(): void {
    if (timer !== undefined) clock.clearTimeout(timer);
    timer = undefined;
    if (waiting.length === 0) return;
    const batch = waiting;
    waiting = [];
    for (const listener of [...listeners.keys()]) {
      try {
        listener(batch);
      } catch (error) {
        fault(error);
      }
    }
  }

  function projectionOf(watched: Watched, context: unknown): Projection {
    // A context is immutable: the same object has the same projection.
    if (context === watched.context) return watched.projection;
    watched.context = context;
    if (!watched.project) return {};
    try {
      return plainFacts(watched.project(context as never));
    } catch (error) {
      fault(error);
      return {};
    }
  }

  function listsOf(ref: AnyActorRef): StateLists {
    const { config } = (ref as AnyActorRef & { readonly logic: AnyStateMachine }).logic;
    const found = lists.get(config) ?? new StateLists();
    lists.set(config, found);
    return found;
  }

  function admit(ref: AnyActorRef, about: Observation, snapshot: AnyMachineSnapshot): Watched {
    const former = actors.get(about.id);
    if (former) dismiss(former);
    const stateLists = listsOf(ref);
    const watched: Watched = {
      ref,
      id: about.id,
      parent: about.parent,
      machine: about.machine,
      title: about.title,
      project: about.project ?? options.projections?.[about.machine],
      history: new Ring(options.actorRingRecords ?? 64),
      lists: stateLists,
      nodes: snapshot._nodes,
      states: stateLists.of(snapshot._nodes),
      context: undefined,
      projection: {},
      step: 0,
      createdAt: new Date(clock.now()),
    };
    watched.projection = projectionOf(watched, snapshot.context);
    known.set(ref, watched);
    actors.set(about.id, watched);
    append(actorRecord(watched));
    return watched;
  }

  function dismiss(watched: Watched): void {
    if (actors.get(watched.id) !== watched) return;
    for (const below of [...actors.values()]) if (below.parent === watched.id && below.ref._parent) dismiss(below);
    actors.delete(watched.id);
    known.set(watched.ref, null);
    append({ type: 'gone', id: watched.id, at: new Date(clock.now()) });
  }

  /** A machine below a watched root is admitted when it first shows a snapshot. */
  function admitChild(ref: AnyActorRef, root: Watched): Watched | null {
    const snapshot: unknown = ref.getSnapshot();
    if (!isMachineSnapshot(snapshot)) {
      known.set(ref, null);
      return null;
    }
    const above = ref._parent && known.get(ref._parent);
    const parent = above || root;
    const machine = charts.get(snapshot.machine.config) ?? snapshot.machine.id;
    return admit(ref, { id: `${parent.id}/${ref.id}`, parent: parent.id, machine, title: ref.id }, snapshot);
  }

  function take(
    watched: Watched,
    snapshot: AnyMachineSnapshot,
    transitions: readonly AnyTransitionDefinition[] | undefined,
    fallbackEvent: string,
  ): void {
    // `_transitions` is private to XState. Without it the states still tell what happened.
    if (transitions?.length === 0 || (!transitions && snapshot._nodes === watched.nodes)) return;
    const from = watched.states;
    const before = watched.nodes;
    if (snapshot._nodes !== before) {
      watched.nodes = snapshot._nodes;
      watched.states = watched.lists.of(snapshot._nodes);
    }
    const key = `${from.at(-1)}>${watched.states.at(-1)}:${from.length}:${watched.states.length}`;
    const step = transitions
      ? steps.of(transitions, before, watched.nodes, key)
      : { event: fallbackEvent, actions: [] };
    watched.projection = projectionOf(watched, snapshot.context);
    watched.step += 1;
    const record: TransitionRecord = {
      type: 'transition',
      id: watched.id,
      step: watched.step,
      at: new Date(clock.now()),
      event: step.event,
      from,
      to: watched.states,
      actions: step.actions,
      projection: watched.projection,
    };
    watched.history.push(record);
    append(record);
  }

  function inspect(event: InspectionEvent, root: Watched): void {
    if (event.type !== '@xstate.microstep' && event.type !== '@xstate.snapshot') return;
    const ref = event.actorRef as AnyActorRef;
    let watched = known.get(ref);
    if (watched === undefined) watched = admitChild(ref, root);
    if (watched === null) return;
    const snapshot: unknown = event.snapshot;
    if (!isMachineSnapshot(snapshot)) return;
    if (event.type === '@xstate.microstep') {
      take(watched, snapshot, event._transitions, 'transition');
    } else if (snapshot.status !== 'active') {
      dismiss(watched);
    }
  }

  return {
    observe(actor, observation) {
      const snapshot: unknown = actor.getSnapshot();
      if (!isMachineSnapshot(snapshot)) throw new TypeError(`Actor ${observation.id} has no statechart.`);
      const root = admit(actor, observation, snapshot);
      const inspection = actor.system.inspect((event: InspectionEvent) => {
        try {
          inspect(event, root);
        } catch (error) {
          fault(error);
        }
      });
      const end = () => {
        watches.delete(end);
        inspection.unsubscribe();
        subscription.unsubscribe();
        dismiss(root);
      };
      watches.add(end);
      // A root that fails announces no last snapshot; only its observers hear of it.
      const subscription = actor.subscribe({
        error: (error: unknown) => {
          fault(error);
          end();
        },
        complete: () => end(),
      });
      return end;
    },
    subscribe(listener, onEnd) {
      flush();
      listeners.set(listener, onEnd);
      return () => {
        listeners.delete(listener);
      };
    },
    snapshot() {
      flush();
      const held = ring.toArray().map(({ record }) => record);
      const transitions = held.filter((record) => record.type === 'transition' && actors.has(record.id));
      const missing = ring.dropped;
      return [
        ...(missing > 0 ? [{ type: 'dropped' as const, count: missing, at: new Date(clock.now()) }] : []),
        ...[...actors.values()].map(actorRecord),
        ...transitions,
      ];
    },
    since(after) {
      flush();
      const oldest = sequence - ring.size + 1;
      if (after > sequence || after < oldest - 1) return undefined;
      return ring.toArray().filter((numbered) => numbered.sequence > after);
    },
    history: (id) => actors.get(id)?.history.toArray() ?? [],
    get sequence() {
      return sequence;
    },
    get viewers() {
      return listeners.size;
    },
    close() {
      for (const end of [...watches]) end();
      flush();
      for (const onEnd of [...listeners.values()]) onEnd?.();
      listeners.clear();
    },
  };
}

function actorRecord(watched: Watched): ActorRecord {
  const { id, parent, machine, title, states, projection, createdAt } = watched;
  return { type: 'actor', id, parent, machine, title, states, projection, at: createdAt };
}

/** Lets through plain values only: an object in a projection could carry anything. */
function plainFacts(projection: Projection): Projection {
  const facts: Projection = {};
  for (const name in projection) {
    const value: unknown = projection[name];
    if (typeof value === 'string') facts[name] = value.length > textLimit ? `${value.slice(0, textLimit)}…` : value;
    else if (typeof value === 'number' || typeof value === 'boolean' || value === null || value instanceof Date) {
      facts[name] = value;
    }
  }
  return facts;
}
