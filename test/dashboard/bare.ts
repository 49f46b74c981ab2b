/** Dashboard on its own database, without an agent server: for more events than an agent could produce in time. */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Test } from 'tap';
import { openStore, type TraceStore } from '../../src/agent/index.ts';
import {
  Access,
  createDashboard,
  type DashboardOptions,
  dashboardGuard,
  dashboardHeaders,
} from '../../src/dashboard/index.ts';
import { createLogger } from '../../src/log/index.ts';
import type { NewTraceEvent } from '../../src/protocol/index.ts';
import { temporaryDirectory } from '../appserver/harness.ts';
import { type Adapter, type Options, start } from '../http/support.ts';
import { type Answer, type Asking, request } from './harness.ts';

export const token = 'a-token-for-tests';

export interface Bare {
  readonly url: string;
  readonly home: string;
  readonly workspace: string;
  readonly traces: TraceStore;
  readonly log: string[];
  ask(path: string, asking?: Asking): Promise<Answer>;
}

export async function bare(
  t: Test,
  adapter: Adapter,
  options: Partial<DashboardOptions> = {},
  limits: Options['limits'] = {},
): Promise<Bare> {
  const home = temporaryDirectory(t);
  const workspace = join(home, 'workspace');
  const inside = join(workspace, '.oratorio');
  mkdirSync(inside, { recursive: true });
  const store = openStore(inside);
  const { traces } = store;
  const log: string[] = [];
  const logger = createLogger({
    name: 'test',
    level: 'debug',
    pretty: false,
    stream: { write: (line) => log.push(line) },
  });
  const dashboard = createDashboard(
    {
      workspacePath: workspace,
      access: new Access({
        tokens: () => ({ current: token, earlier: [] }),
        auth: 'token',
        username: '',
        password: '',
      }),
      isOwn: () => true,
      traces,
      feed: traces,
      flush: () => traces.flush(),
      status: () => ({
        pid: process.pid,
        startedAt: '2026-01-01T00:00:00.000Z',
        provider: 'none',
        model: 'none',
        activeTurns: 0,
        pendingApprovals: 0,
        droppedEvents: traces.dropped,
        modules: [],
      }),
      isRunning: () => false,
      views: ['overview'],
      config: { home, workspace, env: {} },
      logger,
      deletion: {
        delete: (key) => traces.deleteSession(key),
        deleteAll: (keep) => traces.deleteAllSessions(keep),
        running: () => new Set(),
      },
      ...options,
    },
    true,
  );
  const { url } = await start(t, adapter, {
    routes: dashboard.routes,
    guard: dashboardGuard,
    headers: dashboardHeaders,
    limits,
  });
  t.teardown(() => {
    dashboard.close();
    store.close();
  });
  return { url, home, workspace, traces, log, ask: (path, asking) => request(url, path, { token, ...asking }) };
}

let made = 0;

/** Events of one session, numbered in their data. */
export function someEvents(count: number, { chars = 0, sessionKey = 's' } = {}): NewTraceEvent[] {
  return Array.from({ length: count }, () => {
    made += 1;
    const texts = Object.fromEntries(
      Array.from({ length: Math.ceil(chars / 200) }, (_, index) => [`t${index}`, 'x'.repeat(200)]),
    );
    return {
      sessionKey,
      type: 'response',
      at: new Date(1_700_000_000_000 + made).toISOString(),
      data: { text: `event ${made}`, ...texts },
    };
  });
}
