/** One turn: its driver and machine, its model requests, calls, approvals, budget, files and end. Begin with `TurnRun`. */
export type { Decider } from './call-review.ts';
export type { SuspendOptions } from './continuation.ts';
export { ApprovalDecisions, type MadeDecision } from './decisions.ts';
export { preloadTurnParts } from './driver.ts';
export { factsOf, type ResumedTurn, type Suspension, type TurnFacts } from './facts.ts';
export { itemId } from './items.ts';
export { resumedOptions } from './rules.ts';
export { TurnRun } from './run.ts';
export type { SpawningCall, TurnPlace, TurnThread } from './thread.ts';
