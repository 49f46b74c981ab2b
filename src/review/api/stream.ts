import { type Reply, type RequestContext, type SseSource, sse } from '../../http/index.ts';
import { Pump, Ring, sseFrame } from '../../lib/index.ts';
import type { Logger } from '../../log/index.ts';
import type { ReviewEvent } from '../../protocol/index.ts';
import { type ReviewStore, retryLevel } from '../store/index.ts';
import { apiError } from './errors.ts';
import { limits } from './limits.ts';

interface Frame {
  readonly seq: number;
  readonly bytes: Buffer;
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

/** Event of this number; undefined: it is missing. */
async function frameAt(store: EventStore, seq: number): Promise<Frame | undefined> {
  const [event] = seq > 0 ? await store.events(seq - 1, 1) : [];
  return event?.seq === seq ? frameOf(event) : undefined;
}

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
  /** That event; undefined before the first event. */
  #newest: Frame | undefined;
  readonly #reads = new Pump(() => this.#readNew());
  #isClosed = false;

  private constructor(store: EventStore, logger: Logger, last: number, newest: Frame | undefined) {
    this.#store = store;
    this.#logger = logger;
    this.#last = last;
    this.#newest = newest;
    this.#unsubscribe = store.onWake((what) => {
      if (what === 'events') void this.#reads.request();
    });
  }

  /** Starts to follow the store: readers receive events published from now on. */
  static async open(store: EventStore, logger: Logger): Promise<EventFeed> {
    const last = await store.newestEvent();
    return new EventFeed(store, logger, last, await frameAt(store, last));
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
        // The newest known event is read again: another server may have another one in its place, or none.
        const from = this.#newest ? this.#last - 1 : this.#last;
        const frames = (await this.#store.events(from, limits.eventsAtOnce)).map(frameOf);
        isMore = frames.length === limits.eventsAtOnce;
        if (await this.#hasGoneBack(frames[0])) await this.#restart();
        else this.#append(frames.filter(({ seq }) => seq > this.#last));
      }
    } catch (error) {
      // The timer of the store repeats the read.
      this.#logger[retryLevel(error)]('could not read events; retrying', { error });
    }
  }

  /**
   * Whether the server lacks events that readers have received, as after a failover to a standby that had not received them. Their
   * numbers are then given again.
   *
   * @param first event of the server at or after the number of the newest known one
   */
  async #hasGoneBack(first: Frame | undefined): Promise<boolean> {
    if (!this.#newest) return false;
    if (first?.seq === this.#last) return !first.bytes.equals(this.#newest.bytes);
    if (first !== undefined) return false;
    const newest = await this.#store.newestEvent();
    // Without events, all of them were pruned.
    return newest > 0 && newest < this.#last;
  }

  /** Reports a gap to all readers and continues after the newest event of the server. */
  async #restart(): Promise<void> {
    const newest = await this.#store.newestEvent();
    const frame = await frameAt(this.#store, newest);
    const gap = gapFrame(this.#last, newest);
    this.#ring.clear();
    this.#last = newest;
    this.#newest = frame;
    for (const reader of this.#readers) reader.batch(gap);
  }

  #append(frames: readonly Frame[]): void {
    const last = frames.at(-1);
    if (last === undefined) return;
    this.#newest = last;
    for (const frame of frames) this.#ring.push(frame);
    this.#last = last.seq;
    const batch = Buffer.concat(frames.map(({ bytes }) => bytes));
    for (const reader of this.#readers) reader.batch(batch);
  }
}
