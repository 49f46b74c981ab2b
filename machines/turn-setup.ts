/** Actors, delays, guards and actions of the turn machine, by name. */
import { assign, emit, fromPromise, setup } from 'xstate';
import type { Failure } from './failure.ts';
import type {
  Inference,
  InferenceInput,
  PreparedTurn,
  ReviewedCalls,
  ToolRun,
  TurnContext,
  TurnEmitted,
  TurnEvent,
  TurnInput,
  TurnInterrupter,
  TurnKey,
  TurnTokens,
} from './turn-types.ts';

const notProvided = () => Promise.reject(new Error('not provided'));

export const turnSetup = setup({
  types: {
    input: {} as TurnInput,
    context: {} as TurnContext,
    events: {} as TurnEvent,
    emitted: {} as TurnEmitted,
  },
  actors: {
    /** Collects the messages and tools for the model. */
    prepare: fromPromise<PreparedTurn, TurnKey>(notProvided),
    /** Replaces older turns by a summary. */
    compact: fromPromise<void, TurnKey>(notProvided),
    /** Sends one request to the model and streams its answer. */
    infer: fromPromise<Inference, InferenceInput>(notProvided),
    /** Finds the calls that need approval. */
    review: fromPromise<ReviewedCalls, TurnKey>(notProvided),
    /** Runs the calls that are allowed. */
    runTools: fromPromise<ToolRun, TurnKey>(notProvided),
    /** Resolves when the aborted work of the turn has ended. */
    settle: fromPromise<void, TurnKey>(notProvided),
  },
  delays: { approvalTimeout: 300_000, cancelGrace: 5_000 },
  guards: {
    isTooLong: (_, { isTooLong }: PreparedTurn) => isTooLong,
    canCompactAfter: ({ context }, { code }: Failure) => code === 'contextTooLong' && !context.hasCompacted,
    reachesRoundLimit: ({ context }, { calls, isSteered }: Inference) =>
      (calls > 0 || isSteered) && context.rounds + 1 >= context.maxRounds,
    hasCalls: (_, { calls }: Inference) => calls > 0,
    isSteered: (_, { isSteered, clientCalls }: Inference) => isSteered && clientCalls === 0,
    needsApproval: (_, { pending }: ReviewedCalls) => pending.length > 0,
    areAllDecided: ({ context }) => context.pending.length === 0,
    isLooping: (_, { isLooping }: ToolRun) => isLooping,
    hasClientCalls: ({ context }) => context.clientCalls > 0,
    isCompleted: ({ context }) => context.outcome === 'completed',
    isFailed: ({ context }) => context.outcome === 'failed',
  },
  actions: {
    countRequest: assign({ requests: ({ context }) => context.requests + 1 }),
    countTokens: assign(({ context }, { tokens }: { readonly tokens: TurnTokens }) => ({
      tokens: {
        inputTokens: context.tokens.inputTokens + tokens.inputTokens,
        outputTokens: context.tokens.outputTokens + tokens.outputTokens,
      },
    })),
    recordAnswer: assign(({ context }, { clientCalls, finish }: Inference) => ({
      rounds: context.rounds + 1,
      clientCalls,
      finish,
    })),
    recordCompaction: assign({ hasCompacted: true }),
    recordPendingApprovals: assign((_, { pending }: ReviewedCalls) => ({ pending })),
    removePendingApproval: assign(({ context }, { requestId }: { readonly requestId: string }) => ({
      pending: context.pending.filter((id) => id !== requestId),
    })),
    clearPendingApprovals: assign({ pending: [] }),
    recordInterrupter: assign((_, { by }: { readonly by: TurnInterrupter }) => ({ interruptedBy: by })),
    setFinishToLength: assign({ finish: 'length' }),
    setFinishToToolCalls: assign({ finish: 'toolCalls' }),
    recordCompletion: assign({ outcome: 'completed' }),
    recordCancellation: assign({ outcome: 'cancelled' }),
    recordFailure: assign((_, failure: Failure) => ({ outcome: 'failed' as const, failure })),
    recordStorageFailure: assign((_, { message }: { readonly message: string }) => ({
      outcome: 'failed' as const,
      failure: { code: 'storageFailed', message, isRetryable: true },
    })),
    recordStored: assign({ isStored: true }),
    emitWaiting: emit({ type: 'turn.waiting' }),
    emitResumed: emit({ type: 'turn.resumed' }),
    emitApprovalsExpired: emit(({ context }) => ({ type: 'turn.approvalsExpired', requestIds: context.pending })),
    emitLimitReached: emit(({ context }) => ({ type: 'turn.limitReached', rounds: context.rounds })),
    emitEnding: emit({ type: 'turn.ending' }),
    emitEnded: emit(({ context }) => ({ type: 'turn.ended', isStored: context.isStored })),
  },
});
