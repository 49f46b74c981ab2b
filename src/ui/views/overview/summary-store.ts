import { type ReadonlySignal, signal } from '@preact/signals';
import { messageOf } from '../../../lib/browser.ts';
import { streamEvents } from '../../../protocol/browser.ts';
import type { DashboardSession, DashboardSummary, EventSummary, SessionPage } from '../../../protocol/index.ts';
import type { App } from '../../app/app.ts';
import type { StreamEvent } from '../../app/stream.ts';
import { paths } from '../sessions/paths.ts';

/** Shortest pause between two fetches of the sums. */
const refreshMs = 1_000;
/** Finds changes that no event reports, e.g. a module that failed. */
const idleRefreshMs = 15_000;
const recentEvents = 50;
const recentSessions = 8;

/** The state of a workspace: its sums, its sessions, and its latest events. */
export function createSummary(app: App) {
  const summary = signal<DashboardSummary | null>(null);
  const sessions = signal<readonly DashboardSession[]>([]);
  const events = signal<readonly EventSummary[]>([]);
  const fault = signal<string | null>(null);
  const fetchedAt = signal<number | null>(null);
  const abort = new AbortController();
  let timer: ReturnType<typeof setTimeout> | undefined;
  let isUnderWay = false;

  async function refresh(): Promise<void> {
    clearTimeout(timer);
    timer = setTimeout(refresh, idleRefreshMs);
    if (isUnderWay) return;
    isUnderWay = true;
    try {
      const [latest, page] = await Promise.all([
        app.api.get<DashboardSummary>(paths.summary, abort.signal),
        app.api.get<SessionPage>(paths.sessions({ limit: recentSessions }), abort.signal),
      ]);
      summary.value = latest;
      sessions.value = page.sessions;
      fetchedAt.value = Date.now();
      fault.value = null;
      merge(latest.recentEvents);
    } catch (error) {
      if (!abort.signal.aborted) fault.value = messageOf(error);
    } finally {
      isUnderWay = false;
    }
  }

  /** Newest first, each once. */
  function merge(more: readonly EventSummary[]): void {
    const known = new Map([...more, ...events.peek()].map((event) => [event.id, event]));
    events.value = [...known.values()].sort((a, b) => b.id - a.id).slice(0, recentEvents);
  }

  let isSoon = false;
  function refreshSoon(): void {
    if (isSoon) return;
    isSoon = true;
    clearTimeout(timer);
    timer = setTimeout(() => {
      isSoon = false;
      void refresh();
    }, refreshMs);
  }

  function onEvents(batch: readonly StreamEvent[]): void {
    const fresh: EventSummary[] = [];
    for (const { event, data } of batch) {
      if (event === streamEvents.hello || event === streamEvents.gap || event === streamEvents.automations) continue;
      if (event === streamEvents.deleted) {
        const { sessionKey } = JSON.parse(data) as { sessionKey: string | null };
        events.value = events.peek().filter((each) => sessionKey !== null && each.sessionKey !== sessionKey);
        continue;
      }
      const summary = JSON.parse(data) as EventSummary;
      if (typeof summary.id === 'number') fresh.push(summary);
    }
    if (fresh.length > 0) merge(fresh.slice(-recentEvents));
    refreshSoon();
  }

  return {
    summary: summary as ReadonlySignal<DashboardSummary | null>,
    sessions: sessions as ReadonlySignal<readonly DashboardSession[]>,
    events: events as ReadonlySignal<readonly EventSummary[]>,
    fault: fault as ReadonlySignal<string | null>,
    fetchedAt: fetchedAt as ReadonlySignal<number | null>,
    refresh,
    start(): () => void {
      const stop = app.live.listen('events', { onEvents, onReset: refreshSoon });
      void refresh();
      return () => {
        stop();
        abort.abort();
        clearTimeout(timer);
      };
    },
  };
}
