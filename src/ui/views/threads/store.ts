import { signal } from '@preact/signals';
import { messageOf } from '../../../lib/browser.ts';
import type { HubThread, HubThreadList, ThreadChange } from '../../../protocol/index.ts';
import type { App } from '../../app/app.ts';
import type { StreamEvent } from '../../app/stream.ts';

/** Pause in which typed letters and events are gathered for one request. */
const settleMs = 250;
/** Interval of fetching times and states of running turns, which no event of the Hub reports. */
const idleMs = 10_000;
/** Events of the Hub that may change the list. */
const changes = /^(?:appserver\.|inbox\.|notification\.|hub\.)/;

export interface ThreadQuery {
  readonly q: string;
  readonly archived: boolean;
}

/** Conversations of all workspaces that match the current search. */
export function createThreads(app: App) {
  const list = signal<HubThreadList | null>(null);
  const error = signal<string | null>(null);
  const busy = signal<ReadonlySet<string>>(new Set());
  let query: ThreadQuery = { q: '', archived: false };
  let timer: ReturnType<typeof setTimeout> | undefined;
  let idleTimer: ReturnType<typeof setInterval> | undefined;
  let request = new AbortController();

  async function load(): Promise<void> {
    clearTimeout(timer);
    timer = undefined;
    // The answer to an earlier search must not replace the answer to a later one.
    request.abort();
    request = new AbortController();
    const { signal: aborted } = request;
    const search = new URLSearchParams({ q: query.q.trim(), archived: String(query.archived) });
    try {
      const found = await app.api.get<HubThreadList>(`/v1/threads?${search}`, aborted);
      if (aborted.aborted) return;
      list.value = found;
      error.value = null;
    } catch (fault) {
      if (!aborted.aborted) error.value = messageOf(fault);
    }
  }

  function loadSoon(): void {
    timer ??= setTimeout(() => void load(), settleMs);
  }

  function onEvents(events: readonly StreamEvent[]): void {
    if (events.some(({ event }) => changes.test(event))) loadSoon();
  }

  return {
    list,
    error,
    busy,
    load,
    search(next: ThreadQuery): void {
      query = next;
      if (list.peek() === null && timer === undefined) void load();
      else loadSoon();
    },
    start(): () => void {
      const leave = app.live.listen('events', { onEvents, onReset: loadSoon });
      idleTimer = setInterval(() => document.visibilityState === 'visible' && loadSoon(), idleMs);
      return () => {
        leave();
        clearInterval(idleTimer);
        clearTimeout(timer);
        request.abort();
      };
    },
    async change({ workspaceId, threadId }: HubThread, change: ThreadChange): Promise<void> {
      const key = `${workspaceId}/${threadId}`;
      busy.value = new Set([...busy.peek(), key]);
      try {
        await app.api.send('POST', `/v1/threads/${workspaceId}/${encodeURIComponent(threadId)}`, change);
      } catch (fault) {
        app.toast({ text: messageOf(fault), tone: 'danger' });
      } finally {
        busy.value = new Set([...busy.peek()].filter((each) => each !== key));
      }
      await load();
    },
  };
}

export type ThreadsStore = ReturnType<typeof createThreads>;
