/**
 * One server of the Model Context Protocol that gives tools to the agent: a process that speaks on its pipes, or a place on
 * the network. It is revived under the same restart policy as an agent server.
 *
 * Detailed operation
 * 1. A server that is not enabled rests in `disabled`. Started, it is connected to and asked for its tools.
 * 2. One that is not ready in time is killed first; then, and whenever a connection ends by itself, it is tried again after a back-off.
 * 3. It fails for good when it comes back too often, or when trying again cannot help; until somebody asks for it again.
 * 4. A stop closes the connection, then is polite, then forceful, and is over when nothing of the server is left.
 */
import { assign, fromCallback, sendTo, setup, spawnChild, stopChild } from 'xstate';
import { addFailure, backoffDelay, exceedsFailureLimit, nextRandom, type RestartPolicy } from './restart-policy.ts';

export interface McpServerPolicy extends RestartPolicy {
  readonly startupTimeoutMs: number;
  /** From the end of the connection to SIGTERM: well-behaved servers end by themselves. */
  readonly closeGraceMs: number;
  readonly gracefulStopMs: number;
  readonly killVerifyMs: number;
}

export interface McpServerInput {
  readonly name: string;
  readonly transport: 'stdio' | 'streamableHttp';
  readonly policy: McpServerPolicy;
  /** Seed of the jitter. */
  readonly seed: number;
}

/** What a server that is ready tells about itself. */
export interface McpServerFacts {
  readonly toolCount: number;
  readonly resourceCount: number;
  readonly resourceTemplateCount: number;
  readonly serverName: string | null;
  readonly serverVersion: string | null;
  readonly protocolVersion: string | null;
}

export interface McpServerContext {
  readonly name: string;
  readonly transport: 'stdio' | 'streamableHttp';
  readonly policy: McpServerPolicy;
  readonly seed: number;
  readonly incarnation: number;
  readonly hasProcess: boolean;
  readonly pid: number | null;
  readonly facts: McpServerFacts | null;
  readonly lastError: string | null;
  /** Whether trying again may help. */
  readonly isRetryable: boolean;
  readonly failures: readonly number[];
  readonly attempt: number;
  readonly delayMs: number;
  readonly runningSince: number | null;
}

/** What the driver of a connection tells. Every event names the incarnation it belongs to. */
export type McpConnectionEvent =
  | { readonly type: 'CONNECTION.SPAWNED'; readonly incarnation: number; readonly pid: number }
  | {
      readonly type: 'CONNECTION.READY';
      readonly incarnation: number;
      readonly facts: McpServerFacts;
      readonly at: number;
    }
  | { readonly type: 'CONNECTION.CHANGED'; readonly incarnation: number; readonly facts: McpServerFacts }
  /** The conversation has broken off; what is left of the server is being ended. */
  | { readonly type: 'CONNECTION.LOST'; readonly incarnation: number }
  /** It has ended, or never came about; of a process nothing is left. One that was ready is lost first. */
  | {
      readonly type: 'CONNECTION.CLOSED';
      readonly incarnation: number;
      readonly error: string;
      /** The end of what the server wrote to standard error; may be empty. */
      readonly output: string;
      readonly isRetryable: boolean;
      readonly at: number;
    };

export type McpServerEvent = { readonly type: 'SERVER.START' } | { readonly type: 'SERVER.STOP' } | McpConnectionEvent;

/** What the machine asks of the driver: end the conversation; SIGTERM; SIGKILL. Each implies the ones before. */
export type McpConnectionCommand =
  | { readonly type: 'CLOSE' }
  | { readonly type: 'TERMINATE' }
  | { readonly type: 'KILL' };

export interface McpConnectionInput {
  readonly name: string;
  readonly incarnation: number;
}

