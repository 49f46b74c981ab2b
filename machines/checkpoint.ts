/**
 * The checkpoints of one tree of files: one task at a time, in the order of the requests. A recorded restore is completed,
 * by the next start if a crash interrupts it.
 *
 * Detailed operation
 * 1. `recovering` completes a restore that a crash has interrupted.
 * 2. `markingDeath` ends the turns that the dead process left open, before any of them is resumed: later changes are the user's.
 * 3. `marking` compares all files with the last checkpoint and commits the changed ones. Waiting marks share one scan.
 * 4. `pruning` follows the end of a turn: it deletes checkpoints above the limits of age and size.
 * 5. `planning` saves the files once more, plans a restore and stages its contents. Conflicts refuse it, and nothing has changed.
 * 6. `applying` renames the staged contents into their places; `concluding` takes back the turns of the conversation and commits the end.
 * 7. `serving` answers requests that only read or forget; no other task changes a checkpoint until it ends.
 * 8. After a while without requests `releasing` closes the store and ends its thread; in `resting` there is neither a timer nor a thread.
 * 9. A restore that fails half-way makes the tree `unusable` until the next start, which completes it.
 */
import { assertEvent, assign, emit, fromPromise, setup } from 'xstate';

export interface CheckpointInput {
  /** Number of entries is unknown here, paths too: the machine knows a tree by this name. */
  readonly treeId: string;
  /** Time without requests after which the store is closed. */
  readonly restMs: number;
}

/** `start`, `resume` and `end` are marks of a turn. */
export type CheckpointRequestKind = 'start' | 'resume' | 'end' | 'restore' | 'task';

export interface CheckpointRequest {
  readonly id: number;
  readonly kind: CheckpointRequestKind;
}

export interface CheckpointContext extends CheckpointInput {
  readonly waiting: readonly CheckpointRequest[];
  /** Requests at work. */
  readonly current: readonly CheckpointRequest[];
  readonly isClosing: boolean;
  /** Marks that were committed since the start. */
  readonly marks: number;
  readonly restores: number;
  readonly lastError: string | null;
}

export type CheckpointEvent =
  | { readonly type: 'REQUEST'; readonly request: CheckpointRequest }
  /** The server ends: waiting requests are done, further ones are not. */
  | { readonly type: 'CLOSE' };

export type CheckpointEmitted =
  | { readonly type: 'requests.done'; readonly ids: readonly number[] }
  | { readonly type: 'requests.failed'; readonly ids: readonly number[]; readonly message: string };

/** Input of every actor. */
export interface CheckpointWork {
  readonly treeId: string;
  readonly requests: readonly CheckpointRequest[];
}

/** Result of a plan. */
export interface PlannedRestore {
  /** Conflicts refuse it: nothing is written down. */
  readonly isRefused: boolean;
}

const notProvided = () => Promise.reject(new Error('not provided'));
const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
const messageIn = ({ event }: { readonly event: { readonly error: unknown } }) => ({ message: messageOf(event.error) });
const recordFault = { type: 'recordFault', params: messageIn } as const;
const answerFailure = [{ type: 'emitFailed', params: messageIn }, 'clearCurrent'] as const;
const failRequests = [recordFault, ...answerFailure] as const;
const isMark = ({ kind }: CheckpointRequest): boolean => kind !== 'restore' && kind !== 'task';

/** The marks at the front of the queue; of other requests the first alone. */
function firstOf(waiting: readonly CheckpointRequest[]): readonly CheckpointRequest[] {
  const end = waiting.findIndex((request) => !isMark(request));
  return waiting.slice(0, end === -1 ? waiting.length : Math.max(1, end));
}

const workOf = ({ context }: { readonly context: CheckpointContext }): CheckpointWork => ({
  treeId: context.treeId,
  requests: context.current,
});

