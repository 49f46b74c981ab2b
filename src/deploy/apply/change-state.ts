import type { ServiceName, StackCommand } from '../stack-plan.ts';
import type { ChangeEntry, ChangeRecord, Former, JournalEntry, StepRecord } from './entries.ts';

/** One step of a change, over all of its attempts. */
export interface StepState {
  readonly key: string;
  /** Step of the last attempt. */
  readonly step: StepRecord;
  /** Before the change touched it first. */
  readonly former: Former;
  readonly state: 'doing' | 'did' | 'undone';
  /** Something was done, not found so. */
  readonly isChanged: boolean;
  /** Hashes of the written contents. */
  readonly written: readonly string[];
}

/** State of one change by its journal. */
export interface ChangeState {
  readonly change: string;
  readonly command: StackCommand;
  readonly begunAt: string;
  readonly at: string;
  readonly onFailure: 'undo' | 'keep';
  readonly failure: ChangeRecord['failure'];
  readonly outcome: ChangeRecord['outcome'];
  readonly isUndoing: boolean;
  /** In the order in which they were begun. */
  readonly steps: ReadonlyMap<string, StepState>;
  /** Steps found done, or done. */
  readonly done: ReadonlySet<string>;
  /** Services that ran before the first of them was touched; null: none was. */
  readonly before: readonly ServiceName[] | null;
  /** Services were touched, and those that ran before have not been started again. */
  readonly mustRestart: boolean;
  /** Names of secrets that this attempt may have made. */
  readonly reveals: readonly string[];
  /** Names of secrets created by it, or before, that are in use and have not been shown. */
  readonly owed: readonly string[];
  /** Owed secrets of earlier changes. */
  readonly inherited: readonly string[];
}

type Fold<T extends ChangeEntry['type']> = (
  state: ChangeState,
  entry: Extract<ChangeEntry, { readonly type: T }>,
) => Partial<ChangeState>;

const folds: { readonly [T in Exclude<ChangeEntry['type'], 'begin'>]: Fold<T> } = {
  adopt: (_, { onFailure, reveals }) => ({ onFailure, reveals, failure: null, isUndoing: false }),
  doing: (state, entry) => ({ ...withBegun(state, entry), ...withServices(state, entry), ...withSecret(state, entry) }),
  did: ({ steps, done }, { key, result }) => {
    const known = steps.get(key);
    const next = known && { ...known, state: 'did' as const, isChanged: known.isChanged || result === 'done' };
    return { steps: next ? new Map(steps).set(key, next) : steps, done: new Set(done).add(key) };
  },
  undoing: (_, { failure }) => ({ failure, isUndoing: true }),
  undid: (state, { key }) => {
    const known = state.steps.get(key);
    const steps = known ? new Map(state.steps).set(key, { ...known, state: 'undone' as const }) : state.steps;
    const done = new Set([...state.done].filter((each) => each !== key));
    return { steps, done, owed: hasSecret(steps) ? state.owed : state.inherited };
  },
  restarted: () => ({ mustRestart: false, before: null }),
  stopped: (_, { failure }) => ({ failure }),
  end: (_, { outcome }) => ({ outcome }),
};

/** Computes the state after one more line. @param state null before the line that begins a change */
export function after(state: ChangeState | null, entry: ChangeEntry): ChangeState | null {
  if (entry.type === 'begin') return begun(entry);
  if (state?.change !== entry.change) return state;
  const fold = folds[entry.type] as Fold<ChangeEntry['type']>;
  return { ...state, at: entry.at, ...fold(state, entry) };
}

function begun(entry: Extract<JournalEntry, { readonly type: 'begin' }>): ChangeState {
  const { change, command, at, onFailure, reveals, owed } = entry;
  return {
    ...{ change, command, begunAt: at, at, onFailure, reveals, owed, inherited: owed },
    ...{ failure: null, outcome: 'unfinished', isUndoing: false },
    ...{ steps: new Map(), done: new Set(), before: null, mustRestart: false },
  };
}

/** A reverted step begins again; for any other the first attempt recorded the former state. */
const withBegun: Fold<'doing'> = ({ steps }, { key, step, former }) => {
  const known = steps.get(key);
  const earlier = known?.state === 'undone' ? undefined : known;
  const next = new Map(steps);
  if (!earlier) next.delete(key);
  const hashes = 'hash' in step ? [step.hash] : [];
  next.set(key, {
    ...{ key, step, state: 'doing' },
    former: earlier?.former ?? former,
    isChanged: earlier?.isChanged ?? false,
    written: [...(earlier?.written ?? []), ...hashes],
  });
  return { steps: next };
};

const withServices: Fold<'doing'> = ({ before }, { step, former }) => {
  const known = before ?? (former.kind === 'services' ? former.running : null);
  const touches = 'services' in step || step.do === 'saveState';
  return touches ? { before: known, mustRestart: true } : { before: known };
};

/** After the first write of a secret file, the secrets of the change may be in use. */
const withSecret: Fold<'doing'> = ({ owed, reveals }, { step }) =>
  step.do === 'writeFile' && step.isSecret ? { owed: [...new Set([...owed, ...reveals])] } : {};

/** Whether a secret that the change wrote is there. */
function hasSecret(steps: ChangeState['steps']): boolean {
  return [...steps.values()].some(({ step, state }) => 'isSecret' in step && step.isSecret && state !== 'undone');
}

/** Summary of a change, which is stored and shown. */
export function recordOfChange(state: ChangeState): ChangeRecord {
  const { change, command, begunAt, at, outcome } = state;
  const isDone = outcome === 'done';
  const failure = isDone ? null : state.failure;
  return { change, command, begunAt, at, outcome, failure, owed: isDone ? [] : [...state.owed] };
}
