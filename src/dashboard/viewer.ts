import { type History, openHistory, StorageError } from '../agent/index.ts';
import { StoredAutomations } from '../automations/index.ts';
import { type Config, workspaceStateDirectory } from '../config/index.ts';
import { createServer, type HttpServer, knownHosts, ownAuthorities, publishedAs } from '../http/index.ts';
import { hostAndPort, isLoopback } from '../lib/index.ts';
import type { Logger } from '../log/index.ts';
import {
  type AgentInUse,
  type AppServerLock,
  defaults,
  type ModuleState,
  type PageView,
  type Problem,
} from '../protocol/index.ts';
import {
  type DashboardTokens,
  emptiedHistory,
  isAlive,
  lostHistory,
  probeLock,
  readAppServer,
  workspaceFiles,
} from '../supervise/index.ts';
import { Access } from './access.ts';
import { readConversations } from './conversations.ts';
import { dashboardGuard, dashboardHeaders } from './guard.ts';
import type { RuntimeStatus } from './options.ts';
import { polledFeed } from './poll.ts';
import { createDashboard } from './routes.ts';
import { readChanges } from './stored-changes.ts';

export interface ViewerOptions {
  /** Canonical. */
  readonly workspacePath: string;
  /** The user's home of Oratorio. */
  readonly home: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly config: Config;
  /** Further secrets that no text may show. */
  readonly secrets?: readonly string[];
  readonly tokens: () => DashboardTokens;
  readonly address: { readonly host: string; readonly port: number };
  /** Rather another port than none. */
  readonly takesAnyPort: boolean;
  readonly logger: Logger;
  /** Shows a workspace whose history is missing or damaged, too. */
  readonly isHistoryOptional?: boolean;
  /** Agent of the last start; null when it is unknown. */
  readonly agent?: AgentInUse | null;
}

/** A viewer that answers. */
export interface Viewer {
  readonly host: string;
  readonly port: number;
  /** Why the history is incomplete; undefined when it is not. */
  readonly problem: Problem | undefined;
  close(): Promise<void>;
}

/** A viewer that cannot be opened; the message is for people. */
export class ViewerError extends Error {
  override readonly name = 'ViewerError';
}

const readOnly = 'This is the read-only viewer: it shows recorded data. The agent server can change things.';
const views: readonly PageView[] = ['overview', 'chat', 'sessions', 'automations', 'settings', 'events'];

/**
 * Shows the recorded events of a workspace, with or without an agent server. It holds no lock and writes nothing; new
 * events are looked for in the database.
 *
 * @throws ViewerError when there is nothing to show, others could reach it unprotected, or the address cannot be had
 */
