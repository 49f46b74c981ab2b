import { type Reply, type RequestContext, type SseSource, sse } from '../../http/index.ts';
import { Pump, Ring, sseFrame } from '../../lib/index.ts';
import type { Logger } from '../../log/index.ts';
import type { ReviewEvent } from '../../protocol/index.ts';
import type { ReviewStore } from '../store/index.ts';
import { apiError } from './errors.ts';
import { limits } from './limits.ts';

interface Frame {
  readonly seq: number;
  readonly bytes: Uint8Array;
}
interface Reader {
  readonly batch: (bytes: Uint8Array) => void;
  readonly end: () => void;
}

type EventStore = Pick<ReviewStore, 'events' | 'newestEvent' | 'oldestEvent' | 'onWake'>;

const frameOf = (event: ReviewEvent): Frame => ({
  seq: event.seq,
  bytes: Buffer.from(sseFrame({ id: String(event.seq), event: event.kind, data: JSON.stringify(event) })),
});

/** Tells a reader that it has missed something: it must look at everything again. Its id is where it goes on. */
const gapFrame = (after: number, next: number): Uint8Array =>
  Buffer.from(sseFrame({ id: String(next), event: 'stream.gap', data: JSON.stringify({ after, next }) }));

/**
 * The events of the store for those who listen: follows them, keeps the last ones, and reads older ones from the database for
 * a reader that comes back. Each event reaches each reader once and in order, whichever replica made it.
 */
export class EventFeed {
  readonly #store: EventStore;
  readonly #logger: Logger;
  readonly #readers = new Set<Reader>();
  readonly #unsubscribe: () => void;
  readonly #ring = new Ring<Frame>({ maxItems: limits.ringEvents });
  /** Newest event that readers have. */
  #last: number;
  readonly #reads = new Pump(() => this.#readNew());
  #isClosed = false;

  private constructor(store: EventStore, logger: Logger, last: number) {
    this.#store = store;
    this.#logger = logger;
    this.#last = last;
    this.#unsubscribe = store.onWake((what) => {
      if (what === 'events') void this.#reads.request();
    });
  }

  /** Begins to follow: what is published from now on reaches readers. */
  static async open(store: EventStore, logger: Logger): Promise<EventFeed> {
    return new EventFeed(store, logger, await store.newestEvent());
  }

  /** The stream for one request. @throws HttpError 400 for an id that is none */
  async reply(context: Pick<RequestContext, 'header' | 'query'>): Promise<Reply> {
    const given = context.header('last-event-id') ?? context.query.get('lastEventId') ?? '';
    if (given === '') return sse(this.#source([], this.#last), undefined);
    if (!/^\d{1,15}$/.test(given)) throw apiError('invalidRequest', 'Last-Event-ID is the number of an event.');
    const { frames, upTo } = await this.#history(Number(given));
    return sse(this.#source(frames, upTo), given);
  }

  /** Ends the streams. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#unsubscribe();
    for (const { end } of this.#readers) end();
    this.#readers.clear();
    await this.#reads.idle();
  }

  /** What came after `after`, as far as the ring does not have it. */
  async #history(after: number): Promise<{ readonly frames: Uint8Array[]; readonly upTo: number }> {
    const [oldest, newest] = await Promise.all([this.#store.oldestEvent(), this.#store.newestEvent()]);
    const isUnknown = after > Math.max(newest, this.#last);
    const isGone = oldest > after + 1 || newest - after > limits.maxReplay;
    if (isUnknown || isGone) return { frames: [gapFrame(after, this.#last)], upTo: this.#last };
    const frames: Uint8Array[] = [];
    let upTo = after;
    while (upTo < this.#last && !this.#isInRing(upTo)) {
      const events = await this.#store.events(upTo, limits.eventsAtOnce);
      const wanted = events.filter(({ seq }) => seq <= this.#last);
      const last = wanted.at(-1);
      if (last === undefined) break;
      for (const event of wanted) frames.push(frameOf(event).bytes);
      upTo = last.seq;
    }
    return { frames, upTo };
  }

  /** Whether the ring has everything after `seq`. Numbers may have holes: only what was dropped from the ring is missing. */
  #isInRing(seq: number): boolean {
    const { oldest } = this.#ring;
    return oldest !== undefined && oldest.seq <= seq + 1;
  }

  /** One reader's view: its history, then what is new. Made without waiting, so nothing comes in between. */
  #source(history: readonly Uint8Array[], upTo: number): SseSource {
    return {
      replay: () => [
        ...history,
        ...this.#ring
          .last()
          .filter(({ seq }) => seq > upTo)
          .map(({ bytes }) => bytes),
      ],
      subscribe: (batch, end) => {
        const reader: Reader = { batch, end };
        if (this.#isClosed) end();
        else this.#readers.add(reader);
        return () => this.#readers.delete(reader);
      },
    };
  }

  async #readNew(): Promise<void> {
    try {
      for (let isMore = true; isMore && !this.#isClosed; ) {
        const events = await this.#store.events(this.#last, limits.eventsAtOnce);
        isMore = events.length === limits.eventsAtOnce;
        this.#append(events.map(frameOf));
      }
    } catch (error) {
      // The store wakes us every two seconds in any case.
      this.#logger.warn('events cannot be read', { error });
    }
  }

  #append(frames: readonly Frame[]): void {
    const last = frames.at(-1);
    if (last === undefined) return;
    for (const frame of frames) this.#ring.push(frame);
    this.#last = last.seq;
    const batch = Buffer.concat(frames.map(({ bytes }) => bytes));
    for (const reader of this.#readers) reader.batch(batch);
  }
}
