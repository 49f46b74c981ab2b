/**
 * An external agent that works in this workspace: one process that speaks the Agent Client Protocol on its pipes, and
 * the descendants of this process. Its sessions are threads. It is restarted under the same policy as an agent server.
 *
 * Detailed operation
 * 1. It is started when a turn wants it. One that does not introduce itself in time is killed.
 * 2. While it works the processes below it are watched, so that they are found later. Each prompt is counted from its begin to its end; there may be one in each session. A prompt that was cancelled must end
 *    within `cancelGrace`; else, and when a process that does the work has vanished, or when the agent writes without bound, the
 *    agent is `unhealthy` and killed. Some agents end the prompt themselves when that process has vanished, and start another
 *    one that does not know the work of the first: so the loss counts after the prompt too.
 * 3. The descendants may outlive the process: a new process life begins only after `PROCESS.SWEPT`. Until then, a turn
 *    that wants the agent waits, and the old process does not fail it.
 * 4. A person's turn on an agent that rests after too many failures is a manual start.
 * 5. A stop closes its input, then kills. It is over when nothing of it is left.
 * 6. An agent that no thread needs any more is `retiring`: it ends as by a stop, but a turn that wants it waits for a new
 *    process.
 */
import { assertEvent, assign, fromCallback, sendTo, setup, spawnChild, stopChild } from 'xstate';
import {
  killStates,
  restartStates,
  type SupervisedContext,
  type SupervisedPolicy,
  supervisedActions,
  supervisedDelays,
  supervisedGuards,
} from './supervised-process.ts';

export interface ExternalAgentPolicy extends SupervisedPolicy {
  /** From the start of the process to its introduction. */
  readonly handshakeTimeoutMs: number;
  /** From the end of its input to SIGKILL. */
  readonly closeGraceMs: number;
  /** From the cancellation of a prompt to its end. */
  readonly cancelGraceMs: number;
}

export interface ExternalAgentInput {
  readonly name: string;
  readonly policy: ExternalAgentPolicy;
  /** Seed of the jitter. */
  readonly seed: number;
}

/** Self-description of an agent. */
export interface ExternalAgentFacts {
  readonly name: string | null;
  readonly version: string | null;
}

export interface ExternalAgentContext extends SupervisedContext {
  readonly policy: ExternalAgentPolicy;
  readonly name: string;
  readonly pid: number | null;
  readonly facts: ExternalAgentFacts | null;
  /** Prompts without an end. */
  readonly prompts: number;
  /** Cancelled prompts without an end. */
  readonly cancelled: number;
  /** The agent has answered that a person must log in. */
  readonly needsLogin: boolean;
  /** A turn has asked for it since its process ended. */
  readonly isWanted: boolean;
  readonly lastError: string | null;
  /** Whether trying again may help. */
  readonly isRetryable: boolean;
}

type OfLife = { readonly incarnation: number };

/** Events of the driver of a process. Every event names the incarnation it belongs to. */
export type ExternalAgentProcessEvent =
  | ({ readonly type: 'PROCESS.SPAWNED'; readonly pid: number } & OfLife)
  /** The process has ended, or could not be started. Its descendants may still run. */
  | ({
      readonly type: 'PROCESS.EXITED';
      readonly error: string;
      /** Whether trying again may help. */
      readonly isRetryable: boolean;
      readonly at: number;
    } & OfLife)
  /** Nothing of it is left. Follows `PROCESS.EXITED`. */
  | ({ readonly type: 'PROCESS.SWEPT' } & OfLife)
  | ({ readonly type: 'HANDSHAKE.DONE'; readonly facts: ExternalAgentFacts; readonly at: number } & OfLife)
  | ({ readonly type: 'HANDSHAKE.FAILED'; readonly error: string } & OfLife)
  | ({ readonly type: 'PROMPT.BEGUN' } & OfLife)
  | ({ readonly type: 'PROMPT.ENDED'; readonly wasCancelled: boolean } & OfLife)
  | ({ readonly type: 'CANCEL.SENT' } & OfLife)
  /** A process below it that does the work has vanished. */
  | ({ readonly type: 'WORKER.LOST'; readonly pid: number } & OfLife)
  | ({ readonly type: 'AUTH.REQUIRED' } & OfLife)
  /** The agent writes without bound, or does not read. */
  | ({ readonly type: 'OUTPUT.FLOODED'; readonly error: string } & OfLife);

