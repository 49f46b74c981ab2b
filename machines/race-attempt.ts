/**
 * One attempt of a race: an agent works in files of its own until its turn ends, then a command of the user says whether it has passed.
 *
 * Detailed operation
 * 1. `opening` copies the conversation and the files for the agent of the attempt. An agent that cannot be had is refused here, before
 *    anything is copied.
 * 2. `working` has the agent do the prompt. A turn that fails, such as that of an agent that has ended, ends this attempt with its reason;
 *    the others continue.
 * 3. `checking` runs the command of the user in the files of the attempt.
 * 4. `RACE.DECIDED` says that another attempt has passed: the turn is interrupted, and nothing more begins. A running check is not interrupted.
 */
import { assign, fromPromise, setup } from 'xstate';
import { type Failure, failureOf } from './failure.ts';

export interface RaceAttemptInput {
  /** From 1. */
  readonly number: number;
}

export interface RaceAttemptContext extends RaceAttemptInput {
  /** Another attempt has passed. */
  readonly isDecided: boolean;
  /** Why it has ended before its check. */
  readonly failure: Failure | null;
}

export interface RaceAttemptEvent {
  readonly type: 'RACE.DECIDED';
}

/** Result of the turn. */
export interface AttemptTurn {
  readonly isCancelled: boolean;
}

/** Result of the check. */
export interface AttemptCheck {
  readonly hasPassed: boolean;
}

const notProvided = () => Promise.reject(new Error('not provided'));
const numberOf = ({ context: { number } }: { readonly context: RaceAttemptContext }): RaceAttemptInput => ({ number });
const recordedFailure = {
  type: 'recordFailure' as const,
  params: ({ event }: { readonly event: { readonly error: unknown } }) => failureOf(event.error),
};

export const raceAttemptMachine = setup({
  types: {
    input: {} as RaceAttemptInput,
    context: {} as RaceAttemptContext,
    events: {} as RaceAttemptEvent,
  },
  actors: {
    /** Copies conversation and files. */
    open: fromPromise<void, RaceAttemptInput>(notProvided),
    /** Has the agent do the prompt. */
    work: fromPromise<AttemptTurn, RaceAttemptInput>(notProvided),
    /** Runs the command of the user. */
    check: fromPromise<AttemptCheck, RaceAttemptInput>(notProvided),
  },
  guards: {
    isDecided: ({ context }) => context.isDecided,
    isOver: ({ context }, { isCancelled }: AttemptTurn) => isCancelled || context.isDecided,
    hasPassed: (_, { hasPassed }: AttemptCheck) => hasPassed,
  },
  actions: {
    recordDecision: assign({ isDecided: true }),
    /** Asks the server to end the turn; `work` ends with it. */
    interruptTurn: () => undefined,
    recordFailure: assign((_, failure: Failure) => ({ failure })),
  },
}).createMachine({
  id: 'race-attempt',
  description: 'One attempt of a race, until its check has decided.',
  context: ({ input: { number } }) => ({ number, isDecided: false, failure: null }),
  initial: 'opening',
  states: {
    opening: {
      description: 'Conversation and files are copied for its agent.',
      meta: { kind: 'works', lane: 'spine', order: 0 },
      on: { 'RACE.DECIDED': { actions: 'recordDecision' } },
      invoke: {
        id: 'open',
        src: 'open',
        input: numberOf,
        onDone: [{ guard: 'isDecided', target: 'stopped' }, { target: 'working' }],
        onError: { target: 'failed', actions: recordedFailure },
      },
    },
    working: {
      description: 'Its agent does the prompt.',
      meta: { kind: 'works', lane: 'spine', order: 1 },
      on: { 'RACE.DECIDED': { actions: ['recordDecision', 'interruptTurn'] } },
      invoke: {
        id: 'work',
        src: 'work',
        input: numberOf,
        onDone: [
          { guard: { type: 'isOver', params: ({ event }) => event.output }, target: 'stopped' },
          { target: 'checking' },
        ],
        onError: { target: 'failed', actions: recordedFailure },
      },
    },
    checking: {
      description: 'The command of the user runs in its files.',
      meta: { kind: 'works', lane: 'spine', order: 2 },
      invoke: {
        id: 'check',
        src: 'check',
        input: numberOf,
        onDone: [
          { guard: { type: 'hasPassed', params: ({ event }) => event.output }, target: 'passed' },
          { target: 'failed' },
        ],
        onError: { target: 'failed', actions: recordedFailure },
      },
    },
    passed: { type: 'final', description: 'Its check has succeeded.', meta: { kind: 'ended', lane: 'end', order: 2 } },
    failed: {
      type: 'final',
      description: 'Its check has failed, or it has ended before.',
      meta: { kind: 'failed', lane: 'end', order: 1 },
    },
    stopped: {
      type: 'final',
      description: 'Another attempt has passed, or the user has interrupted the race.',
      meta: { kind: 'ended', lane: 'end', order: 0 },
    },
  },
});
