/** One turn: its driver and machine, its model requests, calls, approvals, budget, files and end. */
export { ApprovalDecisions, type MadeDecision } from './approval-decisions.ts';
export { preloadTurnParts } from './driver.ts';
export type { RuntimeSettings, TurnHost } from './host.ts';
export { TurnRun } from './run.ts';
