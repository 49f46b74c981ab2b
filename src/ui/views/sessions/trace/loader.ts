import { batch, type ReadonlySignal, signal } from '@preact/signals';
import { messageOf } from '../../../../lib/browser.ts';
import { streamEvents } from '../../../../protocol/browser.ts';
import type { DashboardSession, EventSummary } from '../../../../protocol/index.ts';
import type { App } from '../../../app/app.ts';
import type { StreamEvent } from '../../../app/stream.ts';
import { eventPageOf } from '../event-page.ts';
import { firstEventsPage, maxEventsPerPage } from '../paths.ts';
import { entryOf, type TraceEntry } from './entry.ts';
import { TraceModel } from './model.ts';

/** Most events of the page, some 35 MB; beyond it, the page drops the older half. */
const maxEntries = 60_000;
/** Interval of drawing new events: looks smooth, and leaves half of the time for other work. */
const drawMs = 150;
const sessionMs = 1_000;
/** Events stored while the view is paused; more are fetched again on resume. */
const maxWaiting = 20_000;
const retryMs = 2_000;

export type LoadState =
  | { readonly is: 'loading' }
  | { readonly is: 'ready' }
  | { readonly is: 'missing' }
  | { readonly is: 'deleted' }
  | { readonly is: 'failed'; readonly message: string };

/**
 * Loads the events of a session, page by page, and then every new one live. No event is shown twice
 * or left out: events that the stream dropped are fetched.
 */
export class TraceLoader {
  readonly #model = signal(new TraceModel());
  /** Counts the changes of the model, which is changed in place. */
  readonly #version = signal(0);
  readonly #session = signal<DashboardSession | undefined>(undefined);
  readonly #state = signal<LoadState>({ is: 'loading' });
  readonly #isPaused = signal(false);
  /** New events that are hidden because the view is paused. */
  readonly #waitingCount = signal(0);
  /** Whether older events were dropped or never fetched, and whether newer ones are still to be fetched. */
  readonly #omits = signal({ before: false, after: false });

  #abort = new AbortController();
  #waiting: TraceEntry[] = [];
  /** Whether the stream or the buffer has dropped events. */
  #hasGap = false;
  #isFetching = false;
  #drawTimer: ReturnType<typeof setTimeout> | undefined;
  #sessionTimer: ReturnType<typeof setTimeout> | undefined;
  #retryTimer: ReturnType<typeof setTimeout> | undefined;

  readonly model: ReadonlySignal<TraceModel> = this.#model;
  readonly version: ReadonlySignal<number> = this.#version;
  readonly session: ReadonlySignal<DashboardSession | undefined> = this.#session;
  readonly state: ReadonlySignal<LoadState> = this.#state;
  readonly isPaused: ReadonlySignal<boolean> = this.#isPaused;
  readonly waitingCount: ReadonlySignal<number> = this.#waitingCount;
  readonly omits: ReadonlySignal<{ readonly before: boolean; readonly after: boolean }> = this.#omits;

  readonly #app: App;
  readonly #sessionKey: string;

  constructor(app: App, sessionKey: string) {
    this.#app = app;
    this.#sessionKey = sessionKey;
  }

