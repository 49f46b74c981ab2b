/**
 * One cron job or local task: a prompt that is sent to the agent when it is due. At most one run of it is under way; due
 * times that come during a run wait, and count as one.
 *
 * Detailed operation
 * 1. `DUE` comes from the scheduler, which alone knows the calendar. This chart only chooses the next step, so none of its
 *    delays is longer than a day.
 * 2. A due time waits for a slot, then becomes a run. Due times that come before the run has begun are merged into it; those
 *    that come while it runs become one run after it.
 * 3. A failed run is tried again after a back-off, as often as the policy allows; the scheduler sends `RETRY` when the pause
 *    is over. That try covers the due times of the pause. A run that has begun a call with effects is not tried again
 *    unasked: it would repeat them.
 * 4. `CANCEL` ends a run that is under way or waits, not the schedule. `DISABLE` ends the schedule; a run under way continues.
 * 5. `RUN.RESUMED` reports a run of an earlier process whose turn continues in this one: the same try runs on, and the time limit
 *    counts from the start of its turn.
 * 6. `RUN.LEFT` reports a run whose turn ended with its process. It is tried again at once under the rules of a failed run.
 * 7. A one-off whose due time has passed stays in `finished`. It can be run again by hand, or be given another time.
 */
import { assertEvent, assign, emit, fromCallback, sendTo, setup } from 'xstate';
import type { Failure } from './failure.ts';
import { backoffDelay, nextRandom } from './restart-policy.ts';

export interface AutomationPolicy {
  /** Tries after the first. */
  readonly maxRetries: number;
  readonly retryInitialMs: number;
  readonly retryMaxMs: number;
  readonly turnTimeoutMs: number;
}

/** Due times that are taken together. Milliseconds since the epoch. */
export interface Due {
  readonly first: number;
  /** Last due time: the run is named after it. */
  readonly scheduledFor: number;
  readonly count: number;
}

/** One run, tried until it succeeds or is given up. */
export interface AutomationWork {
  readonly scheduledFor: number;
  /** From 1. */
  readonly attempt: number;
  readonly trigger: 'schedule' | 'manual';
}

/** Outcome of a run. `skipped`: another process began it, or there is nothing left to run. */
export type AutomationOutcome =
  | { readonly status: 'completed' }
  | { readonly status: 'failed'; readonly failure: Failure }
  | { readonly status: 'cancelled' }
  | { readonly status: 'skipped' };

/** A run that has ended, with the facts that decide whether it is tried again. */
interface Attempt {
  readonly work: AutomationWork | null;
  readonly effect: string | null;
  readonly outcome: AutomationOutcome;
}

/** The user's decisions that this chart needs. */
export interface AutomationTerms {
  /** Has a recurring schedule. */
  readonly isRecurring: boolean;
  /** A one-off whose due time has been. */
  readonly isSpent: boolean;
  /** A one-off that goes when it has completed. */
  readonly vanishes: boolean;
}

export interface AutomationMachineInput extends AutomationTerms {
  readonly automationId: string;
  readonly kind: 'cron' | 'task';
  readonly isEnabled: boolean;
  readonly policy: AutomationPolicy;
  /** Seed of the jitter. */
  readonly seed: number;
  readonly failures: number;
  /** A retry that an earlier process was waiting for. */
  readonly retry: { readonly work: AutomationWork; readonly at: number } | null;
}

export interface AutomationContext extends AutomationTerms {
  readonly automationId: string;
  readonly kind: 'cron' | 'task';
  readonly isEnabled: boolean;
  readonly policy: AutomationPolicy;
  readonly seed: number;
  readonly work: AutomationWork | null;
  /** Due times that no run stands for yet. */
  readonly due: Due | null;
  /** Due times that the run under way stands for. */
  readonly covers: Due | null;
  readonly retryAt: number | null;
  readonly delayMs: number;
  /** In a row. */
  readonly failures: number;
  readonly hasCompleted: boolean;
  readonly threadId: string | null;
  readonly turnId: string | null;
  /** Age of the turn when the run received it: more than 0 for a turn of an earlier process. */
  readonly turnAgeMs: number;
  /** Tool or external agent whose call with effects has begun in this attempt. */
  readonly effect: string | null;
  readonly stopReason: 'cancel' | 'timeout' | null;
  readonly lastError: string | null;
}

/** Events that the driver of a run reports. */
export type AutomationRunEvent =
  | { readonly type: 'RUN.STARTED'; readonly threadId: string; readonly turnId: string; readonly ageMs: number }
  /** A call with effects is about to begin. */
  | { readonly type: 'RUN.EFFECT'; readonly tool: string }
  | { readonly type: 'RUN.ENDED'; readonly outcome: AutomationOutcome; readonly at: number };

