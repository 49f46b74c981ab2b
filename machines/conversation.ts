/**
 * The page's end of one conversation: its connection to the agent server, the turn that it sees, and the messages, decisions and
 * interrupts of the person.
 *
 * Detailed operation
 * 1. A connection opens, subscribes to the thread with its recent events, reads the thread and replaces the shown state. Only
 *    then is the conversation live.
 * 2. When the connection is lost, everything that was known of the turn and of its approvals is dropped, because the next
 *    reading gives all of it. Messages that were not accepted stay, and are sent again unless the thread has them.
 * 3. A browser shows no ping of a WebSocket, so silence is followed by a question of ours. A tab that comes back asks at once.
 * 4. Messages leave one at a time and in order: the next one waits for the answer to the one before.
 * 5. An approval takes no answer in the moment in which it appears: a key or a click that was meant for something else must
 *    not allow a command.
 */
import { assertEvent, assign, fromCallback, sendTo, setup } from 'xstate';
import { backoffDelay, nextRandom } from './restart-policy.ts';

export type ConversationDecision = 'accept' | 'acceptForSession' | 'acceptAlways' | 'decline' | 'cancel' | 'now';

export interface ConversationPolicy {
  readonly openDeadlineMs: number;
  readonly silenceMs: number;
  readonly probeDeadlineMs: number;
  readonly interruptDeadlineMs: number;
  readonly approvalGuardMs: number;
  readonly backoffBaseMs: number;
  readonly backoffCapMs: number;
  /** Turns of the first reading. */
  readonly pageTurns: number;
}

export interface ConversationInput {
  /** Absent: the list of threads, without one that is open. */
  readonly threadId: string | null;
  readonly policy: ConversationPolicy;
  /** Seed of the jitter. */
  readonly seed: number;
  /** Messages written before this actor began, oldest first. Default: none. */
  readonly outbox?: readonly string[];
}

export interface ConversationContext extends Omit<ConversationInput, 'outbox'> {
  /** The turn that runs. */
  readonly turnId: string | null;
  /** Ids of approvals that wait, oldest first. */
  readonly approvals: readonly string[];
  /** Ids of messages that the server has not accepted, oldest first. Their texts are the page's. */
  readonly outbox: readonly string[];
  /** Turns of the next reading: fewer after a thread that was too large to read at once. */
  readonly pageTurns: number;
  /** Connections in a row that failed. */
  readonly attempt: number;
  readonly delayMs: number;
  readonly lastError: string | null;
}

/** End of a turn. */
export type ConversationTurnEnd = 'completed' | 'failed' | 'cancelled';

/** Events of the connection. */
export type ConversationLinkEvent =
  /** The thread was read, and the shown state was replaced. `accepted`: messages of the outbox that it contains. */
  | {
      readonly type: 'LINK.READY';
      readonly turnId: string | null;
      readonly approvals: readonly string[];
      readonly accepted: readonly string[];
    }
  /** The server was heard; sent at most once a second. */
  | { readonly type: 'LINK.HEARD' }
  /** `isTooMuch`: the server ended the connection because this tab read too slowly. */
  | { readonly type: 'LINK.LOST'; readonly error: string; readonly isTooMuch: boolean }
  /** The server does not accept the token. */
  | { readonly type: 'LINK.REFUSED'; readonly error: string }
  /** The thread does not exist (any more). */
  | { readonly type: 'LINK.GONE' }
  | { readonly type: 'TURN.STARTED'; readonly turnId: string }
  | { readonly type: 'TURN.ENDED'; readonly turnId: string; readonly end: ConversationTurnEnd }
  | { readonly type: 'INTERRUPT.FAILED' }
  | { readonly type: 'APPROVAL.REQUESTED'; readonly requestId: string }
  | { readonly type: 'APPROVAL.RESOLVED'; readonly requestId: string }
  /** The decision did not arrive; the approval still waits. */
  | { readonly type: 'APPROVAL.FAILED'; readonly requestId: string }
  | { readonly type: 'MESSAGE.ACCEPTED'; readonly messageId: string }
  /** The server refused it; the page gives the text back to the person. */
  | { readonly type: 'MESSAGE.REFUSED'; readonly messageId: string };

export type ConversationEvent =
  | ConversationLinkEvent
  | { readonly type: 'SEND'; readonly messageId: string }
  | { readonly type: 'WITHDRAW'; readonly messageId: string }
  | { readonly type: 'INTERRUPT' }
  | { readonly type: 'DECIDE'; readonly requestId: string; readonly decision: ConversationDecision }
  /** The tab was shown again, or the browser says that there is a network. */
  | { readonly type: 'WAKE' }
  /** The person entered another token. */
  | { readonly type: 'RETRY' };

