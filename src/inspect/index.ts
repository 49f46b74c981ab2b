/**
 * Actors made visible: machines drawn as charts, diagrams and tables; running actors recorded for viewers.
 * The Hub records its actors here and serves the stream; the CLI and the documentation draw machines. Never here: a
 * context or an event payload in a record, a throw into an actor, elkjs at run time (`chartOf` is for the build).
 */
export { chartOf } from './chart.ts';
export { chartsFile, loadCharts } from './charts.ts';
export { type Projection, withoutCredentials } from './facts.ts';
export { type GraphEdge, type GraphNode, graphOf, type MachineGraph } from './graph.ts';
export type { NumberedRecord, RecorderClock } from './journal.ts';
export { matrixOf } from './matrix.ts';
export { mermaidOf } from './mermaid.ts';
export { pageFiles, pageRoutes } from './page.ts';
export { pictureSvg } from './picture-svg.ts';
export { projections } from './projections.ts';
export { createRecorder } from './recorder.ts';
export type { ForeignActors, Observation, Recorder, RecorderOptions, StandIn, StandInStep } from './recorder-types.ts';
export { createInspectionSource, createStatelySource, type InspectionSource } from './sse.ts';
export { type StatelyMessage, type StatelyOptions, statelyMessages } from './stately.ts';
export { type StatelySocketOptions, statelySocket } from './stately-socket.ts';
export { svgOf } from './svg.ts';
export { statesTableOf, tableOf } from './table.ts';
export { wireOf } from './wire.ts';
