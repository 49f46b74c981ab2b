/** Pure parts of the agent-server machine: its first context, and the computations of its guards and actions. */
import type { AgentServerContext, AgentServerEmitted, AgentServerInput } from './agent-server-types.ts';
import type { FailureKind, HandOverOrder, ProcessFailure, ProcessMode } from './process-events.ts';
import { wantsRestart } from './restart-policy.ts';
import { emptySlot, type Ownership } from './sidecar-slot.ts';

/** Exit code by which an agent server reports that another process holds the workspace lock (sysexits EX_TEMPFAIL). */
export const lockHeldExitCode = 75;
export const maxLockRaces = 3;

export const processModes: Record<Ownership, ProcessMode> = { managed: 'spawn', adopted: 'adopt', external: 'watch' };

/** Failures of a start that began and ended no process of this workspace. */
export const startsNothing: ReadonlySet<FailureKind> = new Set(['workspaceLocked', 'neverStarted']);

export const noFailure = { lastError: null, failureKind: null, isRetryable: true } as const;

/** The context of a workspace before its first start. */
export function initialContext(input: AgentServerInput): AgentServerContext {
  return {
    ...noFailure,
    workspacePath: input.workspacePath,
    policy: input.policy,
    seed: input.seed,
    incarnation: 0,
    ownership: 'managed',
    hasPlace: false,
    isPlaceLost: false,
    hasProcess: false,
    pid: null,
    serverVersion: null,
    exitCode: null,
    signal: null,
    exitCause: null,
    stopReason: null,
    endsTurns: false,
    slot: emptySlot,
    failures: [],
    restartCount: 0,
    attempt: 0,
    delayMs: null,
    probeFailures: 0,
    runningSince: null,
    recovered: false,
    lockRaces: 0,
    mayStart: true,
    isEnding: false,
    deferredRequest: null,
    mustEmitExit: false,
  };
}

/** The fields of a context that describe a failure. */
export function causeOf({ message, kind, isRetryable }: ProcessFailure) {
  return { lastError: message, failureKind: kind, isRetryable };
}

/** Exit code of an agent server that the system refuses something. Its own words are lost when the disk of its log is full. */
const systemExitCode = 71;

/** The failure of a process that ended without a stop request. */
export function exitFailure(exitCode: number | null, signal: string | null, cause?: string): ProcessFailure {
  const meaning = exitCode === systemExitCode ? ' (no permission, or a full disk: df -h)' : '';
  const code = `exited with code ${exitCode}${meaning}`;
  const how = signal ? `was ended by ${signal}` : exitCode === null ? 'ended unseen' : code;
  return { kind: 'crashed', message: `The agent server ${cause ?? how}.`, isRetryable: true };
}

/** True when the policy, the failure or the ownership forbids an automatic restart. */
export function mustNotRestart({ isRetryable, ownership, policy, exitCode }: AgentServerContext): boolean {
  return !isRetryable || ownership === 'external' || !wantsRestart(policy, exitCode);
}

/** True when an end of the process counts as a failure: a restart follows it, or the process was unhealthy. */
export const countsAsFailure = (context: AgentServerContext): boolean =>
  context.stopReason !== null || !mustNotRestart(context);

/**
 * True when a server should sleep after this idle time. A sidecar or a container prevents it: a request for a sidecar ends with its
 * server, and a container starts slowly.
 */
export const mustSleep = ({ ownership, policy, slot, hasPlace }: AgentServerContext, idleMs: number): boolean =>
  ownership !== 'external' &&
  slot.state === 'none' &&
  !hasPlace &&
  policy.idleStopMs > 0 &&
  idleMs >= policy.idleStopMs;

/**
 * The request to apply after an adoption or the end of a process: the latest one. An `ensure` after a stop or restart becomes a restart,
 * and one that names no sidecar keeps the sidecar of the request before it.
 */
export function deferredRequest(
  { deferredRequest: before }: AgentServerContext,
  event: NonNullable<AgentServerContext['deferredRequest']>,
): Pick<AgentServerContext, 'deferredRequest'> {
  if (event.type !== 'ENSURE' || before === null) return { deferredRequest: event };
  const sidecar = event.sidecar ?? (before.type === 'STOP' ? undefined : before.sidecar);
  const type = before.type === 'ENSURE' ? 'ENSURE' : 'RESTART';
  return { deferredRequest: { type, ...(sidecar !== undefined && { sidecar }) } };
}

/** Order for the turns of a server that is being stopped. One that does not answer gets no time for its turns. */
export function handOverOf({ stopReason, endsTurns, policy }: AgentServerContext): HandOverOrder {
  const isUnhealthy = stopReason === 'unhealthy';
  // A turn that begins while an idle server is being stopped wakes the workspace again.
  const isContinued = isUnhealthy || stopReason === 'restart' || stopReason === 'idle';
  return {
    reason: isContinued ? 'restart' : 'stop',
    withinMs: endsTurns || isUnhealthy ? 0 : policy.handOverMs,
    endsTurns,
  };
}

/** Explains why a process outlives SIGKILL: its place does not answer, or the process does not end. */
export const killTimeoutOf = ({ pid, isPlaceLost, hasPlace }: AgentServerContext): string =>
  isPlaceLost || (hasPlace && pid === null)
    ? 'The container engine does not answer; the container is ended when the engine answers again.'
    : `Process ${pid ?? '?'} did not end after SIGKILL; still waiting for it.`;

/** The event that reports the end of the agent server. */
export function exitEventOf(context: AgentServerContext): Extract<AgentServerEmitted, { type: 'appserver.exited' }> {
  const { pid, exitCode, signal, exitCause: cause, lastError, stopReason, delayMs } = context;
  const end = { pid, exitCode, signal, ...(cause !== null && { cause }) };
  return { type: 'appserver.exited', ...end, error: lastError, stopReason, delayMs };
}
