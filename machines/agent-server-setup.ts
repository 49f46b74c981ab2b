/** The words the agent-server chart is written in: its actors, delays, guards and actions by name, one small function each. */
import { assign, emit, enqueueActions, fromCallback, fromPromise, sendTo, setup, spawnChild, stopChild } from 'xstate';
import type {
  AgentServerContext,
  AgentServerEmitted,
  AgentServerEvent,
  AgentServerInput,
  Ownership,
  Preparation,
  Readiness,
  StopReason,
} from './agent-server-types.ts';
import { apiProxyMachine } from './api-proxy.ts';
import type { Failure, OfWorkspace, ProcessCommand, ProcessInput, ProcessMode } from './process-events.ts';
import { addFailure, backoffDelay, exceedsIntensity, roll, wantsRestart } from './restart-policy.ts';

/** Exit code by which an agent server says that another process holds the workspace lock (sysexits EX_TEMPFAIL). */
const lockHeldExitCode = 75;
const maxLockRaces = 3;

const processModes: Record<Ownership, ProcessMode> = { managed: 'spawn', adopted: 'adopt', external: 'watch' };

const clearedFailure = { lastError: null, failureKind: null, retriable: true } as const;

function blame(failure: Failure) {
  return { lastError: failure.message, failureKind: failure.kind, retriable: failure.retriable };
}

function describeExit(exitCode: number | null, signal: string | null): Failure {
  const how = signal ? `was ended by ${signal}` : exitCode === null ? 'ended unseen' : `exited with code ${exitCode}`;
  return { kind: 'crashed', message: `The agent server ${how}.`, retriable: true };
}

/** A wish to keep the sidecar does not call back one that is leaving already: only its end clears `replacesProxy`. */
function proxyWish(event: AgentServerEvent): { wantsProxy?: boolean; replacesProxy?: true } {
  if (!('proxy' in event)) return {};
  return { wantsProxy: event.proxy !== 'none', ...(event.proxy === 'replace' && { replacesProxy: true }) };
}

