/** Meaning of a turn snapshot for the runtime: pure functions, so that no caller reads its states. */
import type { SnapshotFrom, StateValue } from 'xstate';
import { type Failure, failureOf } from './failure.ts';
import type { turnMachine } from './turn.ts';
import type { ResumedState, SavedTurn, TurnFinish, TurnInterrupter, TurnTokens } from './turn-types.ts';

export type TurnSnapshot = SnapshotFrom<typeof turnMachine>;

/** Error of a turn, in the words of the protocol. */
export type TurnError = Omit<Failure, 'isRetryable' | 'maxRetries' | 'leftOut' | 'resetMs' | 'at'>;

/** End of a turn, in the words of the protocol. */
export type TurnEnd =
  | { readonly status: 'completed'; readonly finishReason: TurnFinish }
  | { readonly status: 'failed'; readonly error: TurnError }
  | { readonly status: 'cancelled'; readonly interruptedBy: TurnInterrupter };

/** State of a turn for its clients. */
export interface TurnState {
  readonly status: 'running' | 'waitingApproval' | 'waitingQuota' | TurnEnd['status'];
  /** Tokens of all requests that have ended. */
  readonly tokens: TurnTokens;
  /** An interrupt was accepted: errors of the aborted work are expected. */
  readonly isInterrupted: boolean;
  /** Set once the outcome is decided, before it is written. A failed write changes it to a failure. */
  readonly end: TurnEnd | undefined;
}

export function turnStateOf(snapshot: TurnSnapshot): TurnState {
  const end = turnEndOf(snapshot);
  return {
    status: end?.status ?? waitOf(snapshot) ?? 'running',
    tokens: snapshot.context.tokens,
    isInterrupted: snapshot.context.interruptedBy !== null,
    end,
  };
}

/** State of a turn for the next process; undefined while the turn begins or restores its own. */
export function savedTurnOf(snapshot: TurnSnapshot): SavedTurn | undefined {
  const { limits: _____, threadId: _, turnId: __, pending: ___, isStored: ____, ...context } = snapshot.context;
  const state = stateNameOf(snapshot.value);
  if (state === 'resuming' || state === 'beginning') return undefined;
  return { state, context };
}

/** States that are saved by the name of the whole: the next process chooses their inner state again. */
const savedWhole: ReadonlySet<string> = new Set(['delegating', 'waitingForQuota']);

/** Name of the innermost state, or of the state in `savedWhole` around it. */
function stateNameOf(value: StateValue): string {
  if (typeof value === 'string') return value;
  const [name = '', inner = name] = Object.entries(value)[0] ?? [];
  return savedWhole.has(name) ? name : stateNameOf(inner);
}

/**
 * State in which a resumed turn of the model continues, by its saved state. For an unknown saved state, the items decide.
 */
export const resumedStates: Readonly<Record<string, ResumedState>> = {
  checking: 'checking',
  compacting: 'checking',
  budgetReached: 'checking',
  waitingForQuota: 'waitingForQuota',
  retrying: 'checking',
  fallingBack: 'checking',
  inferring: 'checking',
  checkingEnd: 'checkingEnd',
  reviewing: 'reviewing',
  awaitingApproval: 'reviewing',
  securing: 'reviewing',
  runningTools: 'reviewing',
  concluding: 'concluding',
  cancelling: 'storing',
  storing: 'storing',
};

/** @param hasOpenCalls the items have calls without a result, which count more than the saved state */
export function resumedStateOf(saved: string, hasOpenCalls: boolean): ResumedState {
  const state = resumedStates[saved] ?? 'checking';
  return hasOpenCalls && state !== 'concluding' && state !== 'storing' ? 'reviewing' : state;
}

/** State in which a resumed turn of an external agent continues. */
export const resumedDelegationOf = (saved: string): ResumedState => {
  const state = resumedStates[saved];
  return state === 'storing' || state === 'waitingForQuota' ? state : 'securing';
};

/** Status of a turn that waits; undefined: it does not. */
function waitOf(snapshot: TurnSnapshot): 'waitingApproval' | 'waitingQuota' | undefined {
  if (snapshot.matches({ working: { held: 'waitingForQuota' } })) return 'waitingQuota';
  const isWaiting =
    snapshot.matches({ working: 'awaitingApproval' }) ||
    snapshot.matches({ working: { delegating: 'asking' } }) ||
    snapshot.matches({ working: 'held' });
  return isWaiting ? 'waitingApproval' : undefined;
}

function errorOf({ code, message, resetMs, retryAfterMs = resetMs }: Failure): TurnError {
  return { code, message, ...(retryAfterMs !== undefined && { retryAfterMs }) };
}

function turnEndOf({ context }: TurnSnapshot): TurnEnd | undefined {
  switch (context.outcome) {
    case 'completed':
      return { status: 'completed', finishReason: context.finish };
    case 'failed':
      return { status: 'failed', error: errorOf(context.failure ?? failureOf(undefined)) };
    case 'cancelled':
      return { status: 'cancelled', interruptedBy: context.interruptedBy ?? 'user' };
    default:
      return undefined;
  }
}
