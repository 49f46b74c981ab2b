/**
 * One turn of a conversation: a model is asked, tools run as it requests and as a person or a policy allows, and the turn ends in exactly
 * one of three ways. What streams by (deltas, items) is the business of the actors; here is only what can happen next.
 */
import { assign, emit, fromPromise, setup } from 'xstate';

export interface TurnInput {
  readonly threadId: string;
  readonly turnId: string;
  /** Requests to the model that this turn may make. */
  readonly maxRounds: number;
}

export interface TurnTokens {
  readonly inputTokens: number;
  readonly outputTokens: number;
}

export interface TurnFailure {
  readonly code: string;
  readonly message: string;
  /** How long to leave the upstream alone, when it said so. */
  readonly retryAfterMs?: number;
}

export type TurnFinish = 'stop' | 'length' | 'toolCalls' | 'contentFilter';
export type TurnInterrupter = 'user' | 'shutdown' | 'approval';

/** Result of one answer of the model. */
export interface Inference {
  readonly tokens: TurnTokens;
  /** Calls that this side runs. */
  readonly calls: number;
  /** Calls that the caller is to run after the turn. */
  readonly clientCalls: number;
  /** More input arrived while it answered. */
  readonly isSteered: boolean;
  readonly finish: TurnFinish;
}

export interface ToolRun {
  /** The model asks for the same thing over and over. */
  readonly isLooping: boolean;
}

export interface TurnContext extends TurnInput {
  /** Requests made to the model so far. */
  readonly rounds: number;
  readonly tokens: TurnTokens;
  /** Undecided approvals, by request id. */
  readonly pending: readonly string[];
  readonly clientCalls: number;
  /** The conversation was shortened in this turn already: once must do. */
  readonly hasCompacted: boolean;
  readonly finish: TurnFinish;
  readonly interruptedBy: TurnInterrupter;
  readonly failure: TurnFailure | null;
}

export type TurnEvent =
  /** A request to end the turn: of a user, or of the process that is shutting down. */
  | { readonly type: 'INTERRUPT'; readonly by: TurnInterrupter }
  /** An approval was given or refused: by a person, a policy or the clock. */
  | { readonly type: 'DECIDED'; readonly requestId: string };

export type TurnEmitted =
  | { readonly type: 'turn.waiting' }
  | { readonly type: 'turn.resumed' }
  | { readonly type: 'turn.approvalsExpired'; readonly requestIds: readonly string[] }
  | { readonly type: 'turn.limitReached'; readonly rounds: number }
  | { readonly type: 'turn.completed'; readonly tokens: TurnTokens; readonly finish: TurnFinish }
  | { readonly type: 'turn.failed'; readonly failure: TurnFailure }
  | { readonly type: 'turn.cancelled'; readonly by: TurnInterrupter };

/** Converts a thrown value; one without a code is `internalError`. */
export function turnFailureOf(error: unknown): TurnFailure {
  const { code, message, retryAfterMs } = (error ?? {}) as Readonly<Record<string, unknown>>;
  return {
    code: typeof code === 'string' ? code : 'internalError',
    message: typeof message === 'string' ? message : String(error),
    ...(typeof retryAfterMs === 'number' && { retryAfterMs }),
  };
}

type TurnKey = Pick<TurnInput, 'threadId' | 'turnId'>;
const notProvided = () => Promise.reject(new Error('not provided'));

const keyOf = ({ context }: { readonly context: TurnContext }): TurnKey => ({
  threadId: context.threadId,
  turnId: context.turnId,
});

