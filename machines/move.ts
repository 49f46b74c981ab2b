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
 * 6. A refusal before the commit leads to `cancelling`: the target forgets the parts, then the source is released.
 * 7. A place that does not answer leads to `waiting`, and from there to `asking`. Nothing is released meanwhile, because the target
 *    may have the conversation.
 */
import { assertEvent, assign, fromPromise, setup } from 'xstate';
import { exponentialBackoffMs, jitters } from '../src/lib/browser.ts';
import { nextRandom } from './restart-policy.ts';

export interface MoveMachineInput {
  readonly moveId: string;
  /** Seed of the jitter. */
  readonly seed: number;
  /** Whether an earlier Hub has offered the parts to the target. */
  readonly isOffered: boolean;
  /** Whether an earlier Hub has begun to go back. */
  readonly isCancelled: boolean;
  readonly reason: string | null;
}

/** Records of both places. */
export interface MoveFacts {
  readonly source: 'none' | 'leaving' | 'left' | 'receiving' | 'arrived';
  readonly target: 'none' | 'leaving' | 'left' | 'receiving' | 'arrived';
}

/** Result of a step. `refused`: the place has decided against it. `lost`: the outcome is unknown, or the place does not answer. */
export type MoveOutcome =
  | { readonly kind: 'done'; readonly facts?: MoveFacts }
  | { readonly kind: 'refused' | 'lost'; readonly reason: string };

export interface MoveContext {
  readonly moveId: string;
  readonly seed: number;
  readonly isOffered: boolean;
  readonly isCancelled: boolean;
  /** Reason of the last refusal or loss, safe to show. */
  readonly reason: string | null;
  /** Consecutive attempts without an answer. */
  readonly failures: number;
  readonly delayMs: number;
}

export type MoveEvent =
  /** The user no longer wants the move. */
  | { readonly type: 'MOVE.CANCEL' }
  /** The user, or a connected host, asks for an attempt now. */
  | { readonly type: 'MOVE.RETRY' };

type Work = { readonly moveId: string };
const work = () => fromPromise<MoveOutcome, Work>(() => Promise.resolve({ kind: 'done' }));

const inputOf = ({ context }: { readonly context: MoveContext }): Work => ({ moveId: context.moveId });

