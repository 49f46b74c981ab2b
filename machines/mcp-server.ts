/**
 * One server of the Model Context Protocol, which offers tools to the agent: a process that speaks on its pipes, or an
 * address on the network. It is restarted under the same policy as an agent server.
 *
 * Detailed operation
 * 1. A server that is not enabled stays in `disabled`. A start connects to it and lists its tools.
 * 2. A server that is not ready in time is killed first. Then, and whenever a connection ends without a stop request, it is
 *    started again after a back-off.
 * 3. After too many failures, or when a restart cannot help, it stays in `failed` until the next `SERVER.START`.
 * 4. A server that demands a log-in stays in `needsLogin` until a token for it is stored.
 * 5. A stop closes the connection, then sends SIGTERM, then SIGKILL. It is over when the process group is empty.
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
  terminateStates,
} from './supervised-process.ts';

export interface McpServerPolicy extends SupervisedPolicy {
  readonly startupTimeoutMs: number;
  /** From the end of the connection to SIGTERM: well-behaved servers end without a signal. */
  readonly closeGraceMs: number;
}

export interface McpServerInput {
  readonly name: string;
  readonly transport: 'stdio' | 'streamableHttp';
  readonly policy: McpServerPolicy;
  /** Seed of the jitter. */
  readonly seed: number;
}

/** Self-description of a ready server. */
export interface McpServerFacts {
  readonly toolCount: number;
  /** Tools that are left out, or offered without a part of their definition; empty name: the list itself. */
  readonly toolProblems: readonly { readonly tool: string; readonly problem: string; readonly isOffered: boolean }[];
  readonly resourceCount: number;
  readonly resourceTemplateCount: number;
  readonly serverName: string | null;
  readonly serverVersion: string | null;
  readonly protocolVersion: string | null;
}

export interface McpServerContext extends SupervisedContext {
  readonly policy: McpServerPolicy;
  readonly name: string;
  readonly transport: 'stdio' | 'streamableHttp';
  /** A connection is open or being opened; over stdio it has a process. */
  readonly hasProcess: boolean;
  readonly pid: number | null;
  readonly facts: McpServerFacts | null;
  readonly lastError: string | null;
  /** Whether trying again may help. */
  readonly isRetryable: boolean;
  readonly delayMs: number;
}

/** Events of the driver of a connection. Every event names the incarnation it belongs to. */
export type McpConnectionEvent =
  | { readonly type: 'CONNECTION.SPAWNED'; readonly incarnation: number; readonly pid: number }
  | {
      readonly type: 'CONNECTION.READY';
      readonly incarnation: number;
      readonly facts: McpServerFacts;
      readonly at: number;
    }
  | { readonly type: 'CONNECTION.CHANGED'; readonly incarnation: number; readonly facts: McpServerFacts }
  /** The conversation has broken off; the remaining processes of the server are being ended. */
  | { readonly type: 'CONNECTION.LOST'; readonly incarnation: number }
  /** The connection has ended, or was never made; no process of the server remains. A ready connection is lost first. */
  | {
      readonly type: 'CONNECTION.CLOSED';
      readonly incarnation: number;
      readonly error: string;
      /** End of the server's standard error; may be empty. */
      readonly output: string;
      readonly isRetryable: boolean;
      /** The server demands a log-in of the user, or a new one. */
      readonly needsLogin: boolean;
      readonly at: number;
    };

export type McpServerEvent =
  | { readonly type: 'SERVER.START' }
  | { readonly type: 'SERVER.STOP' }
  /** A token that the server has not refused is stored. */
  | { readonly type: 'LOGIN.STORED' }
  | McpConnectionEvent;

/** Commands to the driver: end the conversation; SIGTERM; SIGKILL. Each implies the ones before. */
export type McpConnectionCommand =
  | { readonly type: 'CLOSE' }
  | { readonly type: 'TERMINATE' }
  | { readonly type: 'KILL' };

export interface McpConnectionInput {
  readonly name: string;
  readonly incarnation: number;
}

const afterClose = [
  { guard: 'lacksLogin', target: '#mcp-server.needsLogin', actions: ['recordClose', 'releaseConnection'] },
  {
    guard: 'isThisIncarnation',
    target: '#mcp-server.down',
    actions: ['recordClose', 'recordFailureTime', 'releaseConnection'],
  },
] as const;

const afterExit = restartStates({ start: '#mcp-server.starting', noRestart: 'failed', tooManyFailures: 'failed' });

