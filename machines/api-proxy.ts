/**
 * The sidecar of one workspace: a third-party model proxy that must be ready before the agent server that uses it.
 * A child of the agent-server machine, which is notified of every change; restarted under the same policy.
 *
 * Detailed operation
 * 1. The process is spawned, or adopted together with its server. It is ready when its model list answers with the key.
 * 2. A sidecar that never became ready is killed and rests: the start that requested it has failed.
 * 3. `liveness` probes a ready sidecar. Several failures in a row make it `unhealthy`; one success makes it `running`
 *    again. After the grace period, or at a `PROXY.START`, it is ended and counts as failed.
 * 4. A sidecar that has served is restarted after a back-off until it fails too often; its server continues to run.
 * 5. A stop sends SIGTERM, then SIGKILL, and is reported when the process group is empty.
 */
import { assertEvent, assign, fromCallback, fromPromise, sendParent, setup, spawnChild, stopChild } from 'xstate';
import {
  type OfWorkspace,
  type ProcessCommand,
  type ProcessEvent,
  type ProcessFailure,
  type ProcessInput,
  processFailureOf,
} from './process-events.ts';
import {
  isThisIncarnation,
  killStates,
  type ProbedContext,
  type ProbedPolicy,
  probedActions,
  probedDelays,
  probedGuards,
  restartStates,
  supervisedActions,
  supervisedDelays,
  supervisedGuards,
  terminateStates,
} from './supervised-process.ts';

