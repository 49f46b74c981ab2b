/**
 * One turn of a conversation: a model is asked, answers as a stream, and the turn ends in exactly one of three ways.
 * What streams by (deltas, items) is the business of the `infer` actor; here is only what can happen next.
 */
import { assign, emit, fromPromise, setup } from 'xstate';

export interface TurnInput {
  readonly threadId: string;
  readonly turnId: string;
}

export interface TurnTokens {
  readonly inputTokens: number;
  readonly outputTokens: number;
}

export interface TurnFailure {
  readonly code: string;
  readonly message: string;
}

export interface TurnContext extends TurnInput {
  readonly tokens: TurnTokens;
  readonly failure: TurnFailure | null;
}

/** Somebody asked to end the turn: a user, or the process that is shutting down. */
export type TurnEvent = { readonly type: 'INTERRUPT' };

export type TurnEmitted =
  | { readonly type: 'turn.completed'; readonly tokens: TurnTokens }
  | { readonly type: 'turn.failed'; readonly failure: TurnFailure }
  | { readonly type: 'turn.cancelled' };

/** What an error says of itself; anything that was thrown without a code is `internalError`. */
export function turnFailureOf(error: unknown): TurnFailure {
  const { code, message } = (error ?? {}) as { code?: unknown; message?: unknown };
  return {
    code: typeof code === 'string' ? code : 'internalError',
    message: typeof message === 'string' ? message : String(error),
  };
}

export const turnMachine = setup({
  types: {
    input: {} as TurnInput,
    context: {} as TurnContext,
    events: {} as TurnEvent,
    emitted: {} as TurnEmitted,
  },
  actors: {
    infer: fromPromise<TurnTokens, TurnInput>(() => Promise.reject(new Error('not provided'))),
    settle: fromPromise<void, TurnInput>(() => Promise.reject(new Error('not provided'))),
  },
  delays: { cancelGrace: 500 },
  actions: {
    keepTokens: assign((_, tokens: TurnTokens) => ({ tokens })),
    keepFailure: assign((_, failure: TurnFailure) => ({ failure })),
    tellCompleted: emit(({ context }) => ({ type: 'turn.completed', tokens: context.tokens })),
    tellFailed: emit(({ context }) => ({
      type: 'turn.failed',
      failure: context.failure ?? turnFailureOf(undefined),
    })),
    tellCancelled: emit({ type: 'turn.cancelled' }),
  },
}).createMachine({
  id: 'turn',
  description: 'One turn of a thread, from the question to its end.',
  context: ({ input }) => ({ ...input, tokens: { inputTokens: 0, outputTokens: 0 }, failure: null }),
  initial: 'inferring',
  states: {
    inferring: {
      description: 'The model is answering; its answer is streamed while it comes.',
      invoke: {
        id: 'infer',
        src: 'infer',
        input: ({ context: { threadId, turnId } }) => ({ threadId, turnId }),
        onDone: { target: 'completed', actions: { type: 'keepTokens', params: ({ event }) => event.output } },
        onError: {
          target: 'failed',
          actions: { type: 'keepFailure', params: ({ event }) => turnFailureOf(event.error) },
        },
      },
      on: { INTERRUPT: { target: 'cancelling' } },
    },
    cancelling: {
      description: 'The model was told to stop; waiting, not for long, until it has let go.',
      invoke: {
        id: 'settle',
        src: 'settle',
        input: ({ context: { threadId, turnId } }) => ({ threadId, turnId }),
        onDone: { target: 'cancelled' },
        onError: { target: 'cancelled' },
      },
      after: { cancelGrace: { target: 'cancelled' } },
    },
    completed: { description: 'The answer is whole.', type: 'final', entry: 'tellCompleted' },
    failed: { description: 'The model, or what is around it, gave an error.', type: 'final', entry: 'tellFailed' },
    cancelled: {
      description: 'Ended early, as asked. What was said so far is kept.',
      type: 'final',
      entry: 'tellCancelled',
    },
  },
});
