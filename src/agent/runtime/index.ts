/** Threads and turns: starts, runs, queues and recovers them, and reports each change to the subscribers of a thread. */
export { askedEvent, Feed, isAsked, isResolved, type Listener, type ThreadEvent } from './feed.ts';
export { Runtime } from './runtime.ts';
export type { DaySpending, RuntimeOptions, RuntimeSettings } from './services.ts';
export { preloadTurnParts } from './turn/index.ts';
export type * from './types.ts';