/** The policy of a sidecar. Incarnations of a sidecar are counted apart from those of its server. */
export interface ApiProxyPolicy extends ProbedPolicy {
  /** How long a sidecar may take to become ready. */
  readonly proxyDeadlineMs: number;
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

export interface ApiProxyContext extends ProbedContext {
  readonly policy: ApiProxyPolicy;
  readonly workspacePath: string;
  readonly sidecar: number;
  readonly adopt: boolean;
  readonly delayMs: number;
  readonly hasProcess: boolean;
  readonly pid: number | null;
  readonly exitCode: number | null;
  readonly signal: string | null;
  readonly lastError: string | null;
  /** The sidecar has been ready before: an exit is now followed by a restart. */
  readonly hasServed: boolean;
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
      /** No restart will follow automatically. */
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

/** Input of the actors of a sidecar: its workspace, its number and its incarnation. */
export interface SidecarActorInput extends OfWorkspace {
  readonly sidecar: number;
}

function actorInput({ workspacePath, incarnation, sidecar }: ApiProxyContext): SidecarActorInput {
  return { workspacePath, incarnation, sidecar };
}

const afterExit = restartStates({ start: '#api-proxy.starting', noRestart: 'resting', tooManyFailures: 'givenUp' });

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
    ...supervisedDelays,
    ...probedDelays,
    proxyDeadline: ({ context }) => context.policy.proxyDeadlineMs,
  },
  guards: {
    ...supervisedGuards,
    ...probedGuards,
    startFollows: ({ context, event }) => isThisIncarnation({ context, event }) && context.startFollows,
    mayRestart: ({ context }) => context.policy.restart !== 'never',
    mustNotRestart: ({ context }) => !context.hasServed || context.policy.restart === 'never',
  },
  actions: {
    ...supervisedActions<ApiProxyContext, ApiProxyEvent>('process'),
    ...probedActions<ApiProxyContext, ApiProxyEvent>(),
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
    recordPid: assign(({ event }) => {
      assertEvent(event, 'PROCESS.SPAWNED');
      return { pid: event.pid };
    }),
    recordExit: assign(({ context, event }) => {
      assertEvent(event, 'PROCESS.EXITED');
      const { exitCode, signal } = event;
      const how = signal ?? (exitCode === null ? 'unseen' : `code ${exitCode}`);
      return { hasProcess: false, exitCode, signal, lastError: context.lastError ?? `The sidecar exited (${how}).` };
    }),
    recordSpawnFailure: assign(({ event }) => {
      assertEvent(event, 'PROCESS.REFUSED');
      return { hasProcess: false, lastError: event.error, hasServed: false };
    }),
    recordFailure: assign((_, failure: ProcessFailure) => ({ lastError: failure.message })),
    recordStartTimeout: assign(({ context }) => ({
      lastError: `The sidecar was not ready within ${context.policy.proxyDeadlineMs} ms.`,
    })),
    recordKillTimeout: assign(({ context }) => ({
      lastError: `Sidecar process ${context.pid ?? '?'} did not end after SIGKILL; still waiting for it.`,
    })),
    recordReadiness: assign((_, ready: { readonly at: number }) => ({ hasServed: true, runningSince: ready.at })),
    recordUnhealthy: assign(({ context, event }) => {
      assertEvent(event, 'PROBE.FAILED');
      return { probeFailures: context.probeFailures + 1, lastError: `The sidecar does not answer: ${event.error}.` };
    }),
    recordRecovery: assign({ probeFailures: 0, lastError: null }),
    requestStart: assign({ startFollows: true, failures: [], attempt: 0 }),
    clearProcess: assign({ pid: null, exitCode: null, signal: null }),
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
      description: 'Spawned or adopted; not ready yet.',
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
          description: 'Spawn requested; waiting for the operating system.',
          meta: { kind: 'works', lane: 'spine', order: 0 },
          on: {
            'PROCESS.SPAWNED': { guard: 'isThisIncarnation', target: 'probing', actions: 'recordPid' },
          },
        },
        probing: {
          description: 'The process runs; waiting until its model list answers with the key.',
          meta: { kind: 'works', lane: 'spine', order: 1 },
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
              actions: { type: 'recordFailure', params: ({ event }) => processFailureOf(event.error) },
            },
          },
        },
        aborting: {
          description: 'The start has failed; the process must end before anything else happens.',
          initial: 'killing',
          states: killStates,
        },
      },
    },
    running: {
      description: 'Ready and answering.',
      meta: { kind: 'serves', lane: 'spine', order: 2 },
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
      description:
        'Alive but not answering. One passed probe makes it running again; after the grace period it is restarted.',
      meta: { kind: 'unwell', lane: 'exception', order: 2 },
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
      states: terminateStates,
    },
    stopping: {
      description: 'Ending on request: SIGTERM, then SIGKILL.',
      initial: 'terminating',
      on: {
        'PROCESS.EXITED': { guard: 'isThisIncarnation', target: 'stopped', actions: ['recordExit', 'releaseProcess'] },
        'PROCESS.REFUSED': {
          guard: 'isThisIncarnation',
          target: 'stopped',
          actions: ['recordSpawnFailure', 'releaseProcess'],
        },
      },
      states: terminateStates,
    },
    stopped: {
      description: 'Stopped on request.',
      meta: { kind: 'rests', lane: 'detour', order: 0 },
      entry: 'notifyStopped',
      on: { 'PROXY.START': { target: 'starting', actions: 'resetForManualStart' } },
    },
    exited: {
      description: 'It ended without a stop request, or could not be started.',
      initial: 'deciding',
      on: {
        'PROXY.START': { target: 'starting', actions: 'resetForManualStart' },
        'PROXY.STOP': { target: 'stopped', actions: 'clearProcess' },
      },
      states: {
        ...afterExit,
        backingOff: {
          ...afterExit.backingOff,
          entry: ['planRestart', { type: 'notifyExited', params: { final: false } }],
        },
        resting: {
          description: 'No automatic restart: it never became ready, or the policy forbids it.',
          meta: { kind: 'failed', lane: 'exception', order: 3 },
          entry: { type: 'notifyExited', params: { final: true } },
        },
        givenUp: {
          description: 'No automatic restart: too many failures within the window.',
          meta: { kind: 'failed', lane: 'exception', order: 4 },
          entry: { type: 'notifyExited', params: { final: true } },
        },
      },
    },
  },
});
