/**
 * One turn of a thread: the model answers, its tool calls run as policies and users allow, and the turn ends as completed, failed
 * or cancelled. Actors do the work and stream its items; this machine chooses the next step, and its snapshot is the only
 * record of status, rounds, tokens, retries and interrupter (`turn-selectors.ts`).
 *
 * Detailed operation
 * 0. A turn whose agent server ended continues in `resuming`: `resume` restores the conversation from the stored items and chooses the
 *    state. Its saved state is a fact for this choice: entry actions and timers work as in a turn that was never cut.
 * 1. `prepare` collects messages and tools.
 * 2. `checking` precedes every request: a conversation that exceeds the context window is compacted, and a used-up budget stops the
 *    turn in `budgetReached` until a user raises it. In `held` a turn ends with the recorded failure when a user refuses or the time is up.
 *    The answer of a user counts for the present or the restored wait: each new wait begins without one.
 * 3. Each entry of `inferring` is one request to the model. Its tokens are counted when it ends, also when it was interrupted or failed.
 * 4. When the service refuses a part of a request, such as a picture, the request is repeated at once without that part. A request that
 *    failed for a while is repeated whole after a pause in `retrying`; no tool has run for the broken answer. When its repetitions are
 *    used up, or cannot help, the next fallback model takes over in `fallingBack`. Without one, a turn whose quota is used up waits
 *    in `waitingForQuota` until the reset, if the setting or a user agrees; it holds no connection. An answer without text and call counts as failed,
 *    unless the calls of the turn are its result. A model that prints a call as text is notified once to call tools. When calls of three
 *    answers in a row are cut off at the output limit, the turn is concluded.
 * 5. `review` finds the calls that need approval. Each is decided by a user, a policy or the timeout. `secure` waits until the files
 *    are saved that a call may change; then `runTools` runs the allowed calls.
 * 6. An external agent does the whole turn in `delegating`, after `secure`: we send no request. It asks for
 *    approvals while it works. A resumed turn of such an agent continues at `securing`.
 * 7. The next request follows, until an answer has no call, the caller must run one, or a limit is reached. Hooks of the user may hold
 *    up the end in `checkingEnd`, a few times at most. At a limit the model is asked once more, without tools, in `concluding`; the turn ends as
 *    completed even when that request fails.
 * 8. `working` holds every state with work or a question. `INTERRUPT` aborts the work and waits a bounded time until it has ended. The
 *    first interrupt counts. Work without a rule of its own leads to the next request, or to the external agent.
 *    An error without an answer in its own state fails the turn.
 * 9. The changes of the turn are saved, and the end is written, in `storing`; it is published after that, in a final state.
 * 10. In every state, in `storing` too, tokens and their costs are added, and `STORAGE.FAILED` fails the turn: an end that was not written does
 *    not count.
 */

import { failureOf } from './failure.ts';
import { emptyFailure, quotaWaitOf, turnSetup } from './turn-setup.ts';
import {
  type Inference,
  noTokens,
  type ResumedState,
  type Resumption,
  type SavedTurn,
  type TurnContext,
  type TurnEvent,
  type TurnKey,
} from './turn-types.ts';

const keyOf = ({ context }: { readonly context: TurnContext }): TurnKey => ({
  threadId: context.threadId,
  turnId: context.turnId,
});
const eventIn = <E extends TurnEvent>({ event }: { readonly event: E }): E => event;
const outputIn = <T>({ event }: { readonly event: { readonly output: T } }): T => event.output;
const failureIn = ({ event }: { readonly event: { readonly error: unknown } }) => failureOf(event.error);
const emptyIn = ({ event }: { readonly event: { readonly output: Inference } }) => emptyFailure(event.output);

const recordAnswer = { type: 'recordAnswer', params: outputIn<Inference> } as const;
const emitSilentEnd = { type: 'emitSilentEnd', params: outputIn<Inference> } as const;

