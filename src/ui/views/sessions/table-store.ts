import { batch, computed, type ReadonlySignal, type Signal, signal } from '@preact/signals';
import { messageOf } from '../../../lib/browser.ts';
import { streamEvents } from '../../../protocol/browser.ts';
import type { DashboardSession, SessionPage } from '../../../protocol/index.ts';
import type { App } from '../../app/app.ts';
import { createListStore, type ListStore } from '../../app/resource.ts';
import type { StreamEvent } from '../../app/stream.ts';
import { type Deletions, deletionsOf } from './deletions.ts';
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
export class SessionTable {
  readonly text: Signal<string>;
  readonly status: Signal<Status | undefined>;
  readonly selectedKey: Signal<string | undefined>;
  readonly isPeeking: Signal<boolean>;
  /** Whether the rows keep their places, because the user reads further down; a button shows the new ones. */
  readonly isHeld = signal(false);
  readonly deletions: Deletions;
  readonly #app: App;
  readonly #sessions = signal<readonly DashboardSession[]>([]);
  readonly #isOutOfOrder = signal(false);
  readonly #next = signal<string | undefined>(undefined);
  readonly #touched = new Set<string>();
  /** First page. Further pages and single sessions are fetched separately. */
  readonly #first: ListStore<SessionPage>;

  readonly sessions = computed(() => {
    const hidden = this.deletions.hidden.value;
    const loaded = this.#sessions.value;
    return hidden.size === 0 ? loaded : loaded.filter(({ sessionKey }) => !hidden.has(sessionKey));
  });
  readonly error: ReadonlySignal<string | null>;
  readonly at: ReadonlySignal<number | null>;
  readonly isOutOfOrder: ReadonlySignal<boolean> = this.#isOutOfOrder;
  readonly hasMore = computed(() => this.#next.value !== undefined);

  /** Ends requests for further pages and single sessions when the first page is fetched again. */
  #abort = new AbortController();
  #timer: ReturnType<typeof setTimeout> | undefined;
  #typing: ReturnType<typeof setTimeout> | undefined;
  #isFetchingMore = false;

  constructor(app: App) {
    const { query } = app.router.route.peek();
    this.#app = app;
    this.text = signal(query['q'] ?? '');
    this.status = signal(statuses.find((each) => each === query['status']));
    this.selectedKey = signal(query['peek']);
    this.isPeeking = signal(query['peek'] !== undefined);
    this.deletions = deletionsOf(app);
    this.#first = createListStore({ load: (aborted) => this.#load(aborted) });
    this.error = this.#first.error;
    this.at = this.#first.at;
  }

  start(): () => void {
    const stop = this.#app.live.listen('events', {
      onEvents: (events) => this.#onEvents(events),
      onReset: this.#first.reloadSoon,
    });
    const stopFirst = this.#first.start();
    const stopDeletions = this.deletions.onKept(this.reload);
    this.reload();
    return () => {
      stop();
      stopFirst();
      stopDeletions();
      this.#abort.abort();
      clearTimeout(this.#timer);
      clearTimeout(this.#typing);
    };
  }

  readonly search = (query: string): void => {
    this.text.value = query;
    clearTimeout(this.#typing);
    this.#typing = setTimeout(() => {
      this.#remember();
      this.reload();
    }, typingMs);
  };

  filter(chosen: Status | undefined): void {
    this.status.value = chosen;
    this.#remember();
    this.reload();
  }

  /**
   * A held key selects many sessions a second, so the address follows after a pause. It follows an opened or closed peek at once:
   * the user may leave the list and come back.
   * @param peek whether to look into it; undefined: as before
   */
  select(key: string | undefined, peek = this.isPeeking.peek()): void {
    const wasPeeking = this.isPeeking.peek();
    batch(() => {
      this.selectedKey.value = key;
      this.isPeeking.value = peek && key !== undefined;
    });
    clearTimeout(this.#typing);
    if (this.isPeeking.peek() === wasPeeking) this.#typing = setTimeout(() => this.#remember(), typingMs);
    else this.#remember();
  }

  #filters() {
    return { q: this.text.peek().trim(), status: this.status.peek(), limit: pageSize };
  }

