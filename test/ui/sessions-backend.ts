/**
 * A stand-in for an agent server with traces, or for a Hub with workspaces, as the page sees them: every answer is checked
 * against the schema of its route, sessions are counted as the recorder counts them, and streams can be cut and resumed.
 * Tests and the page's benchmark fill it and make things happen in it.
 */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import superjson from 'superjson';
import * as v from 'valibot';
import { emptySum, fleetPage } from '../../src/hub/routes/fleet-list.ts';
import {
  AppServerRecord,
  type DashboardSession,
  DashboardSummary,
  EventPage,
  EventSummary,
  FleetList,
  fleetGroups,
  HubStatus,
  type InspectionRecord,
  type ModuleState,
  PageInfo,
  type Problem,
  RecentEvent,
  ServerExit,
  SessionDeleted,
  SessionPage,
  SessionsCleared,
  type WorkspaceCondition,
} from '../../src/protocol/index.ts';
import { answerProof } from '../prove.ts';
import { pagePort, sendPageFile } from './page-server.ts';
import { type EventInput, listed, Session, Stream } from './sessions-record.ts';

export type { EventInput } from './sessions-record.ts';

export const token = 'test-token-0123456789';

export interface BackendOptions {
  readonly kind?: 'workspace' | 'hub';
  readonly readOnly?: string;
  /** Whether every answer is held against its schema; default true. */
  readonly checks?: boolean;
}

