/**
 * One review of one head of one pull request, from the queue to its end. Every step can be done again: what it did is in
 * the database, and whoever holds the lease goes on from there. Publishing happens at most once, by the outbox.
 */
import { assign, emit, fromCallback, fromPromise, setup } from 'xstate';

export interface ReviewRunInput {
  readonly runId: string;
  /** Where to go on: a run that another process left is not begun anew. */
  readonly resumeAt: 'queued' | 'publishing';
  readonly attempt: number;
  readonly maxAttempts: number;
}

export interface ReviewFailure {
  readonly code: string;
  readonly message: string;
  readonly isRetryable: boolean;
  /** The source asked to be left alone for so long. */
  readonly retryAfterMs?: number;
}

export type Prepared =
  | { readonly outcome: 'ready' }
  | { readonly outcome: 'superseded' }
  | { readonly outcome: 'nothingToReview' };
export interface Drafted {
  /** Whether it may and should be written back by itself. */
  readonly mustPublish: boolean;
}

export interface ReviewRunContext extends ReviewRunInput {
  readonly failure: ReviewFailure | null;
  /** Where a retry goes on. */
  readonly retryAt: 'preparing' | 'publishing';
}

export type ReviewRunEvent =
  /** Somebody asked to end it. */
  | { readonly type: 'CANCEL' }
  /** There is a newer head; only a run that has not begun gives way. */
  | { readonly type: 'SUPERSEDE' }
  /** The back-off is over: told by a ticking actor that looks at the clock. */
  | { readonly type: 'RETRY' }
  /** Another process has the lease now. */
  | { readonly type: 'LEASE.LOST' }
  /** The agent has been silent, or at work, for too long. */
  | { readonly type: 'STALLED' }
  | { readonly type: 'DEADLINE' };

export type ReviewRunEmitted =
  | { readonly type: 'run.state'; readonly state: string }
  | { readonly type: 'run.failed'; readonly failure: ReviewFailure };

const notProvided = () => Promise.reject(new Error('not provided'));

/** What an error says of itself; anything that was thrown without a code is a bug, and not tried again. */
export function reviewFailureOf(error: unknown): ReviewFailure {
  const { code, message, isRetryable, retryAfterMs } = (error ?? {}) as Readonly<Record<string, unknown>>;
  return {
    code: typeof code === 'string' ? code : 'internalError',
    message: typeof message === 'string' ? message : String(error),
    isRetryable: isRetryable === true,
    ...(typeof retryAfterMs === 'number' && { retryAfterMs }),
  };
}

interface RunKey {
  readonly runId: string;
  readonly attempt: number;
}
const keyOf = ({ context }: { readonly context: ReviewRunContext }): RunKey => ({
  runId: context.runId,
  attempt: context.attempt,
});
const told = (state: string) => ({ type: 'tellState', params: { state } }) as const;
const onError = (retryAt: ReviewRunContext['retryAt']) =>
  [
    {
      guard: {
        type: 'mayRetry',
        params: ({ event }: { readonly event: { readonly error: unknown } }) => reviewFailureOf(event.error),
      },
      target: 'backingOff',
      actions: [
        {
          type: 'keepFailure',
          params: ({ event }: { readonly event: { readonly error: unknown } }) => reviewFailureOf(event.error),
        },
        { type: 'retryFrom', params: { retryAt } },
      ],
    },
    {
      target: 'failed',
      actions: {
        type: 'keepFailure',
        params: ({ event }: { readonly event: { readonly error: unknown } }) => reviewFailureOf(event.error),
      },
    },
  ] as const;

