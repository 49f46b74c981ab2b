/**
 * One review of one head of one pull request, from the moment it is taken out of the queue to its end. Every step can be
 * done again: its result is in the database, and the holder of the lease resumes from there. Publishing happens once.
 *
 * Detailed operation
 * 1. The run is entered where an earlier process left it: a draft that was submitted is not asked for again, and one that is being published is not judged again.
 * 2. `watch` renews the lease as long as the chart lives. It reports the loss of the lease, a request to cancel, an agent's silence, and the deadline of the agent's turn.
 * 3. A failure that may pass leads to `backingOff`: the run is given back to the queue with the time of its next attempt, so that the pause outlives this process and holds no place.
 * 4. Slow writes lead to `awaitingWrites`: the run is given back, too, and does not count as an attempt.
 * 5. `CANCEL` ends anything but publishing, in which half a review would stay.
 * 6. In `abandoned` nothing is written: another process has the run.
 */
import { assign, emit, fromCallback, fromPromise, setup } from 'xstate';
import { type Failure, failureOf } from './failure.ts';

/** Where a run is taken up. */
export type ReviewResume = 'preparing' | 'drafting' | 'publishing';

export interface ReviewRunInput {
  readonly runId: string;
  /** Step to resume at: a run that another process left is resumed, not restarted. */
  readonly resumeAt: ReviewResume;
  /** From 1. */
  readonly attempt: number;
  readonly maxAttempts: number;
  /** A user asked to end it while no process worked on it. */
  readonly isCancelRequested: boolean;
}

export interface ReviewFailure extends Failure {
  /** A service the review needs is away: the run waits for it, also after the last attempt. */
  readonly isOutage?: boolean;
}

interface Reason {
  readonly code: string;
  readonly message: string;
}
export type Prepared =
  | { readonly outcome: 'ready' | 'nothingToReview' }
  /** There is a newer head, or another run has reviewed this one. */
  | { readonly outcome: 'superseded'; readonly reason: Reason }
  /** The review is not wanted any more: closed, gone, or against the rules of its repository. */
  | { readonly outcome: 'unwanted'; readonly reason: Reason };
export interface Drafted {
  /** Whether it may and should be written back automatically. */
  readonly mustPublish: boolean;
}
/** `pending`: the writes have not been sent yet. */
export interface Published {
  readonly outcome: 'settled' | 'pending';
}

export interface ReviewRunContext extends ReviewRunInput {
  readonly failure: ReviewFailure | null;
}

export type ReviewRunEvent =
  /** A user asked to end it. */
  | { readonly type: 'CANCEL' }
  /** Another process has the lease now. */
  | { readonly type: 'LEASE.LOST' }
  /** The agent has been silent, or at work, for too long. */
  | { readonly type: 'STALLED' }
  | { readonly type: 'DEADLINE' };

export interface ReviewRunEmitted {
  readonly type: 'run.failed';
  readonly failure: ReviewFailure;
}

const notProvided = () => Promise.reject(new Error('not provided'));

/** Converts a thrown value. */
export function reviewFailureOf(error: unknown): ReviewFailure {
  const { isOutage } = (error ?? {}) as Readonly<Record<string, unknown>>;
  return { ...failureOf(error), ...(isOutage === true && { isOutage }) };
}

export interface ReviewRunKey {
  readonly runId: string;
  readonly attempt: number;
}
const keyOf = ({ context }: { readonly context: ReviewRunContext }): ReviewRunKey => ({
  runId: context.runId,
  attempt: context.attempt,
});
const failureIn = ({ event }: { readonly event: { readonly error: unknown } }) => reviewFailureOf(event.error);
const outputIn = <T>({ event }: { readonly event: { readonly output: T } }): T => event.output;
const onError = [
  {
    guard: { type: 'isRetryable', params: failureIn },
    target: 'backingOff',
    actions: { type: 'recordFailure', params: failureIn },
  },
  { target: 'failed', actions: { type: 'recordFailure', params: failureIn } },
] as const;
/** After these the run is another's, or comes back automatically when its lease has run out. */
const givenBack = { onDone: 'givenBack', onError: 'abandoned' } as const;

