import type { Connection, StreamEvent, StreamOptions } from './stream.ts';

/**
 * One connection for all tabs of a browser profile, because browsers allow six per host over HTTP/1.1. The tab that holds
 * the lock of the stream's name *leads*: it reads from the server and forwards to the others. When it closes, or stops listening,
 * the lock goes to the next tab, which resumes after the last event it received. A tab that joins late, or missed
 * something, asks the leader for everything. Where there are no locks (plain HTTP on another host) each tab reads alone.
 */
export interface SharedStreamOptions {
  /** Stream name, equal in all tabs that share the connection. */
  readonly name: string;
  readonly read: (options: Omit<StreamOptions, 'url' | 'token'>) => Promise<void>;
  /** Events that a late tab gets first: nothing, this event too, or this event and all after it. */
  readonly retain: (event: StreamEvent) => 'no' | 'yes' | 'afresh';
  readonly signal: AbortSignal;
  /** Locks of the browser; undefined: it has no locks, so each tab reads alone. */
  readonly locks: LockManager | undefined;
  /** Default `patience`. */
  readonly patience?: Patience;
  readonly onEvents: (events: readonly StreamEvent[]) => void;
  readonly onReset: () => void;
  readonly onConnection: (connection: Connection) => void;
}

export interface SharedStream {
  /** Events that a listener must get when it joins; null: they come with the next `onReset`, as before the stream has begun. */
  catchUp(): readonly StreamEvent[] | null;
}

type Message =
  | { readonly type: 'join'; readonly tab: string }
  | {
      readonly type: 'welcome';
      readonly to: string;
      readonly place: ReaderPosition;
      readonly connection: Connection;
      readonly events: readonly StreamEvent[];
    }
  | { readonly type: 'open'; readonly place: ReaderPosition; readonly resumed: boolean }
  /** Events of the leader; an empty list is a sign of life. */
  | { readonly type: 'events'; readonly place: ReaderPosition; readonly events: readonly StreamEvent[] }
  | { readonly type: 'connection'; readonly connection: Connection };

/** Position of a reader: number of batches of this leader, up to this event. */
interface ReaderPosition {
  readonly leader: string;
  readonly batch: number;
  readonly lastEventId: string | undefined;
}

export interface Patience {
  readonly answerMs: number;
  readonly silenceMs: number;
}

/** A leader answers at once, and forwards a heartbeat of the server every 15 s. A tab takes the lock from a silent leader. */
const patience: Patience = { answerMs: 5_000, silenceMs: 90_000 };
/** Events held for late tabs; beyond the bound the leader fetches everything again. */
const maxRetained = 20_000;
const maxRetainedChars = 8_000_000;

export function shareStream(options: SharedStreamOptions): SharedStream {
  return new SharingTab(options);
}

/** A tab's share of the connection: it reads from the server while it leads, and follows the leader otherwise. */
class SharingTab implements SharedStream {
  readonly #options: SharedStreamOptions;
  readonly #patience: Patience;
  readonly #tab = unique();
  readonly #channel: BroadcastChannel | null;
  readonly #retained: ReturnType<typeof createRetained>;
  #place: ReaderPosition | null = null;
  #connection: Connection = { state: 'connecting' };
  #isJoining = false;
  /** Restarts the leader's connection; null in a tab that does not lead. */
  #renew: (() => void) | null = null;
  #onLeaderHeard: (ms: number) => void = () => {};

  constructor(options: SharedStreamOptions) {
    const { name, signal, locks } = options;
    this.#options = options;
    this.#patience = options.patience ?? patience;
    this.#channel = locks ? new BroadcastChannel(`oratorio:${name}`) : null;
    this.#retained = createRetained(options.retain);
    if (this.#channel) this.#channel.onmessage = (event: MessageEvent<Message>) => this.#onMessage(event.data);
    signal.addEventListener('abort', () => this.#channel?.close(), { once: true });
    void (locks ? this.#compete(locks) : this.#lead(signal));
  }

  catchUp(): readonly StreamEvent[] | null {
    if (this.#place === null) return null;
    const events = this.#retained.all();
    if (events === null) {
      if (this.#renew) this.#renew();
      else this.#join();
    }
    return events;
  }

  #post(message: Message): void {
    if (!this.#options.signal.aborted) this.#channel?.postMessage(message);
  }

  #setConnection(next: Connection): void {
    this.#connection = next;
    this.#options.onConnection(next);
  }

  #reset(): void {
    this.#retained.clear();
    this.#options.onReset();
  }

  #take(events: readonly StreamEvent[]): void {
    this.#retained.add(events);
    this.#options.onEvents(events);
  }

  #join(): void {
    if (this.#isJoining || this.#renew) return;
    this.#isJoining = true;
    this.#onLeaderHeard(this.#patience.answerMs);
    this.#post({ type: 'join', tab: this.#tab });
  }

  async #lead(until: AbortSignal): Promise<void> {
    const leader = unique();
    this.#isJoining = false;
    let from = this.#place?.lastEventId;
    while (!until.aborted) {
      const attempt = new AbortController();
      const ends = AbortSignal.any([until, attempt.signal]);
      let now: ReaderPosition = {
        leader,
        batch: this.#place?.leader === leader ? this.#place.batch : 0,
        lastEventId: from,
      };
      this.#renew = () => attempt.abort();
      await this.#options.read({
        signal: ends,
        lastEventId: from,
        onOpen: (resumed) => {
          if (!resumed) this.#reset();
          this.#place = now;
          this.#post({ type: 'open', place: now, resumed });
        },
        onEvents: (events) => {
          if (events.length > 0) {
            now = { leader, batch: now.batch + 1, lastEventId: events.at(-1)?.id || now.lastEventId };
            this.#place = now;
            this.#take(events);
          }
          this.#post({ type: 'events', place: now, events });
        },
        onConnection: (next) => {
          this.#setConnection(next);
          // A refused token concerns this tab only.
          if (next.state !== 'refused') this.#post({ type: 'connection', connection: next });
        },
      });
      from = undefined;
      if (attempt.signal.aborted) continue;
      // A server that refuses this tab's token may accept that of the next one.
      if (this.#connection.state === 'absent') await aborted(until);
      break;
    }
    this.#renew = null;
  }

