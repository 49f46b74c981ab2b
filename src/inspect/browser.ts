/** The face of this room for the page in the browser: drawing only, nothing that needs Node or a machine. */
export { bundlesOf } from './bundles.ts';
export { drawChart, wholeOf } from './chart.ts';
export { fingerprintOf } from './fingerprint.ts';
export { isOurs, type MachineGraph, transitionIds, transitionsOf } from './graph.ts';
export { type PackedHistory, unpackHistory } from './history.ts';
export { layOut } from './layout.ts';
export { boxLines, causeOf, chartFont } from './measure.ts';
export { mermaidOf } from './mermaid.ts';
export { actionName, eventName, guardName, nodeId } from './names.ts';
export {
  type Drawings,
  framesOf,
  grid,
  isSpine,
  legible,
  type Picture,
  type SizeClass,
  sizeClasses,
} from './picture.ts';
export type { Box } from './places.ts';
export { type Line, type Scene, sceneOf } from './scene.ts';
export { pathOf, svgOf } from './svg.ts';
export { actionWords, clauseWords, guardWords, noWords, type Words } from './words.ts';
