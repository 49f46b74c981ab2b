/**
 * The page's review of the changes of turns: file by file, the person keeps a change or puts the file back.
 *
 * Detailed operation
 * 1. `reading` asks the server for the changes, and for the files that are back in their earlier state. It asks again after each
 *    restore, when a turn ends, and when the person or another page requests it: the page shows the server's findings.
 * 2. Keeping a file changes nothing in the workspace: it marks the change as seen.
 * 3. `restoring` puts one file back, or takes back the restore of one. Changes that others made to the
 *    file since then refuse it, and no file changes.
 * 4. `conflicted` names these changes and waits: only the person's `FORCE` overwrites them; `LEAVE` changes nothing.
 * 5. One restore runs at a time. One that fails is reported, and the review continues.
 */
import { assertEvent, assign, fromPromise, setup } from 'xstate';
import { messageOf } from '../src/lib/browser.ts';

export interface ChangeReviewInput {
  readonly threadId: string;
  /** Null: the changes of the whole thread. */
  readonly turnId: string | null;
}

/** One file to put back: to its state before the reviewed turns, or before a restore of this review. */
export interface RestoreOrder {
  readonly path: string;
  /** Null: the state before the turns. */
  readonly restoreId: string | null;
  /** Overwrites changes of others. */
  readonly force: boolean;
}

/** A change of others that a restore would overwrite. */
export interface ReviewConflict {
  readonly path: string;
  readonly change: string;
  readonly by: string;
}

/** Result of a restore: carried out, or refused because of conflicts. */
export interface RestoreOutcome {
  /** The first of them. */
  readonly conflicts: readonly ReviewConflict[];
  readonly conflictsTotal: number;
  /** Null: it was refused. */
  readonly restoreId: string | null;
}

/** Decisions that still hold, from the last reading. */
export interface ReviewReading {
  readonly kept: readonly string[];
  readonly reverted: readonly RevertedFile[];
}

/** A file whose state is that before the turns. */
export interface RevertedFile {
  readonly path: string;
  /** Takes the restore back. */
  readonly restoreId: string;
}

export interface ChangeReviewContext extends ChangeReviewInput {
  /** Paths whose changes the person keeps. */
  readonly kept: readonly string[];
  /** Files that were put back. */
  readonly reverted: readonly RevertedFile[];
  /** The restore that runs, or that was refused. */
  readonly order: RestoreOrder | null;
  /** The first of them. */
  readonly conflicts: readonly ReviewConflict[];
  readonly conflictsTotal: number;
  readonly lastError: string | null;
}

export type ChangeReviewEvent =
  | { readonly type: 'READ' }
  | { readonly type: 'KEEP'; readonly path: string }
  /** The person has not decided about this file after all. */
  | { readonly type: 'RECONSIDER'; readonly path: string }
  | { readonly type: 'REVERT'; readonly path: string }
  | { readonly type: 'TAKE_BACK'; readonly path: string }
  | { readonly type: 'FORCE' }
  | { readonly type: 'LEAVE' };

/** Input of the reading. */
export type ChangeReading = Pick<ChangeReviewContext, 'threadId' | 'turnId'>;

/** Input of a restore. */
export interface ChangeRestore extends ChangeReading {
  readonly order: RestoreOrder;
}

const notProvided = () => Promise.reject(new Error('not provided'));
const failureOf = ({ event }: { readonly event: { readonly error: unknown } }) => ({ message: messageOf(event.error) });
const outcomeOf = ({ event }: { readonly event: { readonly output: RestoreOutcome } }) => event.output;

