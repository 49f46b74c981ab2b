/**
 * The Hub itself, from boot to the end of the process. It is a root actor; every workspace is another, so the Hub keeps
 * only their count here. Only the winner of the OS lock ever touches state; a loser names the winner and exits.
 *
 * Detailed operation
 * 1. `boot` makes the private directories and reads the configuration; `claim` asks the operating system for the lock.
 * 2. The winner binds its address. The lock file is published once it answers, so that a reader finds a server there.
 * 3. Requests are served while `recover` still adopts the agent servers that an earlier Hub left. A failure is only reported.
 * 4. While it serves, `watchAddress` reports a lock file that was removed or damaged; it is then published again. A removed
 *    claim is taken again; the Hub ends with its agent servers left running when another Hub has taken it.
 * 5. `SHUTDOWN` drains once: agent servers are stopped or handed over, at most until the deadline. Then streams end.
 */

import { assertEvent, assign, emit, fromCallback, fromPromise, sendTo, setup } from 'xstate';
import { messageOf } from '../src/lib/browser.ts';

export interface HubContext {
  readonly drainDeadlineMs: number;
  readonly apiBaseUrl: string | null;
  /** `stop` ends every managed agent server; `detach` leaves them for the next Hub to adopt. */
  readonly mode: 'stop' | 'detach';
  readonly adopted: number;
  /** A shutdown was requested before the Hub served: it serves for a moment, so that every shutdown takes the same path. */
  readonly isShutdownRequested: boolean;
  /** How often the lock file was published again. */
  readonly republished: number;
  /** Why clients cannot find the Hub through the lock file; null while the file is as published. */
  readonly addressProblem: string | null;
  readonly lastError: string | null;
}

export type HubMachineEvent =
  | { readonly type: 'SHUTDOWN'; readonly mode: 'stop' | 'detach' }
  /** The lock file is missing, damaged or not private any more. */
  | { readonly type: 'ADDRESS.LOST'; readonly problem: string }
  | { readonly type: 'ADDRESS.PUBLISHED' }
  /** Another Hub has locked the home after the lock was removed. */
  | { readonly type: 'CLAIM.LOST' }
  | { readonly type: 'ADDRESS.UNPUBLISHED'; readonly error: string };

/** Asks `watchAddress` to write the lock file again. */
export type AddressCommand = { readonly type: 'PUBLISH' };

export type HubEmitted =
  | { readonly type: 'hub.started'; readonly apiBaseUrl: string }
  | { readonly type: 'hub.displaced' }
  | { readonly type: 'hub.stopping' };

const notProvided = () => Promise.reject(new Error('not provided'));

