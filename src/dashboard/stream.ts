import { randomBytes } from 'node:crypto';
import type { TraceReader } from '../agent/index.ts';
import type { SseSource } from '../http/index.ts';
import { Ring, sseFrame } from '../lib/index.ts';
import { defaults, streamEvents, type TraceEvent } from '../protocol/index.ts';
import { summaryOf } from './events.ts';
import type { TraceFeed } from './options.ts';

/** Where in the stream something is: after this trace event, and the how-manieth of the others that follow it. */
interface Position {
  readonly event: number;
  readonly extra: number;
}

interface StreamEntry extends Position {
  readonly frame: Buffer;
}

interface Reader {
  readonly listener: (batch: Uint8Array) => void;
  readonly onEnd: () => void;
}

export interface EventStreamOptions {
  readonly traces: Pick<TraceReader, 'since' | 'newestId'>;
  readonly feed: TraceFeed;
  /** Records held for readers that come back; default `defaults.dashboard`. */
  readonly ringEvents?: number;
  readonly ringBytes?: number;
}

/**
 * The events of all sessions as an event stream: every reader gets every event, each serialised once. Ids are
 * `<boot>-<trace event>`, with `.<n>` for other records. Trace events are numbered through the life of the
 * workspace, so a reader can resume from the ring, or from the database, also after a restart. When that cannot be done
 * without a loss it gets `stream.gap`. Nothing is serialised without readers.
 */
export class EventStream implements SseSource {
  readonly bootId = randomBytes(6).toString('hex');
  readonly #traces: EventStreamOptions['traces'];
  readonly #feed: TraceFeed;
  readonly #history: FrameHistory;
  readonly #ringEvents: number;
  readonly #readers = new Set<Reader>();
  /** Latest record; without readers the database is newer. */
  #position: Position = { event: 0, extra: 0 };
  #unsubscribe: (() => void) | undefined;
  #pending: Buffer[] = [];
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor({ traces, feed, ringEvents, ringBytes }: EventStreamOptions) {
    this.#traces = traces;
    this.#feed = feed;
    this.#ringEvents = ringEvents ?? defaults.dashboard.ringEvents;
    this.#history = new FrameHistory(this.#ringEvents, ringBytes ?? defaults.dashboard.ringBytes);
  }

  /** A session was deleted; null: all that could be. */
  deleted(sessionKey: string | null): void {
    this.#publish(streamEvents.deleted, { sessionKey });
  }

  automationsChanged(revision: number): void {
    this.#publish(streamEvents.automations, { revision });
  }

  /** Whether a reader receives the next record. */
  get isRead(): boolean {
    return this.#unsubscribe !== undefined;
  }