/** What is known of a workspace before anything of it has run. */
export function atRest(input: AgentServerInput): AgentServerContext {
  return {
    ...clearedFailure,
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
    wantsProxy: false,
    replacesProxy: false,
    proxy: 'none',
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
  };
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
    prepare: fromPromise<Preparation, OfWorkspace & { readonly mayStart: boolean }>(() =>
      Promise.reject(new Error('not provided')),
    ),
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
    isLastStraw: ({ context, event }) =>
      event.type === 'PROBE.FAILED' &&
      event.incarnation === context.incarnation &&
      context.probeFailures + 1 >= context.policy.livenessFailures,
    isIdleTooLong: ({ context, event }) =>
      event.type === 'PROBE.PASSED' &&
      event.incarnation === context.incarnation &&
      context.ownership !== 'external' &&
      context.policy.idleStopMs > 0 &&
      event.idleMs >= context.policy.idleStopMs,
    isOurs: ({ context }) => context.ownership !== 'external',
    hasProcess: ({ context }) => context.hasProcess,
    lostTheLockRace: ({ context, event }) =>
      event.type === 'PROCESS.EXITED' &&
      event.incarnation === context.incarnation &&
      event.exitCode === lockHeldExitCode &&
      context.lockRaces < maxLockRaces,
    mustReplaceProxy: ({ context }) => context.proxy !== 'none' && (context.replacesProxy || !context.wantsProxy),
    hasProxy: ({ context }) => context.proxy !== 'none',
    needsProxy: ({ context }, preparation: Preparation) =>
      preparation.ownership === 'managed' && context.wantsProxy && context.proxy !== 'running',
    adoptsProxy: ({ context }, preparation: Preparation) =>
      preparation.ownership === 'adopted' && context.wantsProxy && context.proxy !== 'running',
    proxyGaveUp: ({ event }) => event.type === 'PROXY.EXITED' && event.final,
    restartFollowsStop: ({ context }) => context.stopReason === 'restart',
    recoveryFollowsStop: ({ context }) => context.stopReason === 'unhealthy',
    isThisIncarnationUnhealthy: ({ context, event }) =>
      context.stopReason === 'unhealthy' && 'incarnation' in event && event.incarnation === context.incarnation,
    recoveryIsHopeless: ({ context }) =>
      context.stopReason === 'unhealthy' && exceedsIntensity(context.failures, context.policy),
    restsForGood: ({ context }) =>
      !context.retriable || context.ownership === 'external' || !wantsRestart(context.policy, context.exitCode),
    gaveUp: ({ context }) => exceedsIntensity(context.failures, context.policy),
    mayRestart: ({ context }) => context.ownership !== 'external' && context.policy.restart !== 'never',
  },
  actions: {
    takeOperatorsStart: assign(({ event }) => ({
      ...proxyWish(event),
      mayStart: event.type !== 'ADOPT',
      failures: [],
      attempt: 0,
      delayMs: null,
    })),
    skipTheWait: assign(({ event }) => ({ ...proxyWish(event), mayStart: true, delayMs: null })),
    countRecovery: assign(({ context }) => ({ attempt: context.attempt + 1, delayMs: 0 })),
    wishProxy: assign(({ event }) => proxyWish(event)),
    beginIncarnation: assign(({ context }) => ({
      ...clearedFailure,
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
    })),
    beginAnotherTry: assign(({ context }) => ({
      incarnation: context.incarnation + 1,
      hasProcess: false,
      pid: null,
      lockRaces: context.lockRaces + 1,
    })),
    keepPreparation: assign(({ context }, preparation: Preparation) => ({
      ownership: preparation.ownership,
      ports: preparation.ports,
      policy: preparation.policy ?? context.policy,
      mayStart: true,
    })),
    announcePorts: enqueueActions(({ enqueue }, preparation: Preparation) => {
      for (const { service, port } of preparation.ports) enqueue.emit({ type: 'port.allocated', service, port });
    }),
    announceStarting: enqueueActions(({ enqueue }, preparation: Preparation) => {
      if (preparation.ownership !== 'managed') return;
      enqueue.emit(({ context }) => ({
        type: 'appserver.starting' as const,
        attempt: context.attempt,
        delayMs: context.delayMs,
      }));
    }),
    spawnProcess: spawnChild('process', {
      id: 'process',
      input: ({ context }) => ({
        workspacePath: context.workspacePath,
        incarnation: context.incarnation,
        mode: processModes[context.ownership],
      }),
    }),
    expectProcess: assign({ hasProcess: true }),
    releaseProcess: stopChild('process'),
    letGo: assign({ hasProcess: false }),
    terminateProcess: sendTo('process', { type: 'TERMINATE' }),
    killProcess: sendTo('process', { type: 'KILL' }),
    keepPid: assign(({ event }) => (event.type === 'PROCESS.SPAWNED' ? { pid: event.pid } : {})),
    keepExit: assign(({ event }) => {
      if (event.type !== 'PROCESS.EXITED') return {};
      const { exitCode, signal } = event;
      return { hasProcess: false, exitCode, signal, ...blame(describeExit(exitCode, signal)) };
    }),
    keepRefusal: assign(({ event }) => {
      if (event.type !== 'PROCESS.REFUSED') return {};
      return { hasProcess: false, ...blame({ kind: 'startFailed', message: event.error, retriable: event.retriable }) };
    }),
    keepForcedExit: assign(({ event }) =>
      event.type === 'PROCESS.EXITED'
        ? { hasProcess: false, exitCode: event.exitCode, signal: event.signal }
        : { hasProcess: false },
    ),
    countFailureTime: assign(({ context, event }) => {
      if (!('at' in event)) return {};
      const ranLong = context.runningSince !== null && event.at - context.runningSince >= context.policy.stableAfterMs;
      return {
        failures: addFailure(context.failures, event.at, context.policy.withinMs),
        ...(ranLong && { attempt: 0 }),
      };
    }),
    blameActor: assign(({ context }, failure: Failure) => ({
      ...blame(failure),
      ...(failure.at !== undefined && {
        failures: addFailure(context.failures, failure.at, context.policy.withinMs),
      }),
    })),
    // A start that is being aborted already keeps its first cause.
    blameDeadline: assign(({ context }) =>
      context.lastError === null
        ? blame({
            kind: 'unhealthy',
            message: `The agent server was not ready within ${context.policy.startDeadlineMs} ms.`,
            retriable: true,
          })
        : {},
    ),
    blameProxy: assign(({ event }) =>
      event.type === 'PROXY.EXITED'
        ? blame({ kind: 'apiProxy', message: event.error ?? 'The sidecar exited.', retriable: false })
        : {},
    ),
    blameUnkillable: assign(({ context }) => ({
      lastError: `Process ${context.pid ?? '?'} did not end after SIGKILL; still waiting for it.`,
      failureKind: 'unhealthy' as const,
    })),
    noteReady: assign((_, ready: Readiness) => ({ serverVersion: ready.serverVersion, runningSince: ready.at })),
    noteRunning: assign({ ...clearedFailure, probeFailures: 0 }),
    noteRecovery: assign({ recovered: true }),
    noteUnhealthy: assign(({ context, event }) =>
      event.type === 'PROBE.FAILED'
        ? {
            probeFailures: context.probeFailures + 1,
            ...blame({ kind: 'unhealthy', message: event.error, retriable: true }),
          }
        : {},
    ),
    countProbeFailure: assign(({ context }) => ({ probeFailures: context.probeFailures + 1 })),
    forgetProbeFailures: assign({ probeFailures: 0 }),
    planRestart: assign(({ context }) => {
      const { dice, seed } = roll(context.seed);
      const attempt = context.attempt + 1;
      return { seed, attempt, delayMs: backoffDelay(attempt, context.policy, dice) };
    }),
    forgetPlan: assign({ delayMs: null }),
    explainGivingUp: assign(({ context }) => ({
      delayMs: null,
      lastError:
        `Gave up after ${context.failures.length} failures within ${context.policy.withinMs / 1000} s` +
        ` (last: ${context.lastError ?? 'unknown'}). Ensure or restart the workspace to try again.`,
    })),
    clearForRest: assign({
      ...clearedFailure,
      pid: null,
      serverVersion: null,
      failures: [],
      attempt: 0,
      delayMs: null,
      wantsProxy: false,
    }),
    stopBecause: assign((_, params: { readonly reason: StopReason }) => ({ stopReason: params.reason })),
    stopAsAsked: assign(({ event }) => (event.type === 'STOP' ? { stopReason: event.reason } : {})),
    startProxy: enqueueActions(({ enqueue, context }) => {
      if (context.proxy === 'none') {
        enqueue.spawnChild('apiProxy', {
          id: 'apiProxy',
          input: ({ context: now }) => ({
            workspacePath: now.workspacePath,
            policy: now.policy,
            seed: now.seed,
            adopt: now.ownership === 'adopted',
          }),
        });
      } else {
        enqueue.sendTo('apiProxy', { type: 'PROXY.START' });
      }
      enqueue.assign({ proxy: 'starting', replacesProxy: false });
    }),
    reviveProxy: enqueueActions(({ enqueue, context }) => {
      if (context.proxy === 'exited') enqueue.sendTo('apiProxy', { type: 'PROXY.START' });
    }),
    stopProxy: enqueueActions(({ enqueue, context }) => {
      if (context.proxy === 'none') return;
      enqueue.sendTo('apiProxy', { type: 'PROXY.STOP' });
      // Whoever starts before it is gone must wait for it.
      enqueue.assign({ replacesProxy: true });
    }),
    noteProxyRunning: assign(({ event }) =>
      event.type === 'PROXY.RUNNING' ? { proxy: 'running' as const, proxyPid: event.pid, proxyError: null } : {},
    ),
    noteProxyExited: assign(({ event }) =>
      event.type === 'PROXY.EXITED' ? { proxy: 'exited' as const, proxyPid: null, proxyError: event.error } : {},
    ),
    noteProxyStopped: assign({ proxy: 'none', proxyPid: null, proxyError: null, replacesProxy: false }),
    releaseProxy: stopChild('apiProxy'),
    announceProxyRunning: enqueueActions(({ enqueue, event }) => {
      if (event.type === 'PROXY.RUNNING') enqueue.emit({ type: 'apiProxy.running', pid: event.pid });
    }),
    announceProxyExited: enqueueActions(({ enqueue, event }) => {
      if (event.type !== 'PROXY.EXITED' && event.type !== 'PROXY.STOPPED') return;
      const { pid, exitCode, signal } = event;
      const error = event.type === 'PROXY.EXITED' ? event.error : null;
      enqueue.emit({ type: 'apiProxy.exited', pid, exitCode, signal, error, stopped: event.type === 'PROXY.STOPPED' });
    }),
    announceRunning: emit(({ context }) => ({
      type: 'appserver.running' as const,
      pid: context.pid ?? 0,
      ownership: context.ownership,
      recovered: context.recovered,
    })),
    announceUnhealthy: emit(({ context }) => ({
      type: 'appserver.unhealthy' as const,
      pid: context.pid,
      error: context.lastError ?? 'no answer',
      consecutiveFailures: context.probeFailures,
    })),
    announceExited: emit(({ context }) => ({
      type: 'appserver.exited' as const,
      pid: context.pid,
      exitCode: context.exitCode,
      signal: context.signal,
      error: context.lastError,
      stopReason: context.stopReason,
      delayMs: context.delayMs,
    })),
  },
});
