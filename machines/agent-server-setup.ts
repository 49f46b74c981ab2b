/** The words the agent-server chart is written in: its actors, delays, guards and actions by name, one small function each. */
import { assign, emit, enqueueActions, fromCallback, fromPromise, sendTo, setup, spawnChild, stopChild } from 'xstate';
import type {
  AgentServerContext,
  AgentServerEmitted,
  AgentServerEvent,
  AgentServerInput,
  Ownership,
  Preparation,
  PrepareInput,
  Readiness,
  StopReason,
} from './agent-server-types.ts';
import { apiProxyMachine } from './api-proxy.ts';
import type { Failure, OfWorkspace, ProcessCommand, ProcessInput, ProcessMode } from './process-events.ts';
import { addFailure, backoffDelay, exceedsFailureLimit, nextRandom, wantsRestart } from './restart-policy.ts';

/** Exit code by which an agent server says that another process holds the workspace lock (sysexits EX_TEMPFAIL). */
const lockHeldExitCode = 75;
const maxLockRaces = 3;

const processModes: Record<Ownership, ProcessMode> = { managed: 'spawn', adopted: 'adopt', external: 'watch' };

const noFailure = { lastError: null, failureKind: null, isRetryable: true } as const;

function blame(failure: Failure) {
  return { lastError: failure.message, failureKind: failure.kind, isRetryable: failure.isRetryable };
}

function describeExit(exitCode: number | null, signal: string | null): Failure {
  const how = signal ? `was ended by ${signal}` : exitCode === null ? 'ended unseen' : `exited with code ${exitCode}`;
  return { kind: 'crashed', message: `The agent server ${how}.`, isRetryable: true };
}

type ChosenSidecar = Partial<Pick<AgentServerContext, 'sidecar' | 'provenSidecar' | 'pendingSidecar'>>;

/** Applies the sidecar a request names. A request that names none keeps the present one and drops what is pending. */
function selectedSidecar(event: AgentServerEvent): ChosenSidecar {
  if (event.type !== 'ENSURE' && event.type !== 'RESTART' && event.type !== 'ADOPT') return {};
  if (event.sidecar === undefined) return { pendingSidecar: null };
  const sidecar = event.sidecar === 'none' ? null : event.sidecar;
  // An adopted server already uses its sidecar: it counts as proven.
  return { sidecar, pendingSidecar: null, ...(event.type === 'ADOPT' && { provenSidecar: sidecar }) };
}

/** A server that already runs keeps the sidecar it was started with; another one that was requested becomes pending. */
function sidecarOfLiveServer(context: AgentServerContext, { ownership }: Preparation): ChosenSidecar {
  if (ownership === 'managed') return {};
  const sidecar = ownership === 'adopted' ? context.provenSidecar : null;
  return { sidecar, ...(context.sidecar !== sidecar && { pendingSidecar: context.sidecar }) };
}

/** True when the policy, the failure or the ownership forbids an automatic restart. */
function mustNotRestartAfterExit({ isRetryable, ownership, policy, exitCode }: AgentServerContext): boolean {
  return !isRetryable || ownership === 'external' || !wantsRestart(policy, exitCode);
}

/** The context of a workspace before its first start. */
export function initialContext(input: AgentServerInput): AgentServerContext {
  return {
    ...noFailure,
    workspacePath: input.workspacePath,
    policy: input.policy,
    seed: input.seed,
    incarnation: 0,
    ownership: 'managed',
    hasProcess: false,
    pid: null,
    serverVersion: null,
    exitCode: null,
    signal: null,
    stopReason: null,
    sidecar: null,
    provenSidecar: null,
    pendingSidecar: null,
    proxy: 'none',
    proxySidecar: null,
    isSidecarStopping: false,
    proxyPid: null,
    proxyError: null,
    ports: [],
    failures: [],
    attempt: 0,
    delayMs: null,
    probeFailures: 0,
    runningSince: null,
    recovered: false,
    lockRaces: 0,
    mayStart: true,
    mustEmitExit: false,
  };
}

function exitOf({ pid, exitCode, signal, lastError, stopReason, delayMs }: AgentServerContext) {
  return { type: 'appserver.exited' as const, pid, exitCode, signal, error: lastError, stopReason, delayMs };
}