export const mcpServerMachine = setup({
  types: {
    input: {} as McpServerInput,
    context: {} as McpServerContext,
    events: {} as McpServerEvent,
    tags: {} as 'disabled' | 'starting' | 'ready' | 'needsLogin' | 'failed' | 'restarting' | 'stopped' | 'atRest',
  },
  actors: {
    connection: fromCallback<McpConnectionCommand, McpConnectionInput>(() => {}),
    loginWatch: fromCallback(() => {}),
  },
  delays: {
    ...supervisedDelays,
    startupTimeout: ({ context }) => context.policy.startupTimeoutMs,
    closeGrace: ({ context }) => context.policy.closeGraceMs,
  },
  guards: {
    ...supervisedGuards,
    lacksLogin: ({ context, event }) => {
      assertEvent(event, 'CONNECTION.CLOSED');
      return event.needsLogin && event.incarnation === context.incarnation;
    },
    mustNotRestart: ({ context }) => !context.isRetryable || context.policy.restart === 'never',
  },
  actions: {
    ...supervisedActions<McpServerContext, McpServerEvent>('connection'),
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
    recordPid: assign(({ event }) => {
      assertEvent(event, 'CONNECTION.SPAWNED');
      return { pid: event.pid };
    }),
    recordFacts: assign(({ event }) => {
      assertEvent(event, ['CONNECTION.READY', 'CONNECTION.CHANGED']);
      return { facts: event.facts };
    }),
    recordReadiness: assign(({ event }) => {
      assertEvent(event, 'CONNECTION.READY');
      return { runningSince: event.at };
    }),
    clearFacts: assign({ facts: null }),
    recordClose: assign(({ context, event }) => {
      assertEvent(event, 'CONNECTION.CLOSED');
      const why = context.lastError ?? event.error;
      return {
        hasProcess: false,
        isRetryable: event.isRetryable,
        lastError: event.output === '' ? why : `${why}\n${event.output}`,
      };
    }),
    clearConnection: assign({ hasProcess: false, lastError: null }),
    recordStartTimeout: assign(({ context }) => ({
      lastError: `It was not ready within ${context.policy.startupTimeoutMs / 1000} s.`,
    })),
    recordKillTimeout: assign(({ context }) => ({
      lastError: `Process ${context.pid ?? '?'} did not end after SIGKILL; still waiting for it.`,
    })),
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
      description: 'Not enabled, or not started yet.',
      meta: { kind: 'rests', lane: 'spine', order: 0 },
      tags: ['disabled', 'atRest'],
      on: { 'SERVER.START': { target: 'starting' } },
    },
    starting: {
      description: 'Connecting and listing the tools.',
      tags: 'starting',
      entry: ['beginIncarnation', 'openConnection'],
      initial: 'connecting',
      on: {
        'SERVER.STOP': { target: 'stopping' },
        'CONNECTION.SPAWNED': { guard: 'isThisIncarnation', actions: 'recordPid' },
        'CONNECTION.CLOSED': afterClose,
      },
      states: {
        connecting: {
          description: 'Waiting for the list of tools.',
          meta: { kind: 'works', lane: 'spine', order: 1 },
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
          description: 'The start has failed; the connection and its process must end before anything else happens.',
          initial: 'killing',
          states: killStates,
        },
      },
    },
    ready: {
      description: 'Connected; its tools can be called.',
      meta: { kind: 'serves', lane: 'spine', order: 2 },
      tags: 'ready',
      exit: 'clearFacts',
      on: {
        'SERVER.STOP': { target: 'stopping' },
        'CONNECTION.CHANGED': { guard: 'isThisIncarnation', actions: 'recordFacts' },
        'CONNECTION.LOST': { guard: 'isThisIncarnation', target: 'clearing' },
      },
    },
    clearing: {
      description: 'The connection was lost; waiting until its process group is empty.',
      meta: { kind: 'works', lane: 'exception', order: 2 },
      tags: 'restarting',
      on: {
        'SERVER.STOP': { target: 'stopping' },
        'CONNECTION.CLOSED': afterClose,
      },
    },
    needsLogin: {
      description: 'The server demands a log-in. It is started again when a token for it is stored.',
      meta: { kind: 'asks', lane: 'exception', order: 3 },
      tags: ['needsLogin', 'atRest'],
      invoke: { src: 'loginWatch', id: 'loginWatch' },
      on: {
        'SERVER.START': { target: 'starting', actions: 'resetForManualStart' },
        'SERVER.STOP': { target: 'stopped' },
        'LOGIN.STORED': { target: 'starting', actions: 'resetForManualStart' },
      },
    },
    stopping: {
      description: 'Closing the connection, then SIGTERM, then SIGKILL; over when the process group is empty.',
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
          description: 'Connection closed; a process sees the end of its input.',
          meta: { kind: 'works', lane: 'detour', order: 2 },
          entry: 'closeConnection',
          after: { closeGrace: { target: 'terminating' } },
        },
        ...terminateStates,
      },
    },
    stopped: {
      description: 'Stopped on request.',
      meta: { kind: 'rests', lane: 'detour', order: 0 },
      tags: ['stopped', 'atRest'],
      on: { 'SERVER.START': { target: 'starting', actions: 'resetForManualStart' } },
    },
    down: {
      description: 'It ended without a stop request, or could not be reached.',
      initial: 'deciding',
      on: {
        'SERVER.START': { target: 'starting', actions: 'resetForManualStart' },
        'SERVER.STOP': { target: 'stopped' },
      },
      states: {
        ...afterExit,
        backingOff: { ...afterExit.backingOff, tags: 'restarting', entry: 'planRestart' },
        failed: {
          description:
            'No automatic restart: a restart cannot help, or has failed too often. The next SERVER.START tries again.',
          meta: { kind: 'failed', lane: 'exception', order: 5 },
          tags: ['failed', 'atRest'],
        },
      },
    },
  },
});