export type ConversationCommand =
  | { readonly type: 'SEND'; readonly messageId: string }
  | { readonly type: 'INTERRUPT'; readonly turnId: string }
  | { readonly type: 'DECIDE'; readonly requestId: string; readonly decision: ConversationDecision }
  | { readonly type: 'PROBE' };

export interface ConversationLinkInput {
  readonly threadId: string | null;
  readonly pageTurns: number;
  readonly outbox: readonly string[];
}

export const conversationMachine = setup({
  types: {
    input: {} as ConversationInput,
    context: {} as ConversationContext,
    events: {} as ConversationEvent,
    tags: {} as 'connecting' | 'live' | 'reconnecting' | 'refused' | 'gone' | 'sending' | 'interrupting',
  },
  actors: {
    link: fromCallback<ConversationCommand, ConversationLinkInput>(() => {}),
  },
  delays: {
    openDeadline: ({ context }) => context.policy.openDeadlineMs,
    reconnectPause: ({ context }) => context.delayMs,
    silence: ({ context }) => context.policy.silenceMs,
    probeDeadline: ({ context }) => context.policy.probeDeadlineMs,
    interruptDeadline: ({ context }) => context.policy.interruptDeadlineMs,
    approvalGuard: ({ context }) => context.policy.approvalGuardMs,
  },
  guards: {
    hasTurn: ({ context }) => context.turnId !== null,
    hasApprovals: ({ context }) => context.approvals.length > 0,
    hasMessages: ({ context }) => context.outbox.length > 0,
    isThisTurn: ({ context, event }) => {
      assertEvent(event, 'TURN.ENDED');
      return event.turnId === context.turnId;
    },
    isThisTurnCancelled: ({ context, event }) => {
      assertEvent(event, 'TURN.ENDED');
      return event.turnId === context.turnId && event.end === 'cancelled';
    },
    isLastApproval: ({ context, event }) => {
      assertEvent(event, 'APPROVAL.RESOLVED');
      return context.approvals.every((id) => id === event.requestId);
    },
    isWaiting: ({ context, event }) => {
      assertEvent(event, 'DECIDE');
      return context.approvals.includes(event.requestId);
    },
    isBeingSent: ({ context, event }) => {
      assertEvent(event, ['WITHDRAW', 'MESSAGE.ACCEPTED', 'MESSAGE.REFUSED']);
      return context.outbox[0] === event.messageId;
    },
  },
  actions: {
    recordReading: assign(({ context, event }) => {
      assertEvent(event, 'LINK.READY');
      return {
        turnId: event.turnId,
        approvals: event.approvals,
        outbox: context.outbox.filter((id) => !event.accepted.includes(id)),
        attempt: 0,
        delayMs: 0,
        lastError: null,
      };
    }),
    recordLoss: assign(({ context, event }) => {
      assertEvent(event, 'LINK.LOST');
      const pageTurns = event.isTooMuch ? Math.max(1, Math.floor(context.pageTurns / 4)) : context.pageTurns;
      return { lastError: event.error, pageTurns };
    }),
    recordRefusal: assign(({ event }) => {
      assertEvent(event, 'LINK.REFUSED');
      return { lastError: event.error };
    }),
    recordSilence: assign({ lastError: 'The server does not answer.' }),
    planReconnection: assign(({ context }) => {
      const { random, seed } = nextRandom(context.seed);
      const attempt = context.attempt + 1;
      return { seed, attempt, delayMs: backoffDelay(attempt, context.policy, random) };
    }),
    clearTurn: assign({ turnId: null, approvals: [] }),
    recordTurn: assign(({ event }) => {
      assertEvent(event, 'TURN.STARTED');
      return { turnId: event.turnId };
    }),
    recordTurnEnd: assign({ turnId: null }),
    addApproval: assign(({ context, event }) => {
      assertEvent(event, 'APPROVAL.REQUESTED');
      const others = context.approvals.filter((id) => id !== event.requestId);
      return { approvals: [...others, event.requestId] };
    }),
    removeApproval: assign(({ context, event }) => {
      assertEvent(event, 'APPROVAL.RESOLVED');
      return { approvals: context.approvals.filter((id) => id !== event.requestId) };
    }),
    addMessage: assign(({ context, event }) => {
      assertEvent(event, 'SEND');
      return { outbox: [...context.outbox, event.messageId] };
    }),
    removeMessage: assign(({ context, event }) => {
      assertEvent(event, ['WITHDRAW', 'MESSAGE.ACCEPTED', 'MESSAGE.REFUSED']);
      return { outbox: context.outbox.filter((id) => id !== event.messageId) };
    }),
    sendMessage: sendTo('link', ({ context }) => ({ type: 'SEND' as const, messageId: context.outbox[0] ?? '' })),
    interruptTurn: sendTo('link', ({ context }) => ({ type: 'INTERRUPT' as const, turnId: context.turnId ?? '' })),
    sendDecision: sendTo('link', ({ event }) => {
      assertEvent(event, 'DECIDE');
      return { type: 'DECIDE' as const, requestId: event.requestId, decision: event.decision };
    }),
    probeLink: sendTo('link', { type: 'PROBE' }),
  },
}).createMachine({
  id: 'conversation',
  description: 'Holds one conversation of the page with the agent.',
  context: ({ input }) => ({
    ...input,
    outbox: input.outbox ?? [],
    turnId: null,
    approvals: [],
    pageTurns: input.policy.pageTurns,
    attempt: 0,
    delayMs: 0,
    lastError: null,
  }),
  initial: 'linked',
  on: {
    SEND: { actions: 'addMessage' },
    WITHDRAW: { actions: 'removeMessage' },
  },
  states: {
    linked: {
      description: 'A connection is open, or being opened.',
      invoke: {
        src: 'link',
        id: 'link',
        input: ({ context }) => ({
          threadId: context.threadId,
          pageTurns: context.pageTurns,
          outbox: context.outbox,
        }),
      },
      initial: 'opening',
      on: {
        'LINK.LOST': { target: 'reconnecting', actions: 'recordLoss' },
        'LINK.REFUSED': { target: 'refused', actions: 'recordRefusal' },
        'LINK.GONE': { target: 'gone' },
      },
      states: {
        opening: {
          description: 'Connecting, subscribing and reading the thread.',
          meta: { kind: 'works', lane: 'spine', order: 0 },
          tags: 'connecting',
          on: { 'LINK.READY': { target: 'live', actions: 'recordReading' } },
          after: { openDeadline: { target: '#conversation.reconnecting', actions: 'recordSilence' } },
        },
        live: {
          description: 'The page shows the state of the server.',
          tags: 'live',
          type: 'parallel',
          states: {
            hearing: {
              description: 'Whether the server is still there.',
              initial: 'listening',
              states: {
                listening: {
                  description: 'The server was heard lately.',
                  meta: { kind: 'serves', lane: 'spine', order: 1 },
                  on: {
                    'LINK.HEARD': { target: 'listening', reenter: true },
                    WAKE: { target: 'probing' },
                  },
                  after: { silence: { target: 'probing' } },
                },
                probing: {
                  description: 'The server was asked whether it is there.',
                  meta: { kind: 'works', lane: 'exception', order: 1 },
                  entry: 'probeLink',
                  on: { 'LINK.HEARD': { target: 'listening' } },
                  after: { probeDeadline: { target: '#conversation.reconnecting', actions: 'recordSilence' } },
                },
              },
            },
            turn: {
              description: 'Activity of the agent.',
              initial: 'idle',
              states: {
                idle: {
                  description: 'No turn runs.',
                  meta: { kind: 'rests', lane: 'spine', order: 2 },
                  always: { guard: 'hasTurn', target: 'running' },
                  on: { 'TURN.STARTED': { target: 'running', actions: 'recordTurn' } },
                },
                running: {
                  description: 'A turn runs.',
                  meta: { kind: 'works', lane: 'spine', order: 3 },
                  on: {
                    'TURN.STARTED': { actions: 'recordTurn' },
                    'TURN.ENDED': [
                      { guard: 'isThisTurnCancelled', target: 'interrupted', actions: 'recordTurnEnd' },
                      { guard: 'isThisTurn', target: 'idle', actions: 'recordTurnEnd' },
                    ],
                    INTERRUPT: { target: 'interrupting' },
                  },
                },
                interrupting: {
                  description: 'The person has interrupted the turn, and it has not ended.',
                  meta: { kind: 'works', lane: 'exception', order: 2 },
                  tags: 'interrupting',
                  entry: 'interruptTurn',
                  on: {
                    'TURN.ENDED': [
                      { guard: 'isThisTurnCancelled', target: 'interrupted', actions: 'recordTurnEnd' },
                      { guard: 'isThisTurn', target: 'idle', actions: 'recordTurnEnd' },
                    ],
                    'INTERRUPT.FAILED': { target: 'running' },
                  },
                  after: { interruptDeadline: { target: 'running' } },
                },
                interrupted: {
                  description: 'The last turn was cancelled. Queued messages stay until the person sends them.',
                  meta: { kind: 'unwell', lane: 'exception', order: 3 },
                  on: { 'TURN.STARTED': { target: 'running', actions: 'recordTurn' } },
                },
              },
            },
            approval: {
              description: 'Whether the agent waits for a decision.',
              initial: 'none',
              states: {
                none: {
                  description: 'Nothing waits for a decision.',
                  meta: { kind: 'rests', lane: 'spine', order: 4 },
                  always: { guard: 'hasApprovals', target: 'fresh' },
                  on: { 'APPROVAL.REQUESTED': { target: 'fresh', actions: 'addApproval' } },
                },
                fresh: {
                  description: 'A question has just appeared, and takes no answer yet.',
                  meta: { kind: 'asks', lane: 'spine', order: 5 },
                  on: {
                    'APPROVAL.REQUESTED': { target: 'fresh', reenter: true, actions: 'addApproval' },
                    'APPROVAL.RESOLVED': [
                      { guard: 'isLastApproval', target: 'none', actions: 'removeApproval' },
                      { actions: 'removeApproval' },
                    ],
                  },
                  after: { approvalGuard: { target: 'answerable' } },
                },
                answerable: {
                  description: 'The person may decide.',
                  meta: { kind: 'asks', lane: 'spine', order: 6 },
                  on: {
                    'APPROVAL.REQUESTED': { target: 'fresh', actions: 'addApproval' },
                    'APPROVAL.RESOLVED': [
                      { guard: 'isLastApproval', target: 'none', actions: 'removeApproval' },
                      { actions: 'removeApproval' },
                    ],
                    DECIDE: { guard: 'isWaiting', target: 'deciding', actions: 'sendDecision' },
                  },
                },
                deciding: {
                  description: 'A decision is under way to the server.',
                  meta: { kind: 'works', lane: 'spine', order: 7 },
                  on: {
                    'APPROVAL.REQUESTED': { target: 'fresh', actions: 'addApproval' },
                    'APPROVAL.RESOLVED': [
                      { guard: 'isLastApproval', target: 'none', actions: 'removeApproval' },
                      { target: 'answerable', actions: 'removeApproval' },
                    ],
                    'APPROVAL.FAILED': { target: 'answerable' },
                  },
                },
              },
            },
            outbox: {
              description: 'Messages on their way to the server.',
              initial: 'empty',
              states: {
                empty: {
                  description: 'Every message was accepted or given back.',
                  meta: { kind: 'rests', lane: 'spine', order: 8 },
                  always: { guard: 'hasMessages', target: 'sending' },
                },
                sending: {
                  description: 'The oldest message was sent, and is not accepted yet.',
                  meta: { kind: 'works', lane: 'spine', order: 9 },
                  tags: 'sending',
                  entry: 'sendMessage',
                  on: {
                    'MESSAGE.ACCEPTED': { guard: 'isBeingSent', target: 'empty', actions: 'removeMessage' },
                    'MESSAGE.REFUSED': { guard: 'isBeingSent', target: 'empty', actions: 'removeMessage' },
                    // A message under way cannot be called back: the server may have it already.
                    WITHDRAW: [{ guard: 'isBeingSent' }, { actions: 'removeMessage' }],
                  },
                },
              },
            },
          },
        },
      },
    },
    reconnecting: {
      description: 'The connection was lost; the next one is opened after a pause.',
      meta: { kind: 'pauses', lane: 'detour', order: 0 },
      tags: 'reconnecting',
      entry: ['clearTurn', 'planReconnection'],
      on: { WAKE: { target: 'linked' }, RETRY: { target: 'linked' } },
      after: { reconnectPause: { target: 'linked' } },
    },
    refused: {
      description: 'The server does not accept the token of this tab.',
      meta: { kind: 'failed', lane: 'detour', order: 1 },
      tags: 'refused',
      entry: 'clearTurn',
      on: { RETRY: { target: 'linked' } },
    },
    gone: {
      description: 'The conversation was deleted, or never existed.',
      meta: { kind: 'failed', lane: 'detour', order: 2 },
      tags: 'gone',
      entry: 'clearTurn',
    },
  },
});
