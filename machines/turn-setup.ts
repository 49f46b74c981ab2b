/** Actors, delays, guards and actions of the turn machine, by name. */
import { assign, type ErrorActorEvent, emit, enqueueActions, fromPromise, setup } from 'xstate';
import { exponentialBackoffMs, jitters } from '../src/lib/browser.ts';
import type { Failure } from './failure.ts';
import { nextRandom } from './restart-policy.ts';
import type {
  CheckedEnd,
  CheckedTurn,
  Delegated,
  FallbackInput,
  Inference,
  InferenceInput,
  QuotaInput,
  QuotaWait,
  Resumption,
  ReviewedCalls,
  ToolRun,
  TurnContext,
  TurnEmitted,
  TurnEvent,
  TurnInput,
  TurnInterrupter,
  TurnKey,
  TurnPatience,
  TurnTokens,
} from './turn-types.ts';

type HoldAnswered = Extract<TurnEvent, { type: 'HOLD.ANSWERED' }>;

/** Compactions without an answer in between after which the conversation counts as too long. */
const maxCompactions = 3;
/** Refused parts that are left out without an answer in between. */
const maxOmissions = 8;
/** Longest pause that an upstream may ask for; with a longer one the request is not repeated. */
export const maxRetryAfterMs = 120_000;
/** Answers in a row with a call that was cut off, after which the turn ends. */
const maxCutAnswers = 3;
/** Part of the repetitions of a request that answers without content may use: more would cost without hope. */
const emptyShare = 0.25;
/** 0.5 s, 1 s, 2 s, … 30 s, each up to a quarter shorter: eight repetitions wait about a minute and a half. */
const retryBackoff = { firstMs: 500, capMs: 30_000, jitter: jitters.upperQuarter };

/** 1, 2, 4, … 60 minutes: pauses of a wait for a quota whose reset is unknown, or did not help. */
const quotaBackoff = { firstMs: 60_000, capMs: 3_600_000, jitter: jitters.none };

/** Next pause of a wait for a quota, in milliseconds. The first one ends at the stated reset. */
const quotaPauseMs = ({ quotaWaits }: TurnPatience, { resetMs = 0 }: Failure): number =>
  quotaWaits === 0 && resetMs > 0 ? resetMs : Math.max(resetMs, exponentialBackoffMs(quotaWaits, quotaBackoff, 0));

/** A rate that is exceeded is free again some time; an account that is used up only when its reset is known. */
const isQuota = ({ code, resetMs }: Failure): boolean =>
  code === 'upstreamRateLimited' || (code === 'upstreamQuotaExceeded' && resetMs !== undefined);

const canRetry = (
  { limits, patience }: TurnContext,
  { isRetryable, retryAfterMs = 0, maxRetries = limits.maxRetries }: Failure,
): boolean =>
  isRetryable && patience.failedRequests < Math.min(limits.maxRetries, maxRetries) && retryAfterMs <= maxRetryAfterMs;

/** Longest time in `held`, in milliseconds. @param approvalTimeoutMs time for an answer about a budget */
export const holdTimeoutOf = ({ failure, limits }: TurnContext, approvalTimeoutMs: number): number =>
  failure?.code === 'budgetReached' ? approvalTimeoutMs : limits.maxQuotaWaitMs;

/** Whether the turn waits without asking. One answer covers all waits until the next answer of the model. */
const isQuotaWaitAccepted = ({ limits, patience: { quotaAnswer, quotaWaits } }: TurnContext): boolean =>
  quotaAnswer === 'accepted' || (quotaAnswer === null && (quotaWaits > 1 || !limits.asksForQuota));

/** Present wait for a quota. */
export const quotaWaitOf = ({ failure, patience }: Pick<TurnContext, 'failure' | 'patience'>): QuotaWait => ({
  until: patience.quotaUntil,
  pauseMs: Math.max(0, patience.quotaUntil - (failure?.at ?? 0)),
  isKnown: failure?.resetMs !== undefined,
  reason: failure?.message ?? '',
});

const isEmpty = ({ flaw, isSteered }: Inference): boolean => flaw === 'empty' && !isSteered;

/** Failure of an answer without content. */
export const emptyFailure = ({ finish }: Inference): Failure => ({
  code: 'upstreamEmptyAnswer',
  message:
    finish === 'length'
      ? 'The model reached its output limit before it wrote a text or a call.'
      : 'The model ended its answer without a text or a call.',
  isRetryable: true,
});

/** Sum of two costs; unknown when either is. */
const sumOf = (a: number | null, b: number | null): number | null => (a === null || b === null ? null : a + b);

const notProvided = () => Promise.reject(new Error('not provided'));

