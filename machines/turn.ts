/**
 * One turn of a thread: the model answers, its tool calls run as policies and users allow, and the turn ends as completed, failed
 * or cancelled. Actors do the work and stream its items; this machine chooses the next step, and its snapshot is the only
 * record of status, rounds, tokens, retries and interrupter (`turn-selectors.ts`).
 *
 * Detailed operation
 * 0. A turn whose agent server ended goes on in `resuming`: `resume` restores the conversation from the stored items and chooses the
 *    state. Its saved state is a fact for this choice: entry actions and timers work as in a turn that was never cut.
 * 1. `prepare` collects messages and tools.
 * 2. `checking` precedes every request: a conversation that exceeds the context window is compacted, and a used-up budget stops the
 *    turn in `budgetReached` until a user raises it or the timeout ends the turn.
 * 3. Each entry of `inferring` is one request to the model. Its tokens are counted when it ends, also when it was interrupted or failed.
 * 4. When the service refuses a part of a request, such as a picture, the request is repeated at once without that part. A request that
 *    failed for a while is repeated whole after a pause in `retrying`; no tool has run for the broken answer. When its repetitions are
 *    used up, or cannot help, the next fallback model takes over in `fallingBack`. An answer without text and call counts as failed,
 *    unless the calls of the turn are its result. A model that prints a call as text is notified once to call tools. When calls of three
 *    answers in a row are cut off at the output limit, the turn is concluded.
 * 5. `review` finds the calls that need approval. Each is decided by a user, a policy or the timeout. `secure` waits until the files
 *    are saved that a call may change; then `runTools` runs the allowed calls.
 * 6. An external agent does the whole turn in `delegating`, after `secure`: we send no request. It asks for
 *    approvals while it works.
 * 7. The next request follows, until an answer has no call, the caller must run one, or a limit is reached. Hooks of the user may hold
 *    up the end in `checkingEnd`, a few times at most. At a limit the model is asked once more, without tools, in `concluding`; the turn ends as completed even when that request fails.
 * 8. `INTERRUPT` aborts the work of the state and waits a bounded time until it has ended. The first interrupt counts.
 * 9. The changes of the turn are saved, and the end is written, in `storing`; it is published after that, in a final state.
 * 10. `STORAGE.FAILED` fails the turn in every state, in `storing` too: an end that was not written does not count.
 */