export const checkpointMachine = setup({
  types: {
    input: {} as CheckpointInput,
    context: {} as CheckpointContext,
    events: {} as CheckpointEvent,
    emitted: {} as CheckpointEmitted,
  },
  actors: {
    /** Completes the restore of a dead process. */
    recover: fromPromise<void, CheckpointWork>(notProvided),
    /** Ends the turns that a dead process left open, at the moment of its death. */
    markDeath: fromPromise<void, CheckpointWork>(notProvided),
    /** Commits the present state of the files, for all these requests. */
    mark: fromPromise<void, CheckpointWork>(notProvided),
    /** Deletes checkpoints above the limits of age and size. */
    prune: fromPromise<void, CheckpointWork>(notProvided),
    /** Plans and stages a restore, and writes it down. */
    plan: fromPromise<PlannedRestore, CheckpointWork>(notProvided),
    /** Carries out a restore that is written down. */
    apply: fromPromise<void, CheckpointWork>(notProvided),
    /** Takes back turns of the conversation, and commits the end of the restore. */
    conclude: fromPromise<void, CheckpointWork>(notProvided),
    /** Answers a request that changes no checkpoint. */
    serve: fromPromise<void, CheckpointWork>(notProvided),
    /** Closes the store; the next work opens it again. */
    release: fromPromise<void, CheckpointWork>(notProvided),
  },
  delays: {
    rest: ({ context }) => context.restMs,
  },
  guards: {
    hasWork: ({ context }) => context.isClosing || context.waiting.length > 0,
    isFinished: ({ context }) => context.isClosing && context.waiting.length === 0,
    waitsForMark: ({ context: { waiting } }) => waiting.slice(0, 1).some(isMark),
    waitsForRestore: ({ context: { waiting } }) => waiting[0]?.kind === 'restore',
    waitsForTask: ({ context: { waiting } }) => waiting[0]?.kind === 'task',
    endsTurn: ({ context: { current } }) => current.some(({ kind }) => kind === 'end'),
    isRefused: (_, { isRefused }: PlannedRestore) => isRefused,
  },
  actions: {
    addRequest: assign(({ context, event }) => {
      assertEvent(event, 'REQUEST');
      return { waiting: [...context.waiting, event.request] };
    }),
    takeRequests: assign(({ context: { waiting } }) => {
      const current = firstOf(waiting);
      return { current, waiting: waiting.slice(current.length) };
    }),
    recordClosing: assign({ isClosing: true }),
    countMarks: assign(({ context }) => ({ marks: context.marks + context.current.length })),
    countRestore: assign(({ context }) => ({ restores: context.restores + 1 })),
    clearCurrent: assign({ current: [] }),
    recordFault: assign((_, { message }: { readonly message: string }) => ({ lastError: message })),
    emitDone: emit(({ context }) => ({ type: 'requests.done', ids: context.current.map(({ id }) => id) })),
    emitFailed: emit(({ context }, { message }: { readonly message: string }) => ({
      type: 'requests.failed',
      ids: context.current.map(({ id }) => id),
      message,
    })),
    refuseWaiting: emit(({ context }) => ({
      type: 'requests.failed',
      ids: context.waiting.map(({ id }) => id),
      message: context.lastError ?? '',
    })),
    clearWaiting: assign({ waiting: [] }),
  },
}).createMachine({
  id: 'checkpoint',
  description: 'Saves the files of one workspace before and after turns, and restores them.',
  context: ({ input: { treeId, restMs } }) => ({
    treeId,
    restMs,
    waiting: [],
    current: [],
    isClosing: false,
    marks: 0,
    restores: 0,
    lastError: null,
  }),
  initial: 'recovering',
  on: {
    REQUEST: { actions: 'addRequest' },
    CLOSE: { actions: 'recordClosing' },
  },
  states: {
    recovering: {
      description: 'Completes the restore that a dead process has begun; requests wait.',
      meta: { kind: 'works', lane: 'spine', order: 0 },
      invoke: {
        id: 'recover',
        src: 'recover',
        input: workOf,
        onDone: 'markingDeath',
        onError: { target: 'unusable', actions: recordFault },
      },
    },
    markingDeath: {
      description: 'Turns that a dead process left open end at their last work; requests, also to resume them, wait.',
      meta: { kind: 'works', lane: 'spine', order: 1 },
      invoke: {
        id: 'markDeath',
        src: 'markDeath',
        input: workOf,
        onDone: 'idle',
        onError: { target: 'unusable', actions: recordFault },
      },
    },
    idle: {
      description: 'Nothing is at work: no file is watched.',
      meta: { kind: 'rests', lane: 'spine', order: 2 },
      after: { rest: 'releasing' },
      always: [
        { guard: 'waitsForMark', target: 'marking', actions: 'takeRequests' },
        { guard: 'waitsForRestore', target: 'planning', actions: 'takeRequests' },
        { guard: 'waitsForTask', target: 'serving', actions: 'takeRequests' },
        { guard: 'isFinished', target: 'closed' },
      ],
    },
    marking: {
      description: 'Compares the files with the last checkpoint, then stores and commits the changes.',
      meta: { kind: 'works', lane: 'detour', order: 2 },
      invoke: {
        id: 'mark',
        src: 'mark',
        input: workOf,
        onDone: [
          { guard: 'endsTurn', target: 'pruning', actions: ['countMarks', 'emitDone'] },
          { target: 'idle', actions: ['countMarks', 'emitDone', 'clearCurrent'] },
        ],
        onError: { target: 'idle', actions: failRequests },
      },
    },
    pruning: {
      description: 'Checkpoints that are too old, or too much for the store, are deleted.',
      meta: { kind: 'works', lane: 'detour', order: 3 },
      exit: 'clearCurrent',
      invoke: {
        id: 'prune',
        src: 'prune',
        input: workOf,
        onDone: 'idle',
        onError: { target: 'idle', actions: recordFault },
      },
    },
    planning: {
      description: 'The files are saved once more; a restore is planned, staged and written down.',
      meta: { kind: 'works', lane: 'spine', order: 3 },
      invoke: {
        id: 'plan',
        src: 'plan',
        input: workOf,
        onDone: [
          {
            guard: { type: 'isRefused', params: ({ event }) => event.output },
            target: 'idle',
            actions: ['emitDone', 'clearCurrent'],
          },
          { target: 'applying' },
        ],
        onError: { target: 'idle', actions: failRequests },
      },
    },
    applying: {
      description:
        'The staged contents are renamed into their places. A crash from here on is completed by the next start.',
      meta: { kind: 'works', lane: 'spine', order: 4 },
      invoke: {
        id: 'apply',
        src: 'apply',
        input: workOf,
        onDone: 'concluding',
        onError: { target: 'unusable', actions: failRequests },
      },
    },
    concluding: {
      description:
        'Turns of the conversation are taken back with their files, and the end of the restore is committed.',
      meta: { kind: 'works', lane: 'spine', order: 5 },
      invoke: {
        id: 'conclude',
        src: 'conclude',
        input: workOf,
        onDone: { target: 'idle', actions: ['countRestore', 'emitDone', 'clearCurrent'] },
        onError: { target: 'unusable', actions: failRequests },
      },
    },
    serving: {
      description: 'A question about checkpoints is answered, or a conversation is forgotten.',
      meta: { kind: 'works', lane: 'detour', order: 4 },
      invoke: {
        id: 'serve',
        src: 'serve',
        input: workOf,
        onDone: { target: 'idle', actions: ['emitDone', 'clearCurrent'] },
        onError: { target: 'idle', actions: answerFailure },
      },
    },
    releasing: {
      description: 'The store is closed, and its thread ends.',
      meta: { kind: 'works', lane: 'exception', order: 2 },
      invoke: {
        id: 'release',
        src: 'release',
        input: workOf,
        onDone: 'resting',
        onError: { target: 'resting', actions: recordFault },
      },
    },
    resting: {
      description: 'There is no thread, no open file and no timer, until the next request.',
      meta: { kind: 'rests', lane: 'exception', order: 3 },
      always: { guard: 'hasWork', target: 'idle' },
    },
    unusable: {
      description: 'A restore is incomplete, or the store cannot be read: requests fail until the next start.',
      meta: { kind: 'failed', lane: 'exception', order: 0 },
      entry: ['refuseWaiting', 'clearWaiting'],
      on: {
        REQUEST: { actions: ['addRequest', 'refuseWaiting', 'clearWaiting'] },
        CLOSE: { target: 'closed', actions: 'recordClosing' },
      },
      always: { guard: 'isFinished', target: 'closed' },
    },
    closed: {
      description: 'All requests are done; the store is closed.',
      meta: { kind: 'ended', lane: 'end', order: 0 },
      type: 'final',
    },
  },
});