  /** See `SseSource.replay`. */
  replay(lastEventId: string | undefined): readonly Uint8Array[] {
    this.#deliver();
    const now = this.#now();
    const hello = (id: string) => this.#frame(id, streamEvents.hello, { bootId: this.bootId, newest: now.event });
    if (lastEventId === undefined) return [hello(this.#id(now))];
    const missed = this.#missed(lastEventId, now);
    // A reader that is cut off between these two must come back with its last record, not with the next one.
    if (missed) return [hello(lastEventId), ...missed];
    return [hello(this.#id(now)), this.#frame(this.#id(now), streamEvents.gap, {})];
  }

  /** See `SseSource.subscribe`. */
  subscribe(listener: (batch: Uint8Array) => void, onEnd: () => void): () => void {
    const reader = { listener, onEnd };
    if (this.#isClosed) {
      queueMicrotask(onEnd);
      return () => {};
    }
    this.#deliver();
    this.#readers.add(reader);
    if (!this.#unsubscribe) this.#listen();
    return () => {
      this.#readers.delete(reader);
      if (this.#readers.size === 0) this.#stopListening();
    };
  }

  /** Ends every reader's stream after its pending frames. */
  close(): void {
    if (this.#isClosed) return;
    this.#deliver();
    this.#isClosed = true;
    for (const { onEnd } of [...this.#readers]) onEnd();
    this.#readers.clear();
    this.#stopListening();
  }

  #now(): Position {
    if (this.#unsubscribe) return this.#position;
    const { newestId } = this.#traces;
    return newestId > this.#position.event ? { event: newestId, extra: 0 } : this.#position;
  }

  #listen(): void {
    this.#position = this.#now();
    this.#history.begin(this.#position);
    this.#unsubscribe = this.#feed.subscribe((events) => this.#take(events));
  }

  #stopListening(): void {
    this.#unsubscribe?.();
    this.#unsubscribe = undefined;
    this.#history.forget();
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#pending = [];
  }

  #take(events: readonly TraceEvent[]): void {
    for (const event of events) {
      if (event.id <= this.#position.event) continue;
      this.#push({ event: event.id, extra: 0 }, event.type, summaryOf(event, 'short'));
    }
  }

  #publish(kind: string, data: unknown): void {
    const { event, extra } = this.#now();
    const position = { event, extra: extra + 1 };
    if (this.#unsubscribe) {
      this.#push(position, kind, data);
      return;
    }
    // No reader receives it: a reader that comes back to a position before this must read everything again.
    this.#position = position;
    this.#history.lost(event);
  }

  #push(position: Position, kind: string, data: unknown): void {
    const frame = this.#frame(this.#id(position), kind, data);
    this.#position = position;
    this.#history.push({ ...position, frame });
    this.#pending.push(frame);
    this.#timer ??= setTimeout(() => this.#deliver(), defaults.dashboard.coalesceMs).unref();
  }

  #deliver(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (this.#pending.length === 0) return;
    const batch = Buffer.concat(this.#pending);
    this.#pending = [];
    for (const { listener } of [...this.#readers]) listener(batch);
  }

  /** Frames after `lastEventId`, oldest first; undefined when some of them cannot be had. */
  #missed(lastEventId: string, now: Position): Buffer[] | undefined {
    const match = /^([0-9a-f]{12})-(\d{1,15})(?:\.(\d{1,9}))?$/.exec(lastEventId);
    const seen = { event: Number(match?.[2]), extra: Number(match?.[3] ?? 0) };
    if (!match || seen.event > now.event) return undefined;
    const isOurs = match[1] === this.bootId;
    if (isOurs && this.#history.holdsAfter(seen)) return this.#history.after(seen);
    if (this.#history.hasLostAfter(seen.event)) return undefined;
    const stored = this.#traces.since(seen.event, this.#ringEvents + 1).filter(({ id }) => id <= now.event);
    if (stored.length > this.#ringEvents) return undefined;
    // The ring is replayed from there: records other than trace events are nowhere else.
    const from = this.#history.start;
    const before = from === undefined ? stored : stored.filter(({ id }) => id <= from.event);
    const frames = before.map((event) =>
      this.#frame(this.#id({ event: event.id, extra: 0 }), event.type, summaryOf(event, 'short')),
    );
    return from === undefined ? frames : [...frames, ...this.#history.after(from)];
  }

  #id({ event, extra }: Position): string {
    return `${this.bootId}-${event}${extra > 0 ? `.${extra}` : ''}`;
  }

  #frame(id: string, kind: string, data: unknown): Buffer {
    return Buffer.from(sseFrame({ id, event: kind, data: JSON.stringify(data) }));
  }
}

const isAfter = (a: Position, b: Position): boolean => a.event > b.event || (a.event === b.event && a.extra > b.extra);

/** Frames for readers that return, and the positions from which nothing is missing. */
class FrameHistory {
  readonly #ring: Ring<StreamEntry>;
  #start: Position | undefined;
  /** The other records that are no longer held followed this trace event or an earlier one. */
  #lostAt = -1;

  constructor(maxItems: number, maxBytes: number) {
    this.#ring = new Ring({
      maxItems,
      maxBytes,
      bytesOf: ({ frame }) => frame.byteLength,
      onDrop: (entry) => {
        this.#noteLoss(entry);
        this.#start = entry;
      },
    });
  }

  /** The position after which every frame is held; undefined: none is held. */
  get start(): Position | undefined {
    return this.#start;
  }

  begin(at: Position): void {
    this.#start = at;
  }

  forget(): void {
    for (const entry of this.#ring.last()) this.#noteLoss(entry);
    this.#ring.clear();
    this.#start = undefined;
  }

  lost(at: number): void {
    this.#lostAt = Math.max(this.#lostAt, at);
  }

  hasLostAfter(event: number): boolean {
    return this.#lostAt >= event;
  }

  push(entry: StreamEntry): void {
    this.#ring.push(entry);
  }

  holdsAfter(position: Position): boolean {
    return this.#start !== undefined && !isAfter(this.#start, position);
  }

  after(position: Position): Buffer[] {
    return this.#ring.last().flatMap((entry) => (isAfter(entry, position) ? [entry.frame] : []));
  }

  #noteLoss({ event, extra }: StreamEntry): void {
    if (extra > 0) this.lost(event);
  }
}
