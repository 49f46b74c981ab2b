/**
 * One way to notify the user: ntfy, the desktop, or one browser that subscribed to Web Push. Notices are sent one at a time,
 * oldest first. A notice is worth little when it is late, so the queue is bounded, and notices of answered requests leave it.
 *
 * Detailed operation
 * 1. `NOTICE.ADDED` queues a notice. A full queue loses its oldest.
 * 2. `deliver` sends the first. A failure that may pass is tried again after a back-off, or after the pause that the service
 *    asks for; another failure, and one too many, drops the notice.
 * 3. `NOTICE.WITHDRAWN` takes a notice out of the queue: its request was decided. One that is being sent is not called back,
 *    but not tried again.
 * 4. A channel that is gone for good (a subscription that its service no longer knows) is `closed`.
 */
import { assertEvent, assign, fromPromise, setup } from 'xstate';
import { exponentialBackoffMs, jitters, messageOf } from '../src/lib/browser.ts';
import { nextRandom } from './restart-policy.ts';

/** Notices that wait at most. */
export const maxWaitingNotices = 100;
/** Tries of one notice. */
export const maxNoticeTries = 5;

export interface NotificationChannelInput {
  readonly name: string;
  readonly seed: number;
}

export interface NotificationChannelContext {
  readonly name: string;
  readonly seed: number;
  /** Ids, oldest first. The texts of the notices stay outside. */
  readonly waiting: readonly string[];
  /** The notice that is being sent, or tried again. */
  readonly current: string | null;
  readonly tries: number;
  readonly delayMs: number;
  readonly delivered: number;
  readonly dropped: number;
  readonly lastError: string | null;
}

/** Why a notice could not be sent; `gone`: no notice will ever be. */
export interface DeliveryFailure {
  readonly kind: 'retryable' | 'refused' | 'gone';
  readonly message: string;
  /** Pause that the service asked for. */
  readonly retryAfterMs?: number | undefined;
}

export type NotificationChannelEvent =
  | { readonly type: 'NOTICE.ADDED'; readonly id: string }
  | { readonly type: 'NOTICE.WITHDRAWN'; readonly id: string }
  | { readonly type: 'CHANNEL.CLOSE' };

const longestPauseMs = 300_000;

/** The failure that an error of `deliver` carries; any other error is a refusal. */
function failureOf(error: unknown): DeliveryFailure {
  const failure = typeof error === 'object' && error !== null && 'failure' in error ? error.failure : undefined;
  return (failure as DeliveryFailure | undefined) ?? { kind: 'refused', message: messageOf(error) };
}

const add = (waiting: readonly string[], id: string): readonly string[] =>
  waiting.includes(id) ? waiting : [...waiting, id].slice(-maxWaitingNotices);

