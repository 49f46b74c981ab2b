import { ModelError, StorageError } from '../agent/index.ts';
import type { Config } from '../config/index.ts';
import type { Conversations, Dashboard, RuntimeStatus } from '../dashboard/index.ts';
import type { Socket } from '../http/index.ts';
import type { Logger, RecentLog } from '../log/index.ts';
import {
  defaults,
  type ModuleState,
  ownAgent,
  pageMethods,
  pageViews,
  type WorkspaceCondition,
} from '../protocol/index.ts';
import type { DashboardTokens } from '../supervise/index.ts';
import type { ActiveSessions } from './activity.ts';
import type { Assembly } from './assembly.ts';
import { Connection, type ConnectionOptions } from './connection.ts';
import type { HealthWatch } from './health-watch.ts';
import type { Observatory } from './observatory.ts';
import type { DashboardListener } from './services.ts';

export interface DashboardParts {
  readonly workspacePath: string;
  readonly home: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly config: Config;
  readonly tokens: () => DashboardTokens;
  readonly assembly: Pick<Assembly, 'runtime' | 'traces' | 'mcp' | 'automations' | 'spending' | 'sandbox'>;
  readonly health: Pick<HealthWatch, 'report' | 'problems'>;
  readonly active: ActiveSessions;
  readonly observatory: Observatory;
  readonly recentLog: RecentLog;
  readonly startedAt: string;
  /** Returns the addresses of the services that answer. */
  readonly endpoints: () => Readonly<Record<string, string | undefined>>;
  readonly connection: Omit<ConnectionOptions, 'wire'>;
  readonly isReady: () => boolean;
  readonly metrics: (() => string | Promise<string>) | undefined;
  readonly logger: Logger;
}

/** The inbox is the Hub's: it is about all workspaces. */
const views = pageViews.filter((view) => view !== 'now' && view !== 'inbox' && view !== 'threads');

/** The dashboard of an agent server that runs. */
export async function openDashboard(
  parts: DashboardParts,
  { ownsListener, isOwn }: DashboardListener,
): Promise<Dashboard> {
  const { Access, createDashboard } = await import('../dashboard/index.ts');
  const { workspacePath, home, env, config, tokens, assembly, active, observatory, logger } = parts;
  const { traces } = assembly;
  const { Auth, Username, Password } = config.DashBoard;
  if (Auth === 'none') {
    logger.warn(
      'the dashboard runs without authentication: every user of this machine can read it and delete sessions',
    );
  }
  return createDashboard(
    {
      workspacePath,
      access: new Access({ tokens, auth: Auth, username: Username, password: Password }),
      isOwn,
      traces,
      feed: traces,
      flush: () => traces.flush(),
      status: () => statusOf(parts),
      isRunning: ({ sessionKey }) => active.has(sessionKey),
      views: Auth === 'none' ? views.filter((view) => view !== 'chat') : views,
      config: { home, workspace: workspacePath, env },
      logger,
      deletion: {
        delete: (sessionKey) => traces.deleteSession(sessionKey),
        deleteAll: (keep) => traces.deleteAllSessions(keep),
        running: () => active.all(),
      },
      onDeleted: (listener) =>
        assembly.runtime.feed.join(({ method, params }) => {
          if (method === 'thread/deleted') listener(params.threadId);
        }),
      automations: assembly.automations,
      // Without a token, any user of this machine can read the page.
      logIn: Auth === 'none' ? undefined : (server, redirect) => assembly.mcp.login(server, redirect),
      conversations: conversationsOf(parts),
      recentLog: parts.recentLog,
      inspection: () => observatory.source(),
      metrics: parts.metrics,
    },
    ownsListener,
  );
}

/** Connections of pages: the protocol of every client, with fewer methods. */
function conversationsOf({ connection, isReady }: Pick<DashboardParts, 'connection' | 'isReady'>): Conversations {
  const connections = new WeakMap<Socket, Connection>();
  return {
    isReady,
    open: (socket) => {
      const options = { ...connection, allowed: pageMethods, mergeDeltasMs: defaults.dashboard.mergeDeltasMs };
      connections.set(socket, new Connection({ ...options, wire: socket }));
    },
    message: (socket, text) => connections.get(socket)?.receive(text),
    close: (socket) => connections.get(socket)?.close(),
  };
}

async function statusOf(parts: DashboardParts): Promise<RuntimeStatus> {
  const { assembly, startedAt } = parts;
  const { runtime, traces } = assembly;
  const model = await runtime.describe().catch((error: unknown) => {
    // The configuration is invalid: no model answers, and the view shows that.
    if (error instanceof ModelError) return error;
    throw error;
  });
  const known = model instanceof ModelError ? { provider: '', model: '' } : model;
  return {
    pid: process.pid,
    startedAt,
    provider: known.provider,
    model: known.model,
    activeTurns: runtime.turns.count,
    pendingApprovals: runtime.turns.approvals().length,
    ...spentToday(assembly),
    droppedEvents: traces.dropped,
    condition: conditionOf(parts),
    modules: [providerModule(model, parts.health), ...modulesOf(parts)],
  };
}

