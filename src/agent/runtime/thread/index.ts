/** Threads: starts, lists, forks, merges and deletes them, and gives each its turns, queue and files. */
export { ThreadCatalog } from './catalog.ts';
export { TurnControl } from './control.ts';
export { ThreadFiles } from './files.ts';
export { ThreadMoves } from './moves.ts';
export { endCrashedTraces, recoverTurns } from './recovery.ts';
export { ThreadRegistry } from './registry.ts';
export { ThreadTools } from './tools.ts';
export { Turns } from './turns.ts';
