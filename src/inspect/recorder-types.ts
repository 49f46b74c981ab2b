import type { AnyActorRef, AnyMachineSnapshot, AnyStateMachine, AnyTransitionDefinition, Snapshot } from 'xstate';
import type { ActorRecord, InspectionRecord, TransitionRecord } from '../protocol/index.ts';
import type { Projection } from './facts.ts';
import type { NumberedRecord, RecorderClock } from './journal.ts';
import type { Past } from './watched.ts';

export interface RecorderOptions {
  readonly clock?: RecorderClock;
  /** Records stored for viewers that join or return; default `defaults.inspect.ringRecords`. */
  readonly ringRecords?: number;
  /** Transitions held of each actor, however busy the others are; default `defaults.inspect.actorRingRecords`. */
  readonly actorRingRecords?: number;
  /** Maximum number of ended actors that are still shown; default `endedActors`. */
  readonly endedActors?: number;
  /** Machines by chart name, to find the chart of a child machine. Absent: the chart is named like the machine. */
  readonly machines?: Readonly<Record<string, AnyStateMachine>>;
  /** Visible part of the context, by chart name. A machine without a projection shows nothing of its context. */
  readonly projections?: Readonly<Record<string, (context: never) => Projection>>;
  /** Records actors whose machines are not known in advance, and never observes their errors. */
  readonly foreign?: ForeignActors;
  /** Called for an error of the recorder, a projection or a listener, which never affects the watched actor. */
  readonly onFault?: (error: unknown) => void;
}

/** Names, facts and statecharts of actors that are not known before they run. */
export interface ForeignActors {
  /** Name of a machine's chart. */
  nameOf(machine: AnyStateMachine): string;
  /** Visible facts of a machine's context. */
  project(context: unknown, machine: string): Projection;
  /** Statechart that represents logic without a statechart. */
  standInOf(actor: AnyActorRef): StandIn;
}

/** Converts snapshots and events of logic without a statechart, such as a promise, to those of a machine. */
export interface StandIn {
  snapshotOf(snapshot: Snapshot<unknown>): AnyMachineSnapshot;
  /** Step to a snapshot; undefined if the event changes nothing. */
  stepTo(snapshot: Snapshot<unknown>, eventType: string): StandInStep | undefined;
}

export interface StandInStep {
  readonly event: string;
  readonly transition: AnyTransitionDefinition;
}

export interface Observation {
  /** Id that is unique in this process. */
  readonly id: string;
  /** Id of the actor under which this actor is shown; null at the top level. */
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
   * Watches a root actor and every machine below it, and records the root at once. Returns a function that ends the
   * watch. Best called between `createActor` and `start`: transitions taken before are not in the history. Throws
   * only TypeError, when the actor has no statechart. An observer of an actor's errors stops XState from throwing them in the
   * process, and this is one: the code that creates a root must observe its errors too.
   */
  observe(actor: AnyActorRef, observation: Observation): () => void;
  /** Calls `listener` with the records made from now on, gathered for 16 ms. Returns a function that ends it. */
  subscribe(listener: (records: readonly NumberedRecord[]) => void, onEnd?: () => void): () => void;
  /**
   * Returns the records for a new viewer: first the current state of every active or recently ended actor, then the stored
   * transitions, dead letters and ends, in order. Delivers pending records first, so `snapshot`
   * followed by `subscribe` in the same turn misses and repeats nothing.
   */
  snapshot(): InspectionRecord[];
  /** Records made after `sequence`; undefined when some of them are no longer held. Delivers pending records first. */
  since(sequence: number): NumberedRecord[] | undefined;
  /** Current or last state of one actor. */
  actor(id: string): ActorRecord | undefined;
  /** Current context of one actor; undefined once it has ended. Hidden: it must not leave the process unread. */
  context(id: string): unknown;
  /** The last transitions of one actor, after a position, oldest first: why it is in the state it is in. */
  history(id: string, after?: number): readonly TransitionRecord[];
  /** Records of one actor for a new viewer: its present state, its last transitions and its end. Delivers pending records first. */
  recordsOf(id: string): readonly InspectionRecord[];
  /** Sequence number of the last record. */
  readonly sequence: number;
  readonly viewers: number;
  /** Ends every watch and every subscription. */
  close(): void;
}
