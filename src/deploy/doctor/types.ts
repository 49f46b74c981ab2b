import type { Engine, RunResult } from '../engine/index.ts';
import type { DeployError } from '../errors.ts';

export const checkStatuses = ['ok', 'warn', 'fail', 'skip'] as const;
/** `skip`: not run, because it was not selected or a precondition is missing. */
export type CheckStatus = (typeof checkStatuses)[number];

/** Result of one check. Never with a secret in it, nor with its length or a part of it. */
export interface Finding {
  readonly status: CheckStatus;
  /** Observation, in words. */
  readonly saw: string;
  /** Next step for the operator; null when none is needed. */
  readonly hint: string | null;
}

export interface CheckResult extends Finding {
  readonly id: string;
  readonly title: string;
  /** Page and section that say more: `operations.md#doctor-files`. */
  readonly docs: string;
  readonly durationMs: number;
}

/** Asks the host's git. A failure is a result, not an error. */
export type RunGit = (
  args: readonly string[],
  options: { readonly timeoutMs: number; readonly signal: AbortSignal },
) => Promise<RunResult>;

/** Probes of the machine. */
export interface HostProbes {
  /** Bytes that may still be written where `path` is. */
  freeBytes(path: string): Promise<number>;
  /** IPv4 and IPv6 addresses of a name; none when it has none. @throws when no name server answers */
  resolve(name: string, signal: AbortSignal): Promise<readonly string[]>;
  /** Addresses of this host's network interfaces. */
  addresses(): readonly string[];
  /** User id that may own files besides root; null on systems without user ids. */
  uid(): number | null;
  /** Milliseconds. */
  now(): number;
}

/** Where the gateway is asked, from this host. */
export interface GatewayAddress {
  readonly host: string;
  readonly httpPort: number;
  readonly httpsPort: number;
  /** Authorities to trust besides those of the system, PEM. */
  readonly ca: readonly string[];
}

export interface DoctorOptions {
  readonly directory: string;
  /** Environment of the shell that called the doctor. */
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly signal?: AbortSignal;
  /** Ids of checks, or prefixes of ids (`repo`, `ingress`). Absent: all. */
  readonly only?: readonly string[];
  /** Queries this host only. */
  readonly isOffline?: boolean;
  /** Engine that was found, or the error of the search. */
  readonly engine: Engine | DeployError;
  /** The host's git, or why it is missing. */
  readonly git?: RunGit | DeployError;
  readonly host?: Partial<HostProbes>;
  readonly gateway?: Partial<GatewayAddress>;
  /** Deadline of each check. */
  readonly timeoutMs?: number;
}