export const notificationChannelMachine = setup({
  types: {
    input: {} as NotificationChannelInput,
    context: {} as NotificationChannelContext,
    events: {} as NotificationChannelEvent,
  },
  actors: {
    /** Sends the notice of this id. Rejects with an error that carries a `DeliveryFailure`. */
    deliver: fromPromise<void, { readonly id: string; readonly name: string }>(() =>
      Promise.reject(new Error('not provided')),
    ),
  },
  delays: { noticeRetry: ({ context }) => context.delayMs },
  guards: {
    hasNotices: ({ context }) => context.waiting.length > 0,
    isCurrent: ({ context, event }) => {
      assertEvent(event, 'NOTICE.WITHDRAWN');
      return event.id === context.current;
    },
    isLost: (_, { failure }: { readonly failure: DeliveryFailure }) => failure.kind === 'gone',
    mayTryAgain: ({ context }, { failure }: { readonly failure: DeliveryFailure }) =>
      failure.kind === 'retryable' && context.tries + 1 < maxNoticeTries,
  },
  actions: {
    addNotice: assign(({ context, event }) => {
      assertEvent(event, 'NOTICE.ADDED');
      const waiting = add(context.waiting, event.id);
      const isFull = context.waiting.length === maxWaitingNotices && waiting !== context.waiting;
      return { waiting, dropped: context.dropped + (isFull ? 1 : 0) };
    }),
    removeNotice: assign(({ context, event }) => {
      assertEvent(event, 'NOTICE.WITHDRAWN');
      return { waiting: context.waiting.filter((id) => id !== event.id) };
    }),
    takeNotice: assign(({ context }) => ({
      current: context.waiting[0] ?? null,
      waiting: context.waiting.slice(1),
      tries: 0,
    })),
    clearNotice: assign({ current: null }),
    countDelivery: assign(({ context }) => ({ current: null, delivered: context.delivered + 1, lastError: null })),
    dropNotice: assign(({ context }, { failure }: { readonly failure: DeliveryFailure }) => ({
      current: null,
      dropped: context.dropped + 1,
      lastError: failure.message,
    })),
    dropAll: assign(({ context }) => ({
      dropped: context.dropped + context.waiting.length + (context.current === null ? 0 : 1),
      waiting: [],
      current: null,
    })),
    planRetry: assign(({ context }, { failure }: { readonly failure: DeliveryFailure }) => {
      const { random, seed } = nextRandom(context.seed);
      const backoff = { firstMs: 1_000, capMs: longestPauseMs, jitter: jitters.upperHalf };
      const pauseMs = failure.retryAfterMs ?? Math.round(exponentialBackoffMs(context.tries, backoff, random));
      const delayMs = Math.min(pauseMs, longestPauseMs);
      return { seed, delayMs, tries: context.tries + 1, lastError: failure.message };
    }),
    /** Deletes the channel and its stored data at the host. */
    forgetChannel: () => {},
  },
}).createMachine({
  id: 'notification-channel',
  description: 'Sends notices to the user by one way, one at a time.',
  context: ({ input }) => ({
    name: input.name,
    seed: input.seed,
    waiting: [],
    current: null,
    tries: 0,
    delayMs: 0,
    delivered: 0,
    dropped: 0,
    lastError: null,
  }),
  initial: 'idle',
  on: {
    'NOTICE.ADDED': { actions: 'addNotice' },
    'NOTICE.WITHDRAWN': { actions: 'removeNotice' },
    'CHANNEL.CLOSE': { target: '.closed', actions: 'dropAll' },
  },
  states: {
    idle: {
      description: 'Nothing is to be sent.',
      meta: { kind: 'rests', lane: 'spine', order: 0 },
      always: { guard: 'hasNotices', target: 'sending', actions: 'takeNotice' },
    },
    sending: {
      description: 'The oldest notice is being sent.',
      meta: { kind: 'works', lane: 'spine', order: 1 },
      invoke: {
        id: 'deliver',
        src: 'deliver',
        input: ({ context }) => ({ id: context.current ?? '', name: context.name }),
        onDone: { target: 'idle', actions: 'countDelivery' },
        onError: [
          {
            guard: { type: 'isLost', params: ({ event }) => ({ failure: failureOf(event.error) }) },
            target: 'closed',
            actions: ['dropAll', 'forgetChannel'],
          },
          {
            guard: { type: 'mayTryAgain', params: ({ event }) => ({ failure: failureOf(event.error) }) },
            target: 'backingOff',
            actions: { type: 'planRetry', params: ({ event }) => ({ failure: failureOf(event.error) }) },
          },
          {
            target: 'idle',
            actions: {
              type: 'dropNotice',
              params: ({ event }) => ({ failure: failureOf(event.error) }),
            },
          },
        ],
      },
    },
    backingOff: {
      description: 'The service did not take the notice; it is tried again after a pause.',
      meta: { kind: 'pauses', lane: 'exception', order: 1 },
      on: { 'NOTICE.WITHDRAWN': { guard: 'isCurrent', target: 'idle', actions: 'clearNotice' } },
      after: { noticeRetry: { target: 'sending' } },
    },
    closed: {
      description: 'The channel is gone or no longer wanted.',
      meta: { kind: 'ended', lane: 'end', order: 0 },
      type: 'final',
    },
  },
});
