/**
 * The sidecar of one workspace: a third-party model proxy that must be ready before the agent server that uses it.
 * A child of the agent-server machine, which it tells of every change; it is revived under the same restart policy.
 *
 * Detailed operation
 * 1. It is spawned, or taken over when its server is. It is ready when its model list answers with the key.
 * 2. A sidecar that never became ready is killed and rests: the start that wanted it has failed.
 * 3. One that has served is revived after a back-off when it dies, until it dies too often; its server runs on meanwhile.
 * 4. A stop is polite, then forceful, and is told when the group is empty.
 */
import { assign, fromCallback, fromPromise, sendParent, sendTo, setup, spawnChild, stopChild } from 'xstate';
import {
  type Failure,
  failureOf,
  type OfWorkspace,
  type ProcessCommand,
  type ProcessEvent,
  type ProcessInput,
} from './process-events.ts';
import { addFailure, backoffDelay, exceedsIntensity, type RestartPolicy, roll } from './restart-policy.ts';

/** Incarnations of a sidecar are counted apart from those of its server. */
export interface ApiProxyPolicy extends RestartPolicy {
  readonly proxyDeadlineMs: number;
  readonly gracefulStopMs: number;
  readonly killVerifyMs: number;
}

export interface ApiProxyInput {
  readonly workspacePath: string;
  readonly policy: ApiProxyPolicy;
  /** Seed of the jitter. */
  readonly seed: number;
  /** Take over the process that an earlier Hub started, if it still lives, instead of starting one. */
  readonly adopt: boolean;
}

export interface ApiProxyContext {
  readonly workspacePath: string;
  readonly policy: ApiProxyPolicy;
  readonly seed: number;
  readonly adopt: boolean;
  readonly incarnation: number;
  readonly hasProcess: boolean;
  readonly pid: number | null;
  readonly exitCode: number | null;
  readonly signal: string | null;
  readonly lastError: string | null;
  readonly failures: readonly number[];
  readonly attempt: number;
  readonly delayMs: number;
  /** It has been ready before: from then on an exit is followed by a restart. */
  readonly hasServed: boolean;
  readonly runningSince: number | null;
}

export type ApiProxyEvent = { readonly type: 'PROXY.START' } | { readonly type: 'PROXY.STOP' } | ProcessEvent;

export type ApiProxyEventToParent =
  | { readonly type: 'PROXY.RUNNING'; readonly pid: number }
  | {
      readonly type: 'PROXY.EXITED';
      readonly pid: number | null;
      readonly exitCode: number | null;
      readonly signal: string | null;
      readonly error: string | null;
      /** No restart will follow by itself. */
      readonly final: boolean;
    }
  | {
      readonly type: 'PROXY.STOPPED';
      readonly pid: number | null;
      readonly exitCode: number | null;
      readonly signal: string | null;
    };

