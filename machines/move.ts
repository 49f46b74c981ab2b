/**
 * Moves a conversation with its files from one place to another. One root actor per move, in the Hub where the user asked. Both
 * places keep a record of the move, so any process may die: the next attempt asks both, and continues or goes back.
 *
 * Detailed operation
 * 1. `asking` reads the records of both places. The conversation is at the source until the target has it.
 * 2. `preparing` locks the source, which writes the parts. `offering` lets the target check its commit and its own conversation.
 * 3. `sending` copies the parts in pieces, from the last byte that the target has.
 * 4. `committing` is the point of no return: the target brings the files, then makes the conversation visible in one commit.
 * 5. `finishing` marks the source as left. The move ends in `moved`.
 * 6. The user's request to cancel, or a refusal before the commit, leads to `cancelling`: the target forgets the parts, then the
 *    source is released. A step of a cancelled move that arrives late at a place is refused there.
 * 7. A place that does not answer leads to `waiting`, and from there to `asking`. Nothing is released meanwhile, because the target
 *    may have the conversation.
 * 8. A target that no longer exists, e.g. after the removal of its host, never answers whether it committed. Only the user can end
 *    such a move: a request to cancel releases the source, and the move ends in `unconfirmed`.
 */
import { assign, type ErrorActorEvent, fromPromise, setup } from 'xstate';
import { exponentialBackoffMs, jitters } from '../src/lib/browser.ts';
import { nextRandom } from './restart-policy.ts';

/** Facts of a move that outlive its Hub. */
export interface MoveProgress {
  /** Whether the parts were offered to the target. */
  readonly isOffered: boolean;
  /** Whether the target was asked for its commit; then it may have the conversation. */
  readonly isCommitting: boolean;
  /** Whether the move goes back. */
  readonly isCancelled: boolean;
  /** Whether the user has asked for that. */
  readonly isRequested: boolean;
  /** Reason of the last refusal or loss, safe to show. While the move goes back: the reason for that. */
  readonly reason: string | null;
}

export interface MoveMachineInput extends MoveProgress {
  readonly moveId: string;
  /** Seed of the jitter. */
  readonly seed: number;
}

type PlaceRecord = 'none' | 'leaving' | 'left' | 'receiving' | 'arrived';

/** Records of the places that a step has read. */
export interface MoveFacts {
  readonly source?: PlaceRecord;
  readonly target?: PlaceRecord;
}

/** Failure of a step. `refused`: the place has decided against it. `lost`: the outcome is unknown, or the place does not answer. */
export class MoveFailure extends Error {
  readonly kind: 'refused' | 'lost';

  constructor(kind: MoveFailure['kind'], reason: string) {
    super(reason);
    this.kind = kind;
  }
}

export interface MoveContext extends MoveMachineInput {
  /** Consecutive attempts without an answer. */
  readonly failures: number;
  readonly delayMs: number;
}

/** The user no longer wants the move. */
export type MoveEvent = { readonly type: 'MOVE.CANCEL' };

export type MoveWork = { readonly moveId: string };
const step = () => fromPromise<MoveFacts, MoveWork>(() => Promise.reject(new Error('not provided')));

const inputOf = ({ context }: { readonly context: MoveContext }): MoveWork => ({ moveId: context.moveId });
const factsIn = ({ event }: { readonly event: { readonly output: MoveFacts } }): MoveFacts => event.output;

