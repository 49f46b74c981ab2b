/**
 * A small stand-in for an agent server (or a Hub) as the page sees it: the built page with the headers it is served with,
 * the Dashboard API over values that tests set, and event streams that tests speak on, cut, and resume.
 */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { settingsJsonSchema } from '../../src/config/index.ts';
import type {
  AppServerRecord,
  AutomationRun,
  AutomationsState,
  ConfigView,
  DashboardSession,
  DashboardSummary,
  EventSummary,
  LogLine,
  PageInfo,
  RecentEvent,
} from '../../src/protocol/index.ts';
import { answerProof } from '../prove.ts';
import { pagePort, sendPageFile } from './page-server.ts';

export const token = 'test-token-0123456789';
export const workspacePath = '/home/ada/projects/demo';
const heartbeatMs = 5_000;

interface Frame {
  readonly id: string;
  readonly text: string;
}

/** Event stream with numbered, stored frames that can be resumed by id. */
class Stream {
  readonly readers = new Set<ServerResponse>();
  opened = 0;
  #boot = 'b1';
  #frames: Frame[] = [];
  #count = 0;
  refuses = false;
  /** First event of every new connection. */
  hello: (() => Omit<Frame, 'id'>) | undefined;

  send(event: string, data: unknown): void {
    this.#count += 1;
    const id = `${this.#boot}-${this.#count}`;
    const frame = { id, text: `id: ${id}\nevent: ${event}\ndata: ${JSON.stringify(data)}\n\n` };
    this.#frames.push(frame);
    for (const reader of this.readers) reader.write(frame.text);
  }