export const changeReviewMachine = setup({
  types: {
    input: {} as ChangeReviewInput,
    context: {} as ChangeReviewContext,
    events: {} as ChangeReviewEvent,
    tags: {} as 'busy',
  },
  actors: {
    /** Reads the changes, which the page shows, and the decisions that hold for them. */
    read: fromPromise<ReviewReading, ChangeReading>(notProvided),
    /** Puts a file back, or reports the conflicts that refuse it. */
    restore: fromPromise<RestoreOutcome, ChangeRestore>(notProvided),
  },
  guards: {
    isReverted: ({ context, event }) => {
      assertEvent(event, 'TAKE_BACK');
      return context.reverted.some(({ path }) => path === event.path);
    },
    isRefused: (_, { restoreId }: RestoreOutcome) => restoreId === null,
  },
  actions: {
    recordKept: assign(({ context, event }) => {
      assertEvent(event, 'KEEP');
      return { kept: [...context.kept.filter((path) => path !== event.path), event.path] };
    }),
    clearDecision: assign(({ context, event }) => {
      assertEvent(event, 'RECONSIDER');
      return { kept: context.kept.filter((path) => path !== event.path) };
    }),
    planRevert: assign(({ event }) => {
      assertEvent(event, 'REVERT');
      return { order: { path: event.path, restoreId: null, force: false } };
    }),
    planReturn: assign(({ context, event }) => {
      assertEvent(event, 'TAKE_BACK');
      const { path } = event;
      const restoreId = context.reverted.find((each) => each.path === path)?.restoreId ?? null;
      return { order: { path, restoreId, force: false } };
    }),
    allowOverwriting: assign(({ context: { order } }) => ({ order: order && { ...order, force: true } })),
    recordReading: assign((_, { kept, reverted }: ReviewReading) => ({ kept, reverted })),
    recordConflicts: assign((_, { conflicts, conflictsTotal }: RestoreOutcome) => ({ conflicts, conflictsTotal })),
    clearOrder: assign({ order: null, conflicts: [], conflictsTotal: 0 }),
    recordFault: assign((_, { message }: { readonly message: string }) => ({ lastError: message })),
    clearFault: assign({ lastError: null }),
  },
}).createMachine({
  id: 'change-review',
  description: 'Lets a person keep or put back the changes of turns, file by file.',
  context: ({ input }) => ({
    ...input,
    kept: [],
    reverted: [],
    order: null,
    conflicts: [],
    conflictsTotal: 0,
    lastError: null,
  }),
  initial: 'reading',
  states: {
    reading: {
      description: 'The server is asked for the changes.',
      meta: { kind: 'works', lane: 'spine', order: 0 },
      tags: 'busy',
      entry: 'clearFault',
      invoke: {
        id: 'read',
        src: 'read',
        input: ({ context: { threadId, turnId } }) => ({ threadId, turnId }),
        onDone: {
          target: 'shown',
          actions: { type: 'recordReading', params: ({ event }) => event.output },
        },
        onError: { target: 'failed', actions: { type: 'recordFault', params: failureOf } },
      },
      // The answer that is under way may be older than the event.
      on: { READ: { target: 'reading', reenter: true } },
    },
    failed: {
      description: 'The changes could not be read.',
      meta: { kind: 'failed', lane: 'exception', order: 0 },
      on: { READ: { target: 'reading' } },
    },
    shown: {
      description: 'The changes are shown; the person decides about each file.',
      meta: { kind: 'serves', lane: 'spine', order: 1 },
      on: {
        READ: { target: 'reading' },
        KEEP: { actions: 'recordKept' },
        RECONSIDER: { actions: 'clearDecision' },
        REVERT: { target: 'restoring', actions: 'planRevert' },
        TAKE_BACK: { guard: 'isReverted', target: 'restoring', actions: 'planReturn' },
      },
    },
    restoring: {
      description: 'One file is put back, unless others have changed it since.',
      meta: { kind: 'works', lane: 'spine', order: 2 },
      tags: 'busy',
      entry: 'clearFault',
      invoke: {
        id: 'restore',
        src: 'restore',
        input: ({ context: { threadId, turnId, order } }) => ({
          threadId,
          turnId,
          order: order ?? { path: '', restoreId: null, force: false },
        }),
        onDone: [
          {
            guard: { type: 'isRefused', params: outcomeOf },
            target: 'conflicted',
            actions: { type: 'recordConflicts', params: outcomeOf },
          },
          { target: 'reading', actions: 'clearOrder' },
        ],
        onError: { target: 'shown', actions: [{ type: 'recordFault', params: failureOf }, 'clearOrder'] },
      },
    },
    conflicted: {
      description: 'Others have changed the file since; nothing was overwritten.',
      meta: { kind: 'unwell', lane: 'exception', order: 2 },
      on: {
        FORCE: { target: 'restoring', actions: 'allowOverwriting' },
        LEAVE: { target: 'shown', actions: 'clearOrder' },
      },
    },
  },
});
