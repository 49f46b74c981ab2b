import type { AnyActorRef, AnyMachineSnapshot, AnyStateNode } from 'xstate';
import { Ring } from '../lib/index.ts';
import type { ActorRecord, GoneRecord, TransitionRecord } from '../protocol/index.ts';
import { factsOf, nextEntry, type RingEntry } from './entry.ts';
import { Facts } from './facts.ts';
import type { Configuration, MachineKnowledge, Step } from './steps.ts';

export interface WatchedOptions {
  readonly ref: AnyActorRef;
  readonly id: string;
  readonly parent: string | null;
  readonly machine: string;
  readonly title: string;
  readonly knowledge: MachineKnowledge;
  readonly snapshot: AnyMachineSnapshot;
  /** Reads the visible part of a context. Never throws. */
  readonly look: (context: unknown, facts: Facts) => void;
  readonly history: number;
  /** Milliseconds since the Unix epoch. */
  readonly at: number;
  readonly restarts: number;
  /** Position among all actors of a recorder: those below come after those above. */
  readonly position: number;
}

/** Transitions of an actor in processes that have ended. */
export interface Past {
  readonly steps: readonly (Pick<TransitionRecord, 'at' | 'event'> & {
    readonly from: readonly string[];
    readonly to: readonly string[];
  })[];
  /** End of the last process, in milliseconds since the Unix epoch. */
  readonly endedAt: number;
}

/** Event of the transition from the last state of a process that has ended to the first one of this process. */
const breakEvent = 'process.ended';

/** Largest number of waiting events per actor whose senders are remembered. */
const inboxLimit = 256;

/** One actor that is recorded: where it is, how it got there, how long it was where. */
export class Watched {
  readonly id: string;
  readonly parent: string | null;
  readonly machine: string;
  readonly title: string;
  readonly position: number;
  readonly restarts: number;
  readonly knowledge: MachineKnowledge;
  readonly history: Ring<RingEntry>;
  /** Undefined once the actor has ended, so that it can be garbage-collected. */
  ref: AnyActorRef | undefined;
  /** End of the actor, once it has ended. */
  gone: { readonly sequence: number; readonly record: GoneRecord } | undefined;
  readonly #createdAt: number;
  #endedAt: number | undefined;
  #configuration: Configuration;
  #nodes: readonly AnyStateNode[];
  #context: unknown;
  #steps = 0;
  #since: number;
  readonly #visits: number[];
  readonly #milliseconds: number[];
  readonly #look: WatchedOptions['look'];
  readonly #facts = new Facts();
  readonly #inbox: { readonly event: unknown; readonly source: string }[] = [];

