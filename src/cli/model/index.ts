/** Shows models: the effective settings with their sources, and the models of providers. */
export { effective, sourceIn } from './effective.ts';
export { inForce, rowsOf } from './in-force.ts';
export { listHeading, listRows, problemOf } from './list.ts';