export const hubMachine = setup({
  types: {
    input: {} as { readonly drainDeadlineMs: number },
    context: {} as HubContext,
    events: {} as HubMachineEvent,
    emitted: {} as HubEmitted,
  },
  actors: {
    boot: fromPromise<void>(notProvided),
    claim: fromPromise<{ readonly won: boolean }>(notProvided),
    listen: fromPromise<{ readonly apiBaseUrl: string }>(notProvided),
    recover: fromPromise<{ readonly adopted: number }>(notProvided),
    watchAddress: fromCallback<AddressCommand>(() => {}),
    drain: fromPromise<void, { readonly mode: 'stop' | 'detach' }>(notProvided),
    close: fromPromise<void>(notProvided),
  },
  delays: { drainDeadline: ({ context }) => context.drainDeadlineMs },
  actions: {
    recordAddress: assign((_, listening: { readonly apiBaseUrl: string }) => ({ apiBaseUrl: listening.apiBaseUrl })),
    recordAdopted: assign((_, recovered: { readonly adopted: number }) => ({ adopted: recovered.adopted })),
    recordAddressProblem: assign(({ event }) => {
      assertEvent(event, 'ADDRESS.LOST');
      return { addressProblem: event.problem };
    }),
    publishAddress: sendTo('watchAddress', { type: 'PUBLISH' }),
    recordAddressPublished: assign(({ context }) => ({ addressProblem: null, republished: context.republished + 1 })),
    recordPublishFailure: assign(({ event }) => {
      assertEvent(event, 'ADDRESS.UNPUBLISHED');
      return { addressProblem: event.error };
    }),
    recordShutdown: assign(({ event }) => {
      assertEvent(event, 'SHUTDOWN');
      return { mode: event.mode, isShutdownRequested: true };
    }),
    recordError: assign((_, params: { readonly error: unknown }) => ({
      lastError: messageOf(params.error),
    })),
    recordClaimLoss: assign({
      mode: 'detach' as const,
      isShutdownRequested: true,
      lastError: 'Another Hub has taken over this home.',
    }),
    emitDisplaced: emit({ type: 'hub.displaced' as const }),
    recordDrainTimeout: assign({ lastError: 'Some agent servers did not stop in time.' }),
    emitStarted: emit(({ context }) => ({ type: 'hub.started' as const, apiBaseUrl: context.apiBaseUrl ?? '' })),
    emitStopping: emit({ type: 'hub.stopping' as const }),
  },
  guards: {
    won: (_, claim: { readonly won: boolean }) => claim.won,
    shutdownIsRequested: ({ context }) => context.isShutdownRequested,
  },
}).createMachine({
  id: 'hub',
  description: 'The per-user supervisor process.',
  context: ({ input }) => ({
    drainDeadlineMs: input.drainDeadlineMs,
    apiBaseUrl: null,
    mode: 'stop',
    adopted: 0,
    isShutdownRequested: false,
    republished: 0,
    addressProblem: null,
    lastError: null,
  }),
  initial: 'booting',
  states: {
    booting: {
      description: 'Private directories and configuration.',
      meta: { kind: 'works', lane: 'spine', order: 0 },
      on: { SHUTDOWN: { actions: 'recordShutdown' } },
      invoke: {
        id: 'boot',
        src: 'boot',
        onDone: 'claiming',
        onError: {
          target: 'failed',
          actions: { type: 'recordError', params: ({ event }) => ({ error: event.error }) },
        },
      },
    },
    claiming: {
      description: 'Asking the operating system for the lock of this user home.',
      meta: { kind: 'works', lane: 'spine', order: 1 },
      on: { SHUTDOWN: { actions: 'recordShutdown' } },
      invoke: {
        id: 'claim',
        src: 'claim',
        onDone: [
          { guard: { type: 'won', params: ({ event }) => event.output }, target: 'listening' },
          { target: 'yielded' },
        ],
        onError: {
          target: 'failed',
          actions: { type: 'recordError', params: ({ event }) => ({ error: event.error }) },
        },
      },
    },
    listening: {
      description: 'Binding the address; the lock file is published once it answers.',
      meta: { kind: 'works', lane: 'spine', order: 2 },
      on: { SHUTDOWN: { actions: 'recordShutdown' } },
      invoke: {
        id: 'listen',
        src: 'listen',
        onDone: { target: 'serving', actions: { type: 'recordAddress', params: ({ event }) => event.output } },
        onError: {
          target: 'failed',
          actions: { type: 'recordError', params: ({ event }) => ({ error: event.error }) },
        },
      },
    },
    serving: {
      description: 'Answering requests.',
      entry: 'emitStarted',
      always: { guard: 'shutdownIsRequested', target: 'draining' },
      initial: 'recovering',
      invoke: { id: 'watchAddress', src: 'watchAddress' },
      on: {
        SHUTDOWN: { target: 'draining', actions: 'recordShutdown' },
        'ADDRESS.LOST': { actions: ['recordAddressProblem', 'publishAddress'] },
        'ADDRESS.PUBLISHED': { actions: 'recordAddressPublished' },
        'ADDRESS.UNPUBLISHED': { actions: 'recordPublishFailure' },
        'CLAIM.LOST': { target: 'draining', actions: ['recordClaimLoss', 'emitDisplaced'] },
      },
      states: {
        recovering: {
          description: 'Finds the agent servers and the unfinished changes that an earlier Hub left behind.',
          meta: { kind: 'works', lane: 'spine', order: 3 },
          invoke: {
            id: 'recover',
            src: 'recover',
            onDone: { target: 'steady', actions: { type: 'recordAdopted', params: ({ event }) => event.output } },
            onError: {
              target: 'steady',
              actions: { type: 'recordError', params: ({ event }) => ({ error: event.error }) },
            },
          },
        },
        steady: {
          description: 'Every known workspace is under supervision.',
          meta: { kind: 'serves', lane: 'spine', order: 4 },
        },
      },
    },
    draining: {
      description: 'Agent servers are stopped or handed over; subscribers still get the events.',
      meta: { kind: 'works', lane: 'spine', order: 5 },
      entry: 'emitStopping',
      invoke: {
        id: 'drain',
        src: 'drain',
        input: ({ context }) => ({ mode: context.mode }),
        onDone: 'closing',
        onError: {
          target: 'closing',
          actions: { type: 'recordError', params: ({ event }) => ({ error: event.error }) },
        },
      },
      after: { drainDeadline: { target: 'closing', actions: 'recordDrainTimeout' } },
    },
    closing: {
      description: 'Streams end after their last event; the lock file is withdrawn.',
      meta: { kind: 'works', lane: 'spine', order: 6 },
      invoke: {
        id: 'close',
        src: 'close',
        onDone: 'stopped',
        onError: {
          target: 'stopped',
          actions: { type: 'recordError', params: ({ event }) => ({ error: event.error }) },
        },
      },
    },
    stopped: {
      description: 'Ended; the process may exit.',
      meta: { kind: 'ended', lane: 'end', order: 2 },
      type: 'final',
    },
    yielded: {
      description: 'Another Hub serves this home; this process exits with success.',
      meta: { kind: 'ended', lane: 'end', order: 1 },
      type: 'final',
    },
    failed: { description: 'The Hub could not start.', meta: { kind: 'failed', lane: 'end', order: 0 }, type: 'final' },
  },
});
