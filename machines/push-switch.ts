/**
 * The switch of notices in one browser: whether the browser can show notices, may, and does. It lives in the page; the browser and the
 * Hub hold the truth, so it is read again when the view opens or the permission changes.
 *
 * Detailed operation
 * 1. `check` reads the browser's abilities, permission and subscription, and gives the subscription to the Hub: a Hub that has lost
 *    it has it back.
 * 2. `subscribe` asks the person, registers the worker, subscribes at the push service of the browser, then at the Hub. A person who
 *    refuses ends in `denied`, one who closes the question in `off`.
 * 3. `unsubscribe` ends the subscription at the Hub and in the browser.
 * 4. A failure is shown with its reason. The next try begins with `check`.
 */
import { assign, fromPromise, setup } from 'xstate';
import { messageOf } from '../src/lib/browser.ts';

/** Why a browser has no notices: the page has no secure address, or the browser has no Web Push. */
export type PushObstacle = 'insecureAddress' | 'noWebPush';

/** State of a browser after a step. */
export type PushOutcome =
  | { readonly kind: 'unsupported'; readonly obstacle: PushObstacle }
  | { readonly kind: 'denied' }
  | { readonly kind: 'off' }
  | { readonly kind: 'on' };

export interface PushSwitchContext {
  readonly obstacle: PushObstacle | null;
  readonly lastError: string | null;
}

export type PushSwitchEvent =
  | { readonly type: 'TURN.ON' }
  | { readonly type: 'TURN.OFF' }
  /** The person has changed the browser's permission, or wants another try. */
  | { readonly type: 'CHECK' };

const notProvided = () => Promise.reject(new Error('not provided'));
interface Ended {
  readonly outcome: PushOutcome;
}

export const pushSwitchMachine = setup({
  types: { context: {} as PushSwitchContext, events: {} as PushSwitchEvent },
  actors: {
    check: fromPromise<PushOutcome>(notProvided),
    subscribe: fromPromise<PushOutcome>(notProvided),
    unsubscribe: fromPromise<PushOutcome>(notProvided),
  },
  guards: {
    isUnsupported: (_, { outcome }: Ended) => outcome.kind === 'unsupported',
    isDenied: (_, { outcome }: Ended) => outcome.kind === 'denied',
    isOn: (_, { outcome }: Ended) => outcome.kind === 'on',
  },
  actions: {
    recordObstacle: assign((_, { outcome }: Ended) => ({
      obstacle: outcome.kind === 'unsupported' ? outcome.obstacle : null,
    })),
    recordError: assign((_, { error }: { readonly error: unknown }) => ({ lastError: messageOf(error) })),
    clearError: assign({ lastError: null }),
  },
}).createMachine({
  id: 'push-switch',
  description: 'Turns notices on and off in one browser.',
  context: { obstacle: null, lastError: null },
  initial: 'checking',
  states: {
    checking: {
      description: 'The page reads the abilities of the browser and its subscription.',
      meta: { kind: 'works', lane: 'spine', order: 0 },
      entry: 'clearError',
      invoke: {
        id: 'check',
        src: 'check',
        onDone: [
          {
            guard: { type: 'isUnsupported', params: ({ event }) => ({ outcome: event.output }) },
            actions: { type: 'recordObstacle', params: ({ event }) => ({ outcome: event.output }) },
            target: 'unsupported',
          },
          { guard: { type: 'isDenied', params: ({ event }) => ({ outcome: event.output }) }, target: 'denied' },
          { guard: { type: 'isOn', params: ({ event }) => ({ outcome: event.output }) }, target: 'on' },
          { target: 'off' },
        ],
        onError: {
          actions: { type: 'recordError', params: ({ event }) => ({ error: event.error }) },
          target: 'failed',
        },
      },
    },
    unsupported: {
      description: 'The browser cannot show notices at this address.',
      meta: { kind: 'rests', lane: 'detour', order: 0 },
    },
    denied: {
      description: 'The person has forbidden notices of this page in the browser.',
      meta: { kind: 'failed', lane: 'exception', order: 0 },
      on: { CHECK: { target: 'checking' } },
    },
    off: {
      description: 'The browser could show notices and gets none.',
      meta: { kind: 'rests', lane: 'spine', order: 1 },
      on: { 'TURN.ON': { target: 'subscribing' }, CHECK: { target: 'checking' } },
    },
    subscribing: {
      description: 'The browser asks the person, and is being subscribed.',
      meta: { kind: 'works', lane: 'spine', order: 2 },
      invoke: {
        id: 'subscribe',
        src: 'subscribe',
        onDone: [
          { guard: { type: 'isDenied', params: ({ event }) => ({ outcome: event.output }) }, target: 'denied' },
          { guard: { type: 'isOn', params: ({ event }) => ({ outcome: event.output }) }, target: 'on' },
          { target: 'off' },
        ],
        onError: {
          actions: { type: 'recordError', params: ({ event }) => ({ error: event.error }) },
          target: 'failed',
        },
      },
    },
    on: {
      description: 'The Hub sends notices to this browser.',
      meta: { kind: 'serves', lane: 'spine', order: 3 },
      on: { 'TURN.OFF': { target: 'unsubscribing' }, CHECK: { target: 'checking' } },
    },
    unsubscribing: {
      description: 'The subscription is being ended.',
      meta: { kind: 'works', lane: 'spine', order: 4 },
      invoke: {
        id: 'unsubscribe',
        src: 'unsubscribe',
        onDone: { target: 'off' },
        onError: {
          actions: { type: 'recordError', params: ({ event }) => ({ error: event.error }) },
          target: 'failed',
        },
      },
    },
    failed: {
      description: 'The last step has failed; its reason is shown.',
      meta: { kind: 'failed', lane: 'exception', order: 2 },
      on: { CHECK: { target: 'checking' } },
    },
  },
});
