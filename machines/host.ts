/**
 * Connects to the Hub of another machine over the user's own `ssh`. One root actor per host. The remote Hub supervises its
 * workspaces without this connection, so agents survive its loss.
 *
 * Detailed operation
 * 1. `dialling` starts one `ssh` and asks the remote machine for the address of its Hub. In `proving`, that Hub proves its identity
 *    through the tunnel. `listing` reads its workspaces.
 * 2. `connected` follows the events of the remote Hub. In `behind`, an event has arrived
 *    since the list was read, so the Hub reads the list again.
 * 3. A lost connection leads to `unreachable`. Retries back off from 1 s to 60 s with jitter, without a limit on attempts. A user's
 *    request or a network change triggers a retry at once.
 * 4. A permanent refusal leads to a substate of `refused` that names its kind. The machine stays there until the user acts.
 * 5. `HOST.RELEASE` ends the connection because the Hub ends or the host was removed. `HOST.DISABLE` ends it until the user enables
 *    the host.
 */
import { assertEvent, assign, emit, enqueueActions, fromCallback, setup, spawnChild, stopChild } from 'xstate';
import { exponentialBackoffMs, jitters } from '../src/lib/browser.ts';
import { nextRandom } from './restart-policy.ts';

/** Refusals that only the user can resolve. */
export const hostRefusals = ['hostKey', 'authentication', 'noProgram', 'version', 'notProven'] as const;
export type HostRefusal = (typeof hostRefusals)[number];

/** Time limit of each connection step, in milliseconds. `ssh` itself gives up earlier. */
export const hostStepMs = 45_000;

export interface HostInput {
  readonly name: string;
  /** Seed of the jitter. */
  readonly seed: number;
}

export interface HostContext {
  readonly name: string;
  readonly seed: number;
  /** Consecutive attempts that did not reach `connected`. */
  readonly failures: number;
  readonly delayMs: number;
  /** Times that `connected` was reached. */
  readonly connections: number;
  /** Reason of the last loss or refusal, safe to show; null while connected. */
  readonly reason: string | null;
}

/** Events from the connection driver, without data from the remote Hub. */
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
  /** The user requests the host, or the network has changed. */
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
    /** Dials, verifies, lists and follows the remote Hub. Stopping this actor ends its `ssh`. */
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
    recordSilence: assign({ reason: `The host did not answer within ${hostStepMs / 1_000} s.` }),
    resetFailures: assign({ failures: 0, reason: null }),
    countConnection: assign(({ context }) => ({ connections: context.connections + 1, failures: 0, reason: null })),
    emitConnected: emit({ type: 'host.connected' }),
    emitUnreachable: enqueueActions(({ enqueue, context }) => {
      // Only the first failed attempt after a loss is news to the user.
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
      description: 'Connecting to the remote Hub.',
      entry: 'startLink',
      initial: 'dialling',
      states: {
        dialling: {
          description: 'Starting ssh, and asking the remote machine for the address of its Hub.',
          meta: { kind: 'works', lane: 'spine', order: 1 },
          on: { 'HOST.DIALLED': { target: 'proving' } },
          after: { hostStep: { target: '#host.unreachable', actions: 'recordSilence' } },
        },
        proving: {
          description: 'Waiting for the remote Hub to prove, through the tunnel, that it holds the token of this host.',
          meta: { kind: 'works', lane: 'spine', order: 2 },
          on: { 'HOST.PROVED': { target: 'listing' } },
          after: { hostStep: { target: '#host.unreachable', actions: 'recordSilence' } },
        },
        listing: {
          description: 'Reading the workspaces and requests of the remote Hub.',
          meta: { kind: 'works', lane: 'spine', order: 3 },
          on: { 'HOST.LISTED': { target: '#host.connected' } },
          after: { hostStep: { target: '#host.unreachable', actions: 'recordSilence' } },
        },
      },
    },
    connected: {
      description: 'Receiving the events of the remote Hub.',
      entry: ['countConnection', 'emitConnected'],
      initial: 'current',
      states: {
        current: {
          description: 'The list of workspaces is up to date.',
          meta: { kind: 'serves', lane: 'spine', order: 4 },
          on: { 'HOST.CHANGED': { target: 'behind' } },
        },
        behind: {
          description: 'An event has arrived since the list was read; reading the list again.',
          meta: { kind: 'serves', lane: 'detour', order: 4 },
          on: { 'HOST.LISTED': { target: 'current' } },
        },
      },
    },
    unreachable: {
      description: 'The connection is lost. The remote agents continue; their last known state is shown with its time.',
      entry: ['stopLink', 'planAttempt', 'emitUnreachable'],
      initial: 'waiting',
      on: { 'HOST.RETRY': { target: 'connecting' } },
      states: {
        waiting: {
          description: 'Waiting before the next attempt.',
          meta: { kind: 'pauses', lane: 'exception', order: 1 },
          after: { hostPause: { target: '#host.connecting' } },
        },
      },
    },
    refused: {
      description: 'Retrying cannot help: the user must act.',
      entry: 'stopLink',
      initial: 'notProven',
      on: { 'HOST.RETRY': { target: 'connecting', actions: 'resetFailures' } },
      states: {
        hostKey: {
          description: 'The host key of the machine is not known to ssh, or differs from the known one.',
          meta: { kind: 'failed', lane: 'exception', order: 2 },
        },
        authentication: {
          description: 'The machine refuses every key that ssh can use without a prompt.',
          meta: { kind: 'failed', lane: 'exception', order: 3 },
        },
        noProgram: {
          description: 'The remote machine cannot find the program.',
          meta: { kind: 'failed', lane: 'exception', order: 4 },
        },
        version: {
          description: 'The remote version is newer than this one, or too old for hosts.',
          meta: { kind: 'failed', lane: 'exception', order: 5 },
        },
        notProven: {
          description:
            'The program at the remote address did not prove its identity, or the remote Hub revoked the token.',
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
