import type { AnyActorRef, AnyMachineSnapshot, AnyStateMachine, InspectionEvent } from 'xstate';
import { type ActorRecord, defaults, type InspectionRecord, type TransitionRecord } from '../protocol/index.ts';
import { errorText, type Facts, type Projection } from './facts.ts';
import { Journal, type NumberedRecord, type RecorderClock, systemClock } from './journal.ts';
import { MachineKnowledge } from './steps.ts';
import { type Past, Watched } from './watched.ts';

export interface RecorderOptions {
  readonly clock?: RecorderClock;
  /** Records held for viewers that join or return; default `defaults.inspect.ringRecords`. */
  readonly ringRecords?: number;
  /** Transitions held of each actor, however busy the others are; default `defaults.inspect.actorRingRecords`. */
  readonly actorRingRecords?: number;
  /** Actors that have ended and are still shown; default `endedActors`. */
  readonly endedActors?: number;
  /** Machines by chart name, to find the chart of a child machine. Absent: the chart is named like the machine. */
  readonly machines?: Readonly<Record<string, AnyStateMachine>>;
  /** Visible part of the context, by chart name. A machine without a projection shows nothing of its context. */
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
  /** Earlier transitions of this actor, in processes that have ended, and the end of the last one in milliseconds since the Unix epoch. */
  readonly past?: Past | undefined;
  /** Overrides the projection that `RecorderOptions.projections` has for the machine. */
  readonly project?: (context: never) => Projection;
}

export interface Recorder {
  /**
   * Watches a root actor and every machine below it; its own record is made at once. Returns a function that ends the
   * watch. Best called between `createActor` and `start`: transitions taken before are not in the history. Throws
   * only TypeError, when the actor has no statechart. An observer of an actor's errors stops XState from throwing them in the
   * process, and this is one: the code that creates a root must observe its errors too.
   */
  observe(actor: AnyActorRef, observation: Observation): () => void;
  /** Calls `listener` with the records made from now on, gathered for 16 ms. Returns a function that ends it. */
  subscribe(listener: (records: readonly NumberedRecord[]) => void, onEnd?: () => void): () => void;
  /**
   * Returns the records for a new viewer: the current state of every active actor and of those that ended lately, then their
   * transitions, dead letters and ends that are still held, in order. Delivers pending records first, so `snapshot`
   * followed by `subscribe` in the same turn misses and repeats nothing.
   */
  snapshot(): InspectionRecord[];
  /** Records made after `sequence`; undefined when some of them are no longer held. Delivers pending records first. */
  since(sequence: number): NumberedRecord[] | undefined;
  /** Current or last state of one actor. */
  actor(id: string): ActorRecord | undefined;
  /** The last transitions of one actor, after a position, oldest first: why it is in the state it is in. */
  history(id: string, after?: number): readonly TransitionRecord[];
  /** Sequence number of the last record. */
  readonly sequence: number;
  readonly viewers: number;
  /** Ends every watch and every subscription. */
  close(): void;
}

/** Like XState's own function, which would load XState into a process that may not need it yet. */
const isMachineSnapshot = (value: unknown): value is AnyMachineSnapshot =>
  typeof value === 'object' && value !== null && 'machine' in value && 'value' in value;

/** Ended actors that are still shown: a turn that has just ended is the most interesting one. */
const { endedActors } = defaults.inspect;

/**
 * Turns the events of XState's inspection into records that may leave the process: states, event names and action names
 * as the machine declares them, and the allow-listed projection. Contexts and event payloads are never copied.
 * A fault in here never reaches the actor: an inspector that throws would wedge it for ever.
 */
export function createRecorder(options: RecorderOptions = {}): Recorder {
  return new InspectionRecorder(options);
}

class InspectionRecorder implements Recorder {
  readonly #options: RecorderOptions;
  readonly #clock: RecorderClock;
  readonly #journal: Journal;
  /** Charts by the definition of their machine: `provide` makes a new machine of the same definition. */
  readonly #charts: ReadonlyMap<unknown, string>;
  readonly #knowledge = new WeakMap<object, MachineKnowledge>();
  /** The watched actor of a reference; null: not a machine, or no longer watched, and never reported. */
  readonly #known = new WeakMap<object, Watched | null>();
  readonly #watches = new Set<() => void>();
  #admitted = 0;
  #isClosed = false;