function spentToday({ spending }: DashboardParts['assembly']): Pick<RuntimeStatus, 'spentTodayUsd'> {
  try {
    return { spentTodayUsd: spending.today() };
  } catch (error) {
    // The ledger was reported when it could not be written.
    if (error instanceof StorageError) return {};
    throw error;
  }
}

function conditionOf({ health: watch }: DashboardParts): WorkspaceCondition {
  const { health, lastTurn, failuresInARow, model, agent, sandbox } = watch.report();
  return { health, problems: watch.problems(), lastTurn, failuresInARow, model, agent, sandbox };
}

/** A provider that the last turns could not use is not running, even with valid settings. An external agent needs none. */
function providerModule(
  model: ModelError | { readonly provider: string; readonly model: string },
  health: DashboardParts['health'],
): ModuleState {
  const { agent } = health.report();
  if (agent && agent.kind !== ownAgent)
    return { name: 'provider', state: 'disabled', reason: `The agent ${agent.name} does the turns.` };
  if (model instanceof ModelError) return { name: 'provider', state: 'failed', reason: model.message };
  const facts = { provider: model.provider, model: model.model };
  const problem = health.problems().find(({ code }) => code.startsWith('upstream') || code === 'budgetReached');
  if (problem) return { name: 'provider', state: 'failed', reason: problem.what, facts };
  return { name: 'provider', state: 'running', facts };
}

function modulesOf({ assembly, config, endpoints }: DashboardParts): ModuleState[] {
  const { runtime, traces, mcp, automations } = assembly;
  const { api, agui, dashboard } = endpoints();
  return [
    { name: 'threads', state: 'running', facts: { activeTurns: runtime.turns.count } },
    tracesModule(config.Tracing.Enabled, traces.dropped),
    automationsModule(config.Automations.Enabled, automations.describe()),
    mcpModule(mcp.describe()),
    service('api', api, 'Api.Enabled is false.'),
    service('agui', agui, 'AgUi.Enabled is false.'),
    service('dashboard', dashboard, 'DashBoard.Enabled is false.'),
    sandboxModule(assembly.sandbox, config.Tools.Shell.Sandbox),
  ];
}

function automationsModule(isEnabled: boolean, described: Readonly<Record<string, unknown>>): ModuleState {
  if (!isEnabled) return { name: 'automations', state: 'disabled', reason: 'Automations.Enabled is false.' };
  const facts = Object.entries(described).flatMap(([key, value]) =>
    typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean' ? [[key, value] as const] : [],
  );
  return { name: 'automations', state: 'running', facts: Object.fromEntries(facts) };
}

function tracesModule(isEnabled: boolean, dropped: number): ModuleState {
  if (!isEnabled) return { name: 'traces', state: 'disabled', reason: 'Tracing.Enabled is false.' };
  if (dropped === 0) return { name: 'traces', state: 'running' };
  return { name: 'traces', state: 'degraded', reason: 'The disk did not take all of them.', facts: { dropped } };
}

/** Off is a decision of the user; missing is not. */
function sandboxModule({ state: found }: Assembly['sandbox'], mode: string): ModuleState {
  const facts = { mode };
  if (found === null) return { name: 'sandbox', state: 'disabled', reason: 'The first turn tries it.', facts };
  const { state, reason } = found;
  if (state === 'on') return { name: 'sandbox', state: 'running', facts: { mode, by: reason } };
  const level = state === 'failed' ? 'failed' : mode === 'off' ? 'disabled' : 'degraded';
  return { name: 'sandbox', state: level, reason: `${reason}.`, facts };
}

function mcpModule({ total, byState }: ReturnType<Assembly['mcp']['describe']>): ModuleState {
  const facts = { total, ...byState };
  if (total === 0) return { name: 'mcp', state: 'disabled', reason: 'No MCP server is configured.', facts };
  const { failed = 0, needsLogin = 0 } = byState;
  if (failed + needsLogin === 0) return { name: 'mcp', state: 'running', facts };
  const reasons = [
    ...(failed > 0 ? [`${failed} of ${total} servers have failed.`] : []),
    ...(needsLogin > 0 ? [`${needsLogin} of ${total} want a log-in: oratorio mcp login.`] : []),
  ];
  return { name: 'mcp', state: 'degraded', reason: reasons.join(' '), facts };
}

function service(name: string, url: string | undefined, off: string): ModuleState {
  return url === undefined ? { name, state: 'disabled', reason: off } : { name, state: 'running', url };
}
