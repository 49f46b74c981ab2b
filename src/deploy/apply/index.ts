/**
 * Carries out a plan on disk and through the given step effects: file by file, each fact in a journal before anything follows
 * from it, one command at a time. After a kill at any moment the same command resumes the change, and another command
 * reverts it first; a failure is reverted at once. Called by the commands of `oratorio server`. Never here: the content of
 * plans, commands of container engines, output.
 */
export {
  type ApplyOptions,
  applyPlan,
  lastChanges,
  type OpenChange,
  type Outcome,
  openChange,
  type RecoverOptions,
  recoverForeign,
} from './apply-plan.ts';
export type { ChangeRecord, JournalEntry } from './entries.ts';
export type { ChangeEvent, ObserveChange } from './progress.ts';
export { type LockHolder, type LockOptions, lockHolder, withStackLock } from './stack-lock.ts';
export type { Did, EffectOptions, StepEffects, StepOf } from './step-effects.ts';
export { stepKey } from './step-keys.ts';
