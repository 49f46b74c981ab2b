import { batch, computed, type ReadonlySignal, signal } from '@preact/signals';
import { messageOf } from '../../../lib/browser.ts';
import { streamEvents } from '../../../protocol/browser.ts';
import type { DashboardSession, SessionPage } from '../../../protocol/index.ts';
import type { App } from '../../app/app.ts';
import type { StreamEvent } from '../../app/stream.ts';
import { deletionsOf } from './deletions.ts';
import { eventPageOf } from './event-page.ts';
import { paths } from './paths.ts';

const pageSize = 100;
/** Interval of fetching sessions with new events. */
const refreshMs = 400;
/** Most sessions that are fetched one by one: with more, one page of the list is less work. */
const atOnce = 8;
const typingMs = 200;

export const statuses = ['running', 'failed'] as const;
export type Status = (typeof statuses)[number];

/** The list of sessions: loaded by page while scrolling, updated by the stream. */
export function createTable(app: App) {
  const { query } = app.router.route.peek();
  const sessions = signal<readonly DashboardSession[]>([]);
  const text = signal(query['q'] ?? '');
  const status = signal<Status | undefined>(statuses.find((each) => each === query['status']));
  const selectedKey = signal<string | undefined>(query['peek']);
  const isPeeking = signal(query['peek'] !== undefined);
  const isLoaded = signal(false);
  const fault = signal<string | null>(null);
  const loadedAt = signal<number | null>(null);
  /** Whether the rows keep their places, because the user reads further down; a button shows the new ones. */
  const isHeld = signal(false);
  const isOutOfOrder = signal(false);
  const next = signal<string | undefined>(undefined);
  const deletions = deletionsOf(app);
  const touched = new Set<string>();

  let abort = new AbortController();
  let timer: ReturnType<typeof setTimeout> | undefined;
  let typing: ReturnType<typeof setTimeout> | undefined;
  let isFetchingMore = false;
  let isLoading = false;
  /** Whether events were missed during the running request. */
  let isStale = false;

  const shown = computed(() => {
    const hidden = deletions.hidden.value;
    return hidden.size === 0 ? sessions.value : sessions.value.filter(({ sessionKey }) => !hidden.has(sessionKey));
  });

  const filters = () => ({ q: text.peek().trim(), status: status.peek(), limit: pageSize });

  async function attempt(work: () => Promise<void>): Promise<void> {
    const { signal: aborted } = abort;
    try {
      await work();
      fault.value = null;
      loadedAt.value = Date.now();
    } catch (error) {
      if (!aborted.aborted) fault.value = messageOf(error);
    }
  }

  /** Fetches everything again, from the top. The shown rows stay until the answer arrives. */
  function reload(): void {
    abort.abort();
    abort = new AbortController();
    isFetchingMore = false;
    touched.clear();
    const { signal: aborted } = abort;
    isLoading = true;
    isStale = false;
    void attempt(async () => {
      const page = await app.api.get<SessionPage>(paths.sessions(filters()), aborted);
      batch(() => {
        sessions.value = page.sessions;
        next.value = page.next;
        isLoaded.value = true;
        isOutOfOrder.value = false;
      });
    }).finally(() => {
      if (aborted.aborted) return;
      isLoading = false;
      if (isStale) reload();
    });
  }

  /** The stream restarted or dropped events: the answer to a running request may be outdated. */
  function onReset(): void {
    if (isLoading) isStale = true;
    else reload();
  }

  function more(): void {
    const cursor = next.peek();
    if (cursor === undefined || isFetchingMore) return;
    isFetchingMore = true;
    const { signal: aborted } = abort;
    void attempt(async () => {
      const page = await app.api.get<SessionPage>(paths.sessions({ ...filters(), cursor }), aborted);
      // Rows that have moved up since are loaded already.
      const known = new Set(sessions.peek().map(({ sessionKey }) => sessionKey));
      batch(() => {
        sessions.value = [...sessions.peek(), ...page.sessions.filter(({ sessionKey }) => !known.has(sessionKey))];
        next.value = page.next;
      });
    }).finally(() => {
      if (!aborted.aborted) isFetchingMore = false;
    });
  }

  /** Fetches only the sessions with new events. */
  function refresh(): void {
    timer = undefined;
    const keys = [...touched];
    touched.clear();
    const isNew = keys.some((key) => !sessions.peek().some(({ sessionKey }) => sessionKey === key));
    // Only the server knows whether a new session matches the filter.
    const isFiltered = text.peek().trim() !== '' || status.peek() !== undefined;
    if (keys.length > atOnce || (isNew && isFiltered)) {
      if (isHeld.peek()) isOutOfOrder.value = true;
      else reload();
      return;
    }
    void attempt(async () => {
      const found = await Promise.all(keys.map(fetchOne));
      put(found.filter((session) => session !== undefined));
    });
  }

  async function fetchOne(key: string): Promise<DashboardSession | undefined> {
    return (await eventPageOf(app, key, { limit: 1, bodies: 'none' }, abort.signal)).session;
  }

  function put(found: readonly DashboardSession[]): void {
    const fresh = new Map(found.map((session) => [session.sessionKey, session]));
    const updated = sessions.peek().map((session) => fresh.get(session.sessionKey) ?? session);
    const known = new Set(updated.map(({ sessionKey }) => sessionKey));
    const added = found.filter(({ sessionKey }) => !known.has(sessionKey));
    const ordered = [...added, ...updated].sort((a, b) => b.lastActivityAt.localeCompare(a.lastActivityAt));
    const isMoved = ordered.some((session, index) => session !== updated[index]);
    const isOnlyRunning = status.peek() === 'running';
    batch(() => {
      sessions.value = (isHeld.peek() ? updated : ordered).filter(({ isRunning }) => isRunning || !isOnlyRunning);
      if (isHeld.peek() && isMoved) isOutOfOrder.value = true;
    });
  }

  function onEvents(events: readonly StreamEvent[]): void {
    for (const event of events) take(event);
    if (touched.size > 0) timer ??= setTimeout(refresh, refreshMs);
  }

  function take({ event, data }: StreamEvent): void {
    if (event === streamEvents.gap) {
      onReset();
      return;
    }
    const { sessionKey } = JSON.parse(data) as { sessionKey?: string | null };
    if (event !== streamEvents.deleted) {
      if (typeof sessionKey === 'string') touched.add(sessionKey);
    } else if (sessionKey === null) reload();
    else sessions.value = sessions.peek().filter((session) => session.sessionKey !== sessionKey);
  }

  /** The selection is in the address. */
  function remember(): void {
    const peek = isPeeking.peek() ? selectedKey.peek() : undefined;
    app.router.set({ q: text.peek().trim(), status: status.peek(), peek });
  }

  return {
    ...{ sessions: shown, text, status, selectedKey, isPeeking, isHeld, deletions, reload, more },
    isLoaded: isLoaded as ReadonlySignal<boolean>,
    fault: fault as ReadonlySignal<string | null>,
    loadedAt: loadedAt as ReadonlySignal<number | null>,
    isOutOfOrder: isOutOfOrder as ReadonlySignal<boolean>,
    hasMore: computed(() => next.value !== undefined),

    start(): () => void {
      const stop = app.live.listen('events', { onEvents, onReset });
      const stopDeletions = deletions.onKept(reload);
      reload();
      return () => {
        stop();
        stopDeletions();
        abort.abort();
        clearTimeout(timer);
        clearTimeout(typing);
      };
    },

    search(next: string): void {
      text.value = next;
      clearTimeout(typing);
      typing = setTimeout(() => {
        remember();
        reload();
      }, typingMs);
    },

    filter(next: Status | undefined): void {
      status.value = next;
      remember();
      reload();
    },

    /** @param peek whether to look into it; undefined: as before */
    select(key: string | undefined, peek = isPeeking.peek()): void {
      batch(() => {
        selectedKey.value = key;
        isPeeking.value = peek && key !== undefined;
      });
      clearTimeout(typing);
      typing = setTimeout(remember, typingMs);
    },
  };
}

export type Table = ReturnType<typeof createTable>;