export type ExternalAgentEvent =
  /** A turn needs it. */
  | { readonly type: 'AGENT.WANTED' }
  /** No thread needs it any more. */
  | { readonly type: 'AGENT.UNNEEDED' }
  | { readonly type: 'AGENT.STOP' }
  | ExternalAgentProcessEvent;

/** Commands to the driver: end its input; SIGKILL to all of it. */
export type ExternalAgentCommand = { readonly type: 'CLOSE' } | { readonly type: 'KILL' };

export interface ExternalAgentProcessInput {
  readonly name: string;
  readonly incarnation: number;
}

type Of<T extends ExternalAgentEvent['type']> = Extract<ExternalAgentEvent, { type: T }>;

/** Steps by which an agent is ended that nothing needs, or that is to stop. */
const endStates = {
  closing: {
    description: 'Its input is closed: an agent that behaves well ends.',
    meta: { kind: 'works', lane: 'detour', order: 2 },
    entry: 'closeInput',
    after: { agentCloseGrace: { target: 'killing' } },
  },
  ...killStates,
  sweeping: {
    description: 'Ends the processes that the agent has started.',
    meta: { kind: 'works', lane: 'detour', order: 3 },
  },
} as const;

const afterExit = restartStates({
  start: '#external-agent.starting',
  noRestart: 'resting',
  tooManyFailures: 'resting',
});

const onExit = {
  guard: 'isThisIncarnation',
  target: '#external-agent.exited',
  actions: ['recordExit', 'recordFailureTime'],
} as const;
const onLostWorker = {
  guard: 'isThisIncarnation',
  target: '#external-agent.unhealthy',
  actions: 'recordLostWorker',
} as const;
const onFlood = { guard: 'isThisIncarnation', target: '#external-agent.unhealthy', actions: 'recordFlood' } as const;
const onWanted = { target: '#external-agent.starting', actions: 'resetForManualStart' } as const;

// SIGTERM is never sent: some agents leave their tools behind after it.
const { terminateProcess: _, ...agentActions } = supervisedActions<ExternalAgentContext, ExternalAgentEvent>('process');

