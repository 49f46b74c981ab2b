/**
 * Wakes the cron jobs and local tasks of a workspace when they are due. It trusts only the wall clock, which it reads again
 * and again: neither a laptop's sleep, daylight saving nor the longest delay of a timer can hide a due time.
 *
 * Detailed operation
 * 1. `recover` reads the rows: runs that an ended process left running count as failed; due times that have passed count
 *    as one.
 * 2. `ticker` has one timer, for the next due time but never longer than the tick. Each `TICK` dispatches the due rows.
 * 3. When the clock was set back, due times that are in the future again are restored. A due time that has had its run gets
 *    no second one.
 * 4. `STOP` dispatches nothing more, and waits for the runs under way to end.
 */
import { assertEvent, assign, fromCallback, fromPromise, sendTo, setup } from 'xstate';
import { messageOf } from '../src/lib/browser.ts';

export interface SchedulerContext {
  /** Runs that an earlier process left behind. */
  readonly recovered: number;
  readonly ticks: number;
  /** Wall clock of the last tick, milliseconds since the epoch. */
  readonly lastTickAt: number | null;
  readonly setBacks: number;
  readonly lastError: string | null;
}

export type SchedulerEvent =
  | { readonly type: 'TICK'; readonly at: number; readonly wentBack: boolean }
  /** Rows have changed, or a refresh was requested: check now. */
  | { readonly type: 'WAKE' }
  | { readonly type: 'STOP' };

export interface TickerCommand {
  readonly type: 'LOOK' | 'REARM';
}

const notProvided = () => Promise.reject(new Error('not provided'));

export const schedulerMachine = setup({
  types: {
    context: {} as SchedulerContext,
    events: {} as SchedulerEvent,
    tags: {} as 'starting' | 'running' | 'failed' | 'stopped',
  },
  actors: {
    /** Puts the rows in order and the due times in the index. */
    recover: fromPromise<{ readonly recovered: number }>(notProvided),
    /** Sends `TICK` when the next due time has come or a tick is over. */
    ticker: fromCallback<TickerCommand>(() => {}),
    /** Resolves when no run is under way. */
    drain: fromPromise<void>(notProvided),
  },
  delays: { recoverRetry: 30_000 },
  guards: {
    clockWentBack: ({ event }) => {
      assertEvent(event, 'TICK');
      return event.wentBack;
    },
  },
  actions: {
    recordRecovered: assign((_, { recovered }: { readonly recovered: number }) => ({ recovered, lastError: null })),
    recordError: assign((_, { error }: { readonly error: unknown }) => ({
      lastError: messageOf(error),
    })),
    recordTick: assign(({ context, event }) => {
      assertEvent(event, 'TICK');
      return { ticks: context.ticks + 1, lastTickAt: event.at };
    }),
    recordSetBack: assign(({ context }) => ({ setBacks: context.setBacks + 1 })),
    /** The host restores due times that are in the future again because the clock was set back. */
    restoreDueTimes: () => {},
    /** The host sends `DUE` and `RETRY` to the actors of all that is due. */
    dispatchDue: () => {},
    rearmTicker: sendTo('ticker', { type: 'REARM' }),
    checkNow: sendTo('ticker', { type: 'LOOK' }),
  },
}).createMachine({
  id: 'scheduler',
  description: 'Wakes the jobs and tasks of a workspace when they are due.',
  context: { recovered: 0, ticks: 0, lastTickAt: null, setBacks: 0, lastError: null },
  initial: 'recovering',
  states: {
    recovering: {
      description: 'Reads the rows and closes the runs that an ended process left behind.',
      meta: { kind: 'works', lane: 'spine', order: 0 },
      tags: 'starting',
      invoke: {
        id: 'recover',
        src: 'recover',
        onDone: {
          target: 'watching',
          actions: { type: 'recordRecovered', params: ({ event }) => event.output },
        },
        onError: {
          target: 'failed',
          actions: { type: 'recordError', params: ({ event }) => ({ error: event.error }) },
        },
      },
      on: { STOP: { target: 'stopped' } },
    },
    failed: {
      description: 'The rows could not be read or written. Nothing runs until they can.',
      meta: { kind: 'failed', lane: 'exception', order: 0 },
      tags: 'failed',
      after: { recoverRetry: { target: 'recovering' } },
      on: { WAKE: { target: 'recovering' }, STOP: { target: 'stopped' } },
    },
    watching: {
      description: 'Waiting for the next due time.',
      meta: { kind: 'serves', lane: 'spine', order: 1 },
      tags: 'running',
      invoke: { id: 'ticker', src: 'ticker' },
      on: {
        TICK: [
          {
            guard: 'clockWentBack',
            actions: ['recordTick', 'recordSetBack', 'restoreDueTimes', 'dispatchDue', 'rearmTicker'],
          },
          { actions: ['recordTick', 'dispatchDue', 'rearmTicker'] },
        ],
        WAKE: { actions: 'checkNow' },
        STOP: { target: 'draining' },
      },
    },
    draining: {
      description: 'No new runs; waiting until the runs under way have ended.',
      meta: { kind: 'works', lane: 'spine', order: 2 },
      tags: 'stopped',
      invoke: {
        id: 'drain',
        src: 'drain',
        onDone: { target: 'stopped' },
        onError: {
          target: 'stopped',
          actions: { type: 'recordError', params: ({ event }) => ({ error: event.error }) },
        },
      },
    },
    stopped: { description: 'Ended.', meta: { kind: 'ended', lane: 'end', order: 2 }, type: 'final' },
  },
});
