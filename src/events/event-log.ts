import { randomBytes } from 'node:crypto';
import { Ring, sseFrame } from '../lib/index.ts';

/** An event as the log stores it. Sequence numbers are consecutive, from 1. */
interface StoredEvent<E> {
  readonly sequence: number;
  readonly event: E;
  /** The bytes that every reader gets. */
  readonly frame: Uint8Array;
}

/** Why the events after the id of a reader are not all available. */
export interface Gap {
  readonly lastEventId: string;
  readonly reason: 'evicted' | 'otherEpoch' | 'unknownId';
}

export interface LoggedEvent<E> {
  readonly id: string;
  readonly event: E;
}

export interface EventLogOptions<E> {
  readonly maxEvents: number;
  /** Bound on the serialised frames held. */
  readonly maxBytes: number;
  /** Makes the event that reports a gap. It is sent to that reader only, and not stored. */
  readonly gap: (gap: Gap) => E;
  /** Prefix that distinguishes ids of this log from those of an earlier one; letters and digits. Default: 8 random characters. */
  readonly epoch?: string;
  /** The text of `data:`, without line breaks. Default `JSON.stringify`. */
  readonly serialise?: (event: E) => string;
  /** False: every event is delivered by itself, within `append`. Default true: those of one turn of the event loop together. */
  readonly batch?: boolean;
  /** A subscriber threw. The others have got their batch all the same. Default: a process warning. */
  readonly onSubscriberError?: (error: unknown) => void;
}

interface Subscriber {
  /** Number of the last event appended before it subscribed. */
  readonly since: number;
  readonly listener: (batch: Uint8Array) => void;
  readonly onEnd: () => void;
}

/**
 * Numbers the events of one stream, serialises each once, holds the last ones in a ring and delivers them in batches. It is
 * an `SseSource`.
 *
 * Batches are delivered by `setImmediate`, not by a microtask: a burst whose events are promises apart is still one write
 * per reader, the wait is the rest of this turn of the event loop, and the writes happen outside any request's turn, in
 * which uWebSockets.js could not cork other sockets.
 */
export class EventLog<E extends { readonly kind: string }> {
  readonly epoch: string;
  readonly #options: EventLogOptions<E>;
  readonly #serialise: (event: E) => string;
  readonly #ring: Ring<StoredEvent<E>>;
  /** Sequence number of the newest event. */
  #last = 0;
  readonly #subscribers = new Set<Subscriber>();
  #undelivered: StoredEvent<E>[] = [];
  #scheduled = false;
  #delivering = false;
  #ended = false;

  constructor(options: EventLogOptions<E>) {
    this.#options = options;
    this.epoch = options.epoch ?? randomBytes(4).toString('hex');
    if (!/^[A-Za-z0-9]+$/.test(this.epoch)) throw new TypeError(`not an epoch: ${this.epoch}`);
    this.#serialise = options.serialise ?? JSON.stringify;
    const { maxEvents: maxItems, maxBytes } = options;
    this.#ring = new Ring({ maxItems, maxBytes, bytesOf: ({ frame }) => frame.byteLength });
  }

  get subscribers(): number {
    return this.#subscribers.size;
  }

  /** Id of the newest event; before the first one it names the beginning, and resuming from it misses nothing. */
  get lastId(): string {
    return this.#id(this.#last);
  }

