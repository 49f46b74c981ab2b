/**
 * Work of the backend that is not a review: what deliveries, commands, the clock and the outbox lead to. Every job may be done
 * twice and has the same end. Called by whoever assembles the backend. Never here: what a review is (`runs`), how the forge is
 * spoken to (`github`), SQL.
 */
export { type Failure, failureOf, pauseAfter } from './failure.ts';
export { leaveEnded as settleChange } from './items.ts';
export { type JobResult, Lane, type LaneOptions } from './lane.ts';
export { retryPolicies } from './limits.ts';
export { isDue, Roles, type RolesOptions } from './roles.ts';
export type { JobRuns, JobSource, JobWorkerOptions } from './types.ts';
export { createJobWorker, type JobWorker } from './worker.ts';
