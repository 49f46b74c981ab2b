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
export function createLoader(app: App, sessionKey: string) {
  const model = signal(new TraceModel());
  /** Counts the changes of the model, which is changed in place. */
  const version = signal(0);
  const session = signal<DashboardSession | undefined>(undefined);
  const state = signal<LoadState>({ is: 'loading' });
  const isPaused = signal(false);
  /** New events that are hidden because the view is paused. */
  const waitingCount = signal(0);
  /** Whether older events were dropped or never fetched, and whether newer ones are still to be fetched. */
  const omits = signal({ before: false, after: false });

  let abort = new AbortController();
  let waiting: TraceEntry[] = [];
  /** Whether the stream or the buffer has dropped events. */
  let hasGap = false;
  let isFetching = false;
  let drawTimer: ReturnType<typeof setTimeout> | undefined;
  let sessionTimer: ReturnType<typeof setTimeout> | undefined;
  let retryTimer: ReturnType<typeof setTimeout> | undefined;

  function add(entries: readonly TraceEntry[]): void {
    const before = model.peek();
    before.append(entries);
    if (before.entries.length > maxEntries) {
      const shorter = new TraceModel(true);
      shorter.append(before.entries.slice(-maxEntries / 2));
      model.value = shorter;
      omits.value = { ...omits.peek(), before: true };
    }
    version.value += 1;
  }

  const page = (query: Record<string, string | number | undefined>) =>
    eventPageOf(app, sessionKey, { bodies: 'short', ...query }, abort.signal);

  /** Fetches the events after the last loaded one, until the end or until `most` events. */
  async function fetchOn(most = maxEntries): Promise<void> {
    let left = most;
    for (;;) {
      const isFirst = version.peek() === 0;
      const limit = Math.min(left, isFirst ? firstEventsPage : maxEventsPerPage);
      const { session: latest, events, next } = await page({ after: model.peek().lastId || undefined, limit });
      // A session without a record has no events.
      const isMissing = !latest && events.length === 0 && model.peek().entries.length === 0;
      batch(() => {
        if (latest) session.value = latest;
        add(events.map(entryOf));
        state.value = { is: isMissing ? 'missing' : 'ready' };
      });
      left -= events.length;
      if (next === undefined || events.length === 0) return;
      if (left <= 0) {
        omits.value = { ...omits.peek(), after: true };
        return;
      }
    }
  }

  /** One fetch at a time. A failure is shown, and the fetch retried: shown events stay. */
  async function fetching(work: () => Promise<void>): Promise<void> {
    if (isFetching) {
      hasGap = true;
      return;
    }
    isFetching = true;
    hasGap = false;
    try {
      await work();
      isFetching = false;
      if (hasGap) await fetching(() => fetchOn());
      else draw();
    } catch (error) {
      isFetching = false;
      if (abort.signal.aborted) return;
      state.value = { is: 'failed', message: messageOf(error) };
      retryTimer = setTimeout(() => void fetching(work), retryMs);
    }
  }

  function draw(): void {
    clearTimeout(drawTimer);
    drawTimer = undefined;
    if (isFetching) return;
    if (isPaused.peek() || omits.peek().after) {
      if (waiting.length > maxWaiting) {
        waiting = [];
        hasGap = true;
      }
      return;
    }
    if (hasGap) {
      waiting = [];
      void fetching(() => fetchOn());
      return;
    }
    if (waiting.length === 0) return;
    const entries = waiting;
    waiting = [];
    batch(() => {
      waitingCount.value = 0;
      add(entries);
      // A session that was missing a moment ago has just begun.
      if (state.peek().is === 'missing') state.value = { is: 'ready' };
    });
  }

  /** Fetches missing events after the stream restarted or dropped events. */
  function fillGap(): void {
    hasGap = true;
    draw();
  }

  function onEvents(events: readonly StreamEvent[]): void {
    for (const event of events) take(event);
    if (waiting.length > 0) {
      drawTimer ??= setTimeout(draw, drawMs);
      sessionTimer ??= setTimeout(refreshSession, sessionMs);
    }
  }

  function take({ event, data }: StreamEvent): void {
    if (event === streamEvents.gap) {
      fillGap();
    } else if (event === streamEvents.deleted) {
      const { sessionKey: key } = JSON.parse(data) as { sessionKey: string | null };
      if (key === sessionKey || key === null) refreshSession();
    } else if (data.includes(sessionKey)) {
      const summary = JSON.parse(data) as EventSummary;
      if (summary.sessionKey !== sessionKey || typeof summary.id !== 'number') return;
      waiting.push(entryOf(summary));
      if (isPaused.peek()) waitingCount.value += 1;
    }
  }

  function refreshSession(): void {
    clearTimeout(sessionTimer);
    sessionTimer = undefined;
    page({ limit: 1, bodies: 'none' }).then(
      ({ session: latest }) => {
        if (latest) session.value = latest;
        else if (model.peek().entries.length > 0) state.value = { is: 'deleted' };
      },
      () => {
        // The next event fetches again, and the frame of the page shows that the server is away.
      },
    );
  }

  return {
    model: model as ReadonlySignal<TraceModel>,
    version: version as ReadonlySignal<number>,
    session: session as ReadonlySignal<DashboardSession | undefined>,
    state: state as ReadonlySignal<LoadState>,
    isPaused: isPaused as ReadonlySignal<boolean>,
    waitingCount: waitingCount as ReadonlySignal<number>,
    omits: omits as ReadonlySignal<{ readonly before: boolean; readonly after: boolean }>,

    start(): () => void {
      abort = new AbortController();
      const stopListening = app.live.listen('events', {
        onEvents,
        onReset: fillGap,
      });
      void fetching(() => fetchOn());
      return () => {
        stopListening();
        abort.abort();
        for (const timer of [drawTimer, sessionTimer, retryTimer]) clearTimeout(timer);
      };
    },

    pause(next: boolean): void {
      isPaused.value = next;
      if (!next) {
        waitingCount.value = 0;
        draw();
      }
    },

    /** Resumes where the page had enough. */
    more(): void {
      omits.value = { ...omits.peek(), after: false };
      void fetching(() => fetchOn(maxEntries / 2));
    },

    /** The newest events instead of the oldest. */
    toEnd(): void {
      void fetching(async () => {
        const { events } = await page({ order: 'desc', limit: maxEventsPerPage });
        const newest = new TraceModel(true);
        newest.append(events.map(entryOf).reverse());
        batch(() => {
          model.value = newest;
          omits.value = { before: true, after: false };
          version.value += 1;
        });
      });
    },
  };
}
