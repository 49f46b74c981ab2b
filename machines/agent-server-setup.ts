/** The words the agent-server chart is written in: its actors, delays, guards and actions by name, one small function each. */
import {
  assertEvent,
  assign,
  emit,
  enqueueActions,
  fromCallback,
  fromPromise,
  sendTo,
  setup,
  spawnChild,
  stopChild,
} from 'xstate';
import {
  causeOf,
  countsAsFailure,
  deferredRequest,
  exitEventOf,
  exitFailure,
  handOverOf,
  lockHeldExitCode,
  maxLockRaces,
  mustNotRestart,
  noFailure,
  processModes,
  selectedSidecar,
  sidecarOfLiveServer,
  startsNothing,
} from './agent-server-context.ts';
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
import type { OfWorkspace, ProcessCommand, ProcessFailure, ProcessInput } from './process-events.ts';
import { addFailure, exceedsFailureLimit } from './restart-policy.ts';
import {
  isThisIncarnation,
  probedActions,
  probedDelays,
  probedGuards,
  supervisedActions,
  supervisedDelays,
  supervisedGuards,
  withFailure,
} from './supervised-process.ts';

export interface StopOrder {
  readonly reason: StopReason;
  readonly endsTurns?: boolean;
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
  },
  guards: {
    exceedsIdleLimit: ({ context, event }) => {
      assertEvent(event, 'PROBE.PASSED');
      return (
        isThisIncarnation({ context, event }) &&
        context.ownership !== 'external' &&
        context.policy.idleStopMs > 0 &&
        event.idleMs >= context.policy.idleStopMs
      );
    },
    isRestartDue: ({ context, event }) => {
      assertEvent(event, 'PROBE.PASSED');
      return isThisIncarnation({ context, event }) && context.ownership !== 'external' && event.isRestartDue === true;
    },
    isOurs: ({ context }) => context.ownership !== 'external',
    isAdopting: ({ context }) => !context.mayStart,
    isEnding: ({ context }) => context.isEnding,
    hasProcess: ({ context }) => context.hasProcess,
    lostLockRace: ({ context, event }) => {
      assertEvent(event, 'PROCESS.EXITED');
      return (
        isThisIncarnation({ context, event }) && event.exitCode === lockHeldExitCode && context.lockRaces < maxLockRaces
      );
    },
    mustReplaceSidecar: ({ context }) =>
      context.proxy !== 'none' && (context.isSidecarStopping || context.sidecar !== context.proxySidecar),
    hasSidecar: ({ context }) => context.proxy !== 'none',
    needsSidecar: ({ context }, preparation: Preparation) =>
      preparation.ownership === 'managed' && context.sidecar !== null && context.proxy !== 'running',
    adoptsSidecar: ({ context }, preparation: Preparation) =>
      preparation.ownership === 'adopted' && context.provenSidecar !== null && context.proxy !== 'running',
    leavesNothing: (_, { kind }: ProcessFailure) => startsNothing.has(kind),
    sidecarGaveUp: ({ event }) => {
      assertEvent(event, 'PROXY.EXITED');
      return event.final;
    },
    restartFollowsStop: ({ context }) => context.stopReason === 'restart',
    recoveryFollowsStop: ({ context }) => context.stopReason === 'unhealthy',
    endsUnhealthyRun: ({ context, event }) =>
      context.stopReason === 'unhealthy' && isThisIncarnation({ context, event }),
    recoveryExceedsFailureLimit: ({ context }) =>
      context.stopReason === 'unhealthy' && exceedsFailureLimit(context.failures, context.policy),
    mustNotRestart: ({ context }) => mustNotRestart(context),
    mayRestart: ({ context }) => context.ownership !== 'external' && context.policy.restart !== 'never',
  },
  actions: {
    permitStart: assign({ mayStart: true, delayMs: null }),
    forbidStart: assign({ mayStart: false, delayMs: null }),
    deferRequest: assign(({ context, event }) => {
      assertEvent(event, ['ENSURE', 'STOP', 'RESTART']);
      return deferredRequest(context, event);
    }),
    // A stop that leaves the state is the later request: it wins.
    applyDeferredRequest: enqueueActions(({ enqueue, context, event }) => {
      if (context.deferredRequest === null) return;
      if (event.type !== 'STOP') enqueue.raise(context.deferredRequest);
      enqueue.assign({ deferredRequest: null });
    }),
    countRecovery: assign(({ context }) => ({ attempt: context.attempt + 1, delayMs: 0 })),
    selectSidecar: assign(({ event }) => {
      assertEvent(event, ['ENSURE', 'RESTART', 'ADOPT']);
      return selectedSidecar(event);
    }),
    // A sidecar that never became ready must not fail the next start of a caller that requested none.
    restoreProvenSidecar: assign(({ context }) => ({ sidecar: context.provenSidecar })),
    recordPendingSidecar: assign(({ context, event }) => {
      assertEvent(event, 'ENSURE');
      if (event.sidecar === undefined) return {};
      return { pendingSidecar: event.sidecar === (context.sidecar ?? 'none') ? null : event.sidecar };
    }),
    beginIncarnation: assign(({ context }) => ({
      ...noFailure,
      exitCode: null,
      signal: null,
      stopReason: null,
      incarnation: context.incarnation + 1,
      // Every failure that still counts has now been followed by a restart.
      restartCount: context.failures.length,
      hasProcess: false,
      isEnding: false,
      deferredRequest: null,
      pid: null,
      serverVersion: null,
      ownership: 'managed' as const,
      probeFailures: 0,
      runningSince: null,
      recovered: false,
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
      policy: preparation.policy ?? context.policy,
      mayStart: true,
      ...sidecarOfLiveServer(context, preparation),
    })),
    emitPorts: enqueueActions(({ enqueue }, reserved: Pick<Preparation, 'ports'>) => {
      for (const { service, port } of reserved.ports) enqueue.emit({ type: 'port.allocated', service, port });
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
    recordPid: assign(({ context, event }) => {
      assertEvent(event, 'PROCESS.SPAWNED');
      return { pid: event.pid, mustEmitExit: context.ownership !== 'external' };
    }),
    recordEnding: assign({ isEnding: true }),
    recordExit: assign(({ event }) => {
      assertEvent(event, 'PROCESS.EXITED');
      const { exitCode, signal } = event;
      return { hasProcess: false, isEnding: false, exitCode, signal, ...causeOf(exitFailure(exitCode, signal)) };
    }),
    recordForcedExit: assign(({ event }) => {
      assertEvent(event, 'PROCESS.EXITED');
      return { hasProcess: false, isEnding: false, exitCode: event.exitCode, signal: event.signal };
    }),
    recordSpawnFailure: assign(({ event }) => {
      assertEvent(event, 'PROCESS.REFUSED');
      const { error: message, isRetryable } = event;
      return { hasProcess: false, ...causeOf({ kind: 'startFailed', message, isRetryable }) };
    }),
    recordFailure: assign(({ context }, failure: ProcessFailure) => ({
      ...causeOf(failure),
      ...(failure.pid !== undefined && { pid: failure.pid }),
      ...(failure.at !== undefined &&
        failure.isRetryable && {
          failures: addFailure(context.failures, failure.at, context.policy.withinMs),
        }),
    })),
    // A start that is being aborted already keeps its first cause.
    recordStartTimeout: assign(({ context }) => {
      if (context.lastError !== null) return {};
      const message = `The agent server was not ready within ${context.policy.startDeadlineMs} ms.`;
      return causeOf({ kind: 'unhealthy', message, isRetryable: true });
    }),
    recordSidecarFailure: assign(({ event }) => {
      assertEvent(event, 'PROXY.EXITED');
      return causeOf({ kind: 'apiProxy', message: event.error ?? 'The sidecar exited.', isRetryable: false });
    }),
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
    recordUnhealthy: assign(({ context, event }) => {
      assertEvent(event, 'PROBE.FAILED');
      return {
        probeFailures: context.probeFailures + 1,
        ...causeOf({ kind: 'unhealthy', message: event.error, isRetryable: true }),
      };
    }),
    clearRestartDelay: assign({ delayMs: null }),
    recordGivingUp: assign(({ context }) => ({
      delayMs: null,
      lastError:
        `Gave up after ${context.failures.length} failures within ${context.policy.withinMs / 1000} s` +
        ` (last: ${context.lastError?.replace(/\.$/, '') ?? 'unknown'}). Ensure or restart the workspace to try again.`,
    })),
    // A refused start keeps its cause, which answers the request for it.
    resetToStopped: assign(({ context }) => ({
      ...(context.failureKind !== null && startsNothing.has(context.failureKind) ? {} : noFailure),
      pid: null,
      serverVersion: null,
      failures: [],
      restartCount: 0,
      attempt: 0,
      delayMs: null,
      sidecar: null,
      provenSidecar: null,
      pendingSidecar: null,
    })),
    recordStopReason: assign((_, { reason, endsTurns = false }: StopOrder) => ({ stopReason: reason, endsTurns })),
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
    recordSidecarRunning: assign(({ context, event }) => {
      assertEvent(event, 'PROXY.RUNNING');
      const { proxySidecar } = context;
      return { proxy: 'running' as const, proxyPid: event.pid, proxyError: null, provenSidecar: proxySidecar };
    }),
    recordSidecarUnhealthy: assign(({ event }) => {
      assertEvent(event, 'PROXY.UNHEALTHY');
      return { proxy: 'unhealthy' as const, proxyError: event.error };
    }),
    recordSidecarExit: assign(({ event }) => {
      assertEvent(event, 'PROXY.EXITED');
      const proxy = event.restarts ? ('starting' as const) : ('exited' as const);
      return { proxy, proxyPid: null, proxyError: event.error };
    }),
    clearSidecar: assign({
      proxy: 'none',
      proxySidecar: null,
      isSidecarStopping: false,
      proxyPid: null,
      proxyError: null,
    }),
    releaseSidecar: stopChild('apiProxy'),
    emitSidecarRunning: emit(({ context, event }) => {
      assertEvent(event, 'PROXY.RUNNING');
      return { type: 'apiProxy.running' as const, sidecar: context.proxySidecar ?? 0, pid: event.pid };
    }),
    emitSidecarUnhealthy: emit(({ context, event }) => {
      assertEvent(event, 'PROXY.UNHEALTHY');
      const { pid, error, consecutiveFailures } = event;
      const sidecar = context.proxySidecar ?? 0;
      return { type: 'apiProxy.unhealthy' as const, sidecar, pid, error, consecutiveFailures };
    }),
    emitSidecarExited: enqueueActions(({ enqueue, context, event }) => {
      assertEvent(event, ['PROXY.EXITED', 'PROXY.STOPPED']);
      const { pid, exitCode, signal } = event;
      const stopped = event.type === 'PROXY.STOPPED';
      // The end of a process is emitted once: a sidecar that had already exited has nothing left to stop.
      if (stopped && pid === null) return;
      const error = event.type === 'PROXY.EXITED' ? event.error : null;
      const sidecar = context.proxySidecar ?? 0;
      enqueue.emit({ type: 'apiProxy.exited', sidecar, pid, exitCode, signal, error, stopped });
    }),
    emitLostSidecar: enqueueActions(({ enqueue, context }, lost: Pick<Preparation, 'lostSidecarPid'>) => {
      const { lostSidecarPid: pid } = lost;
      if (pid === undefined) return;
      const error = 'The sidecar ended while no Hub was watching.';
      const sidecar = context.sidecar ?? 0;
      enqueue.emit({ type: 'apiProxy.exited', sidecar, pid, exitCode: null, signal: null, error, stopped: false });
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
      enqueue.emit(({ context }) => exitEventOf(context));
      enqueue.assign({ mustEmitExit: false });
    }),
    // A stop of a server that had already ended, or that was never started, ends nothing.
    emitStopped: enqueueActions(({ enqueue, context }) => {
      if (!context.mustEmitExit) return;
      enqueue.emit(({ context: now }) => exitEventOf(now));
      enqueue.assign({ mustEmitExit: false });
    }),
  },
}).extend({
  delays: {
    ...supervisedDelays,
    ...probedDelays,
    gracefulStop: ({ context }) => context.policy.gracefulStopMs + handOverOf(context).withinMs,
  },
  guards: { ...supervisedGuards, ...probedGuards },
  actions: {
    ...supervisedActions<AgentServerContext, AgentServerEvent>('process'),
    ...probedActions<AgentServerContext, AgentServerEvent>(),
    terminateProcess: sendTo('process', ({ context }) => ({ type: 'TERMINATE', handOver: handOverOf(context) })),
    recordFailureTime: assign(({ context, event }) => (countsAsFailure(context) ? withFailure(context, event) : {})),
  },
});
