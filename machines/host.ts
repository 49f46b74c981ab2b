/**
 * Connection to the Hub of another machine, over the user's own `ssh`. One root actor per host. The remote Hub supervises its
 * workspaces without this connection: a lost line is never a lost agent.
 *
 * Detailed operation
 * 1. `dialling` starts one `ssh` and asks the remote machine for the address of its Hub. `proving` has that Hub prove itself through
 *    the tunnel. `listing` reads its workspaces.
 * 2. `connected` follows the events of the remote Hub. `behind`: an event has arrived after the list was read, so it is read again.
 * 3. A lost line leads to `unreachable`. The next attempt follows a back-off from 1 s to 60 s with jitter, for ever. A user's request
 *    or a change of the network is an attempt at once.
 * 4. A refusal that no repetition changes rests in `refused`, in a state that names its kind, until the user acts.
 * 5. `HOST.RELEASE` ends the connection with the Hub. `HOST.DISABLE` ends it until the user enables the host.
 */
import { assertEvent, assign, emit, enqueueActions, fromCallback, setup, spawnChild, stopChild } from 'xstate';
import { exponentialBackoffMs, jitters } from '../src/lib/browser.ts';
import { nextRandom } from './restart-policy.ts';

/** Refusals that only the user can resolve. */
export const hostRefusals = ['hostKey', 'authentication', 'noProgram', 'version', 'notProven'] as const;
export type HostRefusal = (typeof hostRefusals)[number];

/** Longest time of each step of a connection, in milliseconds: `ssh` itself gives up earlier. */
export const hostStepMs = 45_000;

export interface HostInput {
  readonly name: string;
  /** Seed of the jitter. */
  readonly seed: number;
}

export interface HostContext {
  readonly name: string;
  readonly seed: number;
  /** Attempts in a row that did not reach `connected`. */
  readonly failures: number;
  readonly delayMs: number;
  /** Connections that were complete. */
  readonly connections: number;
  /** Reason of the last loss or refusal, safe to show; null while connected. */
  readonly reason: string | null;
}

/** Events of the driver of the connection. They carry no data of the remote Hub. */
export type HostDriverEvent =
  | { readonly type: 'HOST.DIALLED' }
  | { readonly type: 'HOST.PROVED' }
  | { readonly type: 'HOST.LISTED' }
  | { readonly type: 'HOST.CHANGED' }
  | { readonly type: 'HOST.LOST'; readonly reason: string }
  | { readonly type: 'HOST.REFUSED'; readonly refusal: HostRefusal; readonly reason: string };

export type HostEvent =
  | { readonly type: 'HOST.ENABLE' }
  | { readonly type: 'HOST.DISABLE' }
  /** The user asks for the host, or the network has changed. */
  | { readonly type: 'HOST.RETRY' }
  | { readonly type: 'HOST.RELEASE' }
  | HostDriverEvent;

export type HostEmitted =
  | { readonly type: 'host.connected' }
  | { readonly type: 'host.unreachable'; readonly reason: string }
  | { readonly type: 'host.refused'; readonly refusal: HostRefusal; readonly reason: string };

