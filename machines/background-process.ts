/**
 * One command that runs in the background of a conversation, beyond the turn that started it.
 *
 * Detailed operation
 * 1. The start spawns the command. One that cannot be spawned is `failed`.
 * 2. When the command exits, `clearing` ends its remaining descendants.
 * 3. A stop ends the command with all its descendants: SIGTERM, then SIGKILL after a grace period.
 * 4. The process is `ended` when a search of the process table finds no descendant, or has given up; survivors are counted.
 */
import { assertEvent, assign, fromCallback, fromPromise, setup, spawnChild } from 'xstate';

export interface BackgroundProcessInput {
  readonly processId: string;
  readonly threadId: string;
}

/** Originator of a stop: the agent, a user, the end of the conversation, or that of the server. */
export type BackgroundStopper = 'agent' | 'user' | 'thread' | 'server';

export interface BackgroundProcessContext extends BackgroundProcessInput {
  readonly pid: number | null;
  readonly exitCode: number | null;
  readonly signal: string | null;
  readonly stoppedBy: BackgroundStopper | null;
  /** Descendants that survived SIGKILL. */
  readonly survivors: number;
  readonly lastError: string | null;
}

/** Events of the driver of the command. */
export type BackgroundDriverEvent =
  | { readonly type: 'COMMAND.SPAWNED'; readonly pid: number }
  | { readonly type: 'COMMAND.REFUSED'; readonly error: string }
  /** The command has exited; its descendants may still run. */
  | { readonly type: 'COMMAND.EXITED'; readonly exitCode: number | null; readonly signal: string | null };

export type BackgroundProcessEvent =
  | { readonly type: 'PROCESS.STOP'; readonly by: BackgroundStopper }
  | BackgroundDriverEvent;

/** Way of ending a process tree. */
export interface EndTreeInput {
  /** SIGTERM comes before SIGKILL. */
  readonly isPolite: boolean;
}

/** Result of ending a process tree. */
export interface EndedTree {
  readonly survivors: number;
}

const notProvided = (): never => {
  throw new Error('not provided');
};

export const backgroundProcessMachine = setup({
  types: {
    input: {} as BackgroundProcessInput,
    context: {} as BackgroundProcessContext,
    events: {} as BackgroundProcessEvent,
  },
  actors: {
    /** Spawns the command, and reports its exit. */
    command: fromCallback<BackgroundProcessEvent>(notProvided),
    /** Ends the command and its descendants. */
    endTree: fromPromise<EndedTree, EndTreeInput>(notProvided),
  },
  actions: {
    spawnCommand: spawnChild('command', { id: 'command' }),
    recordPid: assign(({ event }) => {
      assertEvent(event, 'COMMAND.SPAWNED');
      return { pid: event.pid };
    }),
    recordRefusal: assign(({ event }) => {
      assertEvent(event, 'COMMAND.REFUSED');
      return { lastError: event.error };
    }),
    recordExit: assign(({ event }) => {
      assertEvent(event, 'COMMAND.EXITED');
      return { exitCode: event.exitCode, signal: event.signal };
    }),
    recordStopper: assign(({ event }) => {
      assertEvent(event, 'PROCESS.STOP');
      return { stoppedBy: event.by };
    }),
    recordSurvivors: assign((_, { survivors }: EndedTree) => ({ survivors })),
    recordFault: assign((_, { error }: { readonly error: unknown }) => ({
      lastError: error instanceof Error ? error.message : String(error),
    })),
  },
}).createMachine({
  id: 'background-process',
  description: 'Runs one command in the background of a conversation, and ends it.',
  context: ({ input }) => ({
    processId: input.processId,
    threadId: input.threadId,
    pid: null,
    exitCode: null,
    signal: null,
    stoppedBy: null,
    survivors: 0,
    lastError: null,
  }),
  initial: 'starting',
  states: {
    starting: {
      description: 'The command is being spawned.',
      meta: { kind: 'works', lane: 'spine', order: 0 },
      entry: 'spawnCommand',
      on: {
        'COMMAND.SPAWNED': { target: 'running', actions: 'recordPid' },
        'COMMAND.REFUSED': { target: 'failed', actions: 'recordRefusal' },
        'PROCESS.STOP': { target: 'stopping', actions: 'recordStopper' },
      },
    },
    running: {
      description: 'The command runs; its output is collected.',
      meta: { kind: 'serves', lane: 'spine', order: 1 },
      on: {
        'COMMAND.EXITED': { target: 'clearing', actions: 'recordExit' },
        'PROCESS.STOP': { target: 'stopping', actions: 'recordStopper' },
      },
    },
    clearing: {
      description: 'The command has exited; descendants that it left running are ended.',
      meta: { kind: 'works', lane: 'spine', order: 2 },
      invoke: {
        id: 'clear',
        src: 'endTree',
        input: { isPolite: false },
        onDone: { target: 'ended', actions: { type: 'recordSurvivors', params: ({ event }) => event.output } },
        onError: { target: 'ended', actions: { type: 'recordFault', params: ({ event }) => event } },
      },
    },
    stopping: {
      description: 'The command and its descendants are being ended.',
      meta: { kind: 'works', lane: 'exception', order: 1 },
      invoke: {
        id: 'stop',
        src: 'endTree',
        input: { isPolite: true },
        onDone: { target: 'ended', actions: { type: 'recordSurvivors', params: ({ event }) => event.output } },
        onError: { target: 'ended', actions: { type: 'recordFault', params: ({ event }) => event } },
      },
      on: {
        'COMMAND.SPAWNED': { actions: 'recordPid' },
        'COMMAND.REFUSED': { actions: 'recordRefusal' },
        'COMMAND.EXITED': { actions: 'recordExit' },
      },
    },
    ended: {
      description: 'The command and its descendants have ended; the rest of the output can be read.',
      meta: { kind: 'ended', lane: 'end', order: 2 },
      type: 'final',
    },
    failed: {
      description: 'The command could not be started.',
      meta: { kind: 'failed', lane: 'end', order: 0 },
      type: 'final',
    },
  },
});
