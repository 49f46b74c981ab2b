/**
 * Leads moves of conversations between machines. The states are in `machines/move.ts`; both agent servers keep a record of each move.
 * Never here: files and rows of a conversation, which only its agent server reads and writes.
 */
export { stepHere } from './ends.ts';
export { Moves } from './moves.ts';
