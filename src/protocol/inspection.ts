import * as v from 'valibot';

/** Allow-listed facts about an actor: plain values only, chosen per machine in `src/inspect/projections.ts`. */
export const Projection = v.record(v.string(), v.union([v.string(), v.number(), v.boolean(), v.null(), v.date()]));

/**
 * How often a state was entered since the actor was made, and how long it was active until `ActorRecord.since`, in
 * milliseconds: a state that is active now has been so for `now - since` longer. Of an actor that has ended: until then.
 */
export const StateStatistics = v.object({ visits: v.number(), ms: v.number() });
export type StateStatistics = v.InferOutput<typeof StateStatistics>;

/** An actor exists. Sent for every actor when a viewer connects, later when one is created. */
export const ActorRecord = v.object({
  type: v.literal('actor'),
  /** Unique while the process lives. */
  id: v.string(),
  /** Id of the actor this one is shown under, null for the Hub itself. */
  parent: v.nullable(v.string()),
  /** Name of the chart in `GET /v1/machines`; null for actors without a chart (promises, callbacks are not reported). */
  machine: v.string(),
  /** For people: the workspace path, `hub`, `apiProxy`. */
  title: v.string(),
  /** Ids of the active state nodes, leaves and their ancestors, e.g. `["running", "running.steady"]`. */
  states: v.array(v.string()),
  at: v.date(),
  projection: Projection,
  /** Transitions before this record, and their counts: a viewer continues counting from here. By state id. */
  steps: v.number(),
  /** When it got into its present state. */
  since: v.date(),
  statistics: v.record(v.string(), StateStatistics),
  /**
   * When it ended. Sent to a viewer that connects later: actors that have ended lately are still shown, each followed by
   * its last transitions and its `gone` record.
   */
  endedAt: v.optional(v.date()),
  /** How many actors this one has followed under the same id; absent: none. */
  restarts: v.optional(v.number()),
});

/** An actor took a transition. */
export const TransitionRecord = v.object({
  type: v.literal('transition'),
  id: v.string(),
  /** Position in this actor's history, from 1, without gaps. */
  step: v.number(),
  at: v.date(),
  /** Event type only; payloads may hold secrets. */
  event: v.string(),
  /** Id of the actor that sent the event; null: it came from outside, or from the actor itself (timers, raised events). */
  source: v.nullable(v.string()),
  /** Ids of the chart's edges that were taken; empty when that is not known. */
  edges: v.array(v.string()),
  from: v.array(v.string()),
  to: v.array(v.string()),
  /** States of `to` that were entered, also those that were left and entered again. */
  entered: v.optional(v.array(v.string())),
  /** Names of the actions that ran. */
  actions: v.array(v.string()),
  projection: Projection,
});

/** An event that no actor will handle: its actor has ended. A name that the machine does not know is `(unknown)`. */
export const DeadLetterRecord = v.object({
  type: v.literal('deadLetter'),
  id: v.string(),
  at: v.date(),
  event: v.string(),
  source: v.nullable(v.string()),
});

/** An actor was stopped for good; with `error` it failed: something in it threw. Credentials are taken out of the text. */
export const GoneRecord = v.object({
  type: v.literal('gone'),
  id: v.string(),
  at: v.date(),
  error: v.optional(v.string()),
});

/** The viewer was too slow, or joined late: this many records of the ring are missing here. */
export const DroppedRecord = v.object({ type: v.literal('dropped'), count: v.number(), at: v.date() });

export const InspectionRecord = v.variant('type', [
  ActorRecord,
  TransitionRecord,
  DeadLetterRecord,
  GoneRecord,
  DroppedRecord,
]);
export type InspectionRecord = v.InferOutput<typeof InspectionRecord>;
export type ActorRecord = v.InferOutput<typeof ActorRecord>;
export type DeadLetterRecord = v.InferOutput<typeof DeadLetterRecord>;
export type GoneRecord = v.InferOutput<typeof GoneRecord>;
export type TransitionRecord = v.InferOutput<typeof TransitionRecord>;

/** `meta` of a state in its machine. */
export const StateMeta = v.object({
  kind: v.picklist(['thinks', 'works', 'asks', 'pauses', 'failed', 'serves', 'unwell', 'rests', 'ended']),
  lane: v.picklist(['detour', 'spine', 'exception', 'end']),
  order: v.number(),
});

const Point = v.object({ x: v.number(), y: v.number() });

/** One state of a drawn chart; coordinates are absolute, in CSS pixels. */
export const ChartNode = v.object({
  /** Path of the state, e.g. `running.steady`. The root node is ''. */
  id: v.string(),
  parent: v.nullable(v.string()),
  label: v.string(),
  description: v.string(),
  kind: v.picklist(['atomic', 'compound', 'parallel', 'final', 'history']),
  initial: v.boolean(),
  /** Kind of a simple state, and its lane in a drawing; absent in recordings of older versions. */
  meta: v.optional(StateMeta),
  /** Names of invoked actors, entry and exit actions: shown inside the box. */
  invokes: v.array(v.string()),
  entry: v.array(v.string()),
  exit: v.array(v.string()),
  x: v.number(),
  y: v.number(),
  width: v.number(),
  height: v.number(),
});

/** One transition of a drawn chart. */
export const ChartEdge = v.object({
  id: v.string(),
  source: v.string(),
  target: v.string(),
  event: v.string(),
  guard: v.nullable(v.string()),
  actions: v.array(v.string()),
  /** How long a delayed transition waits, in milliseconds; absent when it is not delayed or its context decides. */
  delayMs: v.optional(v.number()),
  /** Label of the edge, its lines parted by line breaks, e.g. `PROBE.FAILED [reachesFailureThreshold]`. */
  label: v.string(),
  /** Upper left corner of the label. */
  labelAt: Point,
  /** Corners of the arrow. Empty: a transition without a target, written inside its state's box. */
  points: v.array(Point),
});

/** A machine drawn once, at build time, by elkjs from the machine itself. */
export const Chart = v.object({
  name: v.string(),
  description: v.string(),
  width: v.number(),
  height: v.number(),
  nodes: v.array(ChartNode),
  edges: v.array(ChartEdge),
});
export type Chart = v.InferOutput<typeof Chart>;
export type ChartNode = v.InferOutput<typeof ChartNode>;
export type ChartEdge = v.InferOutput<typeof ChartEdge>;

/** `GET /v1/appservers/dashboard`: opens the dashboard of a workspace. The token is in the fragment, which browsers keep to themselves. */
export const DashboardLink = v.object({ url: v.string() });
export type DashboardLink = v.InferOutput<typeof DashboardLink>;
