/** Input, context, events and emitted events of the agent-server machine. The chart is in `agent-server.ts`. */
import type { ApiProxyPolicy } from './api-proxy.ts';
import type { FailureKind, OfWorkspace, ProcessEvent } from './process-events.ts';
import type {
  Ownership,
  SidecarEmitted,
  SidecarReference,
  SidecarSlot,
  SidecarSlotEventToParent,
} from './sidecar-slot.ts';
import type { ProbedContext } from './supervised-process.ts';

/** Durations that shape the chart, in milliseconds, and the restart policy. Data: it comes from configuration. */
export interface SupervisionPolicy extends ApiProxyPolicy {
  readonly startDeadlineMs: number;
  /** Time for the present step of each turn before a restart or a stop. It comes before `gracefulStopMs`. */
  readonly handOverMs: number;
  /** Puts a server to sleep that has been idle this long; 0 means never. */
  readonly idleStopMs: number;
}

/** Why a stop is under way. A stop for `restart` or `unhealthy` is followed by a start. */
export type StopReason = 'user' | 'idle' | 'hub' | 'restart' | 'unhealthy';

/** Result of `prepare`: the owner of the workspace, and the ports, policy and lost sidecar of a start. */
export interface Preparation {
  readonly ownership: Ownership;
  /** Ports set aside for a server that is to be started. */
  readonly ports: readonly { readonly service: string; readonly port: number }[];
  /** The policy as configured now; absent when nothing was read. */
  readonly policy?: SupervisionPolicy;
  /** The sidecar of an earlier Hub that ended while no Hub was watching. */
  readonly lostSidecarPid?: number;
  /** The server runs in a place that must be checked first. Absent: a process of this machine. */
  readonly hasPlace?: boolean;
}

export interface PrepareInput extends OfWorkspace {
  readonly mayStart: boolean;
  /** The sidecar whose address and key a new agent server gets. */
  readonly sidecar: number | null;
}

/** Result of `readiness`: the version the server reported, and when. */
export interface Readiness {
  readonly serverVersion: string;
  readonly at: number;
  /** Services that listen on another port than planned, because another program had taken it. */
  readonly ports: Preparation['ports'];
}

/** Decision of an idle agent server: to end, or to stay awake for a client or work. */
export interface SleepAnswer {
  readonly sleeps: boolean;
}

export interface AgentServerInput {
  readonly workspacePath: string;
  readonly policy: SupervisionPolicy;
  /** Seed of the jitter. */
  readonly seed: number;
}

export interface AgentServerContext extends ProbedContext {
  readonly policy: SupervisionPolicy;
  readonly workspacePath: string;
  readonly ownership: Ownership;
  /** The server runs in a separate place, such as a container. */
  readonly hasPlace: boolean;
  /** The place of the server does not answer. */
  readonly isPlaceLost: boolean;
  readonly hasProcess: boolean;
  readonly pid: number | null;
  readonly serverVersion: string | null;
  readonly exitCode: number | null;
  readonly signal: string | null;
  /** Cause of the exit outside of the process; null: none is known. */
  readonly exitCause: string | null;
  readonly lastError: string | null;
  readonly failureKind: FailureKind | null;
  readonly isRetryable: boolean;
  readonly stopReason: StopReason | null;
  /** The stop cancels unfinished turns instead of suspending them. */
  readonly endsTurns: boolean;
  /** Sidecar of the workspace, as its slot reported it last. */
  readonly slot: SidecarSlot;
  /** Automatic restarts in the current window of the restart policy: failures that a start has followed. */
  readonly restartCount: number;
  readonly recovered: boolean;
  readonly lockRaces: number;
  /** The process has ended; its group is not verified empty yet. */
  readonly isEnding: boolean;
  /** The request that arrived during an adoption, a decision about sleep, or the end of the process; applied after that. */
  readonly deferredRequest: Extract<AgentServerEvent, { type: 'ENSURE' | 'STOP' | 'RESTART' }> | null;
  /** False while adopting: a server that is no longer alive is not started. */
  readonly mayStart: boolean;
  /** A start or a process of this incarnation was emitted, and its end was not yet. */
  readonly mustEmitExit: boolean;
}

/** The end of a workspace that an earlier supervisor has given up. */
export interface EarlierFailure {
  /** Failures that counted then; times of this process's clock, which may be negative. */
  readonly failures: readonly number[];
  readonly restartCount: number;
  readonly error: string;
  readonly exitCode: number | null;
}

/** Sidecar that a request names; absent: the choice does not change. */
type SidecarChoice = { readonly sidecar?: SidecarReference };

export type AgentServerEvent =
  | ({ readonly type: 'ENSURE' } & SidecarChoice)
  | ({ readonly type: 'RESTART' } & SidecarChoice)
  | ({ readonly type: 'ADOPT'; readonly failures?: readonly number[] } & SidecarChoice)
  | ({ readonly type: 'RESTORE' } & EarlierFailure)
  | { readonly type: 'STOP'; readonly reason: 'user' | 'hub' | 'idle'; readonly endsTurns?: boolean }
  | {
      readonly type: 'PROBE.PASSED';
      readonly incarnation: number;
      readonly idleMs: number;
      /** Nothing runs in the server, and its program or its workspace was replaced. */
      readonly isRestartDue?: boolean;
    }
  | { readonly type: 'PROBE.FAILED'; readonly incarnation: number; readonly error: string }
  | ProcessEvent
  | SidecarSlotEventToParent;

/** Domain events. The Hub adds endpoints and standard error, which never enter a machine, and puts them on the wire. */
export type AgentServerEmitted =
  | { readonly type: 'port.allocated'; readonly service: string; readonly port: number }
  | { readonly type: 'appserver.starting'; readonly attempt: number; readonly delayMs: number | null }
  | {
      readonly type: 'appserver.running';
      readonly pid: number;
      readonly ownership: Ownership;
      readonly recovered: boolean;
    }
  | {
      readonly type: 'appserver.unhealthy';
      readonly pid: number | null;
      readonly error: string;
      readonly consecutiveFailures: number;
    }
  | {
      readonly type: 'appserver.exited';
      readonly pid: number | null;
      readonly exitCode: number | null;
      readonly signal: string | null;
      /** Cause outside of the process. Absent: none is known. */
      readonly cause?: string;
      readonly error: string | null;
      readonly stopReason: StopReason | null;
      readonly delayMs: number | null;
    }
  | { readonly type: 'place.lost' }
  | { readonly type: 'place.back' }
  | SidecarEmitted;
