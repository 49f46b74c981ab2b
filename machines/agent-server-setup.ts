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
  killTimeoutOf,
  lockHeldExitCode,
  maxLockRaces,
  mustNotRestart,
  mustSleep,
  noFailure,
  processModes,
  startsNothing,
} from './agent-server-context.ts';
import type {
  AgentServerContext,
  AgentServerEmitted,
  AgentServerEvent,
  AgentServerInput,
  Preparation,
  PrepareInput,
  Readiness,
  SleepAnswer,
  StopReason,
  SupervisionPolicy,
} from './agent-server-types.ts';
import type { OfWorkspace, ProcessCommand, ProcessFailure, ProcessInput } from './process-events.ts';
import { addFailure, exceedsFailureLimit } from './restart-policy.ts';
import { isSameSlot, type Ownership, sidecarSlotMachine } from './sidecar-slot.ts';
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
    sidecarSlot: sidecarSlotMachine,
    prepare: fromPromise<Preparation, PrepareInput>(() => Promise.reject(new Error('not provided'))),
    readyPlace: fromPromise<void, OfWorkspace>(() => Promise.reject(new Error('not provided'))),
    process: fromCallback<ProcessCommand, ProcessInput>(() => {}),
    readiness: fromPromise<Readiness, OfWorkspace & { readonly ownership: Ownership }>(() =>
      Promise.reject(new Error('not provided')),
    ),
    askToSleep: fromPromise<SleepAnswer, OfWorkspace & Pick<SupervisionPolicy, 'idleStopMs'>>(() =>
      Promise.reject(new Error('not provided')),
    ),
    liveness: fromCallback<{ readonly type: string }, OfWorkspace & Pick<SupervisionPolicy, 'idleStopMs'>>(() => {}),
  },
  delays: {
    startDeadline: ({ context }) => context.policy.startDeadlineMs,
  },
  guards: {
    isSleepDue: ({ context, event }) => {
      assertEvent(event, 'PROBE.PASSED');
      return isThisIncarnation({ context, event }) && mustSleep(context, event.idleMs);
    },
    isRestartDue: ({ context, event }) => {
      assertEvent(event, 'PROBE.PASSED');
      return isThisIncarnation({ context, event }) && event.isRestartDue === true && context.ownership !== 'external';
    },
    staysAwake: ({ context: { stopReason } }, { sleeps }: SleepAnswer) => !sleeps && stopReason === 'idle',
    hasNothingToEnd: ({ context }) => !context.hasProcess || context.ownership === 'external',
    hasExternalServer: ({ context }) =>
      context.ownership === 'external' && context.hasProcess && context.runningSince !== null,
    isAdopting: ({ context }) => !context.mayStart,
    isEnding: ({ context }) => context.isEnding,
    hasProcess: ({ context }) => context.hasProcess,
    isThisProcess: ({ context, event }) => context.hasProcess && isThisIncarnation({ context, event }),
    endsUnasked: ({ context, event }) =>
      context.runningSince !== null && context.stopReason === null && isThisIncarnation({ context, event }),
    lostLockRace: ({ context, event }) => {
      assertEvent(event, 'PROCESS.EXITED');
      return (
        isThisIncarnation({ context, event }) && event.exitCode === lockHeldExitCode && context.lockRaces < maxLockRaces
      );
    },
    changesSlot: ({ context, event }) => {
      assertEvent(event, 'SLOT.CHANGED');
      return event.emitted !== null || !isSameSlot(event.slot, context.slot);
    },
    hasSidecar: ({ context }) => context.slot.state !== 'none',
    leavesNothing: (_, { kind }: ProcessFailure) => startsNothing.has(kind),
    startFollowsStop: ({ context: { stopReason } }) => stopReason === 'restart' || stopReason === 'unhealthy',
    isIdleStop: ({ context }) => context.stopReason === 'idle',
    recoveryExceedsFailureLimit: ({ context }) =>
      context.stopReason === 'unhealthy' && exceedsFailureLimit(context.failures, context.policy),
    mustNotRestart: ({ context }) => mustNotRestart(context),
    // An agent server whose place does not answer may still run.
    mayRestart: ({ context }) =>
      context.ownership !== 'external' && context.policy.restart !== 'never' && !context.isPlaceLost,
    mustReadyPlace: (_, { hasPlace, ownership }: Preparation) => hasPlace === true && ownership === 'managed',
    isPlaceLost: ({ context }) => context.isPlaceLost,
  },
  actions: {
    permitStart: assign({ mayStart: true, delayMs: null }),
    forbidStart: assign({ mayStart: false, delayMs: null }),
    // The window of the policy outlives a supervisor.
    restoreFailures: assign(({ event }) => {
      assertEvent(event, 'ADOPT');
      const { failures = [] } = event;
      return { failures, attempt: failures.length };
    }),
    restoreGivingUp: assign(({ event }) => {
      assertEvent(event, 'RESTORE');
      const { failures, restartCount, error, exitCode } = event;
      return { ...causeOf({ kind: 'crashed', message: error, isRetryable: true }), failures, restartCount, exitCode };
    }),
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
    // A recovery is an automatic restart; a requested restart begins a new count.
    countNextStart: assign(({ context: { stopReason, attempt } }) =>
      stopReason === 'unhealthy'
        ? { attempt: attempt + 1, delayMs: 0 }
        : { failures: [], attempt: 0, mayStart: true, delayMs: null },
    ),
    // A sidecar that never became ready must not fail the next start of a caller that requested none.
    selectSidecar: sendTo('sidecarSlot', ({ context: { hasProcess, lastError, stopReason }, event }) => {
      assertEvent(event, ['ENSURE', 'RESTART', 'ADOPT']);
      const { sidecar } = event;
      return {
        type: 'SLOT.SELECT' as const,
        ...(sidecar !== undefined && { sidecar }),
        isProven: event.type === 'ADOPT',
        afterFailure: !hasProcess && lastError !== null && stopReason === null,
      };
    }),
    recordPendingSidecar: enqueueActions(({ enqueue, event }) => {
      assertEvent(event, 'ENSURE');
      if (event.sidecar !== undefined) enqueue.sendTo('sidecarSlot', { type: 'SLOT.REQUEST', sidecar: event.sidecar });
    }),
    beginIncarnation: assign(({ context }) => ({
      ...noFailure,
      exitCode: null,
      signal: null,
      exitCause: null,
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
      hasPlace: false,
      isPlaceLost: false,
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
      hasPlace: preparation.hasPlace ?? false,
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
    releaseExternalServer: enqueueActions(({ enqueue, context }) => {
      if (context.ownership !== 'external') return;
      enqueue.assign({ hasProcess: false, pid: null, mustEmitExit: false });
      enqueue.stopChild('process');
    }),
    recordPid: assign(({ context, event }) => {
      assertEvent(event, 'PROCESS.SPAWNED');
      return { pid: event.pid, mustEmitExit: context.ownership !== 'external' };
    }),
    recordEnding: assign({ isEnding: true }),
    recordExit: assign(({ event }) => {
      assertEvent(event, 'PROCESS.EXITED');
      const { exitCode, signal, cause } = event;
      return {
        ...{ hasProcess: false, isEnding: false, exitCode, signal, exitCause: cause ?? null },
        ...causeOf(exitFailure(exitCode, signal, cause)),
      };
    }),
    recordForcedExit: assign(({ event }) => {
      assertEvent(event, 'PROCESS.EXITED');
      return { hasProcess: false, isEnding: false, exitCode: event.exitCode, signal: event.signal };
    }),
    recordSpawnFailure: assign(({ event }) => {
      assertEvent(event, 'PROCESS.REFUSED');
      const { error: message, isRetryable, kind = 'startFailed' } = event;
      return { hasProcess: false, ...causeOf({ kind, message, isRetryable }) };
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
      assertEvent(event, 'SLOT.FAILED');
      return causeOf({ kind: 'apiProxy', message: event.error ?? 'The sidecar exited.', isRetryable: false });
    }),
    recordKillTimeout: assign(({ context }) => ({
      lastError: killTimeoutOf(context),
      failureKind: 'unhealthy' as const,
    })),
    recordLostPlace: assign({ isPlaceLost: true }),
    recordFoundPlace: assign({ isPlaceLost: false }),
    emitPlaceLost: emit({ type: 'place.lost' as const }),
    emitPlaceBack: emit({ type: 'place.back' as const }),
    recordReadiness: assign((_, ready: Readiness) => ({ serverVersion: ready.serverVersion, runningSince: ready.at })),
    recordRunning: assign({ ...noFailure, probeFailures: 0, mustEmitExit: true }),
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
    })),
    recordStopReason: assign((_, { reason, endsTurns = false }: StopOrder) => ({ stopReason: reason, endsTurns })),
    clearStopReason: assign({ stopReason: null }),
    clearSidecarSlot: sendTo('sidecarSlot', { type: 'SLOT.CLEAR' }),
    startSidecar: sendTo('sidecarSlot', ({ context: { ownership, policy } }) => ({
      type: 'SLOT.START' as const,
      ownership,
      policy,
    })),
    restartSidecar: sendTo('sidecarSlot', { type: 'SLOT.RESTART' }),
    proveSidecar: sendTo('sidecarSlot', { type: 'SLOT.PROVE' }),
    stopSidecar: sendTo('sidecarSlot', { type: 'SLOT.STOP' }),
    resetSidecarSlot: sendTo('sidecarSlot', { type: 'SLOT.RESET' }),
    recordSlot: enqueueActions(({ enqueue, event }) => {
      assertEvent(event, 'SLOT.CHANGED');
      const { slot, emitted } = event;
      enqueue.assign({ slot });
      if (emitted) enqueue.emit(emitted);
    }),
    emitLostSidecar: enqueueActions(({ enqueue, context }, lost: Pick<Preparation, 'lostSidecarPid'>) => {
      const { lostSidecarPid: pid } = lost;
      if (pid === undefined) return;
      const error = 'The sidecar ended while no Hub was watching.';
      const sidecar = context.slot.inForce ?? 0;
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
    recordUnhealthyEnd: assign(({ context, event }) =>
      context.stopReason === 'unhealthy' ? withFailure(context, event) : {},
    ),
  },
});
