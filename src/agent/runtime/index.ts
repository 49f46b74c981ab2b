/** Threads and turns: starts, runs, queues and recovers them, and reports each change to the subscribers of a thread. */
export { Feed, type Listener, type ThreadEvent } from './feed.ts';
export { ThreadService, type ThreadServiceOptions } from './thread-service.ts';
export { preloadTurnParts } from './turn-driver.ts';
export type { RuntimeSettings } from './turn-host.ts';
export type { DaySpending } from './turns.ts';
export type * from './types.ts';
