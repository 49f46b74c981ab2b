import { defaults, type NewTraceEvent, type TraceEvent, type TraceTotals } from '../../protocol/index.ts';
import type { TraceStore } from '../thread-store.ts';
import type { Database } from './database.ts';
import { addCounts, SessionChange } from './trace-counters.ts';
import { TraceQueries } from './trace-queries.ts';
import { TraceSweeper } from './trace-sweeper.ts';
import { type Expiry, type PendingEvent, TraceTable } from './trace-table.ts';

type Listener = (events: readonly TraceEvent[]) => void;

export interface TracesOptions {
  readonly database: Database;
  /** Called by `close`: the database may serve others still. */
  readonly release: () => void;
  /** Called when a listener throws, and once when the disk begins to refuse. */
  readonly onFault: (error: unknown) => void;
}

/** Traces in the database of a workspace. Appended events are written some milliseconds later, many at a time. */
export class SqliteTraces extends TraceQueries implements TraceStore {
  readonly #database: Database;
  readonly #table: TraceTable;
  readonly #sweeper: TraceSweeper;
  readonly #release: () => void;
  readonly #onFault: (error: unknown) => void;
  readonly #listeners = new Set<Listener>();
  #buffer: PendingEvent[] = [];
  #chars = 0;
  #timer: NodeJS.Timeout | undefined;
  #immediate: NodeJS.Immediate | undefined;
  /** Stored, and not published yet. */
  readonly #unpublished: (readonly TraceEvent[])[] = [];
  #isPublishing = false;
  #isRefused = false;
  #isClosed = false;
  #dropped = 0;

  constructor({ database, release, onFault }: TracesOptions) {
    super(database);
    this.#database = database;
    this.#table = new TraceTable(database);
    this.#sweeper = new TraceSweeper(database, this.#table, onFault);
    this.#release = release;
    this.#onFault = onFault;
  }

  get dropped(): number {
    return this.#dropped;
  }

  /** Sums of all sessions, with those of events that are not written yet. */
  override totals(): TraceTotals {
    const totals = super.totals();
    for (const { event } of this.#buffer) {
      const change = new SessionChange(event.at);
      change.add(event);
      addCounts(totals, change.counts);
    }
    return totals;
  }

