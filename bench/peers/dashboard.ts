/**
 * The product's own Dashboard over a real store, without an agent: `dashboard.ts PAGE_DIRECTORY DATA_DIRECTORY EVENTS`.
 * `long` is a session of so many events, `live` one in which a turn runs. A line `live RATE SECONDS` on standard input makes
 * things happen in it; its figures are a line of standard output.
 */
import { createInterface } from 'node:readline';
import { openStore } from '../../src/agent/index.ts';
import { Access, createDashboard, dashboardGuard, dashboardHeaders } from '../../src/dashboard/index.ts';
import { createServer, loopbackHosts, staticFiles } from '../../src/http/index.ts';
import { createLogger } from '../../src/log/index.ts';
import { dashboardPaths, defaults, type NewTraceEvent } from '../../src/protocol/index.ts';
import { announce } from './peer.ts';

const [pageDirectory = '', dataDirectory = '', events = '50000'] = process.argv.slice(2);
const store = openStore(dataDirectory);

const text = 'The agent has read the file, and says in a sentence or two what it has found in there. '.repeat(4);
const perTurn = 100;

/** Event number `index` of a session whose turns think, run a tool, and answer, over and over. */
function eventOf(sessionKey: string, index: number, at: number): NewTraceEvent {
  const turnId = `turn_${String(Math.floor(index / perTurn) + 1).padStart(3, '0')}`;
  const step = index % perTurn;
  const callId = `call_${index - (step % 4)}`;
  const about = { sessionKey, at: new Date(at).toISOString(), turnId };
  if (step === 0) return { ...about, type: 'turn.started', data: {} };
  if (step === perTurn - 1)
    return { ...about, type: 'turn.completed', durationMs: perTurn * 20, data: { status: 'completed' } };
  const kinds: readonly NewTraceEvent[] = [
    { ...about, type: 'thinking', durationMs: 15, data: { text } },
    { ...about, type: 'tool.started', callId, tool: 'Exec', data: { arguments: `{"command":"step ${index}"}` } },
    index % 50 === 2
      ? {
          ...about,
          type: 'tool.failed',
          callId,
          tool: 'Exec',
          durationMs: 12,
          data: { result: text, outcome: 'failed' },
        }
      : { ...about, type: 'tool.completed', callId, tool: 'Exec', durationMs: 12, data: { result: text } },
    { ...about, type: 'response', durationMs: 15, data: { text } },
  ];
  return kinds[step % 4] as NewTraceEvent;
}

function fill(sessionKey: string, count: number): void {
  const start = Date.now() - count * 20;
  for (let index = 0; index < count; index += 1) {
    store.traces.append(eventOf(sessionKey, index, start + index * 20));
    if (index % defaults.agent.traceSliceEvents === 0) store.traces.flush();
  }
  store.traces.flush();
}

fill('long', Number(events));
for (let index = 0; index < 50; index += 1) fill(`session_${index}`, 50);
fill('tools', 2 * perTurn);
fill('live', 1);

const dashboard = createDashboard(
  {
    workspacePath: dataDirectory,
    access: new Access({
      tokens: () => ({ current: 'bench-token-0123456789', earlier: [] }),
      auth: 'token',
      username: '',
      password: '',
    }),
    isOwn: () => true,
    traces: store.traces,
    feed: store.traces,
    flush: () => store.traces.flush(),
    status: () => ({
      ...{ pid: process.pid, startedAt: new Date().toISOString(), provider: 'demo', model: 'demo' },
      ...{ activeTurns: 1, pendingApprovals: 0, droppedEvents: store.traces.dropped, modules: [] },
    }),
    isRunning: ({ sessionKey }) => sessionKey === 'live',
    views: ['overview', 'sessions', 'events'],
    config: { home: dataDirectory, workspace: dataDirectory, env: {} },
    logger: createLogger({ name: 'bench', level: 'warn' }),
  },
  true,
);
// The page of this benchmark's own build in place of that of `dist`.
const pages = staticFiles(pageDirectory).map((route) =>
  route.path === '/index.html' ? { ...route, path: dashboardPaths.page } : route,
);
const ownPaths = new Set<string>(['/', '/assets/*', ...pages.map(({ path }) => path)]);
const server = await createServer(
  {
    routes: [
      ...pages.filter(({ path }) => path !== '/'),
      ...dashboard.routes.filter(({ path }) => !ownPaths.has(path)),
    ],
    guard: dashboardGuard,
    headers: dashboardHeaders,
    hostAllowed: loopbackHosts(),
    errorBody: (error) => ({ error }),
    onBug: (error) => console.error(error),
    limits: {
      bodyBytes: defaults.http.hubBodyBytes,
      deadlineMs: defaults.http.requestDeadlineMs,
      sseBufferBytes: defaults.dashboard.streamBufferBytes,
      sseHeartbeatMs: defaults.sse.heartbeatMs,
      sseRetryMs: defaults.sse.retryMs,
    },
  },
  'auto',
);
const { port } = await server.listen({ host: '127.0.0.1', port: 0 });
announce({ port });

/** So many events a second for so many seconds. */
async function happen(rate: number, seconds: number): Promise<number> {
  const from = performance.now();
  let made = 1;
  const wanted = rate * seconds;
  while (made <= wanted) {
    const due = Math.min(wanted, Math.floor(((performance.now() - from) / 1000) * rate)) + 1;
    for (; made < due; made += 1) store.traces.append(eventOf('live', made, Date.now()));
    if (made > wanted) break;
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  store.traces.flush();
  return made;
}

for await (const line of createInterface({ input: process.stdin })) {
  const [, rate, seconds] = /^live (\d+) (\d+)$/.exec(line) ?? [];
  if (rate !== undefined) console.log(JSON.stringify({ events: await happen(Number(rate), Number(seconds)) }));
}