export const reviewRunMachine = setup({
  types: {
    input: {} as ReviewRunInput,
    context: {} as ReviewRunContext,
    events: {} as ReviewRunEvent,
    emitted: {} as ReviewRunEmitted,
  },
  actors: {
    /** Fetches the head, makes the worktree, finds out what has changed. */
    prepare: fromPromise<Prepared, RunKey>(notProvided),
    /** One turn of the agent, which hands its draft in. */
    review: fromPromise<void, RunKey>(notProvided),
    /** Gates, scans and keeps the draft. */
    draft: fromPromise<Drafted, RunKey>(notProvided),
    /** Puts the writes into the outbox and waits until they are sent. */
    publish: fromPromise<void, RunKey>(notProvided),
    /** Ends the agent's turn. */
    interrupt: fromPromise<void, RunKey>(notProvided),
    /** Renews the lease; tells of its loss, of a wish to cancel, of silence and of the deadline. */
    watch: fromCallback<ReviewRunEvent, RunKey>(() => {}),
    /** Tells RETRY when the pause is over. */
    waitForRetry: fromCallback<ReviewRunEvent, RunKey & { readonly retryAfterMs: number | undefined }>(() => {}),
  },
  guards: {
    mayRetry: ({ context }, failure: ReviewFailure) => failure.isRetryable && context.attempt < context.maxAttempts,
    mayRetryLate: ({ context }) => context.attempt < context.maxAttempts,
    isSuperseded: (_, { outcome }: Prepared) => outcome === 'superseded',
    isNothing: (_, { outcome }: Prepared) => outcome === 'nothingToReview',
    mustPublish: (_, { mustPublish }: Drafted) => mustPublish,
    resumesPublishing: ({ context }) => context.resumeAt === 'publishing',
    retriesPublishing: ({ context }) => context.retryAt === 'publishing',
  },
  actions: {
    keepFailure: assign((_, failure: ReviewFailure) => ({ failure })),
    keepStall: assign({
      failure: { code: 'agentStalled', message: 'The agent was silent for too long.', isRetryable: true },
    }),
    keepDeadline: assign({ failure: { code: 'runTimedOut', message: 'The review took too long.', isRetryable: true } }),
    retryFrom: assign((_, { retryAt }: Pick<ReviewRunContext, 'retryAt'>) => ({ retryAt })),
    nextAttempt: assign(({ context }) => ({ attempt: context.attempt + 1, failure: null })),
    tellState: emit((_, { state }: { readonly state: string }) => ({ type: 'run.state', state })),
    tellFailure: emit(({ context }) => ({
      type: 'run.failed',
      failure: context.failure ?? reviewFailureOf(undefined),
    })),
  },
}).createMachine({
  id: 'review-run',
  description: 'One review of one head of one pull request.',
  context: ({ input }) => ({ ...input, failure: null, retryAt: 'preparing' }),
  invoke: { id: 'watch', src: 'watch', input: keyOf },
  on: { 'LEASE.LOST': '.abandoned' },
  initial: 'queued',
  states: {
    queued: {
      description: 'Its turn has come: this process has the lease.',
      always: [{ guard: 'resumesPublishing', target: 'publishing' }, { target: 'preparing' }],
    },
    preparing: {
      description: 'The head is fetched into a worktree, and what has changed is found out.',
      entry: told('preparing'),
      invoke: {
        id: 'prepare',
        src: 'prepare',
        input: keyOf,
        onDone: [
          { guard: { type: 'isSuperseded', params: ({ event }) => event.output }, target: 'superseded' },
          { guard: { type: 'isNothing', params: ({ event }) => event.output }, target: 'drafting' },
          { target: 'reviewing' },
        ],
        onError: [...onError('preparing')],
      },
      on: { CANCEL: 'cancelling', SUPERSEDE: 'superseded' },
    },
    reviewing: {
      description: 'The agent reads the change and hands in its draft.',
      entry: told('reviewing'),
      invoke: { id: 'review', src: 'review', input: keyOf, onDone: 'drafting', onError: [...onError('preparing')] },
      on: {
        CANCEL: 'cancelling',
        STALLED: { target: 'interrupting', actions: 'keepStall' },
        DEADLINE: { target: 'interrupting', actions: 'keepDeadline' },
      },
    },
    interrupting: {
      description: 'The agent took too long: its turn is ended before anything is tried again.',
      invoke: {
        id: 'interrupt',
        src: 'interrupt',
        input: keyOf,
        onDone: [
          {
            guard: 'mayRetryLate',
            target: 'backingOff',
            actions: { type: 'retryFrom', params: { retryAt: 'preparing' } },
          },
          { target: 'failed' },
        ],
        // An agent that cannot be reached may still be at work: it is not asked again.
        onError: {
          target: 'failed',
          actions: { type: 'keepFailure', params: ({ event }) => reviewFailureOf(event.error) },
        },
      },
    },
    drafting: {
      description: 'What the agent handed in is checked, cleaned and kept.',
      entry: told('drafting'),
      invoke: {
        id: 'draft',
        src: 'draft',
        input: keyOf,
        onDone: [
          { guard: { type: 'mustPublish', params: ({ event }) => event.output }, target: 'publishing' },
          { target: 'done' },
        ],
        onError: [...onError('preparing')],
      },
      on: { CANCEL: 'cancelling' },
    },
    publishing: {
      description: 'The review is written back, each write once.',
      entry: told('publishing'),
      invoke: { id: 'publish', src: 'publish', input: keyOf, onDone: 'done', onError: [...onError('publishing')] },
    },
    backingOff: {
      description: 'It failed in a way that may pass: a pause, then the next attempt.',
      entry: told('backingOff'),
      invoke: {
        id: 'waitForRetry',
        src: 'waitForRetry',
        input: ({ context }) => ({ ...keyOf({ context }), retryAfterMs: context.failure?.retryAfterMs }),
      },
      on: {
        RETRY: [
          { guard: 'retriesPublishing', target: 'publishing', actions: 'nextAttempt' },
          { target: 'preparing', actions: 'nextAttempt' },
        ],
        CANCEL: 'cancelling',
        SUPERSEDE: 'superseded',
      },
    },
    cancelling: {
      description: 'Somebody ended it: the agent is stopped first.',
      entry: told('cancelling'),
      invoke: { id: 'interrupt', src: 'interrupt', input: keyOf, onDone: 'cancelled', onError: 'cancelled' },
    },
    done: { type: 'final', description: 'Reviewed; published, or kept as a draft.', entry: told('done') },
    failed: { type: 'final', description: 'It cannot be reviewed.', entry: ['tellFailure', told('failed')] },
    cancelled: { type: 'final', description: 'Ended by somebody.', entry: told('cancelled') },
    superseded: { type: 'final', description: 'There is a newer head.', entry: told('superseded') },
    abandoned: { type: 'final', description: 'Another process has it now; nothing more is written here.' },
  },
});
