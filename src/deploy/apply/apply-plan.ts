import { DeployError } from '../errors.ts';
import { layoutOf, type StackLayout } from '../layout.ts';
import type { Plan } from '../stack-plan.ts';
import { ChangeLog, type LogOptions } from './change-log.ts';
import { ChangeRun, checkPhases, undoAll } from './change-run.ts';
import { type ChangeState, recordOfChange } from './change-state.ts';
import type { ChangeRecord, JournalEntry } from './entries.ts';
import { cancelled, stepFailure, unfinished } from './failures.ts';
import { readJournal } from './journal.ts';
import { checkFiles } from './preflight.ts';
import type { ObserveChange } from './progress.ts';
import { StackFiles } from './stack-files.ts';
import type { StepEffects } from './step-effects.ts';
import { undoFailure } from './undo.ts';

export interface ApplyOptions {
  readonly plan: Plan;
  readonly effects: StepEffects;
  readonly observe: ObserveChange;
  /** Ends it like a failure. Undoing is not ended by it. */
  readonly signal: AbortSignal;
  readonly now: () => Date;
  /**
   * Shows created secrets, by their names, after the last step and before the journal records the end: a kill in between
   * shows them once more, never not at all.
   */
  readonly showSecrets?: (reveals: readonly string[]) => void | Promise<void>;
  /** For tests: called after each line of the journal is on disk. */
  readonly onJournal?: (entry: JournalEntry) => void | Promise<void>;
}

export type Outcome =
  | {
      readonly state: 'done';
      /** Names of secrets to show, also of earlier, interrupted attempts of this command. */
      readonly reveals: readonly string[];
      /** Steps by which something became different, in all attempts. */
      readonly changed: readonly string[];
    }
  | { readonly state: 'undone' | 'kept' | 'undoFailed'; readonly failure: DeployError };

/** Steps that change nothing: checks, downloads, waits. */
const changesNothing = new Set([
  'checkPorts',
  'checkComposition',
  'checkGateway',
  'awaitHealthy',
  'pullImages',
  'saveState',
  'giveTo',
]);

/**
 * Carries out a plan. After a kill at any moment the same command resumes it, and `recoverForeign` reverts it before
 * another. The caller holds the lock of the stack.
 *
 * @returns the outcome; a failure after the first step is an outcome, too
 * @throws DeployError before the first step, with nothing changed: editedFile, foreignFile, fileFailed, unfinishedChange, cancelled, diskFull
 */
export async function applyPlan(options: ApplyOptions): Promise<Outcome> {
  const { plan, signal } = options;
  checkPhases(plan);
  const layout = layoutOf(plan.directory);
  const content = readJournal(layout);
  if (content.open && content.open.command !== plan.command)
    throw unfinished(content.open.command, content.open.begunAt);
  checkFiles(plan, new StackFiles(layout.directory, 'none'));
  if (signal.aborted) throw cancelled();
  const log = await ChangeLog.open({ layout, now: options.now, onJournal: options.onJournal }, content, plan);
  const run = new ChangeRun(options, log);
  const end = await run.run();
  return settle[end](log, run.failure ?? cancelled(), options);
}

type Settle = (log: ChangeLog, failure: DeployError, options: ApplyOptions) => Promise<Outcome>;

const settle: { readonly [S in Outcome['state']]: Settle } = {
  async done(log, _, { showSecrets }) {
    const { owed, steps } = log.state;
    const changed = [...steps.values()].filter(({ step, isChanged }) => isChanged && !changesNothing.has(step.do));
    log.backup.spendReserve();
    if (owed.length > 0) await showSecrets?.(owed);
    await log.end('done');
    return { state: 'done', reveals: owed, changed: changed.map(({ key }) => key) };
  },
  undone: (log, failure) => endUndone(log, failure, 'undone'),
  undoFailed: (log, failure) => endUndone(log, failure, 'undoFailed'),
  async kept(log, failure) {
    log.backup.spendReserve();
    await log.note({ type: 'stopped', failure: { code: failure.code, message: failure.message } });
    return { state: 'kept', failure };
  },
};

/** Where its end cannot be written down the next command takes it back once more, and that has to be known. */
async function endUndone(log: ChangeLog, failure: DeployError, state: 'undone' | 'undoFailed'): Promise<Outcome> {
  try {
    await log.end(state);
    return { state, failure };
  } catch (error) {
    const problem = { key: 'journal', error: stepFailure(error, 'writeFile', 'journal') };
    return { state: 'undoFailed', failure: undoFailure([problem], failure.message, log.backup.directory) };
  }
}

/** A change that has been begun and not ended. */
export interface OpenChange extends Pick<ChangeState, 'command' | 'onFailure' | 'isUndoing'> {
  /** ISO 8601. */
  readonly since: string;
  /** Steps that are done. */
  readonly done: readonly string[];
  /** Failure that stopped it; null: it was killed, or is at work. */
  readonly failure: ChangeRecord['failure'];
}

/** Reads the unfinished change. The lock shows whether a process works on it now. */
export function openChange(layout: StackLayout): OpenChange | null {
  const { open } = readJournal(layout);
  if (!open) return null;
  const { command, onFailure, isUndoing, begunAt: since, done, failure } = open;
  return { command, onFailure, isUndoing, since, failure, done: [...done] };
}

/** The last `n` changes, newest first, an unfinished one among them. */
export function lastChanges(layout: StackLayout, n: number): readonly ChangeRecord[] {
  const { ended, open } = readJournal(layout);
  const all = open ? [...ended, recordOfChange(open)] : ended;
  return all.slice(-n).reverse();
}

/** Whether a failed change is a restart that left no file half-written, so that another command may follow it. */
function leavesNothing({ command, steps }: ChangeState): boolean {
  const kinds = [...steps.values()].map(({ step }) => step.do);
  const isStarting = kinds.includes('start');
  return command === 'restart' && (isStarting || !kinds.some((kind) => !changesNothing.has(kind)));
}

export interface RecoverOptions extends LogOptions {
  /** Command that is about to run. */
  readonly command: Plan['command'];
  readonly effects: StepEffects;
  readonly observe: ObserveChange;
}

/**
 * Reverts the unfinished change of another command, before a command makes its plan. A change of the same command stays, for
 * `applyPlan` to resume. The caller holds the lock of the stack.
 *
 * @returns the change that was taken back; null without one
 * @throws DeployError unfinishedChange when the other command must be run again; undoFailed, after which the change counts as ended
 */
export async function recoverForeign(options: RecoverOptions): Promise<ChangeRecord | null> {
  const content = readJournal(options.layout);
  const { open } = content;
  if (!open || open.command === options.command) return null;
  if (open.onFailure === 'keep' && !leavesNothing(open)) throw unfinished(open.command, open.begunAt);
  const log = ChangeLog.take(options, content, open);
  if (open.onFailure === 'keep') {
    await log.end('abandoned');
    return recordOfChange(log.state);
  }
  const { effects, observe } = options;
  const onLine = (line: string) => observe({ type: 'output', line });
  const reason = `\`oratorio server ${open.command}\` of ${open.begunAt} was interrupted.`;
  try {
    const tools = { log, effects, options: { signal: new AbortController().signal, onLine } };
    await undoAll(tools, new DeployError('cancelled', reason), observe);
  } catch (error) {
    if (error instanceof DeployError && error.code === 'undoFailed') await log.end('undoFailed');
    throw error;
  }
  await log.end('undone');
  return recordOfChange(log.state);
}