export async function openViewer(options: ViewerOptions): Promise<Viewer> {
  const { workspacePath, home, env, config, address, logger } = options;
  const { Auth, Username, Password, AllowedHosts } = config.DashBoard;
  const isPublic = !isLoopback(address.host);
  if (isPublic && (Username === '' || Password === '' || Auth === 'none')) {
    throw new ViewerError(
      `DashBoard.Username and DashBoard.Password must be set, and Auth be "token", to listen on ${address.host}, which others can reach`,
    );
  }
  if (Auth === 'none') logger.warn('the viewer runs without authentication: every user of this machine can read it');
  const directory = workspaceStateDirectory(home, workspacePath);
  const isOptional = options.isHistoryOptional ?? false;
  const emptied = ownerOf(options) ? undefined : emptiedHistory(directory);
  if (emptied && !isOptional) throw new ViewerError(emptied.what);
  const history = open(directory, isOptional);
  const { traces } = history;
  const tokens = options.tokens();
  let listening: HttpServer | undefined;
  const dashboard = createDashboard(
    {
      workspacePath,
      access: new Access({ tokens: options.tokens, auth: Auth, username: Username, password: Password }),
      isOwn: ownAuthorities({ bound: () => listening?.bound, names: AllowedHosts, published: publishedAs(env) }),
      traces,
      feed: polledFeed(traces, (error) => logger.warn('the traces cannot be read', { error })),
      status: statusOf(options, traces),
      isRunning: ({ lastStatus }) => lastStatus === 'running' && ownerOf(options) !== undefined,
      views: Auth === 'none' ? views.filter((view) => view !== 'chat') : views,
      config: { home, workspace: workspacePath, env },
      logger,
      readOnly,
      automations: new StoredAutomations(history.schedules),
      conversations: readConversations(history.threads, {
        agent: options.agent ?? null,
        readOnly,
        onBug: (error) => logger.bug(error),
        diff: readChanges({
          home,
          workspacePath,
          config,
          secrets: [tokens.current, ...tokens.earlier, ...(options.secrets ?? [])],
        }),
      }),
    },
    true,
  );
  const server = await createServer(
    {
      routes: dashboard.routes,
      webSockets: dashboard.webSockets,
      guard: dashboardGuard,
      headers: dashboardHeaders,
      hostAllowed: knownHosts({ isPublic, names: [address.host, ...AllowedHosts] }),
      errorBody: ({ code, message, details }) => ({ error: { code, message, details } }),
      onBug: (error, errorId) => logger.error('a request failed because of a bug', { errorId, error }),
      limits: {
        bodyBytes: defaults.http.hubBodyBytes,
        deadlineMs: defaults.http.requestDeadlineMs,
        sseBufferBytes: defaults.dashboard.streamBufferBytes,
        sseHeartbeatMs: defaults.sse.heartbeatMs,
        sseRetryMs: defaults.sse.retryMs,
      },
    },
    'auto',
    (reason) => logger.warn('uWebSockets.js does not load here; serving on node:http instead', { reason }),
  );
  listening = server;
  const close = async () => {
    dashboard.close();
    await server.close(defaults.http.closeGraceMs);
    history.close();
  };
  try {
    return { ...(await bind(server, options)), problem: lostHistory(directory), close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** @throws ViewerError when there is no database, or none that can be read */
function open(directory: string, isOptional: boolean): History {
  try {
    return openHistory(directory, isOptional);
  } catch (error) {
    if (error instanceof StorageError) throw new ViewerError(error.message, { cause: error });
    throw error;
  }
}

async function bind(server: HttpServer, { address, takesAnyPort, logger }: ViewerOptions) {
  try {
    return await server.listen(address);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    const isTaken = code === 'EADDRINUSE' || code === 'EACCES';
    if (!takesAnyPort || !isTaken || address.port === 0) {
      const reason = code === 'EADDRINUSE' ? 'the port is taken' : (error as Error).message;
      throw new ViewerError(`cannot listen on ${hostAndPort(address)}: ${reason}`, { cause: error });
    }
    logger.warn('the port cannot be had; taking a free one', { ...address, code });
    return server.listen({ host: address.host, port: 0 });
  }
}

/** The agent server of this home that holds the workspace now. */
function ownerOf({ home, workspacePath }: Pick<ViewerOptions, 'home' | 'workspacePath'>): AppServerLock | undefined {
  const files = workspaceFiles(home, workspacePath);
  if (probeLock(files.mutexPath) !== 'held') return undefined;
  const read = readAppServer(files);
  return read.kind === 'ok' && isAlive(read.value.identity) !== 'gone' ? read.value : undefined;
}

function statusOf(options: ViewerOptions, traces: History['traces']): () => RuntimeStatus {
  const startedAt = new Date().toISOString();
  return () => {
    const owner = ownerOf(options);
    const lost = lostHistory(workspaceStateDirectory(options.home, options.workspacePath));
    const running = owner ? traces.sessions({ limit: defaults.dashboard.maxSessionsPerPage, status: 'running' }) : [];
    return {
      pid: process.pid,
      startedAt,
      provider: '',
      model: options.config.Model,
      activeTurns: running.length,
      pendingApprovals: 0,
      droppedEvents: 0,
      ...(lost && {
        condition: {
          health: 'unknown',
          problems: [lost],
          lastTurn: null,
          failuresInARow: 0,
          model: null,
          agent: null,
          sandbox: null,
        },
      }),
      modules: [agentServerModule(owner), { name: 'dashboard', state: 'running', reason: readOnly }],
    };
  };
}

function agentServerModule(owner: AppServerLock | undefined): ModuleState {
  if (!owner) return { name: 'agentServer', state: 'disabled', reason: 'No agent server runs in this workspace.' };
  const url = owner.endpoints['dashboard'];
  return { name: 'agentServer', state: 'running', ...(url !== undefined && { url }), facts: { pid: owner.pid } };
}