  #onMessage(message: Message): void {
    if (this.#renew) {
      if (message.type === 'join') this.#welcome(message.tab);
      return;
    }
    if (message.type === 'join') return;
    this.#onLeaderHeard(this.#patience.silenceMs);
    if (message.type === 'welcome') this.#followWelcome(message);
    else if (message.type === 'open') this.#followOpen(message);
    else if (message.type === 'events') this.#followEvents(message);
    else this.#setConnection(message.connection);
  }

  #welcome(to: string): void {
    const events = this.#retained.all();
    if (events === null) this.#renew?.();
    else if (this.#place) this.#post({ type: 'welcome', to, place: this.#place, connection: this.#connection, events });
    else this.#post({ type: 'connection', connection: this.#connection });
  }

  /** Leads, or follows until the leader is gone. */
  async #compete(locks: LockManager): Promise<void> {
    while (!this.#options.signal.aborted && this.#connection.state !== 'refused') {
      const lost = new AbortController();
      const giveUp = new AbortController();
      let timer: ReturnType<typeof setTimeout> | undefined;
      this.#onLeaderHeard = (ms) => {
        clearTimeout(timer);
        timer = setTimeout(() => giveUp.abort(), ms);
      };
      const leading = () => {
        clearTimeout(timer);
        this.#onLeaderHeard = () => {};
        return this.#lead(AbortSignal.any([this.#options.signal, lost.signal]));
      };
      this.#join();
      const queued = { signal: AbortSignal.any([this.#options.signal, giveUp.signal]) };
      await locks.request(`oratorio:${this.#options.name}`, queued, leading).catch(() => {
        // The wait was ended, or another tab took the lock from this one, which it found silent.
      });
      if (giveUp.signal.aborted && !this.#options.signal.aborted) {
        await locks.request(`oratorio:${this.#options.name}`, { steal: true }, leading).catch(() => {
          // The wait was ended, or another tab took the lock from this one, which it found silent.
        });
      }
      clearTimeout(timer);
      lost.abort();
      this.#renew = null;
      this.#isJoining = false;
    }
  }

  #followWelcome(message: Message & { type: 'welcome' }): void {
    if (message.to !== this.#tab) return;
    this.#isJoining = false;
    this.#reset();
    this.#place = message.place;
    this.#setConnection(message.connection);
    if (message.events.length > 0) this.#take(message.events);
  }

  #followOpen(message: Message & { type: 'open' }): void {
    const follows = message.resumed && this.#place !== null && message.place.lastEventId === this.#place.lastEventId;
    this.#isJoining = false;
    if (message.resumed && !follows) {
      this.#join();
      return;
    }
    if (!message.resumed) this.#reset();
    this.#place = message.place;
  }

  #followEvents(message: Message & { type: 'events' }): void {
    const expected = (this.#place?.batch ?? 0) + (message.events.length > 0 ? 1 : 0);
    if (message.place.leader !== this.#place?.leader || message.place.batch !== expected) {
      this.#join();
      return;
    }
    this.#place = message.place;
    if (message.events.length > 0) this.#take(message.events);
  }
}

/** Events that a late listener gets first. */
function createRetained(retain: SharedStreamOptions['retain']) {
  let events: StreamEvent[] | null = [];
  let chars = 0;
  const clear = () => {
    events = [];
    chars = 0;
  };
  return {
    clear,
    all: (): readonly StreamEvent[] | null => events,
    add(more: readonly StreamEvent[]) {
      for (const event of more) {
        const how = retain(event);
        if (how === 'no') continue;
        if (how === 'afresh') clear();
        events?.push(event);
        chars += event.data.length;
      }
      if (events && (events.length > maxRetained || chars > maxRetainedChars)) events = null;
    },
  };
}

const unique = (): string => `${Date.now().toString(36)}-${Math.random().toString(36).slice(2)}`;

const aborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