export const turnSetup = setup({
  types: {
    input: {} as TurnInput,
    context: {} as TurnContext,
    events: {} as TurnEvent | ErrorActorEvent,
    emitted: {} as TurnEmitted,
  },
  actors: {
    /** Restores the conversation of a resumed turn, and chooses the state in which it continues. */
    resume: fromPromise<Resumption, TurnKey>(notProvided),
    /** Collects the messages and tools for the model. */
    prepare: fromPromise<void, TurnKey>(notProvided),
    /** Compares the conversation with the context window, and the cost with the budgets. */
    check: fromPromise<CheckedTurn, TurnKey>(notProvided),
    /** Replaces the older part of the conversation by a summary. */
    compact: fromPromise<void, TurnKey>(notProvided),
    /** Sends one request to the model and streams its answer. */
    infer: fromPromise<Inference, InferenceInput>(notProvided),
    /** Switches to the next fallback model. */
    fallBack: fromPromise<void, FallbackInput>(notProvided),
    /** Resolves at a time of the wall clock. */
    awaitReset: fromPromise<void, QuotaInput>(notProvided),
    /** Finds the calls that need approval. */
    review: fromPromise<ReviewedCalls, TurnKey>(notProvided),
    /** Runs the hooks of the turn's end. */
    checkEnd: fromPromise<CheckedEnd, TurnKey>(notProvided),
    /** Waits until the files are saved that a call may change. A failure is reported, and does not stop the turn. */
    secure: fromPromise<void, TurnKey>(notProvided),
    /** Runs the calls that are allowed. */
    runTools: fromPromise<ToolRun, TurnKey>(notProvided),
    /** Has an external agent do the turn; its messages and calls are streamed. */
    delegate: fromPromise<Delegated, TurnKey>(notProvided),
    /** Asks the model for an answer without tools. */
    conclude: fromPromise<void, TurnKey>(notProvided),
    /** Resolves when the aborted work of the turn has ended. */
    settle: fromPromise<void, TurnKey>(notProvided),
  },
  delays: {
    approvalTimeout: 300_000,
    holdTimeout: ({ context }) => holdTimeoutOf(context, 300_000),
    cancelGrace: 5_000,
    retryPause: ({ context }) => context.patience.retryMs,
  },
  guards: {
    /** The first request of the turn was prepared before its process ended. */
    isResumed: ({ context }) => context.limits.isResumed,
    continuesIn: (_, { next, state }: Resumption & { readonly state: string }) => next === state,
    isOverBudget: (_, { usedUpBudget }: CheckedTurn) => usedUpBudget !== null,
    isTooLong: (_, { isTooLong }: CheckedTurn) => isTooLong,
    canCompactAfter: ({ context }, { code }: Failure) =>
      code === 'contextTooLong' && context.patience.compactions < maxCompactions,
    canLeaveOut: ({ context }, { leftOut }: Failure) =>
      leftOut !== undefined && context.patience.omissions < maxOmissions,
    canRetry: ({ context }, failure: Failure) => canRetry(context, failure),
    /** A conversation that is too long for one model may fit into another one. */
    canFallBack: ({ context }) => context.patience.fallbacks < context.limits.fallbackModels,
    /** All waits since the last answer are bounded together: a reset in a year is not waited for. */
    canWaitForQuota: ({ context: { limits, patience, interruptedBy, outcome } }, failure: Failure) =>
      isQuota(failure) &&
      interruptedBy === null &&
      outcome === null &&
      patience.quotaWaitedMs + quotaPauseMs(patience, failure) <= limits.maxQuotaWaitMs,
    isHoldRefused: ({ context }) => context.patience.quotaAnswer === 'refused',
    isQuotaWaitAccepted: ({ context }) => isQuotaWaitAccepted(context),
    isHurried: (_, { answer }: HoldAnswered) => answer === 'hurried',
    /** An answer without content, or without the call that it announced, is asked for again. */
    mustAskAgain: ({ context: { limits, patience } }, { flaw, isSteered }: Inference) =>
      (flaw === 'empty' || flaw === 'lostCall') &&
      !isSteered &&
      patience.failedRequests < limits.maxRetries &&
      patience.emptyAnswers < Math.ceil(limits.maxRetries * emptyShare),
    canReplaceSilentModel: ({ context: { limits, patience } }, answer: Inference) =>
      isEmpty(answer) && !patience.hasCalled && patience.fallbacks < limits.fallbackModels,
    /** Calls of a turn may be its whole result. */
    isWithoutResult: ({ context: { patience } }, answer: Inference) => isEmpty(answer) && !patience.hasCalled,
    /** A model that prints its calls is notified once. */
    mustCorrect: ({ context: { limits, patience, rounds } }, { flaw }: Inference) =>
      flaw === 'printedCall' && patience.corrections === 0 && rounds + 1 < limits.maxRounds,
    reachesRoundLimit: ({ context }, { calls, isSteered }: Inference) =>
      (calls > 0 || isSteered) && context.rounds + 1 >= context.limits.maxRounds,
    hasCalls: (_, { calls }: Inference) => calls > 0,
    isSteered: (_, { isSteered, clientCalls }: Inference) => isSteered && clientCalls === 0,
    /** An answer without calls may be the end, unless the turn was held up too often. */
    mustCheckEnd: ({ context: { limits, patience } }, { clientCalls }: Inference) =>
      clientCalls === 0 && patience.heldUp < limits.endChecks,
    isUndisputed: (_, { continues }: CheckedEnd) => !continues,
    needsApproval: (_, { pending }: ReviewedCalls) => pending.length > 0,
    areAllDecided: ({ context }) => context.pending.length === 0,
    /** The model repeats a call, or its calls are cut off again and again. */
    areCallsInVain: ({ context: { patience } }, { repeated, isCut }: ToolRun) =>
      repeated !== null || (isCut && patience.cutAnswers + 1 >= maxCutAnswers),
    hasClientCalls: ({ context }) => context.clientCalls > 0,
    isDelegated: ({ context }) => context.limits.isDelegated,
    isCompleted: ({ context }) => context.outcome === 'completed',
    isFailed: ({ context }) => context.outcome === 'failed',
  },
  actions: {
    countRequest: assign({ requests: ({ context }) => context.requests + 1 }),
    countTokens: assign(({ context: { tokens: sum } }, { tokens }: { readonly tokens: TurnTokens }) => ({
      tokens: {
        inputTokens: sum.inputTokens + tokens.inputTokens,
        outputTokens: sum.outputTokens + tokens.outputTokens,
        cachedInputTokens: sum.cachedInputTokens + tokens.cachedInputTokens,
        reasoningTokens: sum.reasoningTokens + tokens.reasoningTokens,
        costUsd: sumOf(sum.costUsd, tokens.costUsd),
      },
    })),
    recordAnswer: assign(({ context }, { calls, clientCalls, finish }: Inference) => ({
      rounds: context.rounds + 1,
      clientCalls,
      finish,
      patience: {
        ...context.patience,
        compactions: 0,
        omissions: 0,
        failedRequests: 0,
        emptyAnswers: 0,
        quotaWaits: 0,
        quotaWaitedMs: 0,
        quotaUntil: 0,
        quotaAnswer: null,
        hasCalled: context.patience.hasCalled || calls > 0,
      },
    })),
    countEmptyAnswer: assign(({ context: { patience } }) => ({
      patience: { ...patience, emptyAnswers: patience.emptyAnswers + 1 },
    })),
    countCorrection: assign(({ context: { patience } }) => ({
      patience: { ...patience, corrections: patience.corrections + 1 },
    })),
    emitCallPrinted: emit({ type: 'turn.callPrinted' }),
    /** After calls, a last answer without text is not a failure. */
    emitSilentEnd: enqueueActions(({ enqueue }, answer: Inference) => {
      if (isEmpty(answer)) enqueue.emit({ type: 'turn.endedSilently' });
    }),
    /** Counts answers in a row with a cut call. */
    updateCutAnswers: assign(({ context: { patience } }, { isCut }: ToolRun) => ({
      patience: { ...patience, cutAnswers: isCut ? patience.cutAnswers + 1 : 0 },
    })),
    countCompaction: assign(({ context: { patience } }) => ({
      patience: { ...patience, compactions: patience.compactions + 1 },
    })),
    countHeldUp: assign(({ context: { patience } }) => ({ patience: { ...patience, heldUp: patience.heldUp + 1 } })),
    countOmission: assign(({ context: { patience } }) => ({
      patience: { ...patience, omissions: patience.omissions + 1 },
    })),
    emitLeavingOut: emit((_, { message, leftOut = '' }: Failure) => ({
      type: 'turn.leavingOut',
      reason: message,
      leftOut,
    })),
    scheduleRetry: assign(({ context: { patience } }, { retryAfterMs }: Failure) => {
      const { random, seed } = nextRandom(patience.seed);
      const pause = Math.round(exponentialBackoffMs(patience.failedRequests, retryBackoff, random));
      const failedRequests = patience.failedRequests + 1;
      return { patience: { ...patience, seed, failedRequests, retryMs: retryAfterMs ?? pause } };
    }),
    emitRetrying: emit(({ context }, { message }: Failure) => ({
      type: 'turn.retrying',
      attempt: context.patience.failedRequests,
      waitMs: context.patience.retryMs,
      reason: message,
    })),
    emitFallingBack: emit(({ context }, { message }: Failure) => ({
      type: 'turn.fallingBack',
      index: context.patience.fallbacks,
      reason: message,
    })),
    countFallback: assign(({ context: { patience } }) => ({
      patience: {
        ...patience,
        ...{ fallbacks: patience.fallbacks + 1, failedRequests: 0, compactions: 0, omissions: 0, emptyAnswers: 0 },
      },
    })),
    recordUsedUpBudget: assign(({ context: { patience } }, { usedUpBudget }: CheckedTurn) => ({
      usedUpBudget,
      patience: { ...patience, quotaAnswer: null },
      failure: { code: 'budgetReached', message: usedUpBudget ?? '', isRetryable: false },
    })),
    emitBudgetReached: emit(({ context }) => ({ type: 'turn.budgetReached', budget: context.usedUpBudget ?? '' })),
    /** `at` of the failure is the time of the refusal. */
    scheduleQuotaWait: assign(({ context: { patience } }, failure: Failure) => {
      const pauseMs = quotaPauseMs(patience, failure);
      return {
        failure,
        patience: {
          ...patience,
          failedRequests: 0,
          quotaWaits: patience.quotaWaits + 1,
          quotaWaitedMs: patience.quotaWaitedMs + pauseMs,
          quotaUntil: (failure.at ?? 0) + pauseMs,
          quotaAnswer: null,
        },
      };
    }),
    /** A wait that is hurried ends at once. */
    recordHoldAnswer: assign(({ context: { patience } }, { answer }: HoldAnswered) => ({
      patience: {
        ...patience,
        ...(answer === 'hurried' ? { quotaAnswer: 'accepted', quotaUntil: 0 } : { quotaAnswer: answer }),
      },
    })),
    emitQuotaReached: emit(({ context }) => ({ type: 'turn.quotaReached', ...quotaWaitOf(context) })),
    /** Asks only while no answer is known. */
    emitQuotaAsked: enqueueActions(({ context, enqueue }) => {
      if (context.patience.quotaAnswer !== null || isQuotaWaitAccepted(context)) return;
      enqueue.emit({ type: 'turn.quotaAsked', ...quotaWaitOf(context) });
    }),
    emitHoldExpired: emit({ type: 'turn.holdExpired' }),
    recordHeldFailure: assign({ outcome: 'failed' }),
    recordPendingApprovals: assign((_, { pending }: ReviewedCalls) => ({ pending })),
    addPendingApproval: assign(({ context }, { requestId }: { readonly requestId: string }) => ({
      pending: [...context.pending, requestId],
    })),
    recordDelegatedEnd: assign((_, { isCancelled, finish }: Delegated) =>
      isCancelled
        ? { interruptedBy: 'approval' as const, outcome: 'cancelled' as const }
        : { finish, outcome: 'completed' as const },
    ),
    removePendingApproval: assign(({ context }, { requestId }: { readonly requestId: string }) => ({
      pending: context.pending.filter((id) => id !== requestId),
    })),
    clearPendingApprovals: assign({ pending: [] }),
    recordInterrupter: assign((_, { by }: { readonly by: TurnInterrupter }) => ({ interruptedBy: by })),
    setFinishToLength: assign({ finish: 'length' }),
    setFinishToToolCalls: assign({ finish: 'toolCalls' }),
    recordCompletion: assign({ outcome: 'completed' }),
    recordCancellation: assign({ outcome: 'cancelled' }),
    /** An accepted interrupt counts. */
    recordFailure: assign(({ context }, failure: Failure) =>
      context.interruptedBy === null
        ? { outcome: 'failed' as const, failure }
        : { outcome: context.outcome ?? ('cancelled' as const) },
    ),
    recordStorageFailure: assign((_, { message }: { readonly message: string }) => ({
      outcome: 'failed' as const,
      failure: { code: 'storageFailed', message, isRetryable: true },
    })),
    /** An interrupt before the end of the process counts. */
    recordSavedEnd: assign({ outcome: ({ context }) => context.outcome ?? ('cancelled' as const) }),
    recordStored: assign({ isStored: true }),
    emitWaiting: emit({ type: 'turn.waiting' }),
    emitResumed: emit({ type: 'turn.resumed' }),
    emitApprovalsExpired: emit(({ context }) => ({ type: 'turn.approvalsExpired', requestIds: context.pending })),
    emitLimitReached: emit(({ context }) => ({ type: 'turn.limitReached', rounds: context.rounds })),
    emitCallsInVain: emit(({ context: { rounds, patience } }, { repeated }: ToolRun) =>
      repeated === null
        ? { type: 'turn.cutOff' as const, answers: patience.cutAnswers }
        : { type: 'turn.stuck' as const, rounds, tool: repeated },
    ),
    emitNotConcluded: emit((_, { message }: Failure) => ({ type: 'turn.notConcluded', reason: message })),
    emitEnding: emit({ type: 'turn.ending' }),
    emitEnded: emit(({ context }) => ({ type: 'turn.ended', isStored: context.isStored })),
  },
});
