import type { AnyActorRef, AnyMachineSnapshot, InspectionEvent, Snapshot, Subscription } from 'xstate';
import { type ActorRecord, defaults, type InspectionRecord, type TransitionRecord } from '../protocol/index.ts';
import { errorText, type Facts } from './facts.ts';
import { Journal, type NumberedRecord, type RecorderClock, systemClock } from './journal.ts';
import type { Observation, Recorder, RecorderOptions } from './recorder-types.ts';
import { MachineKnowledge } from './steps.ts';
import { Watched } from './watched.ts';

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
    const snapshot = this.#shown(actor, actor.getSnapshot());
    if (!snapshot) throw new TypeError(`Actor ${observation.id} has no statechart.`);
    try {
      return this.#watch(actor, observation, snapshot);
    } catch (error) {
      this.#fault(error);
      return () => {};
    }
  }

  #watch(actor: AnyActorRef, observation: Observation, snapshot: AnyMachineSnapshot): () => void {
    const root = this.#admit(actor, observation, snapshot);
    let isOver = false;
    // XState before 5.14 takes an object only, and returns no subscription.
    const inspection: Subscription | undefined = actor.system.inspect({
      next: (event: InspectionEvent) => {
        if (isOver) return;
        try {
          this.#inspect(event, root);
          if (this.#options.foreign) checkSoon();
        } catch (error) {
          this.#fault(error);
        }
      },
    });
    const finish = (error?: unknown) => {
      this.#watches.delete(end);
      this.#guarded(() => this.#dismiss(root, error));
    };
    let isDue = false;
    // Detects a failed root of another program by its snapshot: an observer would stop XState from reporting the error.
    const checkSoon = () => {
      if (root.hasEnded) this.#watches.delete(end);
      else if (!isDue) queueMicrotask(() => this.#guarded(check));
      isDue = true;
    };
    const check = () => {
      isDue = false;
      const { status, error } = actor.getSnapshot();
      if (status === 'error') finish(new Failure(error));
    };
    const end = () => {
      isOver = true;
      inspection?.unsubscribe();
      subscription?.unsubscribe();
      finish();
      this.#known.set(actor, null);
    };
    this.#watches.add(end);
    // A root that fails announces no last snapshot; only its observers are notified. The inspection of one that has ended
    // continues: only it notices an event that comes too late.
    const subscription = this.#options.foreign
      ? undefined
      : actor.subscribe({ error: (error: unknown) => finish(new Failure(error)), complete: () => finish() });
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

  recordsOf(id: string): readonly InspectionRecord[] {
    return this.#journal.recordsOf(id);
  }

  actor(id: string): ActorRecord | undefined {
    return this.#journal.find(id)?.record();
  }

  context(id: string): unknown {
    return this.#journal.find(id)?.context;
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
    const { foreign } = this.#options;
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
      look: this.#readerOf(
        about.project ??
          this.#options.projections?.[about.machine] ??
          (foreign && ((context) => foreign.project(context, about.machine))),
      ),
      history: this.#options.actorRingRecords ?? defaults.inspect.actorRingRecords,
      at: this.#clock.now(),
      // Other programs reuse an actor id on purpose: a state starts its invoked promise on each entry.
      restarts: former && !foreign ? former.restarts + 1 : 0,
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
    const snapshot = root.hasEnded ? null : this.#shown(ref, ref.getSnapshot());
    if (snapshot === null) {
      this.#known.set(ref, null);
      return null;
    }
    const parent = (ref._parent && this.#known.get(ref._parent)) || root;
    const { foreign } = this.#options;
    const machine =
      this.#charts.get(snapshot.machine.config) ?? foreign?.nameOf(snapshot.machine) ?? snapshot.machine.id;
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
        // A microstep may precede the start; a started actor emits a snapshot first.
        if (watched === undefined && this.#options.foreign && event.type === '@xstate.microstep') return;
        if (watched === undefined) watched = this.#admitChild(ref, root);
        if (watched === null || watched.hasEnded) return;
        const snapshot = this.#shown(ref, event.snapshot);
        if (!snapshot) return;
        if (event.type === '@xstate.microstep') this.#stepped(watched, snapshot, event);
        else this.#settled(watched, snapshot, event);
      }
    }
  }

  /** Records that an actor has handled an event. */
  #settled(
    watched: Watched,
    snapshot: AnyMachineSnapshot,
    event: Extract<InspectionEvent, { type: '@xstate.snapshot' }>,
  ): void {
    if (snapshot !== event.snapshot) this.#stoodIn(watched, snapshot, event);
    if (snapshot.status === 'active') return;
    this.#dismiss(watched, snapshot.status === 'error' ? new Failure(snapshot.error) : undefined);
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

  /** Snapshot of a machine, or of the statechart that represents other logic; null: not reported. */
  #shown(ref: AnyActorRef, snapshot: unknown): AnyMachineSnapshot | null {
    if (isMachineSnapshot(snapshot)) return snapshot;
    return this.#options.foreign?.standInOf(ref).snapshotOf(snapshot as Snapshot<unknown>) ?? null;
  }

  #stoodIn(
    watched: Watched,
    snapshot: AnyMachineSnapshot,
    event: Extract<InspectionEvent, { type: '@xstate.snapshot' }>,
  ): void {
    const source = watched.senderOf(event.event);
    const step = this.#options.foreign
      ?.standInOf(event.actorRef as AnyActorRef)
      .stepTo(event.snapshot, event.event.type);
    if (!step) return;
    this.#journal.appendStep(watched.take(snapshot, [step.transition], source, this.#clock.now(), step.event));
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
    // React's Strict Mode starts a stopped actor again.
    if (watched.hasEnded && event.type === 'xstate.init') this.#known.delete(target);
    else if (watched.hasEnded) {
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