export const moveMachine = setup({
  types: {
    input: {} as MoveMachineInput,
    context: {} as MoveContext,
    events: {} as MoveEvent | ErrorActorEvent,
  },
  actors: {
    /** Starts both agent servers if needed, and reads their records of the move. */
    ask: step(),
    /** Locks the source, which writes the parts. */
    prepare: step(),
    /** Offers the parts to the target. */
    offer: step(),
    /** Copies the parts. */
    send: step(),
    /** Makes the conversation visible at the target. */
    commit: step(),
    /** Marks the source as left. */
    finish: step(),
    /** Lets the target forget the parts, and reads its record. */
    withdraw: step(),
    /** Releases the source. */
    release: step(),
  },
  delays: { movePause: ({ context }) => context.delayMs },
  guards: {
    // The source is marked as left only after the target has the conversation.
    hasArrived: (_, facts: MoveFacts) => facts.target === 'arrived' || facts.source === 'left',
    isCancelled: ({ context }) => context.isCancelled,
    isOffered: ({ context }) => context.isOffered,
    isRefused: ({ event }) => isRefusal(event),
    mayRelease: ({ context, event }) => isRefusal(event) && (!context.isCommitting || context.isRequested),
    isCommitting: ({ context }) => context.isCommitting,
  },
  actions: {
    recordOffer: assign({ isOffered: true }),
    recordCommit: assign({ isCommitting: true }),
    recordRequest: assign({ isCancelled: true, isRequested: true, reason: 'The user cancelled the move.' }),
    recordFailure: assign(({ context, event }) => ({ reason: context.isCancelled ? context.reason : reasonIn(event) })),
    recordCancel: assign({ isCancelled: true }),
    recordAbsence: assign({ isCommitting: false }),
    resetFailures: assign(({ context }) => ({ failures: 0, reason: context.isCancelled ? context.reason : null })),
    planAttempt: assign(({ context }) => {
      const { random, seed } = nextRandom(context.seed);
      const backoff = { firstMs: 500, capMs: 30_000, jitter: jitters.upperHalf };
      const delayMs = Math.round(exponentialBackoffMs(context.failures, backoff, random));
      return { seed, delayMs, failures: context.failures + 1 };
    }),
  },
}).createMachine({
  id: 'move',
  description: 'Moves a conversation with its files from one place to another.',
  context: ({ input }) => ({ ...input, failures: 0, delayMs: 0 }),
  initial: 'cancellable',
  on: {
    'xstate.error.actor.*': [
      { guard: 'isRefused', target: '.cancelling', actions: ['recordFailure', 'recordCancel'] },
      { target: '.cancellable.waiting', actions: 'recordFailure' },
    ],
  },
  states: {
    cancellable: {
      description: 'The user may cancel the move.',
      initial: 'asking',
      on: { 'MOVE.CANCEL': { target: 'cancelling', actions: 'recordRequest' } },
      states: {
        asking: {
          description: 'Reading the records of both places.',
          meta: { kind: 'works', lane: 'spine', order: 0 },
          invoke: {
            id: 'ask',
            src: 'ask',
            input: inputOf,
            onDone: [
              {
                guard: { type: 'hasArrived', params: factsIn },
                target: '#move.finishing',
                actions: 'resetFailures',
              },
              { guard: 'isCancelled', target: '#move.cancelling', actions: 'resetFailures' },
              { target: 'preparing', actions: 'resetFailures' },
            ],
          },
        },
        preparing: {
          description: 'The source locks the conversation and writes its parts.',
          meta: { kind: 'works', lane: 'spine', order: 1 },
          invoke: {
            id: 'prepare',
            src: 'prepare',
            input: inputOf,
            onDone: { target: 'offering', actions: 'recordOffer' },
          },
        },
        offering: {
          description: 'The target checks its commit and its own conversations.',
          meta: { kind: 'works', lane: 'spine', order: 2 },
          invoke: { id: 'offer', src: 'offer', input: inputOf, onDone: { target: 'sending' } },
        },
        sending: {
          description: 'Copying the conversation and its files to the target.',
          meta: { kind: 'works', lane: 'spine', order: 3 },
          invoke: { id: 'send', src: 'send', input: inputOf, onDone: { target: '#move.committing' } },
        },
        waiting: {
          description: 'A place does not answer. The source stays locked.',
          meta: { kind: 'pauses', lane: 'exception', order: 1 },
          entry: 'planAttempt',
          after: { movePause: { target: 'asking' } },
        },
      },
    },
    committing: {
      description: 'The target brings the files, then makes the conversation visible. Its commit decides.',
      meta: { kind: 'works', lane: 'spine', order: 4 },
      entry: 'recordCommit',
      invoke: { id: 'commit', src: 'commit', input: inputOf, onDone: { target: 'finishing' } },
    },
    finishing: {
      description: 'The conversation is at the target. The source notes that it has left.',
      meta: { kind: 'works', lane: 'spine', order: 5 },
      invoke: {
        id: 'finish',
        src: 'finish',
        input: inputOf,
        onDone: { target: 'moved' },
        onError: { guard: 'isRefused', target: 'moved' },
      },
    },
    cancelling: {
      description: 'Going back: the target forgets the parts, then the source is released.',
      initial: 'choosing',
      states: {
        choosing: {
          description: 'Checking whether the target may have the parts.',
          meta: { kind: 'works', lane: 'exception', order: 4 },
          always: [{ guard: 'isOffered', target: 'withdrawing' }, { target: 'releasing' }],
        },
        withdrawing: {
          description: 'The target forgets the parts. A conversation that has arrived stays there.',
          meta: { kind: 'works', lane: 'exception', order: 5 },
          invoke: {
            id: 'withdraw',
            src: 'withdraw',
            input: inputOf,
            onDone: [
              { guard: { type: 'hasArrived', params: factsIn }, target: '#move.finishing' },
              { target: 'releasing', actions: 'recordAbsence' },
            ],
            onError: [{ guard: 'mayRelease', target: 'releasing' }, { target: '#move.cancellable.waiting' }],
          },
        },
        releasing: {
          description: 'The source releases the conversation.',
          meta: { kind: 'works', lane: 'exception', order: 6 },
          invoke: {
            id: 'release',
            src: 'release',
            input: inputOf,
            onDone: [{ guard: 'isCommitting', target: '#move.unconfirmed' }, { target: '#move.cancelled' }],
            onError: { guard: 'isRefused', target: '#move.cancelled' },
          },
        },
      },
    },
    moved: {
      description: 'The conversation is at the target.',
      meta: { kind: 'ended', lane: 'end', order: 0 },
      type: 'final',
    },
    cancelled: {
      description: 'The conversation is at the source.',
      meta: { kind: 'ended', lane: 'end', order: 1 },
      type: 'final',
    },
    unconfirmed: {
      description: 'The conversation is at the source. The target may have a copy.',
      meta: { kind: 'ended', lane: 'end', order: 2 },
      type: 'final',
    },
  },
});

const isRefusal = (event: object): boolean =>
  'error' in event && event.error instanceof MoveFailure && event.error.kind === 'refused';

const reasonIn = (event: object): string =>
  'error' in event && event.error instanceof Error ? event.error.message : 'The step failed for an unknown reason.';
