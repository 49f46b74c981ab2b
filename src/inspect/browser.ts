/** The face of this room for the page in the browser: drawing only, nothing that needs Node or a machine. */
export { boxLines, chartFont } from './measure.ts';
export { pathOf } from './svg.ts';