export const turnMachine = setup({
  types: {
    input: {} as TurnInput,
    context: {} as TurnContext,
    events: {} as TurnEvent,
    emitted: {} as TurnEmitted,
  },
  actors: {
    /** Gathers the messages for the model and the tools it may use. */
    prepare: fromPromise<{ readonly isTooLong: boolean }, TurnKey>(notProvided),
    /** Puts a summary in the place of older turns. */
    compact: fromPromise<void, TurnKey>(notProvided),
    /** One request to the model. */
    infer: fromPromise<Inference, TurnKey>(notProvided),
    /** Finds the calls that need approval, and asks. */
    review: fromPromise<{ readonly pending: readonly string[] }, TurnKey>(notProvided),
    runTools: fromPromise<ToolRun, TurnKey>(notProvided),
    /** Resolves when everything that the turn has begun has let go. */
    settle: fromPromise<void, TurnKey>(notProvided),
  },
  delays: { approvalTimeout: 300_000, cancelGrace: 5_000 },
  guards: {
    isTooLong: (_, prepared: { readonly isTooLong: boolean }) => prepared.isTooLong,
    canCompactAfter: ({ context }, failure: TurnFailure) => failure.code === 'contextTooLong' && !context.hasCompacted,
    isAtLimit: ({ context }, { calls, isSteered }: Inference) =>
      (calls > 0 || isSteered) && context.rounds + 1 >= context.maxRounds,
    hasCalls: (_, { calls }: Inference) => calls > 0,
    isSteered: (_, { isSteered, clientCalls }: Inference) => isSteered && clientCalls === 0,
    mustAsk: (_, { pending }: { readonly pending: readonly string[] }) => pending.length > 0,
    allDecided: ({ context }) => context.pending.length === 0,
    isLooping: (_, { isLooping }: ToolRun) => isLooping,
    awaitsClient: ({ context }) => context.clientCalls > 0,
  },
  actions: {
    keepAnswer: assign(({ context }, { tokens, clientCalls, finish }: Inference) => ({
      rounds: context.rounds + 1,
      clientCalls,
      finish,
      tokens: {
        inputTokens: context.tokens.inputTokens + tokens.inputTokens,
        outputTokens: context.tokens.outputTokens + tokens.outputTokens,
      },
    })),
    keepPending: assign((_, { pending }: { readonly pending: readonly string[] }) => ({ pending })),
    dropPending: assign(({ context, event }) => ({
      pending: event.type === 'DECIDED' ? context.pending.filter((id) => id !== event.requestId) : context.pending,
    })),
    clearPending: assign({ pending: [] }),
    noteCompaction: assign({ hasCompacted: true }),
    finishForLength: assign({ finish: 'length' }),
    finishForClient: assign({ finish: 'toolCalls' }),
    keepFailure: assign((_, failure: TurnFailure) => ({ failure })),
    keepInterrupter: assign(({ event }) => (event.type === 'INTERRUPT' ? { interruptedBy: event.by } : {})),
    tellWaiting: emit({ type: 'turn.waiting' }),
    tellResumed: emit({ type: 'turn.resumed' }),
    tellExpired: emit(({ context }) => ({ type: 'turn.approvalsExpired', requestIds: context.pending })),
    tellLimit: emit(({ context }) => ({ type: 'turn.limitReached', rounds: context.rounds })),
    tellCompleted: emit(({ context }) => ({
      type: 'turn.completed',
      tokens: context.tokens,
      finish: context.finish,
    })),
    tellFailed: emit(({ context }) => ({
      type: 'turn.failed',
      failure: context.failure ?? turnFailureOf(undefined),
    })),
    tellCancelled: emit(({ context }) => ({ type: 'turn.cancelled', by: context.interruptedBy })),
  },
}).createMachine({
  id: 'turn',
  description: 'One turn of a thread, from the question to its end.',
  context: ({ input }) => ({
    ...input,
    rounds: 0,
    tokens: { inputTokens: 0, outputTokens: 0 },
    pending: [],
    clientCalls: 0,
    hasCompacted: false,
    finish: 'stop',
    interruptedBy: 'user',
    failure: null,
  }),
  initial: 'preparing',
  states: {
    preparing: {
      description: 'The messages for the model, and the tools it may use, are gathered.',
      invoke: {
        id: 'prepare',
        src: 'prepare',
        input: keyOf,
        onDone: [
          { guard: { type: 'isTooLong', params: ({ event }) => event.output }, target: 'compacting' },
          { target: 'inferring' },
        ],
        onError: {
          target: 'failed',
          actions: { type: 'keepFailure', params: ({ event }) => turnFailureOf(event.error) },
        },
      },
      on: { INTERRUPT: { target: 'cancelling', actions: 'keepInterrupter' } },
    },
    compacting: {
      description: 'The conversation would not fit: older turns are summarised.',
      entry: 'noteCompaction',
      invoke: {
        id: 'compact',
        src: 'compact',
        input: keyOf,
        onDone: { target: 'inferring' },
        onError: {
          target: 'failed',
          actions: { type: 'keepFailure', params: ({ event }) => turnFailureOf(event.error) },
        },
      },
      on: { INTERRUPT: { target: 'cancelling', actions: 'keepInterrupter' } },
    },
    inferring: {
      description: 'The model is answering; its answer is streamed while it comes.',
      invoke: {
        id: 'infer',
        src: 'infer',
        input: keyOf,
        onDone: [
          {
            guard: { type: 'isAtLimit', params: ({ event }) => event.output },
            target: 'completed',
            actions: [{ type: 'keepAnswer', params: ({ event }) => event.output }, 'finishForLength', 'tellLimit'],
          },
          {
            guard: { type: 'hasCalls', params: ({ event }) => event.output },
            target: 'reviewing',
            actions: { type: 'keepAnswer', params: ({ event }) => event.output },
          },
          {
            guard: { type: 'isSteered', params: ({ event }) => event.output },
            target: 'inferring',
            reenter: true,
            actions: { type: 'keepAnswer', params: ({ event }) => event.output },
          },
          { target: 'completed', actions: { type: 'keepAnswer', params: ({ event }) => event.output } },
        ],
        onError: [
          {
            guard: { type: 'canCompactAfter', params: ({ event }) => turnFailureOf(event.error) },
            target: 'compacting',
          },
          {
            target: 'failed',
            actions: { type: 'keepFailure', params: ({ event }) => turnFailureOf(event.error) },
          },
        ],
      },
      on: { INTERRUPT: { target: 'cancelling', actions: 'keepInterrupter' } },
    },
    reviewing: {
      description: 'Which of the calls need approval, and does a policy or an earlier word decide?',
      invoke: {
        id: 'review',
        src: 'review',
        input: keyOf,
        onDone: [
          {
            guard: { type: 'mustAsk', params: ({ event }) => event.output },
            target: 'awaitingApproval',
            actions: { type: 'keepPending', params: ({ event }) => event.output },
          },
          { target: 'runningTools' },
        ],
        onError: {
          target: 'failed',
          actions: { type: 'keepFailure', params: ({ event }) => turnFailureOf(event.error) },
        },
      },
      on: { INTERRUPT: { target: 'cancelling', actions: 'keepInterrupter' } },
    },
    awaitingApproval: {
      description: 'Waiting for approval. Any client that is or becomes connected may answer; silence declines.',
      entry: 'tellWaiting',
      exit: 'tellResumed',
      always: { guard: 'allDecided', target: 'runningTools' },
      after: { approvalTimeout: { target: 'runningTools', actions: ['tellExpired', 'clearPending'] } },
      on: {
        DECIDED: { actions: 'dropPending' },
        INTERRUPT: { target: 'cancelling', actions: 'keepInterrupter' },
      },
    },
    runningTools: {
      description: 'What is allowed runs: reading side by side, changing one after the other.',
      invoke: {
        id: 'runTools',
        src: 'runTools',
        input: keyOf,
        onDone: [
          { guard: 'awaitsClient', target: 'completed', actions: 'finishForClient' },
          {
            guard: { type: 'isLooping', params: ({ event }) => event.output },
            target: 'completed',
            actions: ['finishForLength', 'tellLimit'],
          },
          { target: 'inferring' },
        ],
        onError: {
          target: 'failed',
          actions: { type: 'keepFailure', params: ({ event }) => turnFailureOf(event.error) },
        },
      },
      on: { INTERRUPT: { target: 'cancelling', actions: 'keepInterrupter' } },
    },
    cancelling: {
      description: 'Model and tools were asked to stop; waiting, for a bounded time, until they have ended.',
      invoke: {
        id: 'settle',
        src: 'settle',
        input: keyOf,
        onDone: { target: 'cancelled' },
        onError: { target: 'cancelled' },
      },
      after: { cancelGrace: { target: 'cancelled' } },
    },
    completed: { description: 'The answer is whole.', type: 'final', entry: 'tellCompleted' },
    failed: { description: 'The model, or what is around it, gave an error.', type: 'final', entry: 'tellFailed' },
    cancelled: {
      description: 'Ended early, as requested. The messages so far are stored.',
      type: 'final',
      entry: 'tellCancelled',
    },
  },
});
