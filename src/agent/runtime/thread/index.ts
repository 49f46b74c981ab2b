/** Threads: starts, lists, forks, merges and deletes them, and gives each its turns, queue and files. */
export { ThreadService, type ThreadServiceOptions } from './service.ts';
export type { DaySpending } from './turns.ts';
