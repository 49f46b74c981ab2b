/**
 * One change of a review stack: its plan's phases one after the other, and the return to the earlier state when one of them
 * fails. The work of each phase is in the journal on disk, so the next process continues after a kill.
 *
 * Detailed operation
 * 1. Phases are carried out in order; a phase that is begun again keeps the results that exist.
 * 2. A failure, or `CANCEL`, undoes the steps of this change; a change that is to be continued undoes nothing.
 * 3. Where undoing fails the stack is `damaged`: the report names the differences from the earlier state.
 */
import { assign, fromPromise, setup } from 'xstate';
import { cancelledFailure, type Failure, failureOf } from './failure.ts';

export interface StackChangeInput {
  readonly command: string;
  /** Names of its phases, in order. */
  readonly phases: readonly string[];
  readonly onFailure: 'undo' | 'keep';
}

export interface StackChangeContext extends StackChangeInput {
  /** Which phase it is at. */
  readonly index: number;
  readonly failure: Failure | null;
}

const notProvided = () => Promise.reject(new Error('not provided'));
const failureIn = ({ event }: { readonly event: { readonly error: unknown } }) => failureOf(event.error);

export const stackChangeMachine = setup({
  types: {
    input: {} as StackChangeInput,
    context: {} as StackChangeContext,
    events: {} as { readonly type: 'CANCEL' },
  },
  actors: {
    /** Carries out the steps of a phase. */
    carryOut: fromPromise<void, { readonly phase: string }>(notProvided),
    /** Takes back the steps of the change, last first. */
    undo: fromPromise<void, void>(notProvided),
  },
  guards: {
    hasPhase: ({ context }) => context.index < context.phases.length,
    mustUndo: ({ context }) => context.onFailure === 'undo',
  },
  actions: {
    advance: assign(({ context }) => ({ index: context.index + 1 })),
    recordFailure: assign((_, failure: Failure) => ({ failure })),
  },
}).createMachine({
  id: 'stack-change',
  description: 'One change of a review stack.',
  context: ({ input }) => ({ ...input, index: 0, failure: null }),
  initial: 'choosing',
  states: {
    choosing: {
      description: 'Checks whether a phase is left.',
      meta: { kind: 'works', lane: 'spine', order: 0 },
      always: [{ guard: 'hasPhase', target: 'applying' }, { target: 'done' }],
    },
    applying: {
      description: 'The steps of one phase are under way.',
      meta: { kind: 'works', lane: 'spine', order: 1 },
      invoke: {
        id: 'carryOut',
        src: 'carryOut',
        input: ({ context }) => ({ phase: context.phases[context.index] ?? '' }),
        onDone: { target: 'choosing', actions: 'advance' },
        onError: { target: 'failing', actions: { type: 'recordFailure', params: failureIn } },
      },
      on: { CANCEL: { target: 'failing', actions: { type: 'recordFailure', params: cancelledFailure } } },
    },
    failing: {
      description: 'Chooses between undoing the change and continuing it with the same command later.',
      meta: { kind: 'unwell', lane: 'exception', order: 1 },
      always: [{ guard: 'mustUndo', target: 'undoing' }, { target: 'kept' }],
    },
    undoing: {
      description: 'Every change is being undone.',
      meta: { kind: 'works', lane: 'exception', order: 2 },
      invoke: { id: 'undo', src: 'undo', onDone: 'undone', onError: 'damaged' },
    },
    done: { type: 'final', description: 'The stack is as planned.', meta: { kind: 'ended', lane: 'end', order: 0 } },
    kept: {
      type: 'final',
      description: 'Stopped half-way: the same command continues.',
      meta: { kind: 'ended', lane: 'end', order: 1 },
    },
    undone: {
      type: 'final',
      description: 'Failed; all changes were undone.',
      meta: { kind: 'ended', lane: 'end', order: 2 },
    },
    damaged: {
      type: 'final',
      description: 'Failed; not every change could be undone.',
      meta: { kind: 'failed', lane: 'end', order: 3 },
    },
  },
});