export type AutomationEvent =
  | { readonly type: 'DUE'; readonly due: Due }
  /** A run by hand was requested; `at` names the run. */
  | { readonly type: 'RUN'; readonly at: number }
  | { readonly type: 'RETRY' }
  | { readonly type: 'SLOT' }
  | { readonly type: 'CANCEL' }
  | { readonly type: 'ENABLE' }
  | { readonly type: 'DISABLE' }
  | { readonly type: 'CHANGED'; readonly terms: AutomationTerms }
  | { readonly type: 'REMOVE' }
  /** The turn of a run that an earlier process began continues. */
  | { readonly type: 'RUN.RESUMED'; readonly work: AutomationWork }
  /** An earlier process ended during this run. */
  | (Attempt & { readonly type: 'RUN.LEFT'; readonly at: number })
  | AutomationRunEvent;

/** Due times that will have no run. */
export interface AutomationEmitted {
  readonly type: 'automation.dropped';
  readonly due: Due;
  readonly as: 'missed' | 'cancelled';
}

/** Asked of the driver of a run. */
export interface AutomationRunCommand {
  readonly type: 'INTERRUPT';
  readonly reason: 'cancel' | 'timeout';
}

export interface AutomationRunInput {
  readonly automationId: string;
  readonly work: AutomationWork;
  readonly covers: Due | null;
  /** An earlier process began this try, and its turn continues. */
  readonly isResumed: boolean;
}

/** Two sets of due times as one. */
export function mergeDue(one: Due | null, other: Due): Due {
  if (!one) return other;
  return {
    first: Math.min(one.first, other.first),
    scheduledFor: Math.max(one.scheduledFor, other.scheduledFor),
    count: one.count + other.count,
  };
}

type Failed = Extract<AutomationOutcome, { readonly status: 'failed' }>;