  constructor(options: WatchedOptions) {
    const { ref, knowledge, snapshot, at } = options;
    this.id = options.id;
    this.parent = options.parent;
    this.machine = options.machine;
    this.title = options.title;
    this.position = options.position;
    this.restarts = options.restarts;
    this.knowledge = knowledge;
    this.history = new Ring({ maxItems: options.history });
    this.ref = ref;
    this.#createdAt = at;
    this.#configuration = knowledge.configurationOf(snapshot._nodes);
    this.#nodes = snapshot._nodes;
    this.#since = at;
    this.#visits = knowledge.ids.map(() => 0);
    this.#milliseconds = knowledge.ids.map(() => 0);
    for (const order of this.#configuration.orders) this.#visits[order] = 1;
    this.#look = options.look;
    this.#see(snapshot.context);
  }

  get hasEnded(): boolean {
    return this.#endedAt !== undefined;
  }

  get context(): unknown {
    return this.#context;
  }

  /** A context is never changed in place: the same one shows the same. */
  #see(context: unknown): void {
    if (context === this.#context) return;
    this.#context = context;
    this.#look(context, this.#facts);
  }

  /** Remembers the sender of an event under way; other events come from outside. */
  expect(event: unknown, source: string): void {
    if (this.#inbox.length >= inboxLimit) this.#inbox.shift();
    this.#inbox.push({ event, source });
  }

  /** Returns the sender of an event, once: when the actor takes it out of its mailbox. */
  senderOf(event: unknown): string | null {
    if (this.#inbox.length === 0) return null;
    const position = this.#inbox.findIndex((letter) => letter.event === event);
    if (position < 0) return null;
    return this.#inbox.splice(0, position + 1)[position]?.source ?? null;
  }

  /** Counts the transitions of earlier processes, and a break after them, before those of this process. @returns their records */
  recall({ steps, endedAt }: Past): TransitionRecord[] {
    const last = {
      at: new Date(endedAt),
      event: breakEvent,
      from: steps.at(-1)?.to ?? [],
      to: this.#configuration.states,
    };
    return [...steps, last].map(({ at, event, from, to }) => {
      this.#steps += 1;
      const nothing = { source: null, edges: [], actions: [], projection: {} };
      return {
        type: 'transition',
        id: this.id,
        step: this.#steps,
        at,
        event,
        from: [...from],
        to: [...to],
        ...nothing,
      };
    });
  }

  hasMoved(snapshot: AnyMachineSnapshot): boolean {
    return snapshot._nodes !== this.#nodes;
  }

  /** Records a transition. `transitions` is undefined when XState did not report them. `event` is a name that the machine does not have. */
  take(
    snapshot: AnyMachineSnapshot,
    transitions: Parameters<MachineKnowledge['stepOf']>[0] | undefined,
    source: string | null,
    at: number,
    event?: string,
  ): RingEntry {
    const { knowledge } = this;
    const from = this.#configuration;
    const before = this.#nodes;
    const after = snapshot._nodes;
    const to = after === before ? from : knowledge.configurationOf(after);
    const step = transitions ? knowledge.stepOf(transitions, before, after, from, to) : knowledge.unexplained(from, to);
    this.#configuration = to;
    this.#nodes = after;
    if (to !== from || step.entered.length > 0) this.#move(from, step, at);
    this.#see(snapshot.context);
    this.#steps += 1;
    const entry = nextEntry(this.history);
    entry.watched = this;
    entry.made = undefined;
    entry.number = this.#steps;
    entry.at = at;
    entry.source = source;
    entry.step = event === undefined ? step : { ...step, event };
    entry.from = from;
    entry.to = to;
    entry.takeFacts(this.#facts.names, this.#facts.values);
    return entry;
  }

  #move(from: Configuration, step: Step, at: number): void {
    this.#count(from, at);
    this.#since = at;
    for (const order of step.entered) this.#visits[order] = (this.#visits[order] ?? 0) + 1;
  }

  #count(active: Configuration, until: number): void {
    const milliseconds = until - this.#since;
    if (milliseconds <= 0) return;
    for (const order of active.orders) this.#milliseconds[order] = (this.#milliseconds[order] ?? 0) + milliseconds;
  }

  /** Completes the statistics, and drops all references but those in the record of an ended actor. */
  end(at: number): void {
    this.#count(this.#configuration, at);
    this.#endedAt = at;
    this.#context = undefined;
    this.#nodes = [];
    this.#inbox.length = 0;
    this.ref = undefined;
  }

  record(): ActorRecord {
    const { id, parent, machine, title, restarts } = this;
    return {
      type: 'actor',
      id,
      parent,
      machine,
      title,
      states: this.#configuration.states,
      at: new Date(this.#createdAt),
      projection: factsOf(this.#facts.names, this.#facts.values),
      steps: this.#steps,
      since: new Date(this.#since),
      statistics: this.#statistics(),
      ...(this.#endedAt !== undefined && { endedAt: new Date(this.#endedAt) }),
      ...(restarts > 0 && { restarts }),
    };
  }

  #statistics(): ActorRecord['statistics'] {
    const statistics: ActorRecord['statistics'] = {};
    for (const [order, id] of this.knowledge.ids.entries()) {
      const visits = this.#visits[order] ?? 0;
      if (id !== '' && visits > 0) statistics[id] = { visits, ms: this.#milliseconds[order] ?? 0 };
    }
    return statistics;
  }
}