  /** Numbers, serialises and stores `event`, and delivers it soon. Returns its id. Throws TypeError for a kind or data with a line break. */
  append(event: E): string {
    const sequence = this.#last + 1;
    const entry = { sequence, event, frame: this.#frame(event, sequence) };
    this.#last = sequence;
    this.#ring.push(entry);
    if (this.#subscribers.size > 0) {
      this.#undelivered.push(entry);
      if (this.#options.batch === false) this.#deliver();
      else if (!this.#scheduled) this.#schedule();
    }
    return this.#id(sequence);
  }

  /** The last `count` events held, oldest first. */
  recent(count: number): LoggedEvent<E>[] {
    return this.#logged(this.#ring.last(Math.max(0, count)));
  }

  /** Returns the events after `id`; with a `gap` some are missing, and these are all that are still held. */
  since(id: string): { gap: Gap | undefined; events: LoggedEvent<E>[] } {
    const position = this.#position(id);
    if (typeof position === 'number') return { gap: undefined, events: this.#logged(this.#after(position)) };
    return { gap: position, events: this.#logged(this.#ring.last()) };
  }

  /** See `SseSource.replay`. */
  replay(lastEventId: string | undefined): readonly Uint8Array[] {
    this.#deliver();
    if (lastEventId === undefined) return [];
    const position = this.#position(lastEventId);
    if (typeof position === 'number') return this.#after(position).map((entry) => entry.frame);
    // The gap's id is the position before the oldest event held: a reader that resumes from it has the gap behind it.
    const gap = this.#frame(this.#options.gap(position), this.#first - 1);
    return [gap, ...this.#ring.last().map((entry) => entry.frame)];
  }

  /** See `SseSource.subscribe`. After `end` only `onEnd` is called, in a microtask. */
  subscribe(listener: (batch: Uint8Array) => void, onEnd: () => void): () => void {
    if (this.#ended) {
      queueMicrotask(() => this.#guarded(onEnd));
      return () => {};
    }
    this.#deliver();
    const subscriber = { since: this.#last, listener, onEnd };
    this.#subscribers.add(subscriber);
    return () => {
      this.#subscribers.delete(subscriber);
    };
  }

  /** Delivers pending events, then calls `onEnd` of every subscriber. Later events are stored, not delivered. */
  end(): void {
    if (this.#ended) return;
    this.#deliver();
    this.#ended = true;
    const subscribers = [...this.#subscribers];
    this.#subscribers.clear();
    for (const { onEnd } of subscribers) this.#guarded(onEnd);
  }

  /** Sequence number of the oldest event held; one past the newest when none is. */
  get #first(): number {
    return this.#last - this.#ring.size + 1;
  }

  /** Entries numbered above `sequence`, oldest first. `sequence` is at most that of the newest event. */
  #after(sequence: number): StoredEvent<E>[] {
    return this.#ring.last(this.#last - sequence);
  }

  #schedule(): void {
    this.#scheduled = true;
    setImmediate(() => {
      this.#scheduled = false;
      this.#deliver();
    });
  }

  /** One batch after the other, also when a subscriber appends: no subscriber gets an event before an older one. */
  #deliver(): void {
    if (this.#delivering) return;
    this.#delivering = true;
    try {
      this.#deliverAll();
    } finally {
      this.#delivering = false;
    }
  }

  #deliverAll(): void {
    while (this.#undelivered.length > 0) {
      const entries = this.#options.batch === false ? this.#undelivered.splice(0, 1) : this.#undelivered;
      if (entries === this.#undelivered) this.#undelivered = [];
      const batch = joined(entries);
      const first = entries[0]?.sequence ?? 0;
      for (const subscriber of [...this.#subscribers]) {
        const missing =
          subscriber.since < first ? entries : entries.filter(({ sequence }) => sequence > subscriber.since);
        if (missing.length === 0) continue;
        this.#guarded(() => subscriber.listener(missing === entries ? batch : joined(missing)));
      }
    }
  }

  #guarded(callback: () => void): void {
    try {
      callback();
    } catch (error) {
      if (this.#options.onSubscriberError !== undefined) this.#options.onSubscriberError(error);
      else process.emitWarning(`event subscriber failed: ${String(error)}`);
    }
  }

  /** Returns the sequence number in `id`, or why resuming from it would lose events. */
  #position(id: string): number | Gap {
    const dash = id.lastIndexOf('-');
    const digits = id.slice(dash + 1);
    const sequence = /^(?:0|[1-9]\d{0,15})$/.test(digits) ? Number(digits) : Number.NaN;
    if (dash < 0 || Number.isNaN(sequence)) return { lastEventId: id, reason: 'unknownId' };
    if (id.slice(0, dash) !== this.epoch) return { lastEventId: id, reason: 'otherEpoch' };
    if (sequence > this.#last) return { lastEventId: id, reason: 'unknownId' };
    // The event itself may be gone; only events after it must be held.
    if (sequence < this.#first - 1) return { lastEventId: id, reason: 'evicted' };
    return sequence;
  }

  #id(sequence: number): string {
    return `${this.epoch}-${sequence}`;
  }

  #logged(entries: readonly StoredEvent<E>[]): LoggedEvent<E>[] {
    return entries.map(({ sequence, event }) => ({ id: this.#id(sequence), event }));
  }

  #frame(event: E, sequence: number): Uint8Array {
    const { kind } = event;
    return Buffer.from(sseFrame({ event: kind, id: this.#id(sequence), data: this.#serialise(event) }));
  }
}

function joined(entries: readonly StoredEvent<unknown>[]): Uint8Array {
  const [only] = entries;
  if (only !== undefined && entries.length === 1) return only.frame;
  return Buffer.concat(entries.map((entry) => entry.frame));
}
