/** What goes into the agent-server machine, what it keeps, and what it tells. The chart is in `agent-server.ts`. */
import type { ApiProxyEventToParent, ApiProxyPolicy } from './api-proxy.ts';
import type { FailureKind, ProcessEvent } from './process-events.ts';

/** Durations that shape the chart, in milliseconds, and the restart policy. Data: it comes from configuration. */
export interface SupervisionPolicy extends ApiProxyPolicy {
  readonly startDeadlineMs: number;
  readonly livenessFailures: number;
  readonly unhealthyGraceMs: number;
  /** Stop a server that has been idle this long; 0 means never. */
  readonly idleStopMs: number;
}

/** Who started the process: this Hub, an earlier Hub of the same user, or somebody else. */
export type Ownership = 'managed' | 'adopted' | 'external';

/** Why a stop is under way. A stop for `restart` or `unhealthy` is followed by a start. */
export type StopReason = 'user' | 'idle' | 'hub' | 'restart' | 'unhealthy';

/** What `prepare` found out. */
export interface Preparation {
  readonly ownership: Ownership;
  /** Ports set aside for a server that is to be started. */
  readonly ports: readonly { readonly service: string; readonly port: number }[];
  /** The policy as configured now; absent when nothing was read. */
  readonly policy?: SupervisionPolicy;
}

/** What `readiness` saw: the version the server told, and when. */
export interface Readiness {
  readonly serverVersion: string;
  readonly at: number;
}

export interface AgentServerInput {
  readonly workspacePath: string;
  readonly policy: SupervisionPolicy;
  /** Seed of the jitter. */
  readonly seed: number;
}

export interface AgentServerContext {
  readonly workspacePath: string;
  readonly policy: SupervisionPolicy;
  readonly seed: number;
  readonly incarnation: number;
  readonly ownership: Ownership;
  readonly hasProcess: boolean;
  readonly pid: number | null;
  readonly serverVersion: string | null;
  readonly exitCode: number | null;
  readonly signal: string | null;
  readonly lastError: string | null;
  readonly failureKind: FailureKind | null;
  readonly retriable: boolean;
  readonly stopReason: StopReason | null;
  readonly wantsProxy: boolean;
  readonly replacesProxy: boolean;
  readonly proxy: 'none' | 'starting' | 'running' | 'exited';
  readonly proxyPid: number | null;
  readonly proxyError: string | null;
  readonly ports: Preparation['ports'];
  /** Times of failures that still count. */
  readonly failures: readonly number[];
  /** Automatic restarts since the last stable run or operator's start. */
  readonly attempt: number;
  /** Pause chosen for the restart that is waiting or was last made; null when an operator started it. */
  readonly delayMs: number | null;
  readonly probeFailures: number;
  readonly runningSince: number | null;
  readonly recovered: boolean;
  readonly lockRaces: number;
  /** False while adopting: what is not alive any more is not started. */
  readonly mayStart: boolean;
}

/** How a request wants the sidecar: absent means no opinion. */
type ProxyWish = { readonly proxy?: 'keep' | 'replace' | 'none' };

export type AgentServerEvent =
  | ({ readonly type: 'ENSURE' } & ProxyWish)
  | ({ readonly type: 'RESTART' } & ProxyWish)
  | ({ readonly type: 'ADOPT' } & ProxyWish)
  | { readonly type: 'STOP'; readonly reason: 'user' | 'hub' }
  | { readonly type: 'PROBE.PASSED'; readonly incarnation: number; readonly idleMs: number }
  | { readonly type: 'PROBE.FAILED'; readonly incarnation: number; readonly error: string }
  | ProcessEvent
  | ApiProxyEventToParent;

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
      readonly error: string | null;
      readonly stopReason: StopReason | null;
      readonly delayMs: number | null;
    }
  | { readonly type: 'apiProxy.running'; readonly pid: number }
  | {
      readonly type: 'apiProxy.exited';
      readonly pid: number | null;
      readonly exitCode: number | null;
      readonly signal: string | null;
      readonly error: string | null;
      readonly stopped: boolean;
    };
