/** Showing models: what is in force and why, and what providers offer. */
export { effective, sourceIn } from './effective.ts';
export { inForce, rowsOf } from './in-force.ts';
export { listHeading, listRows, problemOf } from './list.ts';
