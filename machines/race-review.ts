/**
 * The page's view of a race: the person applies one attempt to the workspace, or takes the applied one back.
 *
 * Detailed operation
 * 1. `acting` asks the server for one of both, one at a time. The state of the attempts at the server decides which one is applied.
 * 2. Changes that others made to the same files since then refuse it: no file changes, and `conflicted` names them.
 * 3. Only the person's `FORCE` overwrites these changes; `LEAVE` changes nothing.
 * 4. A failure is reported, and the person may try again.
 */
import { assertEvent, assign, fromPromise, setup } from 'xstate';
import { messageOf } from '../src/lib/browser.ts';
import type { ReviewConflict } from './change-review.ts';

export interface RaceReviewInput {
  /** Thread whose forks are the attempts. */
  readonly threadId: string;
}

export type RaceOrder =
  | { readonly kind: 'apply'; readonly attemptId: string; readonly force: boolean }
  | { readonly kind: 'undo'; readonly restoreId: string; readonly force: boolean };

export interface RaceReviewContext extends RaceReviewInput {
  /** Act that runs, or was refused. */
  readonly order: RaceOrder | null;
  /** The first of them. */
  readonly conflicts: readonly ReviewConflict[];
  readonly conflictsTotal: number;
  readonly lastError: string | null;
}

export type RaceReviewEvent =
  | { readonly type: 'APPLY'; readonly attemptId: string }
  | { readonly type: 'UNDO'; readonly restoreId: string }
  | { readonly type: 'FORCE' }
  | { readonly type: 'LEAVE' };

/** Input of the actor. */
export interface RaceAct extends RaceReviewInput {
  readonly order: RaceOrder | null;
}

/** Result of an act: carried out without conflicts, refused because of them. */
export interface RaceOutcome {
  /** The first of them. */
  readonly conflicts: readonly ReviewConflict[];
  readonly conflictsTotal: number;
}

const outcomeOf = ({ event }: { readonly event: { readonly output: RaceOutcome } }) => event.output;

export const raceReviewMachine = setup({
  types: {
    input: {} as RaceReviewInput,
    context: {} as RaceReviewContext,
    events: {} as RaceReviewEvent,
  },
  actors: {
    /** Applies an attempt or takes it back, or reports the conflicts that refuse it. */
    act: fromPromise<RaceOutcome, RaceAct>(() => Promise.reject(new Error('not provided'))),
  },
  guards: {
    isRefused: (_, { conflicts }: RaceOutcome) => conflicts.length > 0,
  },
  actions: {
    planApplication: assign(({ event }) => {
      assertEvent(event, 'APPLY');
      return { order: { kind: 'apply' as const, attemptId: event.attemptId, force: false } };
    }),
    planUndo: assign(({ event }) => {
      assertEvent(event, 'UNDO');
      return { order: { kind: 'undo' as const, restoreId: event.restoreId, force: false } };
    }),
    allowOverwriting: assign(({ context: { order } }) => ({ order: order && { ...order, force: true } })),
    recordConflicts: assign((_, { conflicts, conflictsTotal }: RaceOutcome) => ({ conflicts, conflictsTotal })),
    recordFault: assign((_, { message }: { readonly message: string }) => ({ lastError: message })),
    clearFault: assign({ lastError: null }),
    clearOrder: assign({ order: null, conflicts: [], conflictsTotal: 0 }),
  },
}).createMachine({
  id: 'race-review',
  description: 'Lets a person apply an attempt of a race, or take it back.',
  context: ({ input }) => ({ ...input, order: null, conflicts: [], conflictsTotal: 0, lastError: null }),
  initial: 'idle',
  states: {
    idle: {
      description: 'The attempts are shown; the person chooses.',
      meta: { kind: 'rests', lane: 'spine', order: 0 },
      on: {
        APPLY: { target: 'acting', actions: 'planApplication' },
        UNDO: { target: 'acting', actions: 'planUndo' },
      },
    },
    acting: {
      description: 'One attempt is applied or taken back.',
      meta: { kind: 'works', lane: 'spine', order: 1 },
      entry: 'clearFault',
      invoke: {
        id: 'act',
        src: 'act',
        input: ({ context: { threadId, order } }) => ({ threadId, order }),
        onDone: [
          {
            guard: { type: 'isRefused', params: outcomeOf },
            target: 'conflicted',
            actions: { type: 'recordConflicts', params: outcomeOf },
          },
          { target: 'idle', actions: 'clearOrder' },
        ],
        onError: {
          target: 'idle',
          actions: [
            { type: 'recordFault', params: ({ event }) => ({ message: messageOf(event.error) }) },
            'clearOrder',
          ],
        },
      },
    },
    conflicted: {
      description: 'Others have changed the same files since; nothing was changed.',
      meta: { kind: 'unwell', lane: 'spine', order: 2 },
      on: {
        FORCE: { target: 'acting', actions: 'allowOverwriting' },
        LEAVE: { target: 'idle', actions: 'clearOrder' },
      },
    },
  },
});