export const agentServerSetup = setup({
  types: {
    input: {} as AgentServerInput,
    context: {} as AgentServerContext,
    events: {} as AgentServerEvent,
    emitted: {} as AgentServerEmitted,
    tags: {} as 'settled',
  },
  actors: {
    apiProxy: apiProxyMachine,
    prepare: fromPromise<Preparation, PrepareInput>(() => Promise.reject(new Error('not provided'))),
    process: fromCallback<ProcessCommand, ProcessInput>(() => {}),
    readiness: fromPromise<Readiness, OfWorkspace & { readonly ownership: Ownership }>(() =>
      Promise.reject(new Error('not provided')),
    ),
    liveness: fromCallback<{ readonly type: string }, OfWorkspace>(() => {}),
  },
  delays: {
    startDeadline: ({ context }) => context.policy.startDeadlineMs,
    backoff: ({ context }) => context.delayMs ?? 0,
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
    exceedsIdleLimit: ({ context, event }) =>
      event.type === 'PROBE.PASSED' &&
      event.incarnation === context.incarnation &&
      context.ownership !== 'external' &&
      context.policy.idleStopMs > 0 &&
      event.idleMs >= context.policy.idleStopMs,
    isOurs: ({ context }) => context.ownership !== 'external',
    hasProcess: ({ context }) => context.hasProcess,
    lostLockRace: ({ context, event }) =>
      event.type === 'PROCESS.EXITED' &&
      event.incarnation === context.incarnation &&
      event.exitCode === lockHeldExitCode &&
      context.lockRaces < maxLockRaces,
    mustReplaceSidecar: ({ context }) =>
      context.proxy !== 'none' && (context.isSidecarStopping || context.sidecar !== context.proxySidecar),
    hasSidecar: ({ context }) => context.proxy !== 'none',
    needsSidecar: ({ context }, preparation: Preparation) =>
      preparation.ownership === 'managed' && context.sidecar !== null && context.proxy !== 'running',
    adoptsSidecar: ({ context }, preparation: Preparation) =>
      preparation.ownership === 'adopted' && context.provenSidecar !== null && context.proxy !== 'running',
    sidecarGaveUp: ({ event }) => event.type === 'PROXY.EXITED' && event.final,
    restartFollowsStop: ({ context }) => context.stopReason === 'restart',
    recoveryFollowsStop: ({ context }) => context.stopReason === 'unhealthy',
    endsUnhealthyRun: ({ context, event }) =>
      context.stopReason === 'unhealthy' && 'incarnation' in event && event.incarnation === context.incarnation,
    recoveryExceedsFailureLimit: ({ context }) =>
      context.stopReason === 'unhealthy' && exceedsFailureLimit(context.failures, context.policy),
    mustNotRestart: ({ context }) => mustNotRestartAfterExit(context),
    exceedsFailureLimit: ({ context }) => exceedsFailureLimit(context.failures, context.policy),
    mayRestart: ({ context }) => context.ownership !== 'external' && context.policy.restart !== 'never',
  },
  actions: {
    resetForManualStart: assign(({ event }) => ({
      mayStart: event.type !== 'ADOPT',
      failures: [],
      attempt: 0,
      delayMs: null,
    })),
    permitStart: assign({ mayStart: true, delayMs: null }),
    countRecovery: assign(({ context }) => ({ attempt: context.attempt + 1, delayMs: 0 })),
    selectSidecar: assign(({ event }) => selectedSidecar(event)),
    // A sidecar that never became ready must not fail the next start of a caller that requested none.
    restoreProvenSidecar: assign(({ context }) => ({ sidecar: context.provenSidecar })),
    recordPendingSidecar: assign(({ context, event }) => {
      if (event.type !== 'ENSURE' || event.sidecar === undefined) return {};
      return { pendingSidecar: event.sidecar === (context.sidecar ?? 'none') ? null : event.sidecar };
    }),
    beginIncarnation: assign(({ context }) => ({
      ...noFailure,
      exitCode: null,
      signal: null,
      stopReason: null,
      incarnation: context.incarnation + 1,
      hasProcess: false,
      pid: null,
      serverVersion: null,
      ownership: 'managed' as const,
      probeFailures: 0,
      runningSince: null,
      recovered: false,
      ports: [],
      lockRaces: 0,
      mustEmitExit: false,
    })),
    retryAfterLockRace: assign(({ context }) => ({
      incarnation: context.incarnation + 1,
      hasProcess: false,
      pid: null,
      lockRaces: context.lockRaces + 1,
    })),
    recordPreparation: assign(({ context }, preparation: Preparation) => ({
      ownership: preparation.ownership,
      ports: preparation.ports,
      policy: preparation.policy ?? context.policy,
      mayStart: true,
      ...sidecarOfLiveServer(context, preparation),
    })),
    emitPorts: enqueueActions(({ enqueue }, preparation: Preparation) => {
      for (const { service, port } of preparation.ports) enqueue.emit({ type: 'port.allocated', service, port });
    }),
    emitStarting: enqueueActions(({ enqueue }, preparation: Preparation) => {
      if (preparation.ownership !== 'managed') return;
      enqueue.emit(({ context }) => ({
        type: 'appserver.starting' as const,
        attempt: context.attempt,
        delayMs: context.delayMs,
      }));
      enqueue.assign({ mustEmitExit: true });
    }),
    spawnProcess: spawnChild('process', {
      id: 'process',
      input: ({ context }) => ({
        workspacePath: context.workspacePath,
        incarnation: context.incarnation,
        mode: processModes[context.ownership],
      }),
    }),
    recordSpawnRequest: assign({ hasProcess: true }),
    releaseProcess: stopChild('process'),
    clearProcess: assign({ hasProcess: false, pid: null, mustEmitExit: false }),
    terminateProcess: sendTo('process', { type: 'TERMINATE' }),
    killProcess: sendTo('process', { type: 'KILL' }),
    recordPid: assign(({ context, event }) =>
      event.type === 'PROCESS.SPAWNED' ? { pid: event.pid, mustEmitExit: context.ownership !== 'external' } : {},
    ),
    recordExit: assign(({ event }) => {
      if (event.type !== 'PROCESS.EXITED') return {};
      const { exitCode, signal } = event;
      return { hasProcess: false, exitCode, signal, ...blame(describeExit(exitCode, signal)) };
    }),
    recordSpawnFailure: assign(({ event }) => {
      if (event.type !== 'PROCESS.REFUSED') return {};
      return {
        hasProcess: false,
        ...blame({ kind: 'startFailed', message: event.error, isRetryable: event.isRetryable }),
      };
    }),
    recordForcedExit: assign(({ event }) =>
      event.type === 'PROCESS.EXITED'
        ? { hasProcess: false, exitCode: event.exitCode, signal: event.signal }
        : { hasProcess: false },
    ),
    recordFailureTime: assign(({ context, event }) => {
      // An end that no restart follows is not counted as one.
      if (!('at' in event) || (context.stopReason === null && mustNotRestartAfterExit(context))) return {};
      const ranLong = context.runningSince !== null && event.at - context.runningSince >= context.policy.stableAfterMs;
      return {
        failures: addFailure(context.failures, event.at, context.policy.withinMs),
        ...(ranLong && { attempt: 0 }),
      };
    }),
    recordFailure: assign(({ context }, failure: Failure) => ({
      ...blame(failure),
      ...(failure.at !== undefined &&
        failure.isRetryable && {
          failures: addFailure(context.failures, failure.at, context.policy.withinMs),
        }),
    })),
    // A start that is being aborted already keeps its first cause.
    recordStartTimeout: assign(({ context }) =>
      context.lastError === null
        ? blame({
            kind: 'unhealthy',
            message: `The agent server was not ready within ${context.policy.startDeadlineMs} ms.`,
            isRetryable: true,
          })
        : {},
    ),
    recordSidecarFailure: assign(({ event }) =>
      event.type === 'PROXY.EXITED'
        ? blame({ kind: 'apiProxy', message: event.error ?? 'The sidecar exited.', isRetryable: false })
        : {},
    ),
    recordKillTimeout: assign(({ context }) => ({
      lastError: `Process ${context.pid ?? '?'} did not end after SIGKILL; still waiting for it.`,
      failureKind: 'unhealthy' as const,
    })),
    recordReadiness: assign((_, ready: Readiness) => ({ serverVersion: ready.serverVersion, runningSince: ready.at })),
    recordRunning: assign(({ context }) => ({
      ...noFailure,
      probeFailures: 0,
      provenSidecar: context.sidecar,
      mustEmitExit: true,
    })),
    recordRecovery: assign({ recovered: true }),
    recordUnhealthy: assign(({ context, event }) =>
      event.type === 'PROBE.FAILED'
        ? {
            probeFailures: context.probeFailures + 1,
            ...blame({ kind: 'unhealthy', message: event.error, isRetryable: true }),
          }
        : {},
    ),
    countProbeFailure: assign(({ context }) => ({ probeFailures: context.probeFailures + 1 })),
    resetProbeFailures: assign({ probeFailures: 0 }),
    planRestart: assign(({ context }) => {
      const { random, seed } = nextRandom(context.seed);
      const attempt = context.attempt + 1;
      return { seed, attempt, delayMs: backoffDelay(attempt, context.policy, random) };
    }),
    clearRestartDelay: assign({ delayMs: null }),
    recordGivingUp: assign(({ context }) => ({
      delayMs: null,
      lastError:
        `Gave up after ${context.failures.length} failures within ${context.policy.withinMs / 1000} s` +
        ` (last: ${context.lastError ?? 'unknown'}). Ensure or restart the workspace to try again.`,
    })),
    resetToStopped: assign({
      ...noFailure,
      pid: null,
      serverVersion: null,
      failures: [],
      attempt: 0,
      delayMs: null,
      sidecar: null,
      provenSidecar: null,
      pendingSidecar: null,
    }),
    stopBecause: assign((_, params: { readonly reason: StopReason }) => ({ stopReason: params.reason })),
    stopAsAsked: assign(({ event }) => (event.type === 'STOP' ? { stopReason: event.reason } : {})),
    startSidecar: enqueueActions(({ enqueue, context }) => {
      const { sidecar } = context;
      if (sidecar === null) return;
      if (context.proxy === 'none') {
        enqueue.spawnChild('apiProxy', {
          id: 'apiProxy',
          input: ({ context: now }) => ({
            workspacePath: now.workspacePath,
            policy: now.policy,
            seed: now.seed,
            adopt: now.ownership === 'adopted',
            sidecar,
          }),
        });
      } else {
        enqueue.sendTo('apiProxy', { type: 'PROXY.START' });
      }
      enqueue.assign({ proxy: 'starting', proxySidecar: sidecar, isSidecarStopping: false });
    }),
    restartSidecar: enqueueActions(({ enqueue, context }) => {
      if (context.proxy !== 'exited' && context.proxy !== 'unhealthy') return;
      enqueue.sendTo('apiProxy', { type: 'PROXY.START' });
      enqueue.assign({ proxy: 'starting' });
    }),
    stopSidecar: enqueueActions(({ enqueue, context }) => {
      if (context.proxy === 'none') return;
      enqueue.sendTo('apiProxy', { type: 'PROXY.STOP' });
      enqueue.assign({ isSidecarStopping: true });
    }),
    recordSidecarRunning: assign(({ context, event }) =>
      event.type === 'PROXY.RUNNING'
        ? {
            proxy: 'running' as const,
            proxyPid: event.pid,
            proxyError: null,
            provenSidecar: context.proxySidecar,
          }
        : {},
    ),
    recordSidecarUnhealthy: assign(({ event }) =>
      event.type === 'PROXY.UNHEALTHY' ? { proxy: 'unhealthy' as const, proxyError: event.error } : {},
    ),
    recordSidecarExit: assign(({ event }) =>
      event.type === 'PROXY.EXITED'
        ? {
            proxy: event.restarts ? ('starting' as const) : ('exited' as const),
            proxyPid: null,
            proxyError: event.error,
          }
        : {},
    ),
    clearSidecar: assign({
      proxy: 'none',
      proxySidecar: null,
      isSidecarStopping: false,
      proxyPid: null,
      proxyError: null,
    }),
    releaseSidecar: stopChild('apiProxy'),
    emitSidecarRunning: enqueueActions(({ enqueue, context, event }) => {
      if (event.type !== 'PROXY.RUNNING') return;
      enqueue.emit({ type: 'apiProxy.running', sidecar: context.proxySidecar ?? 0, pid: event.pid });
    }),
    emitSidecarUnhealthy: enqueueActions(({ enqueue, context, event }) => {
      if (event.type !== 'PROXY.UNHEALTHY') return;
      const { pid, error, consecutiveFailures } = event;
      const sidecar = context.proxySidecar ?? 0;
      enqueue.emit({ type: 'apiProxy.unhealthy', sidecar, pid, error, consecutiveFailures });
    }),
    emitSidecarExited: enqueueActions(({ enqueue, context, event }) => {
      if (event.type !== 'PROXY.EXITED' && event.type !== 'PROXY.STOPPED') return;
      const { pid, exitCode, signal } = event;
      const stopped = event.type === 'PROXY.STOPPED';
      // The end of a process is emitted once: a sidecar that had already exited has nothing left to stop.
      if (stopped && pid === null) return;
      const error = event.type === 'PROXY.EXITED' ? event.error : null;
      const sidecar = context.proxySidecar ?? 0;
      enqueue.emit({ type: 'apiProxy.exited', sidecar, pid, exitCode, signal, error, stopped });
    }),
    emitRunning: emit(({ context }) => ({
      type: 'appserver.running' as const,
      pid: context.pid ?? 0,
      ownership: context.ownership,
      recovered: context.recovered,
    })),
    emitUnhealthy: emit(({ context }) => ({
      type: 'appserver.unhealthy' as const,
      pid: context.pid,
      error: context.lastError ?? 'no answer',
      consecutiveFailures: context.probeFailures,
    })),
    emitExited: enqueueActions(({ enqueue }) => {
      enqueue.emit(({ context }) => exitOf(context));
      enqueue.assign({ mustEmitExit: false });
    }),
    // A stop of a server that had already ended, or that was never started, ends nothing.
    emitStopped: enqueueActions(({ enqueue, context }) => {
      if (!context.mustEmitExit) return;
      enqueue.emit(({ context: now }) => exitOf(now));
      enqueue.assign({ mustEmitExit: false });
    }),
  },
});
