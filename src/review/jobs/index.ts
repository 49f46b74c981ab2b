/**
 * Executes jobs that are not review runs: deliveries, commands, syncs, writes, clean-up and redelivery. Every job is idempotent.
 * `backend` starts the worker. Review runs belong to `runs`, calls to the source to `github`, SQL to `store`.
 */
export { type JobFailure, jobFailureOf, pauseAfter } from './failure.ts';
export { cancelWaitingRun } from './items.ts';
export { type JobResult, Lane, type LaneOptions } from './lane.ts';
export { retryPolicies } from './limits.ts';
export { isDue, Roles, type RolesOptions } from './roles.ts';
export type { JobRuns, JobSource, JobWorkerOptions } from './types.ts';
export { createJobWorker, type JobWorker } from './worker.ts';
