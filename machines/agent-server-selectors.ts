/** Meaning of an agent-server snapshot for a request: pure functions, so that no caller reads its states. */
import type { SnapshotFrom } from 'xstate';
import type { agentServerMachine } from './agent-server.ts';
import type { AgentServerContext } from './agent-server-types.ts';
import type { FailureKind } from './process-events.ts';

export type AgentServerSnapshot = SnapshotFrom<typeof agentServerMachine>;

/** True when clients may be sent to the server: it is ready, and so is the sidecar it was configured with. */
export const isServing = ({ value, context }: AgentServerSnapshot): boolean =>
  value === 'running' && !context.isEnding && (context.slot.inForce === null || context.slot.state === 'running');

/** True when nothing is under way that may still make the server serve. */
export const isDecided = (snapshot: AgentServerSnapshot): boolean =>
  snapshot.hasTag('settled') &&
  !snapshot.context.isEnding &&
  !(snapshot.value === 'running' && snapshot.context.slot.state === 'starting');

/** True while a live server is looked for that an earlier Hub started; nothing is started then. */
export const isAdopting = (snapshot: AgentServerSnapshot): boolean =>
  snapshot.matches('starting') && !snapshot.context.mayStart;

/** True from a request for a start until the server is ready or its failed process has ended. An adoption is a start, too. */
export const isStarting = (snapshot: AgentServerSnapshot): boolean => snapshot.matches('starting');

/** True when the server was stopped because it was idle: a request for it starts it again. */
export const isAsleep = (snapshot: AgentServerSnapshot): boolean => snapshot.matches('asleep');

/** True when the Hub supervises no process of the workspace and has no failure to report. */
export const isStopped = (snapshot: AgentServerSnapshot): boolean => snapshot.matches('stopped') || isAsleep(snapshot);

/** True from the request to sleep until an idle server has ended. */
export const isFallingAsleep = (snapshot: AgentServerSnapshot): boolean =>
  isStopping(snapshot) && snapshot.context.stopReason === 'idle';

/** True when a request for the server must wait: it sleeps, falls asleep or starts. */
export const isWakeable = (snapshot: AgentServerSnapshot): boolean =>
  isAsleep(snapshot) || isStarting(snapshot) || isFallingAsleep(snapshot);

/** True when the last request was to stop the server. */
export const isStoppedByUser = (snapshot: AgentServerSnapshot): boolean =>
  isStopped(snapshot) && snapshot.context.stopReason === 'user';

/** True when no process runs and none is started without a request. */
export const isAtRest = (snapshot: AgentServerSnapshot): boolean =>
  isStopped(snapshot) || snapshot.matches({ exited: 'resting' }) || snapshot.matches({ exited: 'givenUp' });

/** True while a process of the workspace ends. In a settled snapshot: that process survived SIGKILL. */
export const isStopping = (snapshot: AgentServerSnapshot): boolean => snapshot.matches('stopping');

/** True when the run of `before` is over and a later request has begun another one. */
export const isSuperseded = (snapshot: AgentServerSnapshot, before: AgentServerSnapshot): boolean =>
  snapshot.context.incarnation !== before.context.incarnation;

/** Why a decided server does not serve. A server that runs lacks its sidecar. */
export function failureKindOf({ value, context }: AgentServerSnapshot): FailureKind {
  return value === 'running' ? 'apiProxy' : (context.failureKind ?? 'startFailed');
}

/** True when a start failed with a sidecar that was never ready: a request that names no sidecar may start without it. */
export const hasUnprovenSidecar = ({ context }: AgentServerSnapshot): boolean =>
  context.failureKind === 'apiProxy' && context.slot.inForce !== context.slot.proven;

/** The live server was started outside of this user's Hubs: it is neither stopped nor restarted. */
export const hasExternalProcess = ({ context }: AgentServerSnapshot): boolean =>
  context.hasProcess && context.ownership === 'external';

/**
 * True when a later Hub must not look for a sidecar: a server of ours runs without one, or the user stopped the server,
 * which ends the request for a sidecar.
 */
export const endsSidecarRequest = (snapshot: AgentServerSnapshot): boolean => {
  const { slot, ownership, stopReason } = snapshot.context;
  if (snapshot.value === 'stopped') return stopReason === 'user';
  return snapshot.value === 'running' && slot.inForce === null && slot.state === 'none' && ownership === 'managed';
};

/** Numbers of the sidecar requests that the machine may still refer to. */
export function sidecarsInUse(context: AgentServerContext): readonly unknown[] {
  const { slot, deferredRequest: deferred } = context;
  const requested = deferred === null || deferred.type === 'STOP' ? null : (deferred.sidecar ?? null);
  return [slot.inForce, slot.proven, slot.pending, slot.held, requested];
}
