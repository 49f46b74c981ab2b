/** One turn: its driver and machine, its model requests, calls, approvals, budget, files and end. Begin with `TurnRun`. */
export { ApprovalDecisions, type MadeDecision } from './approvals.ts';
export type { ResumedTurn } from './context.ts';
export { preloadTurnParts } from './driver.ts';
export { factsOf, type Suspension, type TurnFacts } from './facts.ts';
export { type SuspendOptions, TurnRun } from './run.ts';
export type { SpawningCall, TurnPlace, TurnThread } from './thread.ts';
