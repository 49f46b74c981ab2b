/**
 * One approval or question in the Hub's inbox. The agent server that asks decides, once, by its own compare-and-set: the Hub
 * carries answers to it and learns every decision from it. So an answer that was cut off is neither lost nor made here.
 *
 * Detailed operation
 * 1. `ANSWER.SENT` means that the Hub carries an answer. Several may be on their way: the agent server takes the first.
 * 2. An answer without a reply leaves the request `unconfirmed`: the agent server may have taken it. Its next state decides this.
 * 3. `SERVER.EXITED` suspends the request: the next agent server of the workspace decides by its first state whether the request waits.
 * 4. `DECISION.REPORTED` ends the request, whichever way the decision was made: in a reply, in the feed, or by the end of the
 *    turn that asked. Later events change nothing.
 */
import { assertEvent, assign, setup } from 'xstate';

/** End of a request: by an answer, without one in time, with its turn, or with its agent server. */
export const inboxReasons = ['answered', 'expired', 'turnEnded', 'agentServerEnded'] as const;
export type InboxReason = (typeof inboxReasons)[number];

export interface InboxRequestInput {
  readonly requestId: string;
}

export interface InboxRequestContext {
  readonly requestId: string;
  /** Answers on their way to the agent server. */
  readonly carried: number;
  readonly decision: string | null;
  readonly decidedBy: string | null;
  readonly reason: InboxReason | null;
}

export type InboxRequestEvent =
  | { readonly type: 'ANSWER.SENT' }
  /** No reply: the connection was cut, or the agent server did not answer in time. */
  | { readonly type: 'ANSWER.LOST' }
  /** The agent server has replied. The decision follows in `DECISION.REPORTED`. */
  | { readonly type: 'ANSWER.REPLIED' }
  /** The agent server names the request among those that wait. */
  | { readonly type: 'REQUEST.LISTED' }
  /** The agent server has ended, and another one is started. */
  | { readonly type: 'SERVER.EXITED' }
  | {
      readonly type: 'DECISION.REPORTED';
      readonly decision: string;
      readonly decidedBy: string;
      readonly reason: InboxReason;
    };

export const inboxRequestMachine = setup({
  types: {
    input: {} as InboxRequestInput,
    context: {} as InboxRequestContext,
    events: {} as InboxRequestEvent,
  },
  guards: {
    isCarried: ({ context }) => context.carried > 0,
    othersAreCarried: ({ context }) => context.carried > 1,
    isExpiry: ({ event }) => {
      assertEvent(event, 'DECISION.REPORTED');
      return event.reason === 'expired';
    },
    isWithdrawal: ({ event }) => {
      assertEvent(event, 'DECISION.REPORTED');
      return event.reason === 'turnEnded' || event.reason === 'agentServerEnded';
    },
  },
  actions: {
    countAnswer: assign(({ context }) => ({ carried: context.carried + 1 })),
    discountAnswer: assign(({ context }) => ({ carried: Math.max(0, context.carried - 1) })),
    recordDecision: assign(({ event }) => {
      assertEvent(event, 'DECISION.REPORTED');
      const { decision, decidedBy, reason } = event;
      return { decision, decidedBy, reason };
    }),
  },
}).createMachine({
  id: 'inbox-request',
  description: 'One approval or question of an agent server, as the Hub knows it.',
  context: ({ input }) => ({
    requestId: input.requestId,
    carried: 0,
    decision: null,
    decidedBy: null,
    reason: null,
  }),
  initial: 'open',
  on: {
    'SERVER.EXITED': { target: '.suspended' },
    'DECISION.REPORTED': [
      { guard: 'isExpiry', target: '.expired', actions: 'recordDecision' },
      { guard: 'isWithdrawal', target: '.withdrawn', actions: 'recordDecision' },
      { target: '.decided', actions: 'recordDecision' },
    ],
  },
  states: {
    open: {
      description: 'Waits for an answer from any place.',
      meta: { kind: 'asks', lane: 'spine', order: 0 },
      on: { 'ANSWER.SENT': { target: 'deciding', actions: 'countAnswer' } },
    },
    deciding: {
      description: 'The Hub carries an answer to the agent server.',
      meta: { kind: 'works', lane: 'spine', order: 1 },
      on: {
        'ANSWER.SENT': { actions: 'countAnswer' },
        'ANSWER.LOST': [
          { guard: 'othersAreCarried', actions: 'discountAnswer' },
          { target: 'unconfirmed', actions: 'discountAnswer' },
        ],
        'ANSWER.REPLIED': [
          { guard: 'othersAreCarried', actions: 'discountAnswer' },
          { target: 'open', actions: 'discountAnswer' },
        ],
      },
    },
    unconfirmed: {
      description: 'An answer had no reply: the agent server may have taken it, and its state will say so.',
      meta: { kind: 'unwell', lane: 'spine', order: 2 },
      on: {
        'ANSWER.SENT': { target: 'deciding', actions: 'countAnswer' },
        'REQUEST.LISTED': { target: 'open' },
      },
    },
    suspended: {
      description: 'The agent server has ended; the state of the next one says whether the request still waits.',
      meta: { kind: 'pauses', lane: 'exception', order: 1 },
      on: {
        'ANSWER.SENT': { target: 'deciding', actions: 'countAnswer' },
        'ANSWER.LOST': { actions: 'discountAnswer' },
        'ANSWER.REPLIED': { actions: 'discountAnswer' },
        'REQUEST.LISTED': [{ guard: 'isCarried', target: 'deciding' }, { target: 'open' }],
      },
    },
    decided: {
      description: 'Answered; the agent server has accepted the answer.',
      meta: { kind: 'ended', lane: 'end', order: 0 },
      type: 'final',
    },
    expired: {
      description: 'No answer came in time: the agent server declined it.',
      meta: { kind: 'ended', lane: 'end', order: 1 },
      type: 'final',
    },
    withdrawn: {
      description: 'The turn or the agent server of the request has ended.',
      meta: { kind: 'ended', lane: 'end', order: 2 },
      type: 'final',
    },
  },
});