export const moveMachine = setup({
  types: { input: {} as MoveMachineInput, context: {} as MoveContext, events: {} as MoveEvent },
  actors: {
    /** Starts both agent servers if needed, and reads their records of the move. */
    ask: work(),
    /** Locks the source, which writes the parts. */
    prepare: work(),
    /** Offers the parts to the target. */
    offer: work(),
    /** Copies the parts. */
    send: work(),
    /** Makes the conversation visible at the target. */
    commit: work(),
    /** Marks the source as left. */
    finish: work(),
    /** Lets the target forget the parts, if it may have them. */
    withdraw: work(),
    /** Releases the source. */
    release: work(),
  },
  delays: { movePause: ({ context }) => context.delayMs },
  guards: {
    hasArrived: ({ event }) => {
      const facts = factsIn(event);
      // The source leaves only after the arrival.
      return facts?.target === 'arrived' || facts?.source === 'left';
    },
    mustGoBack: ({ context, event }) => context.isCancelled || outcomeIn(event)?.kind === 'refused',
    isRefused: ({ event }) => outcomeIn(event)?.kind === 'refused',
    isLost: ({ event }) => outcomeIn(event)?.kind === 'lost',
    isOffered: ({ context }) => context.isOffered,
  },
  actions: {
    recordReason: assign(({ event }) => {
      const outcome = outcomeIn(event);
      return outcome === undefined || outcome.kind === 'done' ? {} : { reason: outcome.reason };
    }),
    recordCancel: assign({ isCancelled: true }),
    recordRequest: assign(({ event }) => {
      assertEvent(event, 'MOVE.CANCEL');
      return { isCancelled: true, reason: 'The user cancelled the move.' };
    }),
    recordOffer: assign({ isOffered: true }),
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
  initial: 'asking',
  states: {
    asking: {
      description: 'Reading the records of both places.',
      meta: { kind: 'works', lane: 'spine', order: 0 },
      invoke: {
        id: 'ask',
        src: 'ask',
        input: inputOf,
        onDone: [
          { guard: 'isLost', target: 'waiting', actions: 'recordReason' },
          { guard: 'hasArrived', target: 'finishing', actions: 'resetFailures' },
          { guard: 'mustGoBack', target: 'cancelling', actions: ['recordReason', 'recordCancel'] },
          { target: 'preparing', actions: 'resetFailures' },
        ],
      },
      on: { 'MOVE.CANCEL': { actions: 'recordRequest' } },
    },
    preparing: {
      description: 'The source locks the conversation and writes its parts.',
      meta: { kind: 'works', lane: 'spine', order: 1 },
      invoke: {
        id: 'prepare',
        src: 'prepare',
        input: inputOf,
        onDone: [
          { guard: 'isLost', target: 'waiting', actions: 'recordReason' },
          { guard: 'mustGoBack', target: 'cancelling', actions: ['recordReason', 'recordCancel'] },
          { target: 'offering', actions: 'recordOffer' },
        ],
      },
      on: { 'MOVE.CANCEL': { actions: 'recordRequest' } },
    },
    offering: {
      description: 'The target checks its commit and its own conversations.',
      meta: { kind: 'works', lane: 'spine', order: 2 },
      invoke: {
        id: 'offer',
        src: 'offer',
        input: inputOf,
        onDone: [
          { guard: 'isLost', target: 'waiting', actions: 'recordReason' },
          { guard: 'mustGoBack', target: 'cancelling', actions: ['recordReason', 'recordCancel'] },
          { target: 'sending' },
        ],
      },
      on: { 'MOVE.CANCEL': { actions: 'recordRequest' } },
    },
    sending: {
      description: 'Copying the conversation and its files to the target.',
      meta: { kind: 'works', lane: 'spine', order: 3 },
      invoke: {
        id: 'send',
        src: 'send',
        input: inputOf,
        onDone: [
          { guard: 'isLost', target: 'waiting', actions: 'recordReason' },
          { guard: 'mustGoBack', target: 'cancelling', actions: ['recordReason', 'recordCancel'] },
          { target: 'committing' },
        ],
      },
      on: { 'MOVE.CANCEL': { target: 'cancelling', actions: 'recordRequest' } },
    },
    committing: {
      description: 'The target brings the files, then makes the conversation visible. Its commit decides.',
      meta: { kind: 'works', lane: 'spine', order: 4 },
      invoke: {
        id: 'commit',
        src: 'commit',
        input: inputOf,
        onDone: [
          { guard: 'isLost', target: 'waiting', actions: 'recordReason' },
          { guard: 'isRefused', target: 'cancelling', actions: ['recordReason', 'recordCancel'] },
          { target: 'finishing' },
        ],
      },
    },
    finishing: {
      description: 'The conversation is at the target. The source notes that it has left.',
      meta: { kind: 'works', lane: 'spine', order: 5 },
      invoke: {
        id: 'finish',
        src: 'finish',
        input: inputOf,
        onDone: [{ guard: 'isLost', target: 'waiting', actions: 'recordReason' }, { target: 'moved' }],
      },
    },
    cancelling: {
      description: 'Going back: the target forgets the parts, then the source is released.',
      initial: 'choosing',
      states: {
        choosing: {
          description: 'Checking whether the target may have the parts.',
          meta: { kind: 'works', lane: 'exception', order: 3 },
          always: [{ guard: 'isOffered', target: 'withdrawing' }, { target: 'releasing' }],
        },
        withdrawing: {
          description: 'The target forgets the parts. A conversation that has arrived stays there.',
          meta: { kind: 'works', lane: 'exception', order: 4 },
          invoke: {
            id: 'withdraw',
            src: 'withdraw',
            input: inputOf,
            onDone: [
              { guard: 'isLost', target: '#move.waiting' },
              { guard: 'hasArrived', target: '#move.finishing' },
              { target: 'releasing' },
            ],
          },
        },
        releasing: {
          description: 'The source releases the conversation.',
          meta: { kind: 'works', lane: 'exception', order: 5 },
          invoke: {
            id: 'release',
            src: 'release',
            input: inputOf,
            onDone: [{ guard: 'isLost', target: '#move.waiting' }, { target: '#move.cancelled' }],
          },
        },
      },
    },
    waiting: {
      description: 'A place does not answer. The source stays locked, because the target may have the conversation.',
      meta: { kind: 'pauses', lane: 'exception', order: 1 },
      entry: 'planAttempt',
      after: { movePause: { target: 'asking' } },
      on: {
        'MOVE.RETRY': { target: 'asking' },
        'MOVE.CANCEL': { target: 'asking', actions: 'recordRequest' },
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
  },
});

/** Result of a step in the event of its end. */
function outcomeIn(event: object): MoveOutcome | undefined {
  return 'output' in event ? (event.output as MoveOutcome) : undefined;
}

function factsIn(event: object): MoveFacts | undefined {
  const outcome = outcomeIn(event);
  return outcome?.kind === 'done' ? outcome.facts : undefined;
}