  append(event: NewTraceEvent): void {
    if (this.#isClosed) {
      this.#dropped += 1;
      return;
    }
    const short = { ...event, data: cutTexts(event.data, defaults.agent.traceTextChars) };
    const { sessionKey: _, type: __, ...rest } = short;
    const json = JSON.stringify(rest);
    this.#buffer.push({ event: short, json });
    this.#chars += json.length;
    if (this.#buffer.length > defaults.agent.traceBufferEvents) this.#overflow();
    this.#schedule();
  }

  flush(): void {
    // Leaves out events that a listener appends during the flush: they might never end.
    let left = this.#buffer.length;
    while (left > 0) {
      const written = this.#writeSlice();
      if (written === 0) break;
      left -= written;
    }
    this.#schedule();
  }

  subscribe(listener: Listener): () => void {
    // A function that subscribes twice is called twice.
    const own: Listener = (events) => listener(events);
    this.#listeners.add(own);
    return () => this.#listeners.delete(own);
  }

  /** Deletes a session with its unwritten events. @throws StorageError */
  deleteSession(sessionKey: string): boolean {
    const isDeleted = this.#table.deleteSession(sessionKey);
    const wasBuffered = this.#forget((key) => key === sessionKey);
    this.#sweeper.start();
    return isDeleted || wasBuffered;
  }

  /** Deletes all sessions except `keep`, with their unwritten events. @throws StorageError */
  deleteAllSessions(keep: readonly string[] = []): number {
    this.flush();
    const count = this.#table.deleteAllSessions(keep);
    this.#forget((key) => !keep.includes(key));
    this.#sweeper.start();
    return count;
  }

  /** See `TraceTable.expire`. Does nothing while the disk refuses writes: the active sessions are unknown. @throws StorageError */
  expire(expiry: Expiry, limit: number): number {
    this.flush();
    if (this.#buffer.length > 0) return 0;
    const count = this.#table.expire(expiry, limit);
    if (count > 0) this.#sweeper.start();
    return count;
  }

  close(): void {
    if (this.#isClosed) return;
    this.flush();
    this.#isClosed = true;
    this.#dropped += this.#buffer.length;
    this.#replaceBuffer([]);
    this.#sweeper.stop();
    clearTimeout(this.#timer);
    clearImmediate(this.#immediate);
    this.#listeners.clear();
    this.#release();
  }

  /** Soon, or at once when there is a slice full; later when the disk refused. The process does not stay alive for it. */
  #schedule(): void {
    if (this.#buffer.length === 0 || this.#immediate) return;
    const isFull =
      this.#buffer.length >= defaults.agent.traceSliceEvents || this.#chars >= defaults.agent.traceSliceChars;
    if (isFull && !this.#isRefused) {
      this.#immediate = setImmediate(() => {
        this.#immediate = undefined;
        this.#writeSlice();
        this.#schedule();
      });
      return;
    }
    this.#timer ??= setTimeout(
      () => {
        this.#timer = undefined;
        this.#writeSlice();
        this.#schedule();
      },
      this.#isRefused ? defaults.agent.traceRetryMs : defaults.agent.traceFlushMs,
    ).unref();
  }

  /** Makes room in a full buffer: by writing, or when the disk does not take it by forgetting the oldest. */
  #overflow(): void {
    if (!this.#isRefused && this.#writeSlice() > 0) return;
    // Inside of a transaction nothing can be written; it ends before the loop turns.
    if (!this.#isRefused) return;
    this.#dropped += 1;
    this.#chars -= this.#buffer.shift()?.json.length ?? 0;
  }

  /** @returns how many it wrote: none when the disk refuses, nor inside of another transaction */
  #writeSlice(): number {
    const pending = this.#database.isInTransaction ? [] : this.#buffer.slice(0, this.#sliceLength());
    if (pending.length === 0) return 0;
    try {
      this.#unpublished.push(this.#table.insert(pending));
    } catch (error) {
      if (!this.#isRefused) this.#onFault(error);
      this.#isRefused = true;
      return 0;
    }
    if (this.#isRefused) this.#recovered();
    this.#buffer.splice(0, pending.length);
    for (const { json } of pending) this.#chars -= json.length;
    this.#publish();
    return pending.length;
  }

  /** Resets the pause before the next attempt. */
  #recovered(): void {
    this.#isRefused = false;
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  /** Number of events in the next slice: at least one, even a long one. */
  #sliceLength(): number {
    let chars = 0;
    let length = 0;
    for (const { json } of this.#buffer) {
      chars += json.length;
      if (length === defaults.agent.traceSliceEvents || (length > 0 && chars > defaults.agent.traceSliceChars)) break;
      length += 1;
    }
    return length;
  }

  /** @returns whether anything of those sessions waited to be written */
  #forget(isMeant: (sessionKey: string) => boolean): boolean {
    const rest = this.#buffer.filter(({ event }) => !isMeant(event.sessionKey));
    const hasForgotten = rest.length < this.#buffer.length;
    this.#replaceBuffer(rest);
    return hasForgotten;
  }

  #replaceBuffer(buffer: PendingEvent[]): void {
    this.#buffer = buffer;
    this.#chars = buffer.reduce((sum, { json }) => sum + json.length, 0);
  }

  /** Publishes the batches in order: events that a listener appends come after all earlier ones. */
  #publish(): void {
    if (this.#isPublishing) return;
    this.#isPublishing = true;
    try {
      for (let events = this.#unpublished.shift(); events; events = this.#unpublished.shift()) {
        for (const listener of this.#listeners) this.#notify(listener, events);
      }
    } finally {
      this.#isPublishing = false;
    }
  }

  #notify(listener: Listener, events: readonly TraceEvent[]): void {
    try {
      listener(events);
    } catch (error) {
      this.#onFault(error);
    }
  }
}

/**
 * Cuts every text in the value to `limit` UTF-16 units, and adds the number of omitted units. Returns a value that needs no
 * cutting unchanged, not copied.
 */
function cutTexts<T>(value: T, limit: number): T {
  return cut(value, limit) as T;
}

function cut(value: unknown, limit: number): unknown {
  if (typeof value === 'string') return value.length > limit ? cutText(value, limit) : value;
  if (typeof value !== 'object' || value === null) return value;
  return Array.isArray(value) ? cutList(value, limit) : cutRecord(value, limit);
}

function cutText(text: string, limit: number): string {
  // Do not cut between the halves of a surrogate pair.
  const last = text.charCodeAt(limit - 1);
  const end = last >= 0xd800 && last <= 0xdbff ? limit - 1 : limit;
  return `${text.slice(0, end)}… [${text.length - end} characters left out]`;
}

function cutList(list: readonly unknown[], limit: number): readonly unknown[] {
  const shorter = list.map((each) => cut(each, limit));
  return shorter.every((each, index) => each === list[index]) ? list : shorter;
}

function cutRecord(record: object, limit: number): object {
  let shorter: Record<string, unknown> | undefined;
  for (const [key, value] of Object.entries(record)) {
    const short = cut(value, limit);
    if (short === value) continue;
    shorter ??= { ...record };
    shorter[key] = short;
  }
  return shorter ?? record;
}