export const mcpServerMachine = setup({
  types: {
    input: {} as McpServerInput,
    context: {} as McpServerContext,
    events: {} as McpServerEvent,
    tags: {} as 'disabled' | 'starting' | 'ready' | 'failed' | 'restarting' | 'stopped' | 'atRest',
  },
  actors: {
    connection: fromCallback<McpConnectionCommand, McpConnectionInput>(() => {}),
  },
  delays: {
    startupTimeout: ({ context }) => context.policy.startupTimeoutMs,
    backoff: ({ context }) => context.delayMs,
    closeGrace: ({ context }) => context.policy.closeGraceMs,
    gracefulStop: ({ context }) => context.policy.gracefulStopMs,
    killVerify: ({ context }) => context.policy.killVerifyMs,
  },
  guards: {
    isThisIncarnation: ({ context, event }) => 'incarnation' in event && event.incarnation === context.incarnation,
    mustNotRestart: ({ context }) => !context.isRetryable || context.policy.restart === 'never',
    exceedsFailureLimit: ({ context }) => exceedsFailureLimit(context.failures, context.policy),
  },
  actions: {
    beginIncarnation: assign(({ context }) => ({
      incarnation: context.incarnation + 1,
      hasProcess: true,
      pid: null,
      lastError: null,
      isRetryable: true,
      runningSince: null,
    })),
    openConnection: spawnChild('connection', {
      id: 'connection',
      input: ({ context }) => ({ name: context.name, incarnation: context.incarnation }),
    }),
    releaseConnection: stopChild('connection'),
    closeConnection: sendTo('connection', { type: 'CLOSE' }),
    terminateProcess: sendTo('connection', { type: 'TERMINATE' }),
    killProcess: sendTo('connection', { type: 'KILL' }),
    recordPid: assign(({ event }) => (event.type === 'CONNECTION.SPAWNED' ? { pid: event.pid } : {})),
    recordFacts: assign(({ event }) => ('facts' in event ? { facts: event.facts } : {})),
    recordReadiness: assign(({ event }) => (event.type === 'CONNECTION.READY' ? { runningSince: event.at } : {})),
    clearFacts: assign({ facts: null }),
    recordClose: assign(({ context, event }) => {
      if (event.type !== 'CONNECTION.CLOSED') return {};
      const why = context.lastError ?? event.error;
      return {
        hasProcess: false,
        isRetryable: event.isRetryable,
        lastError: event.output === '' ? why : `${why}\n${event.output}`,
      };
    }),
    clearConnection: assign({ hasProcess: false, lastError: null }),
    recordFailureTime: assign(({ context, event }) => {
      if (!('at' in event)) return {};
      const wasStable =
        context.runningSince !== null && event.at - context.runningSince >= context.policy.stableAfterMs;
      return {
        failures: addFailure(context.failures, event.at, context.policy.withinMs),
        ...(wasStable && { attempt: 0 }),
      };
    }),
    recordStartTimeout: assign(({ context }) => ({
      lastError: `It was not ready within ${context.policy.startupTimeoutMs / 1000} s.`,
    })),
    recordKillTimeout: assign(({ context }) => ({
      lastError: `Process ${context.pid ?? '?'} did not end after SIGKILL; still waiting for it.`,
    })),
    planRestart: assign(({ context }) => {
      const { random, seed } = nextRandom(context.seed);
      const attempt = context.attempt + 1;
      return { seed, attempt, delayMs: backoffDelay(attempt, context.policy, random) };
    }),
    resetForManualStart: assign({ failures: [], attempt: 0 }),
  },
}).createMachine({
  id: 'mcp-server',
  description: 'Supervises one MCP server and the connection to it.',
  context: ({ input }) => ({
    name: input.name,
    transport: input.transport,
    policy: input.policy,
    seed: input.seed,
    incarnation: 0,
    hasProcess: false,
    pid: null,
    facts: null,
    lastError: null,
    isRetryable: true,
    failures: [],
    attempt: 0,
    delayMs: 0,
    runningSince: null,
  }),
  initial: 'disabled',
  states: {
    disabled: {
      description: 'Nobody has asked for it.',
      tags: ['disabled', 'atRest'],
      on: { 'SERVER.START': { target: 'starting' } },
    },
    starting: {
      description: 'Being connected to and asked for its tools.',
      tags: 'starting',
      entry: ['beginIncarnation', 'openConnection'],
      initial: 'connecting',
      on: {
        'SERVER.STOP': { target: 'stopping' },
        'CONNECTION.SPAWNED': { guard: 'isThisIncarnation', actions: 'recordPid' },
        'CONNECTION.CLOSED': {
          guard: 'isThisIncarnation',
          target: 'down',
          actions: ['recordClose', 'recordFailureTime', 'releaseConnection'],
        },
      },
      states: {
        connecting: {
          description: 'Ready when it has named its tools.',
          after: { startupTimeout: { target: 'aborting', actions: 'recordStartTimeout' } },
          on: {
            'CONNECTION.READY': {
              guard: 'isThisIncarnation',
              target: '#mcp-server.ready',
              actions: ['recordFacts', 'recordReadiness'],
            },
          },
        },
        aborting: {
          description: 'It was not ready in time; it is killed first.',
          initial: 'killing',
          states: {
            killing: {
              description: 'SIGKILL to the group, or the connection cut; waiting until nothing is left.',
              entry: 'killProcess',
              after: { killVerify: { target: 'stuck', actions: 'recordKillTimeout' } },
            },
            stuck: { description: 'Even SIGKILL has not ended it.' },
          },
        },
      },
    },
    ready: {
      description: 'Its tools can be called.',
      tags: 'ready',
      exit: 'clearFacts',
      on: {
        'SERVER.STOP': { target: 'stopping' },
        'CONNECTION.CHANGED': { guard: 'isThisIncarnation', actions: 'recordFacts' },
        'CONNECTION.LOST': { guard: 'isThisIncarnation', target: 'clearing' },
      },
    },
    clearing: {
      description: 'It ended by itself; waiting until nothing of it is left.',
      tags: 'restarting',
      on: {
        'SERVER.STOP': { target: 'stopping' },
        'CONNECTION.CLOSED': {
          guard: 'isThisIncarnation',
          target: 'down',
          actions: ['recordClose', 'recordFailureTime', 'releaseConnection'],
        },
      },
    },
    stopping: {
      description: 'On the way down: closed, then politely, then by force.',
      tags: 'stopped',
      initial: 'closing',
      on: {
        'CONNECTION.CLOSED': {
          guard: 'isThisIncarnation',
          target: 'stopped',
          actions: ['clearConnection', 'releaseConnection'],
        },
      },
      states: {
        closing: {
          description: 'The conversation is ended; a process sees the end of its input.',
          entry: 'closeConnection',
          after: { closeGrace: { target: 'terminating' } },
        },
        terminating: {
          description: 'SIGTERM was sent to the group.',
          entry: 'terminateProcess',
          after: { gracefulStop: { target: 'killing' } },
        },
        killing: {
          description: 'SIGKILL was sent to the group.',
          entry: 'killProcess',
          after: { killVerify: { target: 'stuck', actions: 'recordKillTimeout' } },
        },
        stuck: { description: 'Even SIGKILL has not ended it.' },
      },
    },
    stopped: {
      description: 'Gone, as asked.',
      tags: ['stopped', 'atRest'],
      on: { 'SERVER.START': { target: 'starting', actions: 'resetForManualStart' } },
    },
    down: {
      description: 'It ended by itself, or could not be reached.',
      initial: 'deciding',
      on: {
        'SERVER.START': { target: 'starting', actions: 'resetForManualStart' },
        'SERVER.STOP': { target: 'stopped' },
      },
      states: {
        deciding: {
          description: 'Try again, or give up?',
          always: [
            { guard: 'mustNotRestart', target: 'failed' },
            { guard: 'exceedsFailureLimit', target: 'failed' },
            { target: 'backingOff' },
          ],
        },
        backingOff: {
          description: 'Another try is due after a pause that doubles with every failure.',
          tags: 'restarting',
          entry: 'planRestart',
          after: { backoff: { target: '#mcp-server.starting' } },
        },
        failed: {
          description: 'No further try until somebody asks: trying again cannot help, or has failed too often.',
          tags: ['failed', 'atRest'],
        },
      },
    },
  },
});
