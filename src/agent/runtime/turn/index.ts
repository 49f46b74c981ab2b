/** One turn: its driver and machine, its model requests, calls, approvals, budget, files and end. Begin with `TurnRun`. */
export { ApprovalDecisions, type MadeDecision } from './approvals.ts';
export type { SuspendOptions } from './continuation.ts';
export { preloadTurnParts } from './driver.ts';
export { factsOf, type ResumedTurn, type Suspension, type TurnFacts } from './facts.ts';
export { itemId } from './items.ts';
export { resumedOptions } from './rules.ts';
export { TurnRun } from './run.ts';
export type { SpawningCall, TurnPlace, TurnThread } from './thread.ts';
