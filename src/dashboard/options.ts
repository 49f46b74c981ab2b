import type { TraceReader } from '../agent/index.ts';
import type { ConfigPlace } from '../config/index.ts';
import type { WebSocketRoute } from '../http/index.ts';
import type { InspectionSource } from '../inspect/index.ts';
import type { Logger, RecentLog } from '../log/index.ts';
import type {
  Automation,
  AutomationInput,
  AutomationRun,
  AutomationsState,
  ModuleState,
  PageView,
  TraceEvent,
  TraceSession,
  WorkspaceCondition,
} from '../protocol/index.ts';
import type { Access } from './access.ts';

/** Automations as the dashboard uses them. Errors are `AgentError`, named by the table of the protocol. */
export interface Automations {
  state(): Promise<AutomationsState>;
  /** Reads all schedules again. @returns the new state */
  refresh(): Promise<AutomationsState>;
  /** @throws AgentError automationNotFound */
  read(id: string): Promise<Automation>;
  /** @throws AgentError automationInvalid */
  add(kind: 'cron', input: AutomationInput): Promise<Automation>;
  run(id: string): Promise<Automation>;
  setEnabled(id: string, enabled: boolean): Promise<Automation>;
  /** Whether there was one. */
  remove(id: string): Promise<boolean>;
  /** Newest first; `before` is a runId. */
  runs(
    id: string,
    range: { readonly limit: number; readonly before?: string | undefined },
  ): Promise<{ readonly data: readonly AutomationRun[]; readonly next?: string | undefined }>;
  /** Calls `listener` after every change. Returns a function that ends this. */
  subscribe(listener: () => void): () => void;
}

/** Present activity, besides the stored traces. */
export interface RuntimeStatus {
  readonly pid: number;
  readonly startedAt: string;
  readonly provider: string;
  readonly model: string;
  readonly activeTurns: number;
  readonly pendingApprovals: number;
  readonly droppedEvents: number;
  /** Spent today by all workspaces, in US dollars; absent when it is unknown. */
  readonly spentTodayUsd?: number;
  /** Whether turns and tools work; absent where no agent server runs. */
  readonly condition?: WorkspaceCondition;
  readonly modules: readonly ModuleState[];
}

/** Where the stream hears of new events: those stored from now on, in order. */
export interface TraceFeed {
  subscribe(listener: (events: readonly TraceEvent[]) => void): () => void;
}

/** Deletes recorded sessions. The conversations themselves stay. */
export interface SessionDeletion {
  /** Whether there was one. @throws StorageError */
  delete(sessionKey: string): boolean;
  /** All but `keep`. @returns how many. @throws StorageError */
  deleteAll(keep: readonly string[]): number;
  /** Sessions whose turn runs: they are not deleted. */
  running(): ReadonlySet<string>;
}

/** Handles the WebSockets of pages that are admitted. */
export type Conversations = Pick<WebSocketRoute<unknown>, 'open' | 'message' | 'close'> & {
  /** False while the server starts or stops: then no page is admitted. */
  readonly isReady: () => boolean;
};

/** Everything that one dashboard shows, supplied by its server. */
export interface DashboardOptions {
  readonly workspacePath: string;
  readonly access: Access;
  /** Whether clients that believe to speak to `host[:port]` speak to this server. */
  readonly isOwn: (authority: string) => boolean;
  readonly traces: TraceReader;
  readonly feed: TraceFeed;
  /** Writes all pending events to the database, so that the next read sees them. */
  readonly flush?: (() => void) | undefined;
  readonly status: () => RuntimeStatus | Promise<RuntimeStatus>;
  readonly isRunning: (session: TraceSession) => boolean;
  readonly views: readonly PageView[];
  readonly config: ConfigPlace;
  readonly logger: Logger;
  /** Why nothing can be changed here; absent when it can. */
  readonly readOnly?: string | undefined;
  /** Absent: nothing can be deleted. */
  readonly deletion?: SessionDeletion | undefined;
  /** Reports sessions that are deleted elsewhere. Returns a function that ends the reports. */
  readonly onDeleted?: ((listener: (sessionKey: string) => void) => () => void) | undefined;
  readonly automations?: Automations | undefined;
  /**
   * Starts a log-in at an MCP server, or completes it with the last address of its browser. Returns the address for a browser on this
   * machine. Absent: log-in is disabled. @throws AgentError
   */
  readonly logIn?: ((server: string, redirect?: string) => Promise<string>) | undefined;
  /** Conversations with the agent over a WebSocket. Absent: there is no agent to speak to. */
  readonly conversations?: Conversations | undefined;
  readonly recentLog?: RecentLog | undefined;
  /** The stream of actors. */
  readonly inspection?: (() => Promise<InspectionSource>) | undefined;
  /** Metrics in Prometheus' text format. */
  readonly metrics?: (() => string | Promise<string>) | undefined;
}
