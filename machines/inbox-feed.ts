/**
 * The Hub's connection to the inbox of one agent server: from the moment that server serves until it has exited. The agent server
 * stores the waiting requests; the Hub holds a copy, which is compared with the whole state after every connection.
 *
 * Detailed operation
 * 1. `FEED.SERVED` opens the feed. Its first event is the whole state: a request that the state does not contain has ended.
 * 2. A connection that breaks is made again after a back-off. Requests stay listed: they may be answered elsewhere.
 * 3. An agent server of an earlier version has no inbox, and gets none while it runs.
 * 4. When the agent server has exited, its requests are suspended: their turns continue in the next server, whose state names the
 *    requests that wait.
 * 5. `FEED.RESTED` withdraws all requests: the server was stopped, or no automatic restart follows.
 * 6. `FEED.RELEASE` ends the connection and withdraws nothing: the Hub ends, its agent server lives on.
 */
import { assign, fromCallback, setup } from 'xstate';
import { exponentialBackoffMs, jitters } from '../src/lib/browser.ts';
import { nextRandom } from './restart-policy.ts';

export interface InboxFeedInput {
  readonly workspacePath: string;
  /** Seed of the jitter. */
  readonly seed: number;
}

export interface InboxFeedContext {
  readonly workspacePath: string;
  readonly seed: number;
  /** Connections in a row that ended before the state was read. */
  readonly failures: number;
  readonly delayMs: number;
  /** Connections that were made since the agent server serves. */
  readonly connections: number;
}

/** Events of the driver of the connection. They carry no request: a waiting request may hold other people's secrets. */
export type InboxFeedDriverEvent =
  | { readonly type: 'FEED.STATE' }
  | { readonly type: 'FEED.BROKEN' }
  | { readonly type: 'FEED.UNSUPPORTED' };

export type InboxFeedEvent =
  | { readonly type: 'FEED.SERVED' }
  | { readonly type: 'FEED.EXITED' }
  | { readonly type: 'FEED.RESTED' }
  | { readonly type: 'FEED.RELEASE' }
  | InboxFeedDriverEvent;

export const inboxFeedMachine = setup({
  types: {
    input: {} as InboxFeedInput,
    context: {} as InboxFeedContext,
    events: {} as InboxFeedEvent,
  },
  actors: {
    /** Reads the feed, and enters every request and decision in the inbox. Stopped: its connection is cut. */
    feed: fromCallback<{ readonly type: 'NONE' }, { readonly workspacePath: string }>(() => {}),
  },
  delays: { feedPause: ({ context }) => context.delayMs },
  actions: {
    countConnection: assign(({ context }) => ({ connections: context.connections + 1 })),
    resetConnections: assign({ connections: 0, failures: 0 }),
    resetFailures: assign({ failures: 0 }),
    planReconnection: assign(({ context }) => {
      const { random, seed } = nextRandom(context.seed);
      const backoff = { firstMs: 200, capMs: 5_000, jitter: jitters.halfAround };
      const delayMs = Math.round(exponentialBackoffMs(context.failures, backoff, random));
      return { seed, delayMs, failures: context.failures + 1 };
    }),
    /** The host suspends every request of the agent server. */
    suspendRequests: () => {},
    /** The host withdraws every request of the agent server. */
    withdrawRequests: () => {},
  },
}).createMachine({
  id: 'inbox-feed',
  description: 'Follows the approvals and questions of one agent server.',
  context: ({ input }) => ({
    workspacePath: input.workspacePath,
    seed: input.seed,
    failures: 0,
    delayMs: 0,
    connections: 0,
  }),
  initial: 'absent',
  on: {
    'FEED.SERVED': { target: '.connected', actions: 'resetConnections' },
    'FEED.EXITED': { target: '.absent', actions: 'suspendRequests' },
    'FEED.RESTED': { target: '.absent', actions: 'withdrawRequests' },
    'FEED.RELEASE': { target: '.released' },
  },
  states: {
    absent: {
      description: 'No agent server serves; its requests are suspended or withdrawn.',
      meta: { kind: 'rests', lane: 'spine', order: 0 },
    },
    connected: {
      description: 'A connection is open or being opened.',
      entry: 'countConnection',
      invoke: {
        id: 'feed',
        src: 'feed',
        input: ({ context }) => ({ workspacePath: context.workspacePath }),
      },
      initial: 'connecting',
      on: {
        'FEED.BROKEN': { target: 'waiting' },
        'FEED.UNSUPPORTED': { target: 'unsupported' },
      },
      states: {
        connecting: {
          description: 'The whole state has not been read yet.',
          meta: { kind: 'works', lane: 'spine', order: 1 },
          on: { 'FEED.STATE': { target: 'following', actions: 'resetFailures' } },
        },
        following: {
          description: 'Every change arrives as it happens.',
          meta: { kind: 'serves', lane: 'spine', order: 2 },
        },
      },
    },
    waiting: {
      description: 'The connection broke; the next one follows after a pause.',
      meta: { kind: 'pauses', lane: 'exception', order: 1 },
      entry: 'planReconnection',
      after: { feedPause: { target: 'connected' } },
    },
    unsupported: {
      description: 'The agent server is of a version without an inbox.',
      meta: { kind: 'failed', lane: 'exception', order: 2 },
    },
    released: {
      description: 'The Hub follows no more.',
      meta: { kind: 'ended', lane: 'end', order: 0 },
      type: 'final',
    },
  },
});