export const externalAgentMachine = setup({
  types: {
    input: {} as ExternalAgentInput,
    context: {} as ExternalAgentContext,
    events: {} as ExternalAgentEvent,
    tags: {} as 'atRest' | 'down' | 'usable',
  },
  actors: {
    process: fromCallback<ExternalAgentCommand, ExternalAgentProcessInput>(() => {}),
    /** Looks for the processes below the agent, while it works. */
    watch: fromCallback<ExternalAgentCommand, ExternalAgentProcessInput>(() => {}),
  },
  delays: {
    backoff: supervisedDelays.backoff,
    killVerify: supervisedDelays.killVerify,
    handshakeTimeout: ({ context }) => context.policy.handshakeTimeoutMs,
    agentCloseGrace: ({ context }) => context.policy.closeGraceMs,
    cancelGrace: ({ context }) => context.policy.cancelGraceMs,
  },
  guards: {
    ...supervisedGuards,
    mustNotRestart: ({ context }) => !context.isRetryable || context.policy.restart === 'never',
    isWantedAfterSweep: ({ context, event }) =>
      supervisedGuards.isThisIncarnation({ context, event }) && context.isWanted,
    isLastPrompt: ({ context, event }) =>
      supervisedGuards.isThisIncarnation({ context, event }) && context.prompts <= 1,
    isLastCancelled: ({ context, event }) =>
      supervisedGuards.isThisIncarnation({ context, event }) &&
      (event as Of<'PROMPT.ENDED'>).wasCancelled &&
      context.cancelled <= 1,
  },
  actions: {
    ...agentActions,
    beginIncarnation: assign(({ context }) => ({
      incarnation: context.incarnation + 1,
      pid: null,
      facts: null,
      prompts: 0,
      cancelled: 0,
      needsLogin: false,
      isWanted: false,
      lastError: null,
      isRetryable: true,
      runningSince: null,
    })),
    spawnProcess: spawnChild('process', {
      id: 'process',
      input: ({ context }) => ({ name: context.name, incarnation: context.incarnation }),
    }),
    releaseProcess: stopChild('process'),
    closeInput: sendTo('process', { type: 'CLOSE' }),
    recordPid: assign(({ event }) => {
      assertEvent(event, 'PROCESS.SPAWNED');
      return { pid: event.pid };
    }),
    recordReadiness: assign(({ event }) => {
      assertEvent(event, 'HANDSHAKE.DONE');
      return { facts: event.facts, runningSince: event.at };
    }),
    recordHandshakeFailure: assign(({ event }) => {
      assertEvent(event, 'HANDSHAKE.FAILED');
      return { lastError: event.error };
    }),
    recordHandshakeTimeout: assign(({ context }) => ({
      lastError: `It did not introduce itself within ${context.policy.handshakeTimeoutMs / 1000} s.`,
    })),
    recordCancelTimeout: assign(({ context }) => ({
      lastError: `It did not end a cancelled prompt within ${context.policy.cancelGraceMs / 1000} s.`,
    })),
    recordLostWorker: assign(({ event }) => {
      assertEvent(event, 'WORKER.LOST');
      return { lastError: `Its process ${event.pid}, which did the work, has ended.` };
    }),
    recordFlood: assign(({ event }) => {
      assertEvent(event, 'OUTPUT.FLOODED');
      return { lastError: event.error };
    }),
    recordLogin: assign({ needsLogin: true }),
    recordExit: assign(({ context, event }) => {
      assertEvent(event, 'PROCESS.EXITED');
      return { lastError: context.lastError ?? event.error, isRetryable: event.isRetryable, prompts: 0, cancelled: 0 };
    }),
    recordKillTimeout: assign(({ context }) => ({
      lastError: `Process ${context.pid ?? '?'} did not end after SIGKILL; still waiting for it.`,
    })),
    countPrompt: assign({ prompts: ({ context }) => context.prompts + 1, needsLogin: false }),
    countCancelled: assign({ cancelled: ({ context }) => context.cancelled + 1 }),
    discountPrompt: assign(({ context, event }) => {
      assertEvent(event, 'PROMPT.ENDED');
      return {
        prompts: Math.max(0, context.prompts - 1),
        cancelled: Math.max(0, context.cancelled - (event.wasCancelled ? 1 : 0)),
      };
    }),
    noteWanted: assign({ isWanted: true }),
    clearProcess: assign({ pid: null, facts: null, prompts: 0, cancelled: 0 }),
  },
}).createMachine({
  id: 'external-agent',
  description: 'Supervises an external agent and its sessions.',
  context: ({ input }) => ({
    name: input.name,
    policy: input.policy,
    seed: input.seed,
    incarnation: 0,
    pid: null,
    facts: null,
    prompts: 0,
    cancelled: 0,
    needsLogin: false,
    isWanted: false,
    lastError: null,
    isRetryable: true,
    failures: [],
    attempt: 0,
    delayMs: null,
    runningSince: null,
  }),
  initial: 'absent',
  states: {
    absent: {
      description: 'No turn has asked for it, or it was stopped.',
      meta: { kind: 'rests', lane: 'spine', order: 0 },
      tags: 'atRest',
      on: { 'AGENT.WANTED': onWanted },
    },
    starting: {
      description: 'Its process is started and must introduce itself.',
      meta: { kind: 'works', lane: 'spine', order: 1 },
      entry: ['beginIncarnation', 'spawnProcess'],
      after: { handshakeTimeout: { target: 'unhealthy', actions: 'recordHandshakeTimeout' } },
      on: {
        'AGENT.UNNEEDED': { target: 'retiring' },
        'AGENT.STOP': { target: 'stopping' },
        'PROCESS.SPAWNED': { guard: 'isThisIncarnation', actions: 'recordPid' },
        'HANDSHAKE.DONE': { guard: 'isThisIncarnation', target: 'ready', actions: 'recordReadiness' },
        'HANDSHAKE.FAILED': { guard: 'isThisIncarnation', target: 'unhealthy', actions: 'recordHandshakeFailure' },
        'OUTPUT.FLOODED': onFlood,
        'PROCESS.EXITED': onExit,
      },
    },
    ready: {
      description: 'It waits for a prompt.',
      meta: { kind: 'serves', lane: 'spine', order: 2 },
      tags: 'usable',
      on: {
        'AGENT.UNNEEDED': { target: 'retiring' },
        'AGENT.STOP': { target: 'stopping' },
        'PROMPT.BEGUN': { guard: 'isThisIncarnation', target: 'busy', actions: 'countPrompt' },
        'WORKER.LOST': onLostWorker,
        'OUTPUT.FLOODED': onFlood,
        'PROCESS.EXITED': onExit,
      },
    },
    busy: {
      description: 'It works on at least one prompt.',
      tags: 'usable',
      invoke: {
        id: 'watch',
        src: 'watch',
        input: ({ context }) => ({ name: context.name, incarnation: context.incarnation }),
      },
      initial: 'working',
      on: {
        'AGENT.STOP': { target: 'stopping' },
        'PROMPT.BEGUN': { guard: 'isThisIncarnation', actions: 'countPrompt' },
        'AUTH.REQUIRED': { guard: 'isThisIncarnation', actions: 'recordLogin' },
        'WORKER.LOST': onLostWorker,
        'OUTPUT.FLOODED': onFlood,
        'PROCESS.EXITED': onExit,
        'PROMPT.ENDED': [
          { guard: 'isLastPrompt', target: 'ready', actions: 'discountPrompt' },
          { guard: 'isLastCancelled', target: '.working', actions: 'discountPrompt' },
          { guard: 'isThisIncarnation', actions: 'discountPrompt' },
        ],
      },
      states: {
        working: {
          description: 'No prompt was cancelled.',
          meta: { kind: 'works', lane: 'spine', order: 3 },
          on: { 'CANCEL.SENT': { guard: 'isThisIncarnation', target: 'cancelling', actions: 'countCancelled' } },
        },
        cancelling: {
          description: 'A prompt was cancelled and must end soon.',
          meta: { kind: 'works', lane: 'exception', order: 3 },
          after: { cancelGrace: { target: '#external-agent.unhealthy', actions: 'recordCancelTimeout' } },
          on: { 'CANCEL.SENT': { guard: 'isThisIncarnation', actions: 'countCancelled' } },
        },
      },
    },
    unhealthy: {
      description: 'It cannot be relied on any more: it is killed, and its prompts fail.',
      initial: 'killing',
      on: {
        'AGENT.WANTED': { actions: 'noteWanted' },
        'AGENT.UNNEEDED': { target: 'retiring.killing' },
        'AGENT.STOP': { target: 'stopping.killing' },
        'PROCESS.EXITED': onExit,
      },
      states: killStates,
    },
    exited: {
      description: 'Its process has ended.',
      initial: 'sweeping',
      states: {
        sweeping: {
          description: 'Ends the processes that the agent has started; until then no new process starts.',
          meta: { kind: 'works', lane: 'detour', order: 3 },
          on: {
            'AGENT.WANTED': { actions: 'noteWanted' },
            'AGENT.UNNEEDED': { target: '#external-agent.retiring.sweeping' },
            'AGENT.STOP': { target: '#external-agent.stopping.sweeping' },
            'PROCESS.SWEPT': [
              {
                guard: 'isWantedAfterSweep',
                target: '#external-agent.starting',
                actions: ['releaseProcess', 'resetForManualStart'],
              },
              { guard: 'isThisIncarnation', target: 'deciding', actions: ['releaseProcess', 'clearProcess'] },
            ],
          },
        },
        ...afterExit,
        backingOff: {
          ...afterExit.backingOff,
          tags: 'down',
          entry: 'planRestart',
          on: {
            'AGENT.WANTED': onWanted,
            'AGENT.UNNEEDED': { target: '#external-agent.absent' },
            'AGENT.STOP': { target: '#external-agent.absent' },
          },
        },
        resting: {
          description:
            'No automatic restart: a restart cannot help, or has failed too often. The next turn tries again.',
          meta: { kind: 'failed', lane: 'exception', order: 2 },
          tags: 'atRest',
          on: { 'AGENT.WANTED': onWanted, 'AGENT.STOP': { target: '#external-agent.absent' } },
        },
      },
    },
    retiring: {
      description: 'No thread needs it: its input is closed, then all of it is killed.',
      initial: 'closing',
      on: {
        'AGENT.WANTED': { actions: 'noteWanted' },
        'AGENT.STOP': { target: 'stopping' },
        'PROCESS.EXITED': { guard: 'isThisIncarnation', target: '.sweeping' },
        'PROCESS.SWEPT': [
          {
            guard: 'isWantedAfterSweep',
            target: 'starting',
            actions: ['releaseProcess', 'resetForManualStart'],
          },
          { guard: 'isThisIncarnation', target: 'absent', actions: ['releaseProcess', 'clearProcess'] },
        ],
      },
      states: endStates,
    },
    stopping: {
      description: 'Its input is closed, then all of it is killed; over when nothing of it is left.',
      initial: 'closing',
      on: {
        'PROCESS.EXITED': { guard: 'isThisIncarnation', target: '.sweeping' },
        'PROCESS.SWEPT': { guard: 'isThisIncarnation', target: 'absent', actions: ['releaseProcess', 'clearProcess'] },
      },
      states: endStates,
    },
  },
});