  constructor(options: RecorderOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#charts = new Map(Object.entries(options.machines ?? {}).map(([name, machine]) => [machine.config, name]));
    this.#journal = new Journal({
      clock: this.#clock,
      records: options.ringRecords ?? defaults.inspect.ringRecords,
      ended: options.endedActors ?? endedActors,
      onFault: (error) => this.#fault(error),
    });
  }

  observe(actor: AnyActorRef, observation: Observation): () => void {
    const snapshot: unknown = actor.getSnapshot();
    if (!isMachineSnapshot(snapshot)) throw new TypeError(`Actor ${observation.id} has no statechart.`);
    try {
      return this.#watch(actor, observation, snapshot);
    } catch (error) {
      this.#fault(error);
      return () => {};
    }
  }

  #watch(actor: AnyActorRef, observation: Observation, snapshot: AnyMachineSnapshot): () => void {
    const root = this.#admit(actor, observation, snapshot);
    const inspection = actor.system.inspect((event: InspectionEvent) => {
      try {
        this.#inspect(event, root);
      } catch (error) {
        this.#fault(error);
      }
    });
    const finish = (error?: unknown) => {
      this.#watches.delete(end);
      this.#guarded(() => this.#dismiss(root, error));
    };
    const end = () => {
      inspection.unsubscribe();
      subscription.unsubscribe();
      finish();
      this.#known.set(actor, null);
    };
    this.#watches.add(end);
    // A root that fails announces no last snapshot; only its observers hear of it. The inspection of one that has ended
    // continues: only it notices an event that comes too late.
    const subscription = actor.subscribe({
      error: (error: unknown) => finish(new Failure(error)),
      complete: () => finish(),
    });
    return end;
  }

  subscribe(listener: (records: readonly NumberedRecord[]) => void, onEnd?: () => void): () => void {
    return this.#journal.subscribe(listener, onEnd);
  }

  snapshot(): InspectionRecord[] {
    return this.#journal.snapshot();
  }

  since(sequence: number): NumberedRecord[] | undefined {
    return this.#journal.since(sequence);
  }

  history(id: string, after = 0): readonly TransitionRecord[] {
    return this.#journal.historyOf(id, after);
  }

  actor(id: string): ActorRecord | undefined {
    return this.#journal.find(id)?.record();
  }

  get sequence(): number {
    return this.#journal.sequence;
  }

  get viewers(): number {
    return this.#journal.viewers;
  }

  close(): void {
    this.#isClosed = true;
    for (const end of [...this.#watches]) end();
    this.#journal.close();
  }

  #fault(error: unknown): void {
    try {
      this.#options.onFault?.(error);
    } catch {
      // The fault handler has failed itself: there is no other place to report to.
    }
  }

  #guarded(work: () => void): void {
    try {
      work();
    } catch (error) {
      this.#fault(error);
    }
  }

  #readerOf(project: Observation['project']): (context: unknown, facts: Facts) => void {
    if (!project) return () => {};
    return (context, facts) => {
      try {
        facts.read(project(context as never));
      } catch (error) {
        facts.clear();
        this.#fault(error);
      }
    };
  }

  #admit(ref: AnyActorRef, about: Observation, snapshot: AnyMachineSnapshot): Watched {
    const former = this.#journal.find(about.id);
    // An actor whose id a new one has taken is no longer reported.
    if (former?.ref) this.#known.set(former.ref, null);
    if (former) this.#dismiss(former);
    const { machine } = snapshot;
    const knowledge = this.#knowledge.get(machine.config) ?? new MachineKnowledge(machine);
    this.#knowledge.set(machine.config, knowledge);
    this.#admitted += 1;
    const watched = new Watched({
      ref,
      id: about.id,
      parent: about.parent,
      machine: about.machine,
      title: about.title,
      knowledge,
      snapshot,
      look: this.#readerOf(about.project ?? this.#options.projections?.[about.machine]),
      history: this.#options.actorRingRecords ?? defaults.inspect.actorRingRecords,
      at: this.#clock.now(),
      restarts: former ? former.restarts + 1 : 0,
      position: this.#admitted,
    });
    this.#known.set(ref, watched);
    const past = about.past ? watched.recall(about.past) : [];
    this.#journal.admit(watched);
    for (const record of past) this.#journal.appendPast(watched, record);
    return watched;
  }

  #dismiss(watched: Watched, failure?: unknown): void {
    if (watched.hasEnded) return;
    for (const below of this.#journal.childrenOf(watched)) this.#dismiss(below);
    const at = this.#clock.now();
    watched.end(at);
    const error = failure instanceof Failure ? { error: errorText(failure.cause) } : {};
    this.#journal.dismiss(watched, { type: 'gone', id: watched.id, at: new Date(at), ...error });
  }

  /** A machine below a watched root is admitted when it first shows a snapshot. */
  #admitChild(ref: AnyActorRef, root: Watched): Watched | null {
    const snapshot: unknown = ref.getSnapshot();
    if (root.hasEnded || !isMachineSnapshot(snapshot)) {
      this.#known.set(ref, null);
      return null;
    }
    const parent = (ref._parent && this.#known.get(ref._parent)) || root;
    const machine = this.#charts.get(snapshot.machine.config) ?? snapshot.machine.id;
    return this.#admit(ref, { id: `${parent.id}/${ref.id}`, parent: parent.id, machine, title: ref.id }, snapshot);
  }

  #inspect(event: InspectionEvent, root: Watched): void {
    if (this.#isClosed) return;
    switch (event.type) {
      case '@xstate.event':
        this.#sent(event.event, event.sourceRef, event.actorRef);
        break;
      case '@xstate.microstep':
      case '@xstate.snapshot': {
        const ref = event.actorRef as AnyActorRef;
        let watched = this.#known.get(ref);
        if (watched === undefined) watched = this.#admitChild(ref, root);
        if (watched === null || watched.hasEnded) return;
        const snapshot: unknown = event.snapshot;
        if (!isMachineSnapshot(snapshot)) return;
        if (event.type === '@xstate.microstep') this.#stepped(watched, snapshot, event);
        else if (snapshot.status !== 'active') {
          this.#dismiss(watched, snapshot.status === 'error' ? new Failure(snapshot.error) : undefined);
        }
      }
    }
  }

  #stepped(
    watched: Watched,
    snapshot: AnyMachineSnapshot,
    event: Extract<InspectionEvent, { type: '@xstate.microstep' }>,
  ): void {
    const source = watched.senderOf(event.event);
    // `_transitions` is private to XState. Without it the states still show the change.
    const transitions = Array.isArray(event._transitions) ? event._transitions : undefined;
    if (transitions ? transitions.length === 0 : !watched.hasMoved(snapshot)) return;
    this.#journal.appendStep(watched.take(snapshot, transitions, source, this.#clock.now()));
  }

  /** An event is on its way to an actor: its sender, and whether the actor can still receive it. */
  #sent(
    event: { readonly type: string; readonly error?: unknown },
    sourceRef: object | undefined,
    target: object,
  ): void {
    const source = sourceRef && sourceRef !== target ? this.#known.get(sourceRef) : undefined;
    // A child that fails announces no snapshot either: its parent is sent the error.
    if (source && !source.hasEnded && event.type.startsWith('xstate.error.actor.')) {
      this.#dismiss(source, new Failure(event.error));
    }
    const watched = this.#known.get(target);
    if (!watched) return;
    if (watched.hasEnded) {
      this.#journal.append(watched, {
        type: 'deadLetter',
        id: watched.id,
        at: new Date(this.#clock.now()),
        event: watched.knowledge.eventName(event.type),
        source: source?.id ?? null,
      });
    } else if (source) watched.expect(event, source.id);
  }
}

/** An actor ended by this: `undefined` can be thrown as well. */
class Failure {
  readonly cause: unknown;

  constructor(cause: unknown) {
    this.cause = cause;
  }
}
