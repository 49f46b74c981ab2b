/**
 * The inspector package: records the actors of any XState program for a page in the user's browser. Never here: a change of the
 * program's behaviour, an unbounded queue, a request to another machine.
 */
export { createInspector } from './node.ts';
export type * from './options.ts';
