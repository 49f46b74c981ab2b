import type { SupervisionPolicy } from '../../machines/index.ts';
import type { Logger } from '../log/index.ts';
import type { HubEventData, HubEventKind, ServiceName, ServiceStatus } from '../protocol/index.ts';
import type { PortAllocator } from '../supervise/index.ts';
import type { Credentials } from './credentials.ts';
import type { Sidecar, SidecarWish } from './sidecar-request.ts';
import type { StoredWorkspace } from './store.ts';

/** What all workspaces of one Hub share. */
export interface HubServices {
  /** User home: `config.json` is read from here. */
  readonly home: string;
  /** `<home>/hub`: `hub.lock`, `appservers.json`, logs. */
  readonly statePath: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Command line that runs an agent server; `--workspace P --managed` is appended. */
  readonly agentServer: { readonly command: string; readonly args: readonly string[] };
  /** Takes the place of what the configuration and our defaults say. */
  readonly policy: Partial<SupervisionPolicy>;
  readonly credentials: Credentials;
  readonly ports: PortAllocator;
  readonly logger: Logger;
  publish<K extends HubEventKind>(kind: K, workspacePath: string | null, data: HubEventData<K>): void;
  /** Resolves when everything known now is on disk. */
  save(): Promise<void>;
}

/** Who holds the workspace lock, when it is not ours to take. */
export interface LockOwner {
  readonly pid: number | null;
  readonly lockPath: string;
}

/**
 * What is known about a workspace beside its statechart: addresses with their tokens, the sidecar's key, places of logs.
 * It stays here because nothing secret may enter a machine. Written by the actors of `actors/`, read by `record.ts`.
 */
export interface WorkspaceFacts {
  readonly stored: StoredWorkspace;
  /** Directory of the log files of this workspace's agent server; the sidecar's is `sidecar` in it. */
  readonly logDirectory: string;
  /** Real addresses while a server runs or starts, tokens included. */
  endpoints: Record<string, string>;
  /** What the configuration asks for; `running` is decided when the record is made. */
  services: Partial<Record<ServiceName, ServiceStatus>>;
  /** Mark of the present start, also the identity that probes ask for. */
  marker: string | null;
  /** Every token and key of this workspace that a log may show, also of starts that are over. */
  readonly secrets: Set<string>;
  /** What the next spawn writes to the child's standard input. */
  launchDocument: string | null;
  /** Names of environment variables the configuration refers to. */
  passEnvironment: readonly string[];
  /** How often liveness is asked for, how long an answer may take, and how much idleness is worth telling (0: none). */
  probe: { readonly intervalMs: number; readonly timeoutMs: number; readonly idleStopMs: number };
  /** The sidecar that runs or will run with the next start. */
  sidecar: Sidecar | null;
  /** A later request asked for another sidecar than the one that runs: the next start takes it. */
  pendingWish: SidecarWish;
  lockOwner: LockOwner | null;
  /** Size of the stderr log when this incarnation began: its own output starts here. */
  stderrFrom: number;
  sidecarStderrFrom: number;
}

/** Looks a supervised workspace up by its canonical path: one machine, provided once, serves all workspaces. */
export type FactsOf = (workspacePath: string) => WorkspaceFacts;
