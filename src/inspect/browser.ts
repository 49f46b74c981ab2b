/** The face of this room for the page in the browser: drawing only, nothing that needs Node or a machine. */
export {
  type Detail,
  type DetailEdge,
  type DetailNode,
  detailFont,
  detailLabelSize,
  detailOf,
  leafOf,
  pathTo,
  possibleIn,
} from './detail.ts';
export { fingerprintOf } from './fingerprint.ts';
export { isOurs, transitionIds, transitionsOf } from './graph.ts';
export { boxLines, causeOf, chartFont } from './measure.ts';
export { mermaidOf } from './mermaid.ts';
export { actionName, eventName, guardName, nodeId } from './names.ts';
export { type Drawings, legible, type Pane, type Picture, panes } from './picture.ts';
export { pathOf, svgOf } from './svg.ts';
export { actionWords, clauseWords, guardWords, noWords, type Words } from './words.ts';