import { failureOf } from './failure.ts';
import { emptyFailure, turnSetup } from './turn-setup.ts';
import {
  type Inference,
  noTokens,
  type ResumedState,
  type Resumption,
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

const onError = { target: 'storing', actions: { type: 'recordFailure', params: failureIn } } as const;
const onStorageFailure = {
  target: 'failed',
  actions: { type: 'recordStorageFailure', params: eventIn<Extract<TurnEvent, { type: 'STORAGE.FAILED' }>> },
} as const;
const onInterrupt = {
  target: 'cancelling',
  actions: { type: 'recordInterrupter', params: eventIn<Extract<TurnEvent, { type: 'INTERRUPT' }>> },
} as const;
const onTokensUsed = {
  actions: { type: 'countTokens', params: eventIn<Extract<TurnEvent, { type: 'TOKENS.USED' }>> },
} as const;
const onCostAdded = {
  actions: { type: 'addCost', params: eventIn<Extract<TurnEvent, { type: 'COST.ADDED' }>> },
} as const;
const onFallBack = {
  guard: 'canFallBack',
  target: 'fallingBack',
  actions: { type: 'emitFallingBack', params: failureIn },
} as const;
/** A failed request of the turn: repeated without its refused part, repeated, taken over by another model, or the end of the turn. */
const onModelError = [
  {
    guard: { type: 'canLeaveOut', params: failureIn },
    target: 'checking',
    actions: ['countOmission', { type: 'emitLeavingOut', params: failureIn }],
  },
  { guard: { type: 'canCompactAfter', params: failureIn }, target: 'compacting', reenter: true },
  {
    guard: { type: 'canRetry', params: failureIn },
    target: 'retrying',
    actions: [
      { type: 'scheduleRetry', params: failureIn },
      { type: 'emitRetrying', params: failureIn },
    ],
  },
  onFallBack,
  onError,
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
};
/** Events of every state in which the turn works or waits. */
const whileWorking = { INTERRUPT: onInterrupt, 'STORAGE.FAILED': onStorageFailure } as const;
/** A resumed turn goes on in this state when its work says so. */
const goesOnAt = <S extends ResumedState>(state: S) =>
  ({
    guard: {
      type: 'goesOnAt',
      params: ({ event }: { readonly event: { readonly output: Resumption } }) => ({ ...event.output, state }),
    },
    target: state,
  }) as const;
const onSettled = { target: 'storing', actions: 'recordCancellation' } as const;

/** States in which a resumed turn goes on, besides `checking`. */
const resumedStates = [
  'preparing',
  'retrying',
  'fallingBack',
  'reviewing',
  'checkingEnd',
  'concluding',
  'storing',
] as const;

export const turnMachine = turnSetup.createMachine({
  id: 'turn',
  description: 'One turn of a thread, from its input to its end.',
  context: ({ input: { threadId, turnId, seed, resumed, ...limits } }) => ({
    threadId,
    turnId,
    limits: { ...limits, isResumed: resumed !== undefined },
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
  initial: 'beginning',
  states: {
    beginning: {
      description: 'A new turn, or a turn that the end of its agent server cut.',
      always: [{ guard: 'isResumed', target: 'resuming' }, { target: 'preparing' }],
    },
    resuming: {
      description: 'The turn was cut by the end of its agent server: its conversation and its calls are restored.',
      invoke: {
        id: 'resume',
        src: 'resume',
        input: keyOf,
        onDone: [
          { guard: 'isInterrupted', target: 'storing', actions: 'recordCancellation' },
          ...resumedStates.map(goesOnAt),
          { target: 'checking' },
        ],
        onError,
      },
      on: whileWorking,
    },
    preparing: {
      description: 'The messages and tools for the model are collected.',
      invoke: {
        id: 'prepare',
        src: 'prepare',
        input: keyOf,
        onDone: [{ guard: 'isDelegated', target: 'securing' }, { target: 'checking' }],
        onError,
      },
      on: whileWorking,
    },
    checking: {
      description: 'The conversation is compared with the context window, and the cost with the budgets.',
      invoke: {
        id: 'check',
        src: 'check',
        input: keyOf,
        onDone: [
          {
            guard: { type: 'isOverBudget', params: outputIn },
            target: 'budgetReached',
            actions: { type: 'recordUsedUpBudget', params: outputIn },
          },
          { guard: { type: 'isTooLong', params: outputIn }, target: 'compacting' },
          { target: 'inferring' },
        ],
        onError,
      },
      on: whileWorking,
    },
    compacting: {
      description: 'The conversation exceeds the context window: its older part is summarised.',
      entry: 'countCompaction',
      invoke: { id: 'compact', src: 'compact', input: keyOf, onDone: 'inferring', onError: onModelError },
      on: { ...whileWorking, 'COST.ADDED': onCostAdded },
    },
    budgetReached: {
      description: 'A budget is used up; a user may raise it. The turn fails after the timeout.',
      entry: 'emitBudgetReached',
      exit: 'emitResumed',
      after: {
        approvalTimeout: { target: 'storing', actions: ['emitBudgetExpired', 'recordBudgetFailure'] },
      },
      on: {
        ...whileWorking,
        'BUDGET.DECIDED': [
          {
            guard: { type: 'isRaised', params: eventIn<Extract<TurnEvent, { type: 'BUDGET.DECIDED' }>> },
            target: 'checking',
          },
          { target: 'storing', actions: 'recordBudgetFailure' },
        ],
      },
    },
    retrying: {
      description:
        'The last request failed for a while or got no content: a pause, then the whole request is repeated.',
      after: { retryPause: 'checking' },
      on: whileWorking,
    },
    fallingBack: {
      description: 'The model of the turn failed: the next fallback model takes over for the rest of the turn.',
      invoke: {
        id: 'fallBack',
        src: 'fallBack',
        input: ({ context }) => ({ ...keyOf({ context }), index: context.patience.fallbacks }),
        onDone: { target: 'checking', actions: 'countFallback' },
        onError: { target: 'storing', actions: { type: 'recordFailure', params: failureIn } },
      },
      on: whileWorking,
    },
    inferring: {
      description: 'The model answers; its answer is streamed.',
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
            target: 'retrying',
            actions: [
              'countEmptyAnswer',
              { type: 'scheduleRetry', params: emptyIn },
              { type: 'emitRetrying', params: emptyIn },
            ],
          },
          {
            guard: { type: 'canReplaceSilentModel', params: outputIn },
            target: 'fallingBack',
            actions: { type: 'emitFallingBack', params: emptyIn },
          },
          {
            guard: { type: 'isWithoutResult', params: outputIn },
            target: 'storing',
            actions: { type: 'recordFailure', params: emptyIn },
          },
          {
            guard: { type: 'mustCorrect', params: outputIn },
            target: 'checking',
            actions: [recordAnswer, 'countCorrection', 'emitCallPrinted'],
          },
          {
            guard: { type: 'reachesRoundLimit', params: outputIn },
            target: 'concluding',
            actions: [recordAnswer, 'setFinishToLength', 'emitLimitReached'],
          },
          { guard: { type: 'hasCalls', params: outputIn }, target: 'reviewing', actions: recordAnswer },
          { guard: { type: 'isSteered', params: outputIn }, target: 'checking', actions: recordAnswer },
          {
            guard: { type: 'mustCheckEnd', params: outputIn },
            target: 'checkingEnd',
            actions: [recordAnswer, emitSilentEnd],
          },
          {
            target: 'storing',
            actions: [recordAnswer, emitSilentEnd, 'recordCompletion'],
          },
        ],
        onError: onModelError,
      },
      on: { ...whileWorking, 'TOKENS.USED': onTokensUsed },
    },
    checkingEnd: {
      description: 'The model has finished: hooks of the user run, and may have it continue.',
      invoke: {
        id: 'checkEnd',
        src: 'checkEnd',
        input: keyOf,
        onDone: [
          { guard: { type: 'continues', params: outputIn }, target: 'checking', actions: 'countHeldUp' },
          { target: 'storing', actions: 'recordCompletion' },
        ],
        onError,
      },
      on: whileWorking,
    },
    reviewing: {
      description: 'The calls that need approval are found; policies and grants decide some of them.',
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
        onError,
      },
      on: whileWorking,
    },
    awaitingApproval: {
      description: 'Waiting for approval; any client of the thread may answer. Declined after the timeout.',
      entry: 'emitWaiting',
      exit: 'emitResumed',
      always: { guard: 'areAllDecided', target: 'securing' },
      after: {
        approvalTimeout: { target: 'securing', actions: ['emitApprovalsExpired', 'clearPendingApprovals'] },
      },
      on: {
        ...whileWorking,
        DECIDED: {
          actions: { type: 'removePendingApproval', params: eventIn<Extract<TurnEvent, { type: 'DECIDED' }>> },
        },
      },
    },
    securing: {
      description: 'Saves the files before the first call that may change them.',
      invoke: {
        id: 'secure',
        src: 'secure',
        input: keyOf,
        onDone: [{ guard: 'isDelegated', target: 'delegating' }, { target: 'runningTools' }],
        onError,
      },
      on: whileWorking,
    },
    delegating: {
      description: 'An external agent does the turn; it asks before operations that need an approval.',
      invoke: {
        id: 'delegate',
        src: 'delegate',
        input: keyOf,
        onDone: [
          { guard: { type: 'hasCancelled', params: outputIn }, target: 'storing', actions: 'recordOwnCancellation' },
          {
            target: 'storing',
            actions: [{ type: 'recordDelegatedEnd', params: outputIn }, 'recordCompletion'],
          },
        ],
        onError,
      },
      on: {
        ...whileWorking,
        'TOKENS.USED': onTokensUsed,
        'APPROVAL.NEEDED': {
          target: '.asking',
          actions: { type: 'addPendingApproval', params: eventIn<Extract<TurnEvent, { type: 'APPROVAL.NEEDED' }>> },
        },
      },
      initial: 'working',
      states: {
        working: { description: 'No approval is pending.' },
        asking: {
          description: 'The agent waits for an approval, and may work on. Each question restarts the timeout.',
          entry: 'emitWaiting',
          exit: 'emitResumed',
          always: { guard: 'areAllDecided', target: 'working' },
          after: {
            approvalTimeout: { target: 'working', actions: ['emitApprovalsExpired', 'clearPendingApprovals'] },
          },
          on: {
            DECIDED: {
              actions: { type: 'removePendingApproval', params: eventIn<Extract<TurnEvent, { type: 'DECIDED' }>> },
            },
          },
        },
      },
    },
    runningTools: {
      description: 'The allowed calls run: reading calls in parallel, the others one by one.',
      invoke: {
        id: 'runTools',
        src: 'runTools',
        input: keyOf,
        onDone: [
          {
            guard: 'hasClientCalls',
            target: 'storing',
            actions: ['setFinishToToolCalls', 'recordCompletion'],
          },
          {
            guard: { type: 'isLooping', params: outputIn },
            target: 'concluding',
            actions: ['setFinishToLength', { type: 'emitStuck', params: outputIn }],
          },
          {
            guard: { type: 'reachesCutLimit', params: outputIn },
            target: 'concluding',
            actions: ['setFinishToLength', 'countCutAnswer', 'emitCutOff'],
          },
          { guard: { type: 'isCut', params: outputIn }, target: 'checking', actions: 'countCutAnswer' },
          { target: 'checking', actions: 'resetCutAnswers' },
        ],
        onError,
      },
      on: { ...whileWorking, 'COST.ADDED': onCostAdded },
    },
    concluding: {
      description:
        'A limit is reached: one last request without tools, in which the model reports its findings and its work.',
      entry: 'countRequest',
      invoke: {
        id: 'conclude',
        src: 'conclude',
        input: keyOf,
        onDone: { target: 'storing', actions: 'recordCompletion' },
        onError: {
          target: 'storing',
          actions: [{ type: 'emitNotConcluded', params: failureIn }, 'recordCompletion'],
        },
      },
      on: { ...whileWorking, 'TOKENS.USED': onTokensUsed },
    },
    cancelling: {
      description: 'The work was aborted; waiting, for a bounded time, until it has ended.',
      invoke: { id: 'settle', src: 'settle', input: keyOf, onDone: onSettled, onError: onSettled },
      after: { cancelGrace: onSettled },
      on: { 'TOKENS.USED': onTokensUsed, 'COST.ADDED': onCostAdded, 'STORAGE.FAILED': onStorageFailure },
    },
    storing: {
      description: 'The outcome is decided; the files are saved and the end is written before it is published.',
      entry: 'emitEnding',
      on: {
        'END.STORED': [
          { guard: 'isCompleted', target: 'completed', actions: 'recordStored' },
          { guard: 'isFailed', target: 'failed', actions: 'recordStored' },
          { target: 'cancelled', actions: 'recordStored' },
        ],
        'STORAGE.FAILED': onStorageFailure,
      },
    },
    completed: { description: 'The answer is complete.', type: 'final', entry: 'emitEnded' },
    failed: { description: 'The model, a tool, the store or the server failed.', type: 'final', entry: 'emitEnded' },
    cancelled: {
      description: 'Interrupted. The items so far are stored.',
      type: 'final',
      entry: 'emitEnded',
    },
  },
});