/** @param pageDirectory where the page was built to */
export async function startBackend(
  pageDirectory: string,
  { kind = 'workspace', readOnly, checks = true }: BackendOptions = {},
) {
  const sessions = new Map<string, Session>();
  const events = new Stream();
  const inspect = new Stream();
  const requests: string[] = [];
  const bodies: unknown[] = [];
  const actors = new Map<string, InspectionRecord & { type: 'actor' }>();
  const state = {
    modules: [] as ModuleState[],
    provider: 'openai',
    model: 'gpt-test',
    activeTurns: 0,
    pendingApprovals: 0,
    restrictedSettings: [] as string[],
    droppedEvents: 0,
    records: [] as AppServerRecord[],
    hubProblems: [] as Problem[],
    hubEvents: [] as RecentEvent[],
    exits: [] as ServerExit[],
    /** Process of the Hub. */
    hubPid: 77,
    condition: undefined as WorkspaceCondition | undefined,
    /** The next request to such a path is answered with this error. */
    failures: new Map<string, { readonly status: number; readonly code: string; readonly message: string }>(),
    /** Requests to such a path are answered when this is resolved. */
    held: new Map<string, Promise<void>>(),
  };
  let newestId = 0;

  const helloFrame = () =>
    `id: hello\nevent: stream.hello\ndata: ${JSON.stringify({ bootId: 'a', newest: newestId })}\n\n`;
  events.begin = () => (kind === 'workspace' ? [helloFrame()] : []);
  inspect.begin = () =>
    [...actors.values()].map(
      (record, index) => `id: i-${index}\nevent: actor\ndata: ${superjson.stringify(record)}\n\n`,
    );

  const page = (): PageInfo => ({
    kind,
    version: '0.1.0',
    ...(kind === 'workspace' && { workspacePath: '/home/ada/projects/demo' }),
    ...(readOnly !== undefined && { readOnly }),
    views:
      kind === 'hub'
        ? ['now', 'overview', 'actors', 'events', 'logs']
        : ['overview', 'sessions', 'actors', 'events', 'logs'],
  });

  function summary(): DashboardSummary {
    const records = [...sessions.values()].map(({ record }) => record);
    const sum = (of: (record: DashboardSession) => number) => records.reduce((total, record) => total + of(record), 0);
    const all = [...sessions.values()].flatMap((session) => session.events.slice(-20));
    return {
      ...{ kind: 'workspace', workspacePath: '/home/ada/projects/demo', version: '0.1.0', pid: 4242 },
      startedAt: new Date(Date.now() - 3_600_000).toISOString(),
      ...{ provider: state.provider, model: state.model, sessionCount: sessions.size },
      ...{ turnCount: sum((r) => r.turnCount), failedTurnCount: sum((r) => r.failedTurnCount) },
      ...{ thinkingCount: sum((r) => r.thinkingCount), responseCount: sum((r) => r.responseCount) },
      ...{ toolCallCount: sum((r) => r.toolCallCount), toolFailureCount: sum((r) => r.toolFailureCount) },
      ...{ approvalCount: sum((r) => r.approvalCount), compactionCount: sum((r) => r.compactionCount) },
      ...{ errorCount: sum((r) => r.errorCount), inputTokens: sum((r) => r.inputTokens) },
      ...{ outputTokens: sum((r) => r.outputTokens), turnDurationMs: sum((r) => r.turnDurationMs) },
      ...{ cachedInputTokens: sum((r) => r.cachedInputTokens), reasoningTokens: sum((r) => r.reasoningTokens) },
      ...{ costUsd: sum((r) => r.costUsd), unpricedCount: sum((r) => r.unpricedCount) },
      modelFailureCount: sum((r) => r.modelFailureCount),
      ...{ toolDurationMs: sum((r) => r.toolDurationMs), approvalWaitMs: sum((r) => r.approvalWaitMs) },
      pauseMs: sum((r) => r.pauseMs),
      maxToolDurationMs: Math.max(0, ...records.map((r) => r.maxToolDurationMs)),
      ...{ eventCount: sum((r) => r.eventCount), totalTokens: sum((r) => r.totalTokens) },
      ...{ activeTurns: state.activeTurns, pendingApprovals: state.pendingApprovals },
      ...{ droppedEvents: state.droppedEvents, modules: state.modules },
      ...{ trust: state.restrictedSettings.length > 0 ? 'restricted' : 'trusted' },
      restrictedSettings: state.restrictedSettings,
      ...(state.condition && { condition: state.condition }),
      recentEvents: all
        .sort((a, b) => b.id - a.id)
        .slice(0, 20)
        .map((event) => listed(event, 'short')),
    };
  }

  function sessionPage(query: URLSearchParams): SessionPage {
    const text = (query.get('q') ?? '').toLowerCase();
    const status = query.get('status');
    const limit = Number(query.get('limit') ?? 100);
    const found = [...sessions.values()]
      .map(({ record }) => record)
      .filter(({ displayName = '', firstInput = '', sessionKey }) =>
        `${displayName} ${firstInput} ${sessionKey}`.toLowerCase().includes(text),
      )
      .filter(({ isRunning, errorCount, failedTurnCount, toolFailureCount }) => {
        if (status === 'running') return isRunning;
        return status !== 'failed' || errorCount + failedTurnCount + toolFailureCount > 0;
      })
      .sort((a, b) => b.lastActivityAt.localeCompare(a.lastActivityAt) || b.sessionKey.localeCompare(a.sessionKey));
    const cursor = query.get('cursor');
    const from = cursor === null ? 0 : found.findIndex(({ sessionKey }) => sessionKey === cursor) + 1;
    const part = found.slice(from, from + limit);
    const last = part.at(-1);
    return { sessions: part, ...(from + limit < found.length && last && { next: last.sessionKey }) };
  }

  function eventPage(sessionKey: string, query: URLSearchParams): EventPage {
    const session = sessions.get(sessionKey);
    const all = session?.events ?? [];
    const limit = Number(query.get('limit') ?? 1_000);
    const text = query.get('q')?.toLowerCase();
    const isDescending = query.get('order') === 'desc';
    const after = Number(query.get('after') ?? 0);
    const wanted =
      text === undefined ? all : all.filter(({ data }) => JSON.stringify(data).toLowerCase().includes(text));
    const start = after === 0 ? 0 : firstAfter(wanted, after);
    const found = isDescending ? wanted.slice(-limit).reverse() : wanted.slice(start, start + limit);
    const last = found.at(-1);
    const hasMore = isDescending ? wanted.length > limit : start + limit < wanted.length;
    return {
      ...(session && { session: session.record }),
      events: found.map((event) => listed(event, query.get('bodies') ?? 'short')),
      ...(hasMore && last && { next: last.id }),
    };
  }

  type Answer = readonly [status: number, body: unknown, schema?: v.GenericSchema];
  const fault = (status: number, code: string, message: string): Answer => [
    status,
    { error: { code, message, details: null } },
  ];

  function remove(sessionKey: string): Answer {
    const session = sessions.get(sessionKey);
    if (!session) return fault(404, 'sessionNotFound', 'There is no such session.');
    if (session.record.isRunning) return fault(409, 'sessionActive', 'A turn of this session is running.');
    sessions.delete(sessionKey);
    events.send([['session.deleted', JSON.stringify({ sessionKey })]]);
    return [200, { deleted: true, sessionKey }, SessionDeleted];
  }

  function removeAll(): Answer {
    const kept = [...sessions.values()].filter(({ record }) => record.isRunning).map(({ record }) => record.sessionKey);
    const deleted = sessions.size - kept.length;
    for (const key of sessions.keys()) if (!kept.includes(key)) sessions.delete(key);
    events.send([['session.deleted', JSON.stringify({ sessionKey: null })]]);
    return [200, { deleted, kept }, SessionsCleared];
  }

  /** Answers by method and path; groups of the path are passed on, decoded. */
  const routes: readonly (readonly [
    RegExp,
    (parts: readonly string[], query: URLSearchParams, body: unknown) => Answer,
  ])[] = [
    [/^GET \/(?:dashboard\/api|v1)\/page$/, () => [200, page(), PageInfo]],
    [/^GET \/dashboard\/api\/summary$/, () => [200, summary(), summarySchema]],
    [/^GET \/dashboard\/api\/sessions$/, (_, query) => [200, sessionPage(query), SessionPage]],
    [
      /^GET \/dashboard\/api\/sessions\/([^/]+)\/events$/,
      ([key = ''], query) => [200, eventPage(key, query), eventPageSchema],
    ],
    [
      /^GET \/dashboard\/api\/sessions\/([^/]+)\/events\/(\d+)$/,
      ([key = '', id]) => {
        const event = sessions.get(key)?.events.find((each) => each.id === Number(id));
        return event ? [200, event, anyEvent] : fault(404, 'eventNotFound', 'This session has no such event.');
      },
    ],
    [/^DELETE \/api\/sessions\/([^/]+)$/, ([key = '']) => remove(key)],
    [/^DELETE \/api\/sessions$/, removeAll],
    [
      /^GET \/v1\/status$/,
      () => [
        200,
        {
          ...{ hubVersion: '0.1.0', pid: state.hubPid, startedAt: new Date(Date.now() - 60_000).toISOString() },
          ...{ statePath: '/home/ada/.oratorio/hub', apiBaseUrl: 'http://127.0.0.1:1' },
          capabilities: {
            appServerManagement: true,
            portManagement: true,
            events: true,
            notifications: true,
            tray: false,
          },
          ...(state.hubProblems.length > 0 && { problems: state.hubProblems }),
        },
        HubStatus,
      ],
    ],
    [
      /^GET \/v1\/events\/recent$/,
      (_, query) => [
        200,
        state.hubEvents.filter(({ kind, workspacePath }) => {
          return [kind, null].includes(query.get('kind')) && [workspacePath, null].includes(query.get('path'));
        }),
        v.array(RecentEvent),
      ],
    ],
    [/^GET \/v1\/appservers\/exits$/, () => [200, state.exits, v.array(ServerExit)]],
    [/^GET \/v1\/appservers$/, () => [200, state.records, v.array(AppServerRecord)]],
    [/^GET \/v1\/fleet\/appservers$/, (_, query) => [200, fleetOf(state.records, query), FleetList]],
    [
      /^GET \/v1\/appservers\/dashboard$/,
      (_, query) => [200, { url: `${origin}/opened?${query}#token=of-the-workspace` }],
    ],
    [
      /^POST \/v1\/appservers\/(ensure|restart|stop)$/,
      (_, __, body) => {
        bodies.push(body);
        return [200, {}];
      },
    ],
  ];

  function apiAnswer(method: string, url: URL, body: unknown): Answer {
    const path = url.pathname.replace(/^\/dashboard/i, '/dashboard');
    const failure = state.failures.get(`${method} ${path}`);
    if (failure) {
      state.failures.delete(`${method} ${path}`);
      return fault(failure.status, failure.code, failure.message);
    }
    for (const [pattern, run] of routes) {
      const match = pattern.exec(`${method} ${path}`);
      if (match) return run(match.slice(1).map(decodeURIComponent), url.searchParams, body);
    }
    return fault(404, 'notFound', 'There is no such route.');
  }

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (answerProof(request, response, ['hub', 'dashboard'], [token])) return;
    const { method = 'GET' } = request;
    const url = new URL(request.url ?? '/', 'http://localhost');
    const path = url.pathname;
    requests.push(`${method} ${path}${url.search}`);
    if (!/^\/(dashboard\/)?(api|v1)\//i.test(path)) return servePage(path, response);
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    if (request.headers.authorization !== `Bearer ${token}`) {
      response.writeHead(401, { 'content-type': 'application/json' });
      response.end('{"error":{"code":"unauthorized","message":"Missing or wrong token.","details":null}}');
      return;
    }
    if (path === '/dashboard/api/events/stream' || path === '/v1/fleet/events') return events.serve(request, response);
    if (path === '/dashboard/api/inspect' || path === '/v1/inspect') return inspect.serve(request, response);
    await state.held.get(path.replace(/^\/dashboard/i, '/dashboard'));
    const text = Buffer.concat(chunks).toString();
    const [status, content, schema] = apiAnswer(method, url, text === '' ? undefined : JSON.parse(text));
    if (checks && schema) v.parse(schema, content);
    response
      .writeHead(status, { 'content-type': 'application/json', 'cache-control': 'no-store' })
      .end(JSON.stringify(content));
  }

  async function servePage(path: string, response: ServerResponse): Promise<void> {
    if (path === '/opened') {
      response.writeHead(200, { 'content-type': 'text/plain' }).end('Another server is here.');
      return;
    }
    const file = /^\/(dashboard\/?)?$/i.test(path) ? 'index.html' : path.replace(/^\/dashboard\//i, '/');
    await sendPageFile(response, pageDirectory, file);
  }

  const failed: unknown[] = [];
  const server = createServer((request, response) => {
    answer(request, response).catch((error: unknown) => {
      // The page aborts requests whose answer is obsolete.
      if ((error as NodeJS.ErrnoException).code !== 'ECONNRESET') failed.push(error);
      response.destroy();
    });
  });
  const port = await pagePort();
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  const origin = `http://127.0.0.1:${port}`;

  function record(sessionKey: string, inputs: readonly EventInput[]): EventSummary[] {
    const session = sessions.get(sessionKey) ?? new Session(sessionKey, {});
    sessions.set(sessionKey, session);
    return inputs.map(({ at, data = {}, ...rest }) => {
      newestId += 1;
      const event = { ...rest, id: newestId, sessionKey, at: new Date(at ?? Date.now()).toISOString(), data };
      // Some tests send a type that this version does not know.
      session.add(event as EventSummary);
      return event as EventSummary;
    });
  }

  return {
    origin,
    url: `${origin}/${kind === 'hub' ? '' : 'DashBoard'}`,
    token,
    sessions,
    events,
    inspect,
    requests,
    bodies,
    state,
    /** Answers of this stand-in that violate their schema. */
    failed,

    /** Adds a session with events recorded before the page opens. */
    seed(sessionKey: string, facts: Partial<DashboardSession>, inputs: readonly EventInput[]): void {
      sessions.set(sessionKey, new Session(sessionKey, facts));
      record(sessionKey, inputs);
      Object.assign(sessions.get(sessionKey)?.record ?? {}, facts);
    },

    /** Records events and sends them on the stream. */
    emit(sessionKey: string, inputs: readonly EventInput[]): EventSummary[] {
      const added = record(sessionKey, inputs);
      events.send(added.map((event) => [event.type, JSON.stringify(listed(event, 'short'))]));
      return added;
    },

    /** Records events without sending them. */
    record,

    /** Publishes an actor of the Hub: a new agent server, or its new states. */
    actor(
      path: string,
      states: readonly string[],
      projection: Record<string, string | number | boolean | null> = {},
    ): void {
      const at = new Date();
      const actor: InspectionRecord & { type: 'actor' } = {
        ...{ type: 'actor', id: path, parent: 'hub', machine: 'agent-server', title: path, states: [...states] },
        ...{ at, projection, steps: 0, since: at, statistics: {} },
      };
      actors.set(path, actor);
      inspect.send([['actor', superjson.stringify(actor)]]);
      const [current] = states;
      state.records = state.records.map((record) =>
        record.canonicalWorkspacePath === path && current !== undefined
          ? { ...record, ...projection, state: current as AppServerRecord['state'], phase: states.at(-1) ?? current }
          : record,
      );
      events.send([['appserver.changed', '{}']]);
    },

    async close(): Promise<void> {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

/** The list of a Hub without hosts. */
function fleetOf(records: readonly AppServerRecord[], query: URLSearchParams): FleetList {
  const sums = [emptySum(null)];
  const { rows, next } = fleetPage(
    records.map((record) => ({ host: null, record })),
    sums,
    {
      state: '',
      group: fleetGroups.find((each) => each === query.get('group')) ?? '',
      words: (query.get('q') ?? '').toLowerCase().split(/\s+/).filter(Boolean),
      path: query.get('path'),
      isByAttention: query.get('order') === 'attention',
      after: query.get('after') ?? '',
      limit: Number(query.get('limit') ?? 100),
    },
  );
  const appServers = rows.map(({ record }) => ({ ...record, host: null, asOf: null }));
  return { appServers, hosts: [], sums, next };
}

export type Backend = Awaited<ReturnType<typeof startBackend>>;

/** `EventSummary` with any type, as a newer server may send it. */
const anyEvent = v.object({ ...EventSummary.entries, type: v.string() });
const summarySchema = v.object({ ...DashboardSummary.entries, recentEvents: v.array(anyEvent) });
const eventPageSchema = v.object({ ...EventPage.entries, events: v.array(anyEvent) });

function firstAfter(events: readonly EventSummary[], id: number): number {
  let low = 0;
  let high = events.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((events[middle]?.id ?? 0) <= id) low = middle + 1;
    else high = middle;
  }
  return low;
}
