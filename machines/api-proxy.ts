/**
 * The sidecar of one workspace: a third-party model proxy that must be ready before the agent server that uses it.
 * A child of the agent-server machine, which is notified of every change; restarted under the same policy.
 *
 * Detailed operation
 * 1. The process is spawned, or adopted together with its server. It is ready when its model list answers with the key.
 * 2. A sidecar that never became ready is killed and rests: the start that requested it has failed.
 * 3. `liveness` probes a ready sidecar. Several failures in a row make it `unhealthy`; one success makes it `running`
 *    again. After the grace period, or at a `PROXY.START`, it is ended and counts as failed.
 * 4. A sidecar that has served is restarted after a back-off until it fails too often; its server runs on meanwhile.
 * 5. A stop sends SIGTERM, then SIGKILL, and is reported when the process group is empty.
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
import { addFailure, backoffDelay, exceedsFailureLimit, nextRandom, type RestartPolicy } from './restart-policy.ts';

/** Incarnations of a sidecar are counted apart from those of its server. */
export interface ApiProxyPolicy extends RestartPolicy {
  readonly proxyDeadlineMs: number;
  readonly livenessFailures: number;
  readonly unhealthyGraceMs: number;
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
  /** Number of the request that describes this sidecar; the Hub holds the request, which contains a key. */
  readonly sidecar: number;
}

export interface ApiProxyContext {
  readonly workspacePath: string;
  readonly sidecar: number;
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
  readonly probeFailures: number;
  /** A start was requested while the process was still ending. */
  readonly startFollows: boolean;
}

export type ApiProxyEvent =
  | { readonly type: 'PROXY.START' }
  | { readonly type: 'PROXY.STOP' }
  | { readonly type: 'PROBE.PASSED'; readonly incarnation: number }
  | { readonly type: 'PROBE.FAILED'; readonly incarnation: number; readonly error: string }
  | ProcessEvent;

export type ApiProxyEventToParent =
  | { readonly type: 'PROXY.RUNNING'; readonly pid: number }
  | {
      readonly type: 'PROXY.UNHEALTHY';
      readonly pid: number | null;
      readonly error: string;
      readonly consecutiveFailures: number;
    }
  | {
      readonly type: 'PROXY.EXITED';
      readonly pid: number | null;
      readonly exitCode: number | null;
      readonly signal: string | null;
      readonly error: string | null;
      /** No restart will follow by itself. */
      readonly final: boolean;
      /** The next start is under way. */
      readonly restarts: boolean;
    }
  | {
      readonly type: 'PROXY.STOPPED';
      /** The process that this stop ended; null when none was left. */
      readonly pid: number | null;
      readonly exitCode: number | null;
      readonly signal: string | null;
    };

/** What the actors of a sidecar get: whose sidecar, which one, and in which incarnation. */
export interface SidecarActorInput extends OfWorkspace {
  readonly sidecar: number;
}

function actorInput({ workspacePath, incarnation, sidecar }: ApiProxyContext): SidecarActorInput {
  return { workspacePath, incarnation, sidecar };
}