export const apiProxyMachine = setup({
  types: {
    input: {} as ApiProxyInput,
    context: {} as ApiProxyContext,
    events: {} as ApiProxyEvent,
  },
  actors: {
    process: fromCallback<ProcessCommand, ProcessInput>(() => {}),
    readiness: fromPromise<{ readonly at: number }, OfWorkspace>(() => Promise.reject(new Error('not provided'))),
  },
  delays: {
    proxyDeadline: ({ context }) => context.policy.proxyDeadlineMs,
    backoff: ({ context }) => context.delayMs,
    gracefulStop: ({ context }) => context.policy.gracefulStopMs,
    killVerify: ({ context }) => context.policy.killVerifyMs,
  },
  guards: {
    isThisIncarnation: ({ context, event }) => 'incarnation' in event && event.incarnation === context.incarnation,
    restsForGood: ({ context }) => !context.hasServed || context.policy.restart === 'never',
    gaveUp: ({ context }) => exceedsIntensity(context.failures, context.policy),
  },
  actions: {
    beginIncarnation: assign(({ context }) => ({
      incarnation: context.incarnation + 1,
      hasProcess: true,
      pid: null,
      exitCode: null,
      signal: null,
      lastError: null,
      runningSince: null,
    })),
    spawnProcess: spawnChild('process', {
      id: 'process',
      input: ({ context }) => ({
        workspacePath: context.workspacePath,
        incarnation: context.incarnation,
        mode: context.adopt ? ('adopt' as const) : ('spawn' as const),
      }),
    }),
    forgetAdoption: assign({ adopt: false }),
    releaseProcess: stopChild('process'),
    terminateProcess: sendTo('process', { type: 'TERMINATE' }),
    killProcess: sendTo('process', { type: 'KILL' }),
    keepPid: assign(({ event }) => (event.type === 'PROCESS.SPAWNED' ? { pid: event.pid } : {})),
    keepExit: assign(({ context, event }) => {
      if (event.type !== 'PROCESS.EXITED') return {};
      const how = event.signal ?? (event.exitCode === null ? 'unseen' : `code ${event.exitCode}`);
      return {
        hasProcess: false,
        exitCode: event.exitCode,
        signal: event.signal,
        lastError: context.lastError ?? `The sidecar exited (${how}).`,
      };
    }),
    keepRefusal: assign(({ event }) =>
      event.type === 'PROCESS.REFUSED' ? { hasProcess: false, lastError: event.error, hasServed: false } : {},
    ),
    countFailureTime: assign(({ context, event }) => {
      if (!('at' in event)) return {};
      const ranLong = context.runningSince !== null && event.at - context.runningSince >= context.policy.stableAfterMs;
      return {
        failures: addFailure(context.failures, event.at, context.policy.withinMs),
        ...(ranLong && { attempt: 0 }),
      };
    }),
    blameActor: assign((_, failure: Failure) => ({ lastError: failure.message })),
    blameDeadline: assign(({ context }) => ({
      lastError: `The sidecar was not ready within ${context.policy.proxyDeadlineMs} ms.`,
    })),
    blameUnkillable: assign(({ context }) => ({
      lastError: `Sidecar process ${context.pid ?? '?'} did not end after SIGKILL; still waiting for it.`,
    })),
    noteServing: assign((_, ready: { readonly at: number }) => ({ hasServed: true, runningSince: ready.at })),
    planRestart: assign(({ context }) => {
      const { dice, seed } = roll(context.seed);
      const attempt = context.attempt + 1;
      return { seed, attempt, delayMs: backoffDelay(attempt, context.policy, dice) };
    }),
    takeOperatorsStart: assign({ failures: [], attempt: 0 }),
    tellRunning: sendParent(({ context }) => ({ type: 'PROXY.RUNNING', pid: context.pid ?? 0 })),
    tellExited: sendParent(({ context }, params: { readonly final: boolean }) => ({
      type: 'PROXY.EXITED',
      pid: context.pid,
      exitCode: context.exitCode,
      signal: context.signal,
      error: context.lastError,
      final: params.final,
    })),
    tellStopped: sendParent(({ context }) => ({
      type: 'PROXY.STOPPED',
      pid: context.pid,
      exitCode: context.exitCode,
      signal: context.signal,
    })),
  },
}).createMachine({
  id: 'api-proxy',
  description: 'Supervises the model proxy beside one agent server.',
  context: ({ input }) => ({
    workspacePath: input.workspacePath,
    policy: input.policy,
    seed: input.seed,
    adopt: input.adopt,
    incarnation: 0,
    hasProcess: false,
    pid: null,
    exitCode: null,
    signal: null,
    lastError: null,
    failures: [],
    attempt: 0,
    delayMs: 0,
    hasServed: false,
    runningSince: null,
  }),
  initial: 'starting',
  states: {
    starting: {
      description: 'Spawned or adopted, not known to answer yet.',
      entry: ['beginIncarnation', 'spawnProcess'],
      initial: 'spawning',
      after: {
        proxyDeadline: { target: '.aborting', actions: 'blameDeadline' },
      },
      on: {
        'PROXY.STOP': { target: 'stopping' },
        'PROCESS.EXITED': {
          guard: 'isThisIncarnation',
          target: 'exited',
          actions: ['keepExit', 'countFailureTime', 'forgetAdoption', 'releaseProcess'],
        },
        'PROCESS.REFUSED': {
          guard: 'isThisIncarnation',
          target: 'exited',
          actions: ['keepRefusal', 'countFailureTime', 'forgetAdoption', 'releaseProcess'],
        },
      },
      states: {
        spawning: {
          description: 'The operating system has been asked for the process.',
          on: {
            'PROCESS.SPAWNED': { guard: 'isThisIncarnation', target: 'probing', actions: 'keepPid' },
          },
        },
        probing: {
          description: 'Ready when its model list answers with the key.',
          invoke: {
            id: 'readiness',
            src: 'readiness',
            input: ({ context }) => ({ workspacePath: context.workspacePath, incarnation: context.incarnation }),
            onDone: {
              target: '#api-proxy.running',
              actions: [{ type: 'noteServing', params: ({ event }) => event.output }, 'forgetAdoption'],
            },
            onError: {
              target: 'aborting',
              actions: { type: 'blameActor', params: ({ event }) => failureOf(event.error) },
            },
          },
        },
        aborting: {
          description: 'It will not become ready; it is killed first.',
          initial: 'killing',
          states: {
            killing: {
              description: 'SIGKILL to the group; waiting until it is verified empty.',
              entry: 'killProcess',
              after: { killVerify: { target: 'stuck', actions: 'blameUnkillable' } },
            },
            stuck: { description: 'Even SIGKILL has not ended it.' },
          },
        },
      },
    },
    running: {
      description: 'Ready.',
      entry: 'tellRunning',
      on: {
        'PROXY.STOP': { target: 'stopping' },
        'PROCESS.EXITED': {
          guard: 'isThisIncarnation',
          target: 'exited',
          actions: ['keepExit', 'countFailureTime', 'releaseProcess'],
        },
      },
    },
    stopping: {
      description: 'On the way down: politely, then by force.',
      initial: 'terminating',
      on: {
        'PROCESS.EXITED': { guard: 'isThisIncarnation', target: 'stopped', actions: ['keepExit', 'releaseProcess'] },
        'PROCESS.REFUSED': {
          guard: 'isThisIncarnation',
          target: 'stopped',
          actions: ['keepRefusal', 'releaseProcess'],
        },
      },
      states: {
        terminating: {
          description: 'SIGTERM was sent to the group.',
          entry: 'terminateProcess',
          after: { gracefulStop: { target: 'killing' } },
        },
        killing: {
          description: 'SIGKILL was sent to the group.',
          entry: 'killProcess',
          after: { killVerify: { target: 'stuck', actions: 'blameUnkillable' } },
        },
        stuck: { description: 'Even SIGKILL has not ended it.' },
      },
    },
    stopped: {
      description: 'Gone, as asked.',
      entry: 'tellStopped',
      on: { 'PROXY.START': { target: 'starting', actions: 'takeOperatorsStart' } },
    },
    exited: {
      description: 'It ended by itself, or could not be started.',
      initial: 'deciding',
      on: {
        'PROXY.START': { target: 'starting', actions: 'takeOperatorsStart' },
        'PROXY.STOP': { target: 'stopped' },
      },
      states: {
        deciding: {
          description: 'Restart, rest, or give up?',
          always: [
            { guard: 'restsForGood', target: 'resting' },
            { guard: 'gaveUp', target: 'givenUp' },
            { target: 'backingOff' },
          ],
        },
        backingOff: {
          description: 'A restart is due after a pause that doubles with every failure.',
          entry: ['planRestart', { type: 'tellExited', params: { final: false } }],
          after: { backoff: { target: '#api-proxy.starting' } },
        },
        resting: {
          description: 'It never became ready, or the policy forbids a restart.',
          entry: { type: 'tellExited', params: { final: true } },
        },
        givenUp: {
          description: 'Too many failures in too short a time.',
          entry: { type: 'tellExited', params: { final: true } },
        },
      },
    },
  },
});