export const hostMachine = setup({
  types: {
    input: {} as HostInput,
    context: {} as HostContext,
    events: {} as HostEvent,
    emitted: {} as HostEmitted,
  },
  actors: {
    /** Dials, proves, lists and follows. Stopped: its `ssh` is ended. */
    link: fromCallback<{ readonly type: 'NONE' }, { readonly name: string }>(() => {}),
  },
  delays: { hostPause: ({ context }) => context.delayMs, hostStep: hostStepMs },
  guards: {
    isHostKey: ({ event }) => event.type === 'HOST.REFUSED' && event.refusal === 'hostKey',
    isAuthentication: ({ event }) => event.type === 'HOST.REFUSED' && event.refusal === 'authentication',
    isProgram: ({ event }) => event.type === 'HOST.REFUSED' && event.refusal === 'noProgram',
    isVersion: ({ event }) => event.type === 'HOST.REFUSED' && event.refusal === 'version',
  },
  actions: {
    startLink: spawnChild('link', { id: 'link', input: ({ context }) => ({ name: context.name }) }),
    stopLink: stopChild('link'),
    planAttempt: assign(({ context }) => {
      const { random, seed } = nextRandom(context.seed);
      const backoff = { firstMs: 1_000, capMs: 60_000, jitter: jitters.upperHalf };
      const delayMs = Math.round(exponentialBackoffMs(context.failures, backoff, random));
      return { seed, delayMs, failures: context.failures + 1 };
    }),
    recordReason: assign(({ event }) => {
      assertEvent(event, ['HOST.LOST', 'HOST.REFUSED']);
      return { reason: event.reason };
    }),
    recordSilence: assign({ reason: `It did not answer within ${hostStepMs / 1_000} s.` }),
    resetFailures: assign({ failures: 0, reason: null }),
    countConnection: assign(({ context }) => ({ connections: context.connections + 1, failures: 0, reason: null })),
    emitConnected: emit({ type: 'host.connected' }),
    emitUnreachable: enqueueActions(({ enqueue, context }) => {
      // One event for each loss: later attempts change nothing for a user.
      if (context.failures === 1) enqueue.emit({ type: 'host.unreachable', reason: context.reason ?? '' });
    }),
    emitRefused: emit(({ event }) => {
      assertEvent(event, 'HOST.REFUSED');
      return { type: 'host.refused', refusal: event.refusal, reason: event.reason };
    }),
  },
}).createMachine({
  id: 'host',
  description: 'Reaches the Hub of another machine over ssh.',
  context: ({ input }) => ({
    name: input.name,
    seed: input.seed,
    failures: 0,
    delayMs: 0,
    connections: 0,
    reason: null,
  }),
  initial: 'disabled',
  on: {
    'HOST.LOST': { target: '.unreachable', actions: 'recordReason' },
    'HOST.REFUSED': [
      { guard: 'isHostKey', target: '.refused.hostKey', actions: ['recordReason', 'emitRefused'] },
      { guard: 'isAuthentication', target: '.refused.authentication', actions: ['recordReason', 'emitRefused'] },
      { guard: 'isProgram', target: '.refused.noProgram', actions: ['recordReason', 'emitRefused'] },
      { guard: 'isVersion', target: '.refused.version', actions: ['recordReason', 'emitRefused'] },
      { target: '.refused.notProven', actions: ['recordReason', 'emitRefused'] },
    ],
    'HOST.DISABLE': { target: '.disabled', actions: 'resetFailures' },
    'HOST.RELEASE': { target: '.released' },
  },
  states: {
    disabled: {
      description: 'The user does not want a connection.',
      meta: { kind: 'rests', lane: 'spine', order: 0 },
      entry: 'stopLink',
      on: { 'HOST.ENABLE': { target: 'connecting' } },
    },
    connecting: {
      description: 'A connection is being made.',
      entry: 'startLink',
      initial: 'dialling',
      states: {
        dialling: {
          description: 'The ssh connects, and the remote machine is asked for the address of its Hub.',
          meta: { kind: 'works', lane: 'spine', order: 1 },
          on: { 'HOST.DIALLED': { target: 'proving' } },
          after: { hostStep: { target: '#host.unreachable', actions: 'recordSilence' } },
        },
        proving: {
          description: 'The remote Hub proves through the tunnel that it holds the token of this host.',
          meta: { kind: 'works', lane: 'spine', order: 2 },
          on: { 'HOST.PROVED': { target: 'listing' } },
          after: { hostStep: { target: '#host.unreachable', actions: 'recordSilence' } },
        },
        listing: {
          description: 'The workspaces and requests of the remote Hub are read.',
          meta: { kind: 'works', lane: 'spine', order: 3 },
          on: { 'HOST.LISTED': { target: '#host.connected' } },
          after: { hostStep: { target: '#host.unreachable', actions: 'recordSilence' } },
        },
      },
    },
    connected: {
      description: 'The events of the remote Hub arrive.',
      entry: ['countConnection', 'emitConnected'],
      initial: 'current',
      states: {
        current: {
          description: 'The list of workspaces contains every event.',
          meta: { kind: 'serves', lane: 'spine', order: 4 },
          on: { 'HOST.CHANGED': { target: 'behind' } },
        },
        behind: {
          description: 'An event has arrived after the list was read; it is being read again.',
          meta: { kind: 'serves', lane: 'detour', order: 4 },
          on: { 'HOST.LISTED': { target: 'current' } },
        },
      },
    },
    unreachable: {
      description: 'The line is lost. The remote agents continue; their last state is shown with its time.',
      entry: ['stopLink', 'planAttempt', 'emitUnreachable'],
      initial: 'waiting',
      on: { 'HOST.RETRY': { target: 'connecting' } },
      states: {
        waiting: {
          description: 'The next attempt follows after a pause.',
          meta: { kind: 'pauses', lane: 'exception', order: 1 },
          after: { hostPause: { target: '#host.connecting' } },
        },
      },
    },
    refused: {
      description: 'No repetition helps: the user must act.',
      entry: 'stopLink',
      initial: 'notProven',
      on: { 'HOST.RETRY': { target: 'connecting', actions: 'resetFailures' } },
      states: {
        hostKey: {
          description: 'The ssh does not know the key of the machine, or knows another one.',
          meta: { kind: 'failed', lane: 'exception', order: 2 },
        },
        authentication: {
          description: 'The machine refuses every key that ssh offers without a prompt.',
          meta: { kind: 'failed', lane: 'exception', order: 3 },
        },
        noProgram: {
          description: 'The machine does not find the program.',
          meta: { kind: 'failed', lane: 'exception', order: 4 },
        },
        version: {
          description: 'The version there is newer, or too old for hosts.',
          meta: { kind: 'failed', lane: 'exception', order: 5 },
        },
        notProven: {
          description: 'The program at the remote address did not prove itself, or the token was revoked there.',
          meta: { kind: 'failed', lane: 'exception', order: 6 },
        },
      },
    },
    released: {
      description: 'The Hub ends, or the host was removed.',
      meta: { kind: 'ended', lane: 'end', order: 0 },
      entry: 'stopLink',
      type: 'final',
    },
  },
});