export const apiProxyMachine = setup({
  types: {
    input: {} as ApiProxyInput,
    context: {} as ApiProxyContext,
    events: {} as ApiProxyEvent,
  },
  actors: {
    process: fromCallback<ProcessCommand, ProcessInput>(() => {}),
    readiness: fromPromise<{ readonly at: number }, SidecarActorInput>(() => Promise.reject(new Error('not provided'))),
    liveness: fromCallback<{ readonly type: string }, SidecarActorInput>(() => {}),
  },
  delays: {
    proxyDeadline: ({ context }) => context.policy.proxyDeadlineMs,
    backoff: ({ context }) => context.delayMs,
    unhealthyGrace: ({ context }) => context.policy.unhealthyGraceMs,
    gracefulStop: ({ context }) => context.policy.gracefulStopMs,
    killVerify: ({ context }) => context.policy.killVerifyMs,
  },
  guards: {
    isThisIncarnation: ({ context, event }) => 'incarnation' in event && event.incarnation === context.incarnation,
    reachesFailureThreshold: ({ context, event }) =>
      event.type === 'PROBE.FAILED' &&
      event.incarnation === context.incarnation &&
      context.probeFailures + 1 >= context.policy.livenessFailures,
    startFollows: ({ context, event }) =>
      'incarnation' in event && event.incarnation === context.incarnation && context.startFollows,
    mayRestart: ({ context }) => context.policy.restart !== 'never',
    mustNotRestart: ({ context }) => !context.hasServed || context.policy.restart === 'never',
    exceedsFailureLimit: ({ context }) => exceedsFailureLimit(context.failures, context.policy),
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
      probeFailures: 0,
      startFollows: false,
    })),
    spawnProcess: spawnChild('process', {
      id: 'process',
      input: ({ context }) => ({
        workspacePath: context.workspacePath,
        incarnation: context.incarnation,
        sidecar: context.sidecar,
        mode: context.adopt ? ('adopt' as const) : ('spawn' as const),
      }),
    }),
    clearAdoption: assign({ adopt: false }),
    releaseProcess: stopChild('process'),
    terminateProcess: sendTo('process', { type: 'TERMINATE' }),
    killProcess: sendTo('process', { type: 'KILL' }),
    recordPid: assign(({ event }) => (event.type === 'PROCESS.SPAWNED' ? { pid: event.pid } : {})),
    recordExit: assign(({ context, event }) => {
      if (event.type !== 'PROCESS.EXITED') return {};
      const how = event.signal ?? (event.exitCode === null ? 'unseen' : `code ${event.exitCode}`);
      return {
        hasProcess: false,
        exitCode: event.exitCode,
        signal: event.signal,
        lastError: context.lastError ?? `The sidecar exited (${how}).`,
      };
    }),
    recordSpawnFailure: assign(({ event }) =>
      event.type === 'PROCESS.REFUSED' ? { hasProcess: false, lastError: event.error, hasServed: false } : {},
    ),
    recordFailureTime: assign(({ context, event }) => {
      if (!('at' in event)) return {};
      const ranLong = context.runningSince !== null && event.at - context.runningSince >= context.policy.stableAfterMs;
      return {
        failures: addFailure(context.failures, event.at, context.policy.withinMs),
        ...(ranLong && { attempt: 0 }),
      };
    }),
    recordFailure: assign((_, failure: Failure) => ({ lastError: failure.message })),
    recordStartTimeout: assign(({ context }) => ({
      lastError: `The sidecar was not ready within ${context.policy.proxyDeadlineMs} ms.`,
    })),
    recordKillTimeout: assign(({ context }) => ({
      lastError: `Sidecar process ${context.pid ?? '?'} did not end after SIGKILL; still waiting for it.`,
    })),
    recordReadiness: assign((_, ready: { readonly at: number }) => ({ hasServed: true, runningSince: ready.at })),
    recordUnhealthy: assign(({ context, event }) =>
      event.type === 'PROBE.FAILED'
        ? { probeFailures: context.probeFailures + 1, lastError: `The sidecar does not answer: ${event.error}.` }
        : {},
    ),
    recordRecovery: assign({ probeFailures: 0, lastError: null }),
    countProbeFailure: assign(({ context }) => ({ probeFailures: context.probeFailures + 1 })),
    resetProbeFailures: assign({ probeFailures: 0 }),
    requestStart: assign({ startFollows: true, failures: [], attempt: 0 }),
    clearProcess: assign({ pid: null, exitCode: null, signal: null }),
    planRestart: assign(({ context }) => {
      const { random, seed } = nextRandom(context.seed);
      const attempt = context.attempt + 1;
      return { seed, attempt, delayMs: backoffDelay(attempt, context.policy, random) };
    }),
    resetForManualStart: assign({ failures: [], attempt: 0 }),
    notifyRunning: sendParent(({ context }) => ({ type: 'PROXY.RUNNING', pid: context.pid ?? 0 })),
    notifyUnhealthy: sendParent(({ context }) => ({
      type: 'PROXY.UNHEALTHY',
      pid: context.pid,
      error: context.lastError ?? 'no answer',
      consecutiveFailures: context.probeFailures,
    })),
    notifyExited: sendParent(({ context }, params: { readonly final: boolean; readonly restarts?: boolean }) => ({
      type: 'PROXY.EXITED',
      pid: context.pid,
      exitCode: context.exitCode,
      signal: context.signal,
      error: context.lastError,
      final: params.final,
      restarts: params.restarts ?? false,
    })),
    notifyStopped: sendParent(({ context }) => ({
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
    sidecar: input.sidecar,
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
    probeFailures: 0,
    startFollows: false,
  }),
  initial: 'starting',
  states: {
    starting: {
      description: 'Spawned or adopted, not known to answer yet.',
      entry: ['beginIncarnation', 'spawnProcess'],
      initial: 'spawning',
      after: {
        proxyDeadline: { target: '.aborting', actions: 'recordStartTimeout' },
      },
      on: {
        'PROXY.STOP': { target: 'stopping' },
        'PROCESS.EXITED': {
          guard: 'isThisIncarnation',
          target: 'exited',
          actions: ['recordExit', 'recordFailureTime', 'clearAdoption', 'releaseProcess'],
        },
        'PROCESS.REFUSED': {
          guard: 'isThisIncarnation',
          target: 'exited',
          actions: ['recordSpawnFailure', 'recordFailureTime', 'clearAdoption', 'releaseProcess'],
        },
      },
      states: {
        spawning: {
          description: 'The operating system has been asked for the process.',
          on: {
            'PROCESS.SPAWNED': { guard: 'isThisIncarnation', target: 'probing', actions: 'recordPid' },
          },
        },
        probing: {
          description: 'Ready when its model list answers with the key.',
          invoke: {
            id: 'readiness',
            src: 'readiness',
            input: ({ context }) => actorInput(context),
            onDone: {
              target: '#api-proxy.running',
              actions: [{ type: 'recordReadiness', params: ({ event }) => event.output }, 'clearAdoption'],
            },
            onError: {
              target: 'aborting',
              actions: { type: 'recordFailure', params: ({ event }) => failureOf(event.error) },
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
              after: { killVerify: { target: 'stuck', actions: 'recordKillTimeout' } },
            },
            stuck: { description: 'Even SIGKILL has not ended it.' },
          },
        },
      },
    },
    running: {
      description: 'Ready and answering.',
      entry: 'notifyRunning',
      invoke: { id: 'liveness', src: 'liveness', input: ({ context }) => actorInput(context) },
      on: {
        'PROXY.STOP': { target: 'stopping' },
        'PROBE.PASSED': { guard: 'isThisIncarnation', actions: 'resetProbeFailures' },
        'PROBE.FAILED': [
          { guard: 'reachesFailureThreshold', target: 'unhealthy', actions: 'recordUnhealthy' },
          { guard: 'isThisIncarnation', actions: 'countProbeFailure' },
        ],
        'PROCESS.EXITED': {
          guard: 'isThisIncarnation',
          target: 'exited',
          actions: ['recordExit', 'recordFailureTime', 'releaseProcess'],
        },
      },
    },
    unhealthy: {
      description: 'Alive but not answering. It may recover; after the grace period it is restarted.',
      entry: 'notifyUnhealthy',
      invoke: { id: 'liveness', src: 'liveness', input: ({ context }) => actorInput(context) },
      after: { unhealthyGrace: { guard: 'mayRestart', target: 'ending' } },
      on: {
        'PROXY.START': { target: 'ending', actions: 'requestStart' },
        'PROXY.STOP': { target: 'stopping' },
        'PROBE.PASSED': { guard: 'isThisIncarnation', target: 'running', actions: 'recordRecovery' },
        'PROBE.FAILED': { guard: 'isThisIncarnation', actions: 'countProbeFailure' },
        'PROCESS.EXITED': {
          guard: 'isThisIncarnation',
          target: 'exited',
          actions: ['recordExit', 'recordFailureTime', 'releaseProcess'],
        },
      },
    },
    ending: {
      description: 'An unhealthy sidecar is ended so that another can start: SIGTERM, then SIGKILL.',
      initial: 'terminating',
      on: {
        'PROXY.START': { actions: 'requestStart' },
        'PROXY.STOP': { target: 'stopping' },
        'PROCESS.EXITED': [
          {
            guard: 'startFollows',
            target: 'starting',
            actions: [
              'recordExit',
              'recordFailureTime',
              'releaseProcess',
              { type: 'notifyExited', params: { final: false, restarts: true } },
            ],
          },
          {
            guard: 'isThisIncarnation',
            target: 'exited',
            actions: ['recordExit', 'recordFailureTime', 'releaseProcess'],
          },
        ],
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
          after: { killVerify: { target: 'stuck', actions: 'recordKillTimeout' } },
        },
        stuck: { description: 'The process survived SIGKILL.' },
      },
    },
    stopping: {
      description: 'On the way down: politely, then by force.',
      initial: 'terminating',
      on: {
        'PROCESS.EXITED': { guard: 'isThisIncarnation', target: 'stopped', actions: ['recordExit', 'releaseProcess'] },
        'PROCESS.REFUSED': {
          guard: 'isThisIncarnation',
          target: 'stopped',
          actions: ['recordSpawnFailure', 'releaseProcess'],
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
          after: { killVerify: { target: 'stuck', actions: 'recordKillTimeout' } },
        },
        stuck: { description: 'Even SIGKILL has not ended it.' },
      },
    },
    stopped: {
      description: 'Gone, as asked.',
      entry: 'notifyStopped',
      on: { 'PROXY.START': { target: 'starting', actions: 'resetForManualStart' } },
    },
    exited: {
      description: 'It ended by itself, or could not be started.',
      initial: 'deciding',
      on: {
        'PROXY.START': { target: 'starting', actions: 'resetForManualStart' },
        'PROXY.STOP': { target: 'stopped', actions: 'clearProcess' },
      },
      states: {
        deciding: {
          description: 'Restart, rest, or give up?',
          always: [
            { guard: 'mustNotRestart', target: 'resting' },
            { guard: 'exceedsFailureLimit', target: 'givenUp' },
            { target: 'backingOff' },
          ],
        },
        backingOff: {
          description: 'A restart is due after a pause that doubles with every failure.',
          entry: ['planRestart', { type: 'notifyExited', params: { final: false } }],
          after: { backoff: { target: '#api-proxy.starting' } },
        },
        resting: {
          description: 'It never became ready, or the policy forbids a restart.',
          entry: { type: 'notifyExited', params: { final: true } },
        },
        givenUp: {
          description: 'Too many failures in too short a time.',
          entry: { type: 'notifyExited', params: { final: true } },
        },
      },
    },
  },
});
