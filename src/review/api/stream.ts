import { type Reply, type RequestContext, type SseSource, sse } from '../../http/index.ts';
import { Pump, Ring, sseFrame } from '../../lib/index.ts';
import type { Logger } from '../../log/index.ts';
import type { ReviewEvent } from '../../protocol/index.ts';
import { type ReviewStore, retryLevel } from '../store/index.ts';
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

/** Frame that reports missed events: the reader must load everything again. Its id is the position to resume at. */
const gapFrame = (after: number, next: number): Uint8Array =>
  Buffer.from(sseFrame({ id: String(next), event: 'stream.gap', data: JSON.stringify({ after, next }) }));

/**
 * Streams the events of the store: follows new ones, buffers the latest, and reads older ones from the database for a reader that
 * reconnects. Each reader receives each event once and in order, from all replicas.
 */
export class EventFeed {
  readonly #store: EventStore;
  readonly #logger: Logger;
  readonly #readers = new Set<Reader>();
  readonly #unsubscribe: () => void;
  readonly #ring = new Ring<Frame>({ maxItems: limits.ringEvents });
  /** Number of the newest event sent to readers. */
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

  /** Starts to follow the store: readers receive events published from now on. */
  static async open(store: EventStore, logger: Logger): Promise<EventFeed> {
    return new EventFeed(store, logger, await store.newestEvent());
  }

  /** The stream for one request. @throws HttpError 400 for an invalid Last-Event-ID */
  async reply(context: Pick<RequestContext, 'header' | 'query'>): Promise<Reply> {
    const given = context.header('last-event-id') ?? context.query.get('lastEventId') ?? '';
    if (given === '') return sse(this.#source([], this.#last), undefined);
    if (!/^\d{1,15}$/.test(given)) throw apiError('invalidRequest', 'Invalid Last-Event-ID: use the id of an event.');
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

  /** Reads the events after `after` that are older than the ring. */
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

  /** Whether the ring holds all events after `seq`. Numbers can have gaps, so only the oldest number of the ring counts. */
  #isInRing(seq: number): boolean {
    const { oldest } = this.#ring;
    return oldest !== undefined && oldest.seq <= seq + 1;
  }

  /** Source for one reader: its history, then new events. Synchronous, so that no event is lost in between. */
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
      // The timer of the store repeats the read.
      this.#logger[retryLevel(error)]('could not read events; retrying', { error });
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