/** Answers to a failed request, tried in order. When none fits, the failure ends the turn as any other. */
const onModelError = [
  {
    guard: { type: 'canLeaveOut', params: failureIn },
    target: 'checking',
    actions: ['countOmission', { type: 'emitLeavingOut', params: failureIn }],
  },
  { guard: { type: 'canCompactAfter', params: failureIn }, target: '.compacting' },
  {
    guard: { type: 'canRetry', params: failureIn },
    target: 'retrying',
    actions: [
      { type: 'scheduleRetry', params: failureIn },
      { type: 'emitRetrying', params: failureIn },
    ],
  },
  {
    guard: 'canFallBack',
    target: 'fallingBack',
    actions: { type: 'emitFallingBack', params: failureIn },
  },
] as const;

/** Patience of a new turn: no repetition, fallback or flawed answer yet. */
const untried = {
  compactions: 0,
  omissions: 0,
  failedRequests: 0,
  retryMs: 0,
  fallbacks: 0,
  heldUp: 0,
  emptyAnswers: 0,
  corrections: 0,
  cutAnswers: 0,
  hasCalled: false,
  quotaWaits: 0,
  quotaWaitedMs: 0,
  quotaUntil: 0,
  quotaAnswer: null,
};

/** A state that waits until every approval is decided, or declines the rest after the timeout. */
const untilDecided = <const T extends string>(target: T) =>
  ({
    entry: 'emitWaiting',
    exit: 'emitResumed',
    always: { guard: 'areAllDecided', target },
    after: { approvalTimeout: { target, actions: ['emitApprovalsExpired', 'clearPendingApprovals'] } },
  }) as const;

/** A turn that had not sent its first request is prepared again. */
const isPrepared = ({ state, context }: SavedTurn): boolean => context !== null && state !== 'preparing';

/** A resumed turn continues in this state when its work says so. */
const continuesIn = (state: ResumedState) =>
  ({
    type: 'continuesIn',
    params: ({ event }: { readonly event: { readonly output: Resumption } }) => ({ ...event.output, state }),
  }) as const;

type HoldAnswered = Extract<TurnEvent, { type: 'HOLD.ANSWERED' }>;
const recordHoldAnswer = { type: 'recordHoldAnswer', params: eventIn<HoldAnswered> } as const;
const onSettled = { target: 'storing', actions: 'recordCancellation' } as const;

