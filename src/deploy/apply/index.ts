/**
 * Carries out a plan on disk and through the given step effects: file by file, each fact in a journal before anything follows
 * from it, one command at a time. A kill at any moment leaves something that the same command goes on with, and that another
 * takes back first; a failure is taken back at once. Called by the commands of `oratorio server`. Never here: what a plan
 * says, how a container engine is spoken to, what is shown.
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
