import type { SupervisionPolicy } from '../../machines/index.ts';
import type { Logger } from '../log/index.ts';
import type { PlaceSettings } from '../places/index.ts';
import type { HubEventData, HubEventKind, ProcessIdentity, ServiceName, ServiceStatus } from '../protocol/index.ts';
import type { PortAllocator } from '../supervise/index.ts';
import type { FeedConnection } from './contact.ts';
import type { Credentials } from './credentials.ts';
import type { ExitHistory } from './exit-history.ts';
import type { Sidecar, SidecarRequests } from './sidecar-request.ts';
import type { SleepingPorts } from './sleeping-ports.ts';
import type { StoredWorkspace } from './store.ts';

/** Services that all workspaces of one Hub share. */
export interface HubServices {
  /** User home: `config.json` is read from here. */
  readonly home: string;
  /** `<home>/hub`: `hub.lock`, `appservers.json`, logs. */
  readonly statePath: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Command line that runs an agent server; `--workspace P --managed` is appended. */
  readonly agentServer: { readonly command: string; readonly args: readonly string[] };
  /** Overrides the configuration and our defaults. */
  readonly policy: Partial<SupervisionPolicy>;
  readonly credentials: Credentials;
  readonly ports: PortAllocator;
  readonly logger: Logger;
  publish<K extends HubEventKind>(kind: K, workspacePath: string | null, data: HubEventData<K>): void;
  /** Resolves when everything known now is on disk. */
  save(): Promise<void>;
}

/** Holder of a workspace lock that is not ours to take. */
export interface LockOwner {
  readonly pid: number | null;
  readonly lockPath: string;
}

/**
 * Facts about a workspace beside its statechart: addresses with their tokens, the sidecar's key, places of logs.
 * It stays here because nothing secret may enter a machine. Written by the actors of `actors/`, read by `record.ts`.
 */
export interface WorkspaceFacts {
  readonly stored: StoredWorkspace;
  /** Names the workspace in addresses of the Hub: see `Credentials.workspaceId`. */
  readonly id: string;
  /** Directory of the log files of this workspace's agent server; the sidecar's is `sidecar` in it. */
  readonly logDirectory: string;
  /** Real addresses while a server runs or starts, tokens included. */
  endpoints: Record<string, string>;
  /** Services that the configuration enables; `running` is decided when the record is made. */
  services: Partial<Record<ServiceName, ServiceStatus>>;
  /** Mark of the present start, also the identity that probes ask for. */
  marker: string | null;
  /** Every token and key of this workspace that a log may show, also of starts that are over. */
  readonly secrets: Set<string>;
  /** Text that the next spawn writes to the child's standard input. */
  launchDocument: string | null;
  /** Container settings of the present start; null: a process of this machine. */
  container: PlaceSettings | null;
  /** Names of environment variables the configuration refers to. */
  passEnvironment: readonly string[];
  /** How often liveness is asked for, and how long an answer may take. */
  probe: { readonly intervalMs: number; readonly timeoutMs: number };
  /** The connection that is open while its agent server serves. */
  readonly contact: FeedConnection;
  /** Requested sidecars with their keys. Which one applies is decided in the machine, by number. */
  readonly sidecars: SidecarRequests;
  /** The sidecar that the launch document of the present start names. */
  sidecar: Sidecar | null;
  /** When the restart is due that the last `appserver.exited` announced, as ISO 8601; null when none follows. */
  nextAttemptAt: string | null;
  /** Ports of the agent server while it sleeps, and connections that waited for its start; null: it has not slept. */
  sleepingPorts: SleepingPorts | null;
  /** Times of the latest facts of unfinished turns, see `unfinishedTurns`; null: not read since the last server ended. */
  turnsLeft: readonly number[] | null;
  lockOwner: LockOwner | null;
  /** The server that runs without a Hub, to notice its end. Never signalled, never saved. */
  external: ProcessIdentity | null;
  /** Size of the stderr log when the process of this incarnation was spawned; null before that. */
  stderrFrom: number | null;
  sidecarStderrFrom: number | null;
  /** Standard error of the process that ended last; null while one runs or starts. */
  lastStderr: string | null;
  /** Ends of the workspace's agent servers. */
  readonly exits: ExitHistory;
}

/** Looks a supervised workspace up by its canonical path: one machine, provided once, serves all workspaces. */
export type FactsOf = (workspacePath: string) => WorkspaceFacts;
