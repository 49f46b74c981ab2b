/**
 * Availability of the database of the review backend, judged by the calls of one process. One outage is reported once when it
 * begins, at most once a minute while it lasts, and once when it is over, however many calls fail.
 *
 * Detailed operation
 * 1. The first `FAILED` begins an outage. Later ones are counted; a report follows once `reminderMs` have passed since the last one.
 * 2. `SUCCEEDED` leads to `recovering`. A further failure there continues the same outage: some connections still work when no new one
 *    can be made, so that calls succeed and fail in turn.
 * 3. The outage is over after a pause without a failure.
 */
import { assertEvent, assign, emit, setup } from 'xstate';

export interface DatabaseOutageInput {
  /** Pause without a failure after which an outage is over. */
  readonly recoveryMs: number;
  /** Time between two reports of one outage. */
  readonly reminderMs: number;
}

export interface DatabaseOutageContext extends DatabaseOutageInput {
  /** Time of the first failure, by the clock of the events. */
  readonly since: number;
  /** Time of the latest failure. */
  readonly lastAt: number;
  readonly reportedAt: number;
  readonly failures: number;
  readonly lastError: string | null;
}

/** `at`: milliseconds of a clock that never goes back. */
export type DatabaseOutageEvent =
  | { readonly type: 'FAILED'; readonly at: number; readonly message: string }
  | { readonly type: 'SUCCEEDED' };

export interface DatabaseOutageEmitted {
  readonly type: 'outage.began' | 'outage.continues' | 'outage.ended';
  readonly lastError: string | null;
  readonly failures: number;
  readonly durationMs: number;
}

const report =
  (type: DatabaseOutageEmitted['type']) =>
  ({ context }: { readonly context: DatabaseOutageContext }): DatabaseOutageEmitted => ({
    type,
    lastError: context.lastError,
    failures: context.failures,
    durationMs: context.lastAt - context.since,
  });

const onFailed = [
  {
    guard: 'isReportDue',
    target: 'unavailable',
    actions: ['countFailure', 'recordReport', 'emitReminder'],
  },
  { target: 'unavailable', actions: 'countFailure' },
] as const;

export const databaseOutageMachine = setup({
  types: {
    input: {} as DatabaseOutageInput,
    context: {} as DatabaseOutageContext,
    events: {} as DatabaseOutageEvent,
    emitted: {} as DatabaseOutageEmitted,
  },
  delays: { databaseRecovery: ({ context }) => context.recoveryMs },
  guards: {
    isReportDue: ({ context, event }) => {
      assertEvent(event, 'FAILED');
      return event.at - context.reportedAt >= context.reminderMs;
    },
  },
  actions: {
    recordBegin: assign(({ event }) => {
      assertEvent(event, 'FAILED');
      return { since: event.at, lastAt: event.at, reportedAt: event.at, failures: 1, lastError: event.message };
    }),
    countFailure: assign(({ context, event }) => {
      assertEvent(event, 'FAILED');
      return { lastAt: event.at, failures: context.failures + 1, lastError: event.message };
    }),
    recordReport: assign(({ context }) => ({ reportedAt: context.lastAt })),
    emitBegin: emit(report('outage.began')),
    emitReminder: emit(report('outage.continues')),
    emitEnd: emit(report('outage.ended')),
  },
}).createMachine({
  id: 'database-outage',
  description: 'Availability of the database of the review backend.',
  context: ({ input }) => ({ ...input, since: 0, lastAt: 0, reportedAt: 0, failures: 0, lastError: null }),
  initial: 'available',
  states: {
    available: {
      description: 'Calls to the database succeed.',
      meta: { kind: 'serves', lane: 'spine', order: 0 },
      on: { FAILED: { target: 'unavailable', actions: ['recordBegin', 'emitBegin'] } },
    },
    unavailable: {
      description: 'Calls to the database fail; work waits.',
      meta: { kind: 'failed', lane: 'spine', order: 1 },
      on: { FAILED: onFailed, SUCCEEDED: 'recovering' },
    },
    recovering: {
      description: 'A call has succeeded again; a further failure continues the outage.',
      meta: { kind: 'works', lane: 'exception', order: 0 },
      after: { databaseRecovery: { target: 'available', actions: 'emitEnd' } },
      on: { FAILED: onFailed },
    },
  },
});