export const automationMachine = setup({
  types: {
    input: {} as AutomationMachineInput,
    context: {} as AutomationContext,
    events: {} as AutomationEvent,
    emitted: {} as AutomationEmitted,
    tags: {} as 'paused' | 'waiting' | 'queued' | 'running' | 'backingOff' | 'finished' | 'atRest',
  },
  actors: {
    /** Sends the prompt to the agent. Waits while the thread is busy; ended early by `INTERRUPT`, or by being stopped. */
    run: fromCallback<AutomationRunCommand, AutomationRunInput>(() => {}),
  },
  delays: { turnTimeout: ({ context }) => Math.max(0, context.policy.turnTimeoutMs - context.turnAgeMs) },
  guards: {
    isEnabled: ({ context }) => context.isEnabled,
    isSpent: ({ context }) => context.isSpent,
    hasDue: ({ context }) => context.isEnabled && context.due !== null,
    hasRetry: ({ context }) => context.work !== null && context.retryAt !== null,
    vanishes: ({ context }) => context.isSpent && context.vanishes && context.hasCompleted,
    isScheduled: ({ context }) => context.work?.trigger !== 'manual',
    mayRetry: ({ context }, { work, effect, outcome }: Attempt) =>
      outcome.status === 'failed' &&
      outcome.failure.isRetryable &&
      effect === null &&
      work !== null &&
      work.attempt <= context.policy.maxRetries &&
      (context.isEnabled || work.trigger === 'manual'),
    hasFailed: (_, outcome: AutomationOutcome) => outcome.status === 'failed',
    hasCompleted: (_, outcome: AutomationOutcome) => outcome.status === 'completed',
  },
  actions: {
    mergeDueTime: assign(({ context, event }) => {
      assertEvent(event, 'DUE');
      return { due: mergeDue(context.due, event.due) };
    }),
    selectManualRun: assign(({ event }) => {
      assertEvent(event, 'RUN');
      return { work: { scheduledFor: event.at, attempt: 1, trigger: 'manual' as const }, retryAt: null };
    }),
    selectResumedRun: assign(({ event }) => {
      assertEvent(event, 'RUN.RESUMED');
      return { work: event.work, retryAt: null };
    }),
    enable: assign({ isEnabled: true }),
    disable: assign({ isEnabled: false }),
    recordTerms: assign(({ event }) => {
      assertEvent(event, 'CHANGED');
      return event.terms;
    }),
    /** The host puts it into the queue for a slot. */
    requestSlot: () => {},
    /** The host frees the slot, or the place in the queue. */
    releaseSlot: () => {},
    beginRun: assign(({ context }) => {
      const { work, due } = context;
      const isManual = work?.trigger === 'manual';
      return {
        // A run by hand covers no due time.
        work: work ?? { scheduledFor: due?.scheduledFor ?? 0, attempt: 1, trigger: 'schedule' as const },
        covers: isManual ? null : due,
        due: isManual ? due : null,
        retryAt: null,
        isSpent: context.isSpent || (!context.isRecurring && !isManual),
        hasCompleted: false,
        threadId: null,
        turnId: null,
        turnAgeMs: 0,
        effect: null,
        stopReason: null,
      };
    }),
    recordTurn: assign(({ event }) => {
      assertEvent(event, 'RUN.STARTED');
      return { threadId: event.threadId, turnId: event.turnId, turnAgeMs: event.ageMs };
    }),
    recordEffect: assign(({ event }) => {
      assertEvent(event, 'RUN.EFFECT');
      return { effect: event.tool };
    }),
    interruptRun: sendTo('run', ({ context }) => ({
      type: 'INTERRUPT' as const,
      reason: context.stopReason ?? 'cancel',
    })),
    recordCancel: assign({ stopReason: 'cancel' }),
    recordTimeout: assign({ stopReason: 'timeout' }),
    countFailure: assign(({ context }, outcome: AutomationOutcome) => ({
      failures: context.failures + 1,
      lastError: (outcome as Failed).failure.message,
    })),
    recordCompletion: assign({ failures: 0, hasCompleted: true, lastError: null }),
    planRetry: assign(({ context, event }) => {
      assertEvent(event, 'RUN.ENDED');
      if (!context.work) return {};
      const { retryInitialMs, retryMaxMs } = context.policy;
      const { random, seed } = nextRandom(context.seed);
      const pause = backoffDelay(
        context.work.attempt,
        { backoffBaseMs: retryInitialMs, backoffCapMs: retryMaxMs },
        random,
      );
      const asked = event.outcome.status === 'failed' ? (event.outcome.failure.retryAfterMs ?? 0) : 0;
      const delayMs = Math.max(pause, asked);
      return {
        seed,
        delayMs,
        retryAt: event.at + delayMs,
        work: { ...context.work, attempt: context.work.attempt + 1 },
        covers: null,
      };
    }),
    resumeWork: assign(({ event }) => {
      assertEvent(event, 'RUN.LEFT');
      const { work, at } = event;
      return { work: work && { ...work, attempt: work.attempt + 1 }, retryAt: at, covers: null };
    }),
    endRun: assign({ work: null, covers: null, retryAt: null }),
    emitCancelled: emit(({ context }) => dropped(context.due, 'cancelled')),
    emitMissed: emit(({ context }) => dropped(context.due, 'missed')),
    clearDue: assign({ due: null }),
    /** A one-off that was cancelled when its time had come does not come again. */
    consumeDue: assign(({ context }) => ({
      due: null,
      isSpent: context.isSpent || (!context.isRecurring && context.due !== null),
    })),
  },
}).createMachine({
  id: 'automation',
  description: 'One cron job or local task.',
  context: ({ input: { retry, ...input } }) => ({
    ...input,
    work: retry?.work ?? null,
    due: null,
    covers: null,
    retryAt: retry?.at ?? null,
    delayMs: 0,
    hasCompleted: false,
    threadId: null,
    turnId: null,
    turnAgeMs: 0,
    effect: null,
    stopReason: null,
    lastError: null,
  }),
  initial: 'deciding',
  on: {
    DUE: { guard: 'isEnabled', actions: 'mergeDueTime' },
    ENABLE: { actions: 'enable' },
    DISABLE: [{ guard: 'hasDue', actions: ['emitMissed', 'clearDue', 'disable'] }, { actions: 'disable' }],
    CHANGED: { actions: 'recordTerms' },
    REMOVE: { target: '.removed' },
    'RUN.RESUMED': { target: '.active.running', actions: ['selectResumedRun', 'requestSlot'] },
    'RUN.LEFT': [
      {
        guard: { type: 'mayRetry', params: ({ event }) => event },
        target: '.backingOff',
        actions: [{ type: 'countFailure', params: ({ event }) => event.outcome }, 'resumeWork'],
      },
      { actions: { type: 'countFailure', params: ({ event }) => event.outcome } },
    ],
  },
  states: {
    deciding: {
      description: 'Chooses the next state from the schedule and the due runs.',
      meta: { kind: 'works', lane: 'spine', order: 0 },
      always: [
        { guard: 'hasRetry', target: 'backingOff' },
        { guard: 'hasDue', target: 'active' },
        { guard: 'vanishes', target: 'removed' },
        { guard: 'isSpent', target: 'finished' },
        { guard: 'isEnabled', target: 'waiting' },
        { target: 'paused' },
      ],
    },
    paused: {
      description: 'Disabled; it can still be run by hand.',
      meta: { kind: 'rests', lane: 'detour', order: 0 },
      tags: ['paused', 'atRest'],
      on: {
        RUN: { target: 'active', actions: 'selectManualRun' },
        ENABLE: { target: 'deciding', actions: 'enable' },
        CHANGED: { target: 'deciding', actions: 'recordTerms' },
      },
    },
    waiting: {
      description: 'Waiting for the next due time.',
      meta: { kind: 'rests', lane: 'spine', order: 1 },
      tags: ['waiting', 'atRest'],
      on: {
        DUE: { target: 'active', actions: 'mergeDueTime' },
        RUN: { target: 'active', actions: 'selectManualRun' },
        DISABLE: { target: 'deciding', actions: 'disable' },
        CHANGED: { target: 'deciding', actions: 'recordTerms' },
      },
    },
    active: {
      description: 'Due: waiting for a slot, or running in one.',
      exit: 'releaseSlot',
      initial: 'queued',
      states: {
        queued: {
          description: 'Waiting for a slot: the number of runs at once is limited. Due times that come now are merged.',
          meta: { kind: 'pauses', lane: 'spine', order: 2 },
          tags: 'queued',
          entry: 'requestSlot',
          on: {
            SLOT: { target: 'running' },
            CANCEL: { target: '#automation.deciding', actions: ['emitCancelled', 'consumeDue', 'endRun'] },
            DISABLE: {
              guard: 'isScheduled',
              target: '#automation.deciding',
              actions: ['emitMissed', 'clearDue', 'endRun', 'disable'],
            },
          },
        },
        running: {
          description: 'The prompt is processed by the agent, in one turn.',
          tags: 'running',
          entry: 'beginRun',
          invoke: {
            id: 'run',
            src: 'run',
            input: ({ context, event }) => ({
              automationId: context.automationId,
              work: context.work ?? { scheduledFor: 0, attempt: 1, trigger: 'manual' },
              covers: context.covers,
              isResumed: event.type === 'RUN.RESUMED',
            }),
          },
          initial: 'starting',
          on: {
            'RUN.EFFECT': { actions: 'recordEffect' },
            'RUN.ENDED': [
              {
                guard: {
                  type: 'mayRetry',
                  params: ({ context: { work, effect }, event: { outcome } }) => ({ work, effect, outcome }),
                },
                target: '#automation.backingOff',
                actions: [{ type: 'countFailure', params: ({ event }) => event.outcome }, 'planRetry'],
              },
              {
                guard: { type: 'hasFailed', params: ({ event }) => event.outcome },
                target: '#automation.deciding',
                actions: [{ type: 'countFailure', params: ({ event }) => event.outcome }, 'endRun'],
              },
              {
                guard: { type: 'hasCompleted', params: ({ event }) => event.outcome },
                target: '#automation.deciding',
                actions: ['recordCompletion', 'endRun'],
              },
              { target: '#automation.deciding', actions: 'endRun' },
            ],
          },
          states: {
            starting: {
              description: 'The run is stored; waiting until its thread is free.',
              meta: { kind: 'works', lane: 'spine', order: 3 },
              on: {
                'RUN.STARTED': { target: 'working', actions: 'recordTurn' },
                CANCEL: { target: 'interrupting', actions: 'recordCancel' },
              },
            },
            working: {
              description: 'The turn is under way.',
              meta: { kind: 'works', lane: 'spine', order: 4 },
              after: { turnTimeout: { target: 'interrupting', actions: 'recordTimeout' } },
              on: { CANCEL: { target: 'interrupting', actions: 'recordCancel' } },
            },
            interrupting: {
              description: 'Interrupt sent; waiting until the turn has ended.',
              meta: { kind: 'works', lane: 'exception', order: 4 },
              entry: 'interruptRun',
            },
          },
        },
      },
    },
    backingOff: {
      description: 'Failed; tried again when the pause is over. Due times that come now are covered by that try.',
      meta: { kind: 'pauses', lane: 'exception', order: 2 },
      tags: 'backingOff',
      on: {
        RETRY: { target: 'active' },
        RUN: { target: 'active' },
        CANCEL: { target: 'deciding', actions: ['emitCancelled', 'consumeDue', 'endRun'] },
        DISABLE: {
          guard: 'isScheduled',
          target: 'deciding',
          actions: ['emitMissed', 'clearDue', 'endRun', 'disable'],
        },
      },
    },
    finished: {
      description: 'A one-off whose due time has passed. It can be run again by hand, or be given another time.',
      meta: { kind: 'ended', lane: 'detour', order: 1 },
      tags: ['finished', 'atRest'],
      on: {
        RUN: { target: 'active', actions: 'selectManualRun' },
        CHANGED: { target: 'deciding', actions: 'recordTerms' },
      },
    },
    removed: {
      description: 'Deleted, with its history.',
      meta: { kind: 'ended', lane: 'end', order: 0 },
      type: 'final',
    },
  },
});

/** A count of 0 stands for no due time. */
function dropped(due: Due | null, as: AutomationEmitted['as']): AutomationEmitted {
  return { type: 'automation.dropped', due: due ?? { first: 0, scheduledFor: 0, count: 0 }, as };
}
