/** The face of this room for the page in the browser: drawing only, nothing that needs Node or a machine. */
export { boxLines, causeOf, chartFont } from './measure.ts';
export { mermaidOf } from './mermaid.ts';
export { pathOf, svgOf } from './svg.ts';