  async #attempt(work: () => Promise<void>): Promise<void> {
    const { signal: aborted } = this.#abort;
    try {
      await work();
      this.#first.error.value = null;
    } catch (error) {
      if (!aborted.aborted) this.#first.error.value = messageOf(error);
    }
  }

  /** Fetches everything again, from the top. The shown rows stay until the answer arrives. */
  readonly reload = (): void => this.#first.reload();

  async #load(aborted: AbortSignal): Promise<SessionPage> {
    this.#abort.abort();
    this.#abort = new AbortController();
    this.#isFetchingMore = false;
    this.#touched.clear();
    const page = await this.#app.api.get<SessionPage>(paths.sessions(this.#filters()), aborted);
    if (!aborted.aborted)
      batch(() => {
        this.#sessions.value = page.sessions;
        this.#next.value = page.next;
        this.#isOutOfOrder.value = false;
      });
    return page;
  }

  readonly more = (): void => {
    const cursor = this.#next.peek();
    if (cursor === undefined || this.#isFetchingMore) return;
    this.#isFetchingMore = true;
    const { signal: aborted } = this.#abort;
    void this.#attempt(async () => {
      const page = await this.#app.api.get<SessionPage>(paths.sessions({ ...this.#filters(), cursor }), aborted);
      // Rows that have moved up since are loaded already.
      const known = new Set(this.#sessions.peek().map(({ sessionKey }) => sessionKey));
      batch(() => {
        this.#sessions.value = [
          ...this.#sessions.peek(),
          ...page.sessions.filter(({ sessionKey }) => !known.has(sessionKey)),
        ];
        this.#next.value = page.next;
      });
    }).finally(() => {
      if (!aborted.aborted) this.#isFetchingMore = false;
    });
  };

  /** Fetches only the sessions with new events. */
  #refresh(): void {
    this.#timer = undefined;
    const keys = [...this.#touched];
    this.#touched.clear();
    const isNew = keys.some((key) => !this.#sessions.peek().some(({ sessionKey }) => sessionKey === key));
    // Only the server knows whether a new session matches the filter.
    const isFiltered = this.text.peek().trim() !== '' || this.status.peek() !== undefined;
    if (keys.length > atOnce || (isNew && isFiltered)) {
      if (this.isHeld.peek()) this.#isOutOfOrder.value = true;
      else this.reload();
      return;
    }
    void this.#attempt(async () => {
      const found = await Promise.all(keys.map((key) => this.#fetchOne(key)));
      this.#put(found.filter((session) => session !== undefined));
    });
  }

  async #fetchOne(key: string): Promise<DashboardSession | undefined> {
    return (await eventPageOf(this.#app, key, { limit: 1, bodies: 'none' }, this.#abort.signal)).session;
  }

  #put(found: readonly DashboardSession[]): void {
    const fresh = new Map(found.map((session) => [session.sessionKey, session]));
    const updated = this.#sessions.peek().map((session) => fresh.get(session.sessionKey) ?? session);
    const known = new Set(updated.map(({ sessionKey }) => sessionKey));
    const added = found.filter(({ sessionKey }) => !known.has(sessionKey));
    const ordered = [...added, ...updated].sort((a, b) => b.lastActivityAt.localeCompare(a.lastActivityAt));
    const isMoved = ordered.some((session, index) => session !== updated[index]);
    const isOnlyRunning = this.status.peek() === 'running';
    batch(() => {
      this.#sessions.value = (this.isHeld.peek() ? updated : ordered).filter(
        ({ isRunning }) => isRunning || !isOnlyRunning,
      );
      if (this.isHeld.peek() && isMoved) this.#isOutOfOrder.value = true;
    });
  }

  #onEvents(events: readonly StreamEvent[]): void {
    for (const event of events) this.#take(event);
    if (this.#touched.size > 0) this.#timer ??= setTimeout(() => this.#refresh(), refreshMs);
  }

  #take({ event, data }: StreamEvent): void {
    if (event === streamEvents.gap) {
      this.#first.reloadSoon();
      return;
    }
    const { sessionKey } = JSON.parse(data) as { sessionKey?: string | null };
    if (event !== streamEvents.deleted) {
      if (typeof sessionKey === 'string') this.#touched.add(sessionKey);
    } else if (sessionKey === null) this.reload();
    else this.#sessions.value = this.#sessions.peek().filter((session) => session.sessionKey !== sessionKey);
  }

  /** The selection is in the address. */
  #remember(): void {
    const peek = this.isPeeking.peek() ? this.selectedKey.peek() : undefined;
    this.#app.router.set({ q: this.text.peek().trim(), status: this.status.peek(), peek });
  }
}
