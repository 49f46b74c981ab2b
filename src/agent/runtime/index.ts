/** Threads and turns: starts, runs, queues and recovers them, and reports each change to the subscribers of a thread. */
export { Feed, type Listener, type ThreadEvent } from './feed.ts';
export { type DaySpending, ThreadService, type ThreadServiceOptions } from './thread/index.ts';
export { preloadTurnParts, type RuntimeSettings } from './turn/index.ts';
export type * from './types.ts';
