import * as v from 'valibot';

/** Allow-listed facts about an actor: plain values only, chosen per machine in `src/inspect/projections.ts`. */
export const Projection = v.record(v.string(), v.union([v.string(), v.number(), v.boolean(), v.null(), v.date()]));

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
  from: v.array(v.string()),
  to: v.array(v.string()),
  /** Names of the actions that ran. */
  actions: v.array(v.string()),
  projection: Projection,
});

/** An actor was stopped for good. */
export const GoneRecord = v.object({ type: v.literal('gone'), id: v.string(), at: v.date() });

/** The viewer was too slow, or joined late: this many records of the ring are missing here. */
export const DroppedRecord = v.object({ type: v.literal('dropped'), count: v.number(), at: v.date() });

export const InspectionRecord = v.variant('type', [ActorRecord, TransitionRecord, GoneRecord, DroppedRecord]);
export type InspectionRecord = v.InferOutput<typeof InspectionRecord>;
export type ActorRecord = v.InferOutput<typeof ActorRecord>;
export type TransitionRecord = v.InferOutput<typeof TransitionRecord>;

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
  /** What is written on the edge, its lines parted by line breaks, e.g. `PROBE.FAILED [isLastStraw]`. */
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