export const reviewRunMachine = setup({
  types: {
    input: {} as ReviewRunInput,
    context: {} as ReviewRunContext,
    events: {} as ReviewRunEvent,
    emitted: {} as ReviewRunEmitted,
  },
  actors: {
    /** Reads the pull request, fetches its head, makes the worktree, determines the changes. */
    prepare: fromPromise<Prepared, ReviewRunKey>(notProvided),
    /** One turn of the agent; its draft is stored before this ends. */
    review: fromPromise<void, ReviewRunKey>(notProvided),
    /** Gates, scans and keeps the draft. */
    draft: fromPromise<Drafted, ReviewRunKey>(notProvided),
    /** Puts the writes into the outbox and waits a while until they are sent. */
    publish: fromPromise<Published, ReviewRunKey>(notProvided),
    /** Ends the agent's turn. */
    interrupt: fromPromise<void, ReviewRunKey & { readonly why: 'cancelled' | 'tooLong' }>(notProvided),
    /** Puts the run back into the queue; with a failure: for its next attempt, after a pause. */
    returnToQueue: fromPromise<void, ReviewRunKey & { readonly failure: ReviewFailure | null }>(notProvided),
    /** Renews the lease; reports its loss, a request to cancel, silence and the deadline. */
    watch: fromCallback<ReviewRunEvent, ReviewRunKey>(() => {}),
  },
  guards: {
    isRetryable: ({ context }, failure: ReviewFailure) =>
      failure.isRetryable && (failure.isOutage === true || context.attempt < context.maxAttempts),
    hasAttemptsLeft: ({ context }) => context.attempt < context.maxAttempts,
    exceedsAttempts: ({ context }) => context.attempt > context.maxAttempts,
    isCancelRequested: ({ context }) => context.isCancelRequested,
    isSuperseded: (_, { outcome }: Prepared) => outcome === 'superseded',
    isUnwanted: (_, { outcome }: Prepared) => outcome === 'unwanted',
    hasNothingToReview: (_, { outcome }: Prepared) => outcome === 'nothingToReview',
    mustPublish: (_, { mustPublish }: Drafted) => mustPublish,
    isPending: (_, { outcome }: Published) => outcome === 'pending',
    resumesPublishing: ({ context }) => context.resumeAt === 'publishing',
    resumesDrafting: ({ context }) => context.resumeAt === 'drafting',
  },
  actions: {
    recordFailure: assign((_, failure: ReviewFailure) => ({ failure })),
    recordReason: assign((_, prepared: Prepared) =>
      'reason' in prepared ? { failure: { ...prepared.reason, isRetryable: false } } : {},
    ),
    recordExhaustedAttempts: assign({
      failure: {
        code: 'attemptsExhausted',
        message: 'Every process that worked on it ended before the review did.',
        isRetryable: false,
      },
    }),
    recordStall: assign({
      failure: { code: 'agentStalled', message: 'The agent was silent for too long.', isRetryable: true },
    }),
    recordDeadline: assign({
      failure: { code: 'runTimedOut', message: 'The review took too long.', isRetryable: true },
    }),
    emitFailure: emit(({ context }) => ({
      type: 'run.failed',
      failure: context.failure ?? reviewFailureOf(undefined),
    })),
  },
}).createMachine({
  id: 'review-run',
  description: 'One review of one head of one pull request.',
  context: ({ input }) => ({ ...input, failure: null }),
  invoke: { id: 'watch', src: 'watch', input: keyOf },
  on: { 'LEASE.LOST': '.abandoned' },
  initial: 'queued',
  states: {
    queued: {
      description: 'Its turn has come: this process has the lease.',
      meta: { kind: 'rests', lane: 'spine', order: 0 },
      always: [
        { guard: 'resumesPublishing', target: 'publishing' },
        { guard: 'isCancelRequested', target: 'cancelling' },
        { guard: 'exceedsAttempts', target: 'failed', actions: 'recordExhaustedAttempts' },
        { guard: 'resumesDrafting', target: 'drafting' },
        { target: 'preparing' },
      ],
    },
    preparing: {
      description: 'Fetches the head into a worktree and computes the changes.',
      meta: { kind: 'works', lane: 'spine', order: 1 },
      invoke: {
        id: 'prepare',
        src: 'prepare',
        input: keyOf,
        onDone: [
          {
            guard: { type: 'isSuperseded', params: outputIn },
            target: 'superseded',
            actions: { type: 'recordReason', params: outputIn },
          },
          {
            guard: { type: 'isUnwanted', params: outputIn },
            target: 'cancelled',
            actions: { type: 'recordReason', params: outputIn },
          },
          { guard: { type: 'hasNothingToReview', params: outputIn }, target: 'drafting' },
          { target: 'reviewing' },
        ],
        onError,
      },
      on: { CANCEL: 'cancelling' },
    },
    reviewing: {
      description: 'The agent reads the change and hands in its draft. A newer head waits until it has.',
      meta: { kind: 'thinks', lane: 'spine', order: 2 },
      invoke: { id: 'review', src: 'review', input: keyOf, onDone: 'drafting', onError },
      on: {
        CANCEL: 'cancelling',
        STALLED: { target: 'interrupting', actions: 'recordStall' },
        DEADLINE: { target: 'interrupting', actions: 'recordDeadline' },
      },
    },
    interrupting: {
      description:
        'The agent took too long: its turn is ended. Where that fails the next attempt does it before all else.',
      meta: { kind: 'works', lane: 'exception', order: 2 },
      invoke: {
        id: 'interrupt',
        src: 'interrupt',
        input: ({ context }) => ({ ...keyOf({ context }), why: 'tooLong' }),
        onDone: [{ guard: 'hasAttemptsLeft', target: 'backingOff' }, { target: 'failed' }],
        onError: [{ guard: 'hasAttemptsLeft', target: 'backingOff' }, { target: 'failed' }],
      },
      on: { CANCEL: 'cancelling' },
    },
    drafting: {
      description: 'Checks, cleans and saves the draft of the agent.',
      meta: { kind: 'works', lane: 'spine', order: 3 },
      invoke: {
        id: 'draft',
        src: 'draft',
        input: keyOf,
        onDone: [{ guard: { type: 'mustPublish', params: outputIn }, target: 'publishing' }, { target: 'done' }],
        onError,
      },
      on: { CANCEL: 'cancelling' },
    },
    publishing: {
      description: 'The review is written back, each write once.',
      meta: { kind: 'works', lane: 'spine', order: 4 },
      invoke: {
        id: 'publish',
        src: 'publish',
        input: keyOf,
        onDone: [{ guard: { type: 'isPending', params: outputIn }, target: 'awaitingWrites' }, { target: 'done' }],
        onError,
      },
    },
    awaitingWrites: {
      description: 'The writes wait for the source: the run makes room until then.',
      meta: { kind: 'pauses', lane: 'exception', order: 4 },
      invoke: {
        id: 'returnToQueue',
        src: 'returnToQueue',
        input: ({ context }) => ({ ...keyOf({ context }), failure: null }),
        ...givenBack,
      },
    },
    backingOff: {
      description: 'It failed in a way that may pass: it waits in the queue for its next attempt.',
      meta: { kind: 'pauses', lane: 'exception', order: 3 },
      invoke: {
        id: 'returnToQueue',
        src: 'returnToQueue',
        input: ({ context }) => ({ ...keyOf({ context }), failure: context.failure }),
        ...givenBack,
      },
    },
    cancelling: {
      description: 'A user ended it: the agent is stopped first.',
      meta: { kind: 'works', lane: 'exception', order: 0 },
      invoke: {
        id: 'interrupt',
        src: 'interrupt',
        input: ({ context }) => ({ ...keyOf({ context }), why: 'cancelled' }),
        onDone: 'cancelled',
        onError: 'cancelled',
      },
    },
    done: {
      type: 'final',
      description: 'Reviewed; published, or kept as a draft.',
      meta: { kind: 'ended', lane: 'end', order: 3 },
    },
    failed: {
      type: 'final',
      description: 'It cannot be reviewed.',
      meta: { kind: 'failed', lane: 'end', order: 2 },
      entry: 'emitFailure',
    },
    cancelled: {
      type: 'final',
      description: 'Ended by a user, or not wanted any more.',
      meta: { kind: 'ended', lane: 'end', order: 0 },
    },
    superseded: {
      type: 'final',
      description: 'There is a newer head, or another review of this one.',
      meta: { kind: 'ended', lane: 'end', order: 1 },
    },
    givenBack: {
      type: 'final',
      description: 'It waits in the queue; the process that takes it resumes it.',
      meta: { kind: 'ended', lane: 'end', order: 4 },
    },
    abandoned: {
      type: 'final',
      description: 'Another process has it, or will; nothing more is written here.',
      meta: { kind: 'failed', lane: 'end', order: 5 },
    },
  },
});
