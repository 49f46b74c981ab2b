import { signal } from '@preact/signals';
import { messageOf } from '../../../lib/browser.ts';
import type { HubThread, HubThreadList, ThreadChange } from '../../../protocol/index.ts';
import type { App } from '../../app/app.ts';
import { createListStore } from '../../app/resource.ts';

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
  const busy = signal<ReadonlySet<string>>(new Set());
  let query: ThreadQuery = { q: '', archived: false };
  const store = createListStore({
    live: app.live,
    isConcerned: ({ event }) => changes.test(event),
    load: (aborted) => {
      const search = new URLSearchParams({ q: query.q.trim(), archived: String(query.archived) });
      return app.api.get<HubThreadList>(`/v1/threads?${search}`, aborted);
    },
  });
  return {
    ...store,
    busy,
    search(next: ThreadQuery): void {
      query = next;
      if (store.data.peek() === null) store.reload();
      else store.reloadSoon();
    },
    start(): () => void {
      const stop = store.start();
      const timer = setInterval(() => document.visibilityState === 'visible' && store.reloadSoon(), idleMs);
      return () => {
        stop();
        clearInterval(timer);
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
      store.reload();
    },
  };
}

export type ThreadsStore = ReturnType<typeof createThreads>;