export const turnMachine = turnSetup.createMachine({
  id: 'turn',
  description: 'One turn of a thread, from its input to its end.',
  context: ({ input: { threadId, turnId, seed, resumed, ...limits } }) => ({
    threadId,
    turnId,
    limits: { ...limits, isResumed: resumed !== undefined && isPrepared(resumed) },
    patience: { seed, ...untried },
    requests: 0,
    rounds: 0,
    tokens: noTokens,
    clientCalls: 0,
    usedUpBudget: null,
    finish: 'stop',
    interruptedBy: null,
    failure: null,
    outcome: null,
    ...resumed?.context,
    pending: [],
    isStored: false,
  }),
  initial: 'working',
  on: {
    'TOKENS.USED': {
      actions: { type: 'countTokens', params: eventIn<Extract<TurnEvent, { type: 'TOKENS.USED' }>> },
    },
    'xstate.error.actor.*': [
      {
        guard: { type: 'canWaitForQuota', params: failureIn },
        target: '.working.held.waitingForQuota',
        actions: [{ type: 'scheduleQuotaWait', params: failureIn }, 'emitQuotaReached'],
      },
      { target: '.storing', actions: { type: 'recordFailure', params: failureIn } },
    ],
    'STORAGE.FAILED': {
      target: '.failed',
      actions: { type: 'recordStorageFailure', params: eventIn<Extract<TurnEvent, { type: 'STORAGE.FAILED' }>> },
    },
  },
  states: {
    working: {
      description: 'The turn works, or waits for an answer of a user.',
      initial: 'beginning',
      on: {
        INTERRUPT: {
          target: 'cancelling',
          actions: { type: 'recordInterrupter', params: eventIn<Extract<TurnEvent, { type: 'INTERRUPT' }>> },
        },
        DECIDED: {
          actions: { type: 'removePendingApproval', params: eventIn<Extract<TurnEvent, { type: 'DECIDED' }>> },
        },
        'HOLD.ANSWERED': { actions: recordHoldAnswer },
        'xstate.done.actor.*': [{ guard: 'isDelegated', target: '.securing' }, { target: '.checking' }],
      },
      states: {
        beginning: {
          description: 'A new turn, or one that its agent server left unfinished.',
          meta: { kind: 'thinks', lane: 'spine', order: 0 },
          always: [{ guard: 'isResumed', target: 'resuming' }, { target: 'preparing' }],
        },
        resuming: {
          description: 'The agent server ended in this turn: the conversation and the calls are restored.',
          meta: { kind: 'thinks', lane: 'detour', order: 0 },
          invoke: {
            id: 'resume',
            src: 'resume',
            input: keyOf,
            onDone: [
              { guard: continuesIn('storing'), target: '#turn.storing', actions: 'recordSavedEnd' },
              ...(['reviewing', 'checkingEnd', 'concluding'] as const).map(
                (state) => ({ guard: continuesIn(state), target: state }) as const,
              ),
              { guard: continuesIn('waitingForQuota'), target: 'held.waitingForQuota' },
            ],
          },
        },
        preparing: {
          description: 'The messages and tools for the model are collected.',
          meta: { kind: 'thinks', lane: 'spine', order: 1 },
          invoke: {
            id: 'prepare',
            src: 'prepare',
            input: keyOf,
          },
        },
        checking: {
          description: 'The conversation is compared with the context window, and the cost with the budgets.',
          meta: { kind: 'thinks', lane: 'spine', order: 2 },
          invoke: {
            id: 'check',
            src: 'check',
            input: keyOf,
            onDone: [
              {
                guard: { type: 'isOverBudget', params: outputIn },
                target: 'held.budgetReached',
                actions: { type: 'recordUsedUpBudget', params: outputIn },
              },
              { guard: { type: 'isTooLong', params: outputIn }, target: 'requesting.compacting' },
              { target: 'requesting.inferring' },
            ],
          },
        },
        requesting: {
          description: 'A request to the model, for an answer or for a summary.',
          initial: 'inferring',
          on: { 'xstate.error.actor.*': onModelError },
          states: {
            compacting: {
              description: 'The conversation exceeds the context window: its older part is summarised.',
              meta: { kind: 'thinks', lane: 'detour', order: 2 },
              entry: 'countCompaction',
              invoke: { id: 'compact', src: 'compact', input: keyOf, onDone: 'inferring' },
            },
            inferring: {
              description: 'The model answers; its answer is streamed.',
              meta: { kind: 'thinks', lane: 'spine', order: 3 },
              entry: 'countRequest',
              invoke: {
                id: 'infer',
                src: 'infer',
                input: ({ context }) => ({
                  ...keyOf({ context }),
                  isFirstRequest: context.rounds === 0,
                  retries: context.patience.failedRequests,
                }),
                onDone: [
                  {
                    guard: { type: 'mustAskAgain', params: outputIn },
                    target: '#turn.working.retrying',
                    actions: [
                      'countEmptyAnswer',
                      { type: 'scheduleRetry', params: emptyIn },
                      { type: 'emitRetrying', params: emptyIn },
                    ],
                  },
                  {
                    guard: { type: 'canReplaceSilentModel', params: outputIn },
                    target: '#turn.working.fallingBack',
                    actions: { type: 'emitFallingBack', params: emptyIn },
                  },
                  {
                    guard: { type: 'isWithoutResult', params: outputIn },
                    target: '#turn.storing',
                    actions: { type: 'recordFailure', params: emptyIn },
                  },
                  {
                    guard: { type: 'mustCorrect', params: outputIn },
                    target: '#turn.working.checking',
                    actions: [recordAnswer, 'countCorrection', 'emitCallPrinted'],
                  },
                  {
                    guard: { type: 'reachesRoundLimit', params: outputIn },
                    target: '#turn.working.concluding',
                    actions: [recordAnswer, 'setFinishToLength', 'emitLimitReached'],
                  },
                  {
                    guard: { type: 'hasCalls', params: outputIn },
                    target: '#turn.working.reviewing',
                    actions: recordAnswer,
                  },
                  {
                    guard: { type: 'isSteered', params: outputIn },
                    target: '#turn.working.checking',
                    actions: recordAnswer,
                  },
                  {
                    guard: { type: 'mustCheckEnd', params: outputIn },
                    target: '#turn.working.checkingEnd',
                    actions: [recordAnswer, emitSilentEnd],
                  },
                  {
                    target: '#turn.storing',
                    actions: [recordAnswer, emitSilentEnd, 'recordCompletion'],
                  },
                ],
              },
            },
          },
        },
        held: {
          description: 'The turn cannot continue now: it waits for a user or for a time.',
          initial: 'budgetReached',
          exit: 'emitResumed',
          always: { guard: 'isHoldRefused', target: '#turn.storing', actions: 'recordHeldFailure' },
          after: { holdTimeout: { target: '#turn.storing', actions: ['emitHoldExpired', 'recordHeldFailure'] } },
          states: {
            budgetReached: {
              description: 'A budget is used up; a user may raise it. The turn fails after the timeout.',
              meta: { kind: 'asks', lane: 'exception', order: 2 },
              entry: 'emitBudgetReached',
              on: { 'BUDGET.RAISED': '#turn.working.checking' },
            },
            waitingForQuota: {
              description: 'The quota of the model provider is used up.',
              initial: 'confirming',
              states: {
                confirming: {
                  description: 'A user decides whether the turn continues after the reset, unless the setting does.',
                  meta: { kind: 'asks', lane: 'exception', order: 3 },
                  entry: 'emitQuotaAsked',
                  always: { guard: 'isQuotaWaitAccepted', target: 'scheduled' },
                },
                scheduled: {
                  description: 'The turn continues at the time of the reset, or earlier when a user hurries it.',
                  meta: { kind: 'pauses', lane: 'detour', order: 1 },
                  invoke: {
                    id: 'awaitReset',
                    src: 'awaitReset',
                    input: ({ context }) => ({ ...keyOf({ context }), ...quotaWaitOf(context) }),
                  },
                  on: {
                    'HOLD.ANSWERED': {
                      guard: { type: 'isHurried', params: eventIn<HoldAnswered> },
                      target: 'scheduled',
                      reenter: true,
                      actions: recordHoldAnswer,
                    },
                  },
                },
              },
            },
          },
        },
        retrying: {
          description:
            'The last request failed for a while or got no content: a pause, then the whole request is repeated.',
          meta: { kind: 'pauses', lane: 'detour', order: 3 },
          after: { retryPause: 'checking' },
        },
        fallingBack: {
          description: 'The model of the turn failed: the next fallback model takes over for the rest of the turn.',
          meta: { kind: 'thinks', lane: 'detour', order: 4 },
          invoke: {
            id: 'fallBack',
            src: 'fallBack',
            input: ({ context }) => ({ ...keyOf({ context }), index: context.patience.fallbacks }),
          },
          exit: 'countFallback',
        },
        checkingEnd: {
          description: 'The model has finished: hooks of the user run, and may have it continue.',
          meta: { kind: 'thinks', lane: 'exception', order: 5 },
          invoke: {
            id: 'checkEnd',
            src: 'checkEnd',
            input: keyOf,
            onDone: {
              guard: { type: 'isUndisputed', params: outputIn },
              target: '#turn.storing',
              actions: 'recordCompletion',
            },
          },
          exit: 'countHeldUp',
        },
        reviewing: {
          description: 'The calls that need approval are found; policies and grants decide some of them.',
          meta: { kind: 'works', lane: 'spine', order: 4 },
          invoke: {
            id: 'review',
            src: 'review',
            input: keyOf,
            onDone: [
              {
                guard: { type: 'needsApproval', params: outputIn },
                target: 'awaitingApproval',
                actions: { type: 'recordPendingApprovals', params: outputIn },
              },
              { target: 'securing' },
            ],
          },
        },
        awaitingApproval: {
          description: 'Waiting for approval; any client of the thread may answer. Declined after the timeout.',
          meta: { kind: 'asks', lane: 'exception', order: 4 },
          ...untilDecided('securing'),
        },
        securing: {
          description: 'Saves the files before the first call that may change them.',
          meta: { kind: 'works', lane: 'spine', order: 5 },
          invoke: {
            id: 'secure',
            src: 'secure',
            input: keyOf,
            onDone: [{ guard: 'isDelegated', target: 'delegating' }, { target: 'runningTools' }],
          },
        },
        delegating: {
          description: 'An external agent does the turn; it asks before operations that need an approval.',
          invoke: {
            id: 'delegate',
            src: 'delegate',
            input: keyOf,
            onDone: { target: '#turn.storing', actions: { type: 'recordDelegatedEnd', params: outputIn } },
          },
          on: {
            'APPROVAL.NEEDED': {
              target: '.asking',
              actions: { type: 'addPendingApproval', params: eventIn<Extract<TurnEvent, { type: 'APPROVAL.NEEDED' }>> },
            },
          },
          initial: 'busy',
          states: {
            busy: { description: 'No approval is pending.', meta: { kind: 'works', lane: 'detour', order: 5 } },
            asking: {
              description: 'The agent waits for an approval, and may work on. Each question restarts the timeout.',
              meta: { kind: 'asks', lane: 'detour', order: 6 },
              ...untilDecided('busy'),
            },
          },
        },
        runningTools: {
          description: 'The allowed calls run: reading calls in parallel, the others one by one.',
          meta: { kind: 'works', lane: 'spine', order: 6 },
          invoke: {
            id: 'runTools',
            src: 'runTools',
            input: keyOf,
            onDone: [
              {
                guard: 'hasClientCalls',
                target: '#turn.storing',
                actions: ['setFinishToToolCalls', 'recordCompletion'],
              },
              {
                guard: { type: 'areCallsInVain', params: outputIn },
                target: 'concluding',
                actions: [
                  'setFinishToLength',
                  { type: 'updateCutAnswers', params: outputIn },
                  { type: 'emitCallsInVain', params: outputIn },
                ],
              },
              { target: 'checking', actions: { type: 'updateCutAnswers', params: outputIn } },
            ],
          },
        },
        concluding: {
          description:
            'A limit is reached: one last request without tools, in which the model reports its findings and its work.',
          meta: { kind: 'thinks', lane: 'exception', order: 6 },
          entry: 'countRequest',
          invoke: {
            id: 'conclude',
            src: 'conclude',
            input: keyOf,
            onDone: { target: '#turn.storing', actions: 'recordCompletion' },
            onError: {
              target: '#turn.storing',
              actions: [{ type: 'emitNotConcluded', params: failureIn }, 'recordCompletion'],
            },
          },
        },
      },
    },
    cancelling: {
      description: 'The work was aborted; waiting, for a bounded time, until it has ended.',
      meta: { kind: 'works', lane: 'exception', order: 7 },
      invoke: { id: 'settle', src: 'settle', input: keyOf, onDone: onSettled },
      after: { cancelGrace: onSettled },
    },
    storing: {
      description: 'The outcome is decided; the files are saved and the end is written before it is published.',
      meta: { kind: 'works', lane: 'detour', order: 7 },
      entry: 'emitEnding',
      on: {
        'END.STORED': [
          { guard: 'isCompleted', target: 'completed', actions: 'recordStored' },
          { guard: 'isFailed', target: 'failed', actions: 'recordStored' },
          { target: 'cancelled', actions: 'recordStored' },
        ],
      },
    },
    completed: {
      description: 'The answer is complete.',
      meta: { kind: 'ended', lane: 'end', order: 2 },
      type: 'final',
      entry: 'emitEnded',
    },
    failed: {
      description: 'The model, a tool, the store or the server failed.',
      meta: { kind: 'failed', lane: 'end', order: 1 },
      type: 'final',
      entry: 'emitEnded',
    },
    cancelled: {
      description: 'Interrupted. The items so far are stored.',
      meta: { kind: 'ended', lane: 'end', order: 0 },
      type: 'final',
      entry: 'emitEnded',
    },
  },
});