  serve(request: IncomingMessage, response: ServerResponse): void {
    if (this.refuses) {
      response.destroy();
      return;
    }
    this.opened += 1;
    response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-store' });
    response.write(':\n\n');
    const lastEventId = request.headers['last-event-id'];
    const at = this.#frames.findIndex(({ id }) => id === lastEventId);
    const id = `${this.#boot}-${this.#count}`;
    const helloId = at < 0 ? id : String(lastEventId);
    response.write(
      `id: ${helloId}\nevent: stream.hello\ndata: ${JSON.stringify({ bootId: this.#boot, newest: this.#count })}\n\n`,
    );
    const isKnown = lastEventId === undefined || at >= 0 || lastEventId === `${this.#boot}-0`;
    if (!isKnown) response.write(`id: ${id}\nevent: stream.gap\ndata: {}\n\n`);
    else if (lastEventId !== undefined) for (const frame of this.#frames.slice(at + 1)) response.write(frame.text);
    this.readers.add(response);
    // Like a server: a client takes a stream that is silent for long for dead, and connects again.
    const heartbeat = setInterval(() => response.writableEnded || response.write(':\n\n'), heartbeatMs);
    response.on('close', () => {
      clearInterval(heartbeat);
      this.readers.delete(response);
    });
  }

  /** Cuts every connection; `forget` also makes ids of before unknown, as after a restart. */
  cut({ forget = false, refuse = false } = {}): void {
    this.refuses = refuse;
    if (forget) {
      this.#boot = `${this.#boot}x`;
      this.#frames = [];
      this.#count = 0;
    }
    for (const reader of this.readers) reader.destroy();
  }
}

const noAutomations: AutomationsState = {
  revision: 0,
  generatedAt: new Date(0).toISOString(),
  isRunning: true,
  tasks: [],
  cron: [],
  countsByState: {},
};

const summary: Omit<DashboardSummary, 'recentEvents'> = {
  trust: 'trusted',
  restrictedSettings: [],
  kind: 'workspace',
  workspacePath,
  version: '0.1.0',
  pid: 4242,
  startedAt: '2026-11-21T10:00:00.000Z',
  provider: 'test',
  model: 'test-model',
  sessionCount: 1,
  turnCount: 2,
  failedTurnCount: 0,
  thinkingCount: 3,
  responseCount: 4,
  toolCallCount: 5,
  toolFailureCount: 1,
  approvalCount: 0,
  compactionCount: 0,
  errorCount: 0,
  inputTokens: 1000,
  outputTokens: 200,
  cachedInputTokens: 400,
  reasoningTokens: 50,
  costUsd: 0.0123,
  unpricedCount: 0,
  modelFailureCount: 1,
  spentTodayUsd: 1.5,
  totalTokens: 1200,
  turnDurationMs: 60_000,
  toolDurationMs: 10_000,
  maxToolDurationMs: 4_000,
  approvalWaitMs: 0,
  pauseMs: 0,
  eventCount: 20,
  activeTurns: 0,
  pendingApprovals: 0,
  droppedEvents: 0,
  modules: [{ name: 'threads', state: 'running' }],
};

/** A session as a list has it. */
export const sessionOf = (sessionKey: string, displayName: string): DashboardSession => ({
  sessionKey,
  displayName,
  startedAt: '2026-11-21T10:00:00.000Z',
  lastActivityAt: '2026-11-21T10:05:00.000Z',
  turnCount: 1,
  failedTurnCount: 0,
  thinkingCount: 1,
  responseCount: 1,
  toolCallCount: 1,
  toolFailureCount: 0,
  approvalCount: 0,
  compactionCount: 0,
  errorCount: 0,
  inputTokens: 10,
  outputTokens: 2,
  cachedInputTokens: 0,
  reasoningTokens: 0,
  costUsd: 0,
  unpricedCount: 1,
  modelFailureCount: 0,
  turnDurationMs: 5_000,
  toolDurationMs: 100,
  maxToolDurationMs: 100,
  approvalWaitMs: 0,
  pauseMs: 0,
  eventCount: 6,
  durationMs: 300_000,
  totalTokens: 12,
  isRunning: false,
});

export interface BackendOptions {
  readonly kind?: 'workspace' | 'hub';
  readonly auth?: readonly ('none' | 'token' | 'password')[];
  readonly readOnly?: string;
}

export async function startWorkspaceBackend(pageDirectory: string, options: BackendOptions = {}) {
  const { kind = 'workspace', auth = ['token'] } = options;
  const events = new Stream();
  const requests: string[] = [];
  const bodies: {
    readonly path: string;
    readonly method: string;
    readonly body: unknown;
    readonly ifMatch: string | undefined;
  }[] = [];
  const tokens = new Set([token]);
  const schema = await settingsJsonSchema();
  const page: PageInfo = {
    kind,
    version: '0.1.0',
    ...(kind === 'workspace' && { workspacePath }),
    ...(options.readOnly !== undefined && { readOnly: options.readOnly }),
    views:
      kind === 'hub'
        ? ['now', 'overview', 'actors', 'events', 'logs']
        : ['overview', 'sessions', 'actors', 'automations', 'settings', 'events', 'logs'],
  };
  const state = {
    page,
    automations: noAutomations,
    runs: [] as AutomationRun[],
    sessions: [] as DashboardSession[],
    recentEvents: [] as EventSummary[],
    eventsPerPage: 500,
    hubEvents: [] as RecentEvent[],
    logs: [] as LogLine[],
    appservers: [] as AppServerRecord[],
    /** By `process stream`. */
    output: {} as Record<string, string>,
    config: {
      revision: 'r1',
      path: `${workspacePath}/.oratorio/config.json`,
      effective: {},
      workspace: {},
      user: {},
      warnings: [],
    } as ConfigView,
    /** Answers of `PUT /dashboard/api/config` by kind of error. */
    configIssues: [] as { readonly path: string; readonly message: string }[],
    /** Everything but the page is refused with this status. */
    failWith: undefined as number | undefined,
  };

  type Answer = readonly [status: number, body: unknown];
  const fail = (status: number, code: string, message: string, details: unknown = null): Answer => [
    status,
    { error: { code, message, details } },
  ];

  function automationAnswer(method: string, path: string, body: unknown): Answer | undefined {
    const [, id, action] = /^\/dashboard\/api\/automations\/([^/]+)(?:\/(\w+))?$/.exec(path) ?? [];
    if (id === undefined) return undefined;
    const all = [...state.automations.cron, ...state.automations.tasks];
    const automation = all.find((each) => each.id === decodeURIComponent(id));
    if (!automation) return fail(404, 'automationNotFound', 'There is no job or task with this id.');
    const change = (next: typeof automation | null) => {
      const replaced = (list: typeof all) => list.flatMap((each) => (each === automation ? (next ?? []) : each));
      const { cron, tasks, revision } = state.automations;
      state.automations = {
        ...state.automations,
        revision: revision + 1,
        cron: replaced(cron),
        tasks: replaced(tasks),
      };
      events.send('automations.changed', { revision: revision + 1 });
      return [200, next ? { automation: next } : { removed: true }] as const;
    };
    if (method === 'DELETE') return change(null);
    if (action === 'runs') return [200, { data: state.runs }];
    if (action === 'run') return change({ ...automation, state: 'running' });
    if (action !== 'enable') return undefined;
    const { enabled } = body as { enabled: boolean };
    return change({ ...automation, enabled, state: enabled ? 'waiting' : 'paused' });
  }

  function configAnswer(body: unknown, ifMatch: string | undefined): Answer {
    if (state.config.readOnly !== undefined) return fail(403, 'readOnly', state.config.readOnly);
    if (ifMatch !== `"${state.config.revision}"`)
      return fail(412, 'revisionStale', 'The file has changed meanwhile: read it again.');
    if (state.configIssues.length > 0) {
      const [first] = state.configIssues;
      return fail(400, 'invalidConfig', `${first?.path}: ${first?.message}`, { issues: state.configIssues });
    }
    const { set } = body as { set: Record<string, unknown> };
    const revision = `${state.config.revision}+`;
    const workspace = structuredClone(state.config.workspace);
    for (const [keyPath, value] of Object.entries(set)) put(workspace, keyPath.split('.'), value);
    state.config = { ...state.config, revision, workspace, effective: { ...state.config.effective, ...workspace } };
    return [200, { revision, restartNeededFor: Object.keys(set) }];
  }

  function apiAnswer(method: string, url: URL, body: unknown, ifMatch: string | undefined): Answer {
    const path = url.pathname;
    const after = url.searchParams.get('after');
    const simple: Record<string, () => Answer> = {
      'GET /dashboard/api/page': () => [200, state.page],
      'GET /v1/page': () => [200, state.page],
      'POST /dashboard/api/logout': () => [200, {}],
      'GET /dashboard/api/summary': () => [200, { ...summary, recentEvents: state.recentEvents }],
      'GET /dashboard/api/events': () => {
        const before = Number(url.searchParams.get('before') ?? Number.MAX_SAFE_INTEGER);
        const limit = Math.min(Number(url.searchParams.get('limit') ?? 500), state.eventsPerPage);
        const older = state.recentEvents.filter(({ id }) => id < before);
        const shown = older.slice(0, limit);
        return [200, { events: shown, ...(older.length > limit && { next: shown.at(-1)?.id }) }];
      },
      'GET /v1/events/recent': () => [200, state.hubEvents],
      'GET /dashboard/api/sessions': () => [
        200,
        {
          sessions: state.sessions.filter(({ displayName = '' }) =>
            displayName.includes(url.searchParams.get('q') ?? ''),
          ),
        },
      ],
      'GET /dashboard/api/orchestrators/automations/state': () => [200, state.automations],
      'POST /dashboard/api/orchestrators/automations/refresh': () => [202, { triggered: true, revision: 1 }],
      'GET /dashboard/api/config/schema': () => [200, schema],
      'GET /dashboard/api/config': () => [200, state.config],
      'PUT /dashboard/api/config': () => configAnswer(body, ifMatch),
      'GET /dashboard/api/logs': () => [
        200,
        { lines: state.logs.filter(({ seq }) => seq > Number(after ?? 0)), dropped: 0 },
      ],
      'GET /v1/appservers': () => [200, state.appservers],
      'GET /v1/inbox': () => [200, []],
    };
    const known = simple[`${method} ${path.replace(/^\/dashboard/i, '/dashboard')}`];
    return known?.() ?? automationAnswer(method, path, body) ?? fail(404, 'notFound', 'There is no such route.');
  }

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (answerProof(request, response, ['hub', 'dashboard'], tokens)) return;
    const { method = 'GET' } = request;
    const url = new URL(request.url ?? '/', 'http://localhost');
    const path = url.pathname;
    requests.push(`${method} ${path}`);
    if (!/^\/(dashboard\/)?(api|v1)\//i.test(path)) {
      return sendPageFile(response, pageDirectory, /^\/(dashboard\/?)?$/i.test(path) ? 'index.html' : path);
    }
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const text = Buffer.concat(chunks).toString();
    const body: unknown = text === '' ? undefined : JSON.parse(text);
    const ifMatch = request.headers['if-match'];
    if (method !== 'GET') bodies.push({ path, method, body, ifMatch });
    const send = ([status, content]: Answer) =>
      response
        .writeHead(status, { 'content-type': 'application/json', 'cache-control': 'no-store' })
        .end(JSON.stringify(content));
    if (path === '/dashboard/api/auth') return void send([200, { methods: auth }]);
    if (path === '/dashboard/api/login') return void send(logIn(body));
    const given = request.headers.authorization?.replace('Bearer ', '') ?? '';
    if (!tokens.has(given)) return void send(fail(401, 'unauthorized', 'Missing or wrong token.'));
    if (state.failWith !== undefined) return void send(fail(state.failWith, 'storageFailed', 'The disk is full.'));
    if (path === '/dashboard/api/events/stream' || path === '/v1/fleet/events') return events.serve(request, response);
    if (path === '/v1/appservers/logs') {
      const key = `${url.searchParams.get('process')} ${url.searchParams.get('stream')}`;
      response.writeHead(200, { 'content-type': 'text/plain; charset=utf-8' }).end(state.output[key] ?? '');
      return;
    }
    send(apiAnswer(method, url, body, ifMatch));
  }