  start(): () => void {
    this.#abort = new AbortController();
    const stopListening = this.#app.live.listen('events', {
      onEvents: (events) => this.#onEvents(events),
      onReset: () => this.#fillGap(),
    });
    void this.#fetching(() => this.#fetchOn());
    return () => {
      stopListening();
      this.#abort.abort();
      for (const timer of [this.#drawTimer, this.#sessionTimer, this.#retryTimer]) clearTimeout(timer);
    };
  }

  pause(next: boolean): void {
    this.#isPaused.value = next;
    if (!next) {
      this.#waitingCount.value = 0;
      this.#draw();
    }
  }

  /** Resumes where the page had enough. */
  more(): void {
    this.#omits.value = { ...this.#omits.peek(), after: false };
    void this.#fetching(() => this.#fetchOn(maxEntries / 2));
  }

  /** The newest events instead of the oldest. */
  toEnd(): void {
    void this.#fetching(async () => {
      const { events } = await this.#page({ order: 'desc', limit: maxEventsPerPage });
      const newest = new TraceModel(true);
      newest.append(events.map(entryOf).reverse());
      batch(() => {
        this.#model.value = newest;
        this.#omits.value = { before: true, after: false };
        this.#version.value += 1;
      });
    });
  }

  #add(entries: readonly TraceEntry[]): void {
    const before = this.#model.peek();
    before.append(entries);
    if (before.entries.length > maxEntries) {
      const shorter = new TraceModel(true);
      shorter.append(before.entries.slice(-maxEntries / 2));
      this.#model.value = shorter;
      this.#omits.value = { ...this.#omits.peek(), before: true };
    }
    this.#version.value += 1;
  }

  #page(query: Record<string, string | number | undefined>) {
    return eventPageOf(this.#app, this.#sessionKey, { bodies: 'short', ...query }, this.#abort.signal);
  }

  /** Fetches the events after the last loaded one, until the end or until `most` events. */
  async #fetchOn(most = maxEntries): Promise<void> {
    let left = most;
    for (;;) {
      const isFirst = this.#version.peek() === 0;
      const limit = Math.min(left, isFirst ? firstEventsPage : maxEventsPerPage);
      const {
        session: latest,
        events,
        next,
      } = await this.#page({ after: this.#model.peek().lastId || undefined, limit });
      // A session without a record has no events.
      const isMissing = !latest && events.length === 0 && this.#model.peek().entries.length === 0;
      batch(() => {
        if (latest) this.#session.value = latest;
        this.#add(events.map(entryOf));
        this.#state.value = { is: isMissing ? 'missing' : 'ready' };
      });
      left -= events.length;
      if (next === undefined || events.length === 0) return;
      if (left <= 0) {
        this.#omits.value = { ...this.#omits.peek(), after: true };
        return;
      }
    }
  }

  /** One fetch at a time. A failure is shown, and the fetch retried: shown events stay. */
  async #fetching(work: () => Promise<void>): Promise<void> {
    if (this.#isFetching) {
      this.#hasGap = true;
      return;
    }
    this.#isFetching = true;
    this.#hasGap = false;
    try {
      await work();
      this.#isFetching = false;
      if (this.#hasGap) await this.#fetching(() => this.#fetchOn());
      else this.#draw();
    } catch (error) {
      this.#isFetching = false;
      if (this.#abort.signal.aborted) return;
      this.#state.value = { is: 'failed', message: messageOf(error) };
      this.#retryTimer = setTimeout(() => void this.#fetching(work), retryMs);
    }
  }

  #draw(): void {
    clearTimeout(this.#drawTimer);
    this.#drawTimer = undefined;
    if (this.#isFetching) return;
    if (this.#isPaused.peek() || this.#omits.peek().after) {
      if (this.#waiting.length > maxWaiting) {
        this.#waiting = [];
        this.#hasGap = true;
      }
      return;
    }
    if (this.#hasGap) {
      this.#waiting = [];
      void this.#fetching(() => this.#fetchOn());
      return;
    }
    if (this.#waiting.length === 0) return;
    const entries = this.#waiting;
    this.#waiting = [];
    batch(() => {
      this.#waitingCount.value = 0;
      this.#add(entries);
      // A session that was missing a moment ago has just begun.
      if (this.#state.peek().is === 'missing') this.#state.value = { is: 'ready' };
    });
  }

  /** Fetches missing events after the stream restarted or dropped events. */
  #fillGap(): void {
    this.#hasGap = true;
    this.#draw();
  }

  #onEvents(events: readonly StreamEvent[]): void {
    for (const event of events) this.#take(event);
    if (this.#waiting.length > 0) {
      this.#drawTimer ??= setTimeout(() => this.#draw(), drawMs);
      this.#sessionTimer ??= setTimeout(() => this.#refreshSession(), sessionMs);
    }
  }

  #take({ event, data }: StreamEvent): void {
    if (event === streamEvents.gap) {
      this.#fillGap();
    } else if (event === streamEvents.deleted) {
      const { sessionKey: key } = JSON.parse(data) as { sessionKey: string | null };
      if (key === this.#sessionKey || key === null) this.#refreshSession();
    } else if (data.includes(this.#sessionKey)) {
      const summary = JSON.parse(data) as EventSummary;
      if (summary.sessionKey !== this.#sessionKey || typeof summary.id !== 'number') return;
      this.#waiting.push(entryOf(summary));
      if (this.#isPaused.peek()) this.#waitingCount.value += 1;
    }
  }

  #refreshSession(): void {
    clearTimeout(this.#sessionTimer);
    this.#sessionTimer = undefined;
    this.#page({ limit: 1, bodies: 'none' }).then(
      ({ session: latest }) => {
        if (latest) this.#session.value = latest;
        else if (this.#model.peek().entries.length > 0) this.#state.value = { is: 'deleted' };
      },
      () => {
        // The next event fetches again, and the frame of the page shows that the server is away.
      },
    );
  }
}