  function logIn(body: unknown): Answer {
    const { username, password } = body as { username: string; password: string };
    if (username !== 'ada' || password !== 'lovelace') return fail(401, 'unauthorized', 'Wrong name or password.');
    tokens.add('token-of-a-log-in');
    return [200, { token: 'token-of-a-log-in', expiresAt: new Date(Date.now() + 3_600_000).toISOString() }];
  }

  const server = createServer((request, response) => {
    answer(request, response).catch(() => response.destroy());
  });
  const port = await pagePort();
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  const origin = `http://127.0.0.1:${port}`;

  return {
    origin,
    url: `${origin}/${kind === 'hub' ? '' : 'DashBoard'}`,
    events,
    requests,
    bodies,
    state,
    tokens,
    /** Stores a trace event and sends it to all subscribers. */
    trace(event: EventSummary): void {
      state.recentEvents = [event, ...state.recentEvents].slice(0, 20);
      events.send(event.type, event);
    },
    async close(): Promise<void> {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

export type WorkspaceBackend = Awaited<ReturnType<typeof startWorkspaceBackend>>;

function put(into: Record<string, unknown>, [key = '', ...rest]: readonly string[], value: unknown): void {
  if (rest.length === 0) {
    if (value === null) delete into[key];
    else into[key] = value;
    return;
  }
  into[key] ??= {};
  put(into[key] as Record<string, unknown>, rest, value);
}
