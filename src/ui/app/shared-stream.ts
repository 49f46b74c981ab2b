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
  const { name, signal, locks } = options;
  const { answerMs, silenceMs } = options.patience ?? patience;
  const tab = unique();
  const channel = locks ? new BroadcastChannel(`oratorio:${name}`) : null;
  const retained = createRetained(options.retain);
  let place: ReaderPosition | null = null;
  let connection: Connection = { state: 'connecting' };
  let isJoining = false;
  /** Restarts the leader's connection; null in a tab that does not lead. */
  let renew: (() => void) | null = null;
  let onLeaderHeard: (ms: number) => void = () => {};

  const post = (message: Message) => {
    if (!signal.aborted) channel?.postMessage(message);
  };
  const setConnection = (next: Connection) => {
    connection = next;
    options.onConnection(next);
  };
  const reset = () => {
    retained.clear();
    options.onReset();
  };
  const take = (events: readonly StreamEvent[]) => {
    retained.add(events);
    options.onEvents(events);
  };
  const join = () => {
    if (isJoining || renew) return;
    isJoining = true;
    onLeaderHeard(answerMs);
    post({ type: 'join', tab });
  };

  async function lead(until: AbortSignal): Promise<void> {
    const leader = unique();
    isJoining = false;
    let from = place?.lastEventId;
    while (!until.aborted) {
      const attempt = new AbortController();
      const ends = AbortSignal.any([until, attempt.signal]);
      let now: ReaderPosition = { leader, batch: place?.leader === leader ? place.batch : 0, lastEventId: from };
      renew = () => attempt.abort();
      await options.read({
        signal: ends,
        lastEventId: from,
        onOpen(resumed) {
          if (!resumed) reset();
          place = now;
          post({ type: 'open', place: now, resumed });
        },
        onEvents(events) {
          if (events.length > 0) {
            now = { leader, batch: now.batch + 1, lastEventId: events.at(-1)?.id || now.lastEventId };
            place = now;
            take(events);
          }
          post({ type: 'events', place: now, events });
        },
        onConnection(next) {
          setConnection(next);
          // A refused token concerns this tab only.
          if (next.state !== 'refused') post({ type: 'connection', connection: next });
        },
      });
      from = undefined;
      if (attempt.signal.aborted) continue;
      // A server that refuses this tab's token may accept that of the next one.
      if (connection.state === 'absent') await aborted(until);
      break;
    }
    renew = null;
  }

  function onMessage(message: Message): void {
    if (renew) {
      if (message.type === 'join') welcome(message.tab);
      return;
    }
    if (message.type === 'join') return;
    onLeaderHeard(silenceMs);
    follow[message.type](message as never);
  }

  function welcome(to: string): void {
    const events = retained.all();
    if (events === null) renew?.();
    else if (place) post({ type: 'welcome', to, place, connection, events });
    else post({ type: 'connection', connection });
  }

  const follow = {
    welcome(message: Message & { type: 'welcome' }) {
      if (message.to !== tab) return;
      isJoining = false;
      reset();
      place = message.place;
      setConnection(message.connection);
      if (message.events.length > 0) take(message.events);
    },
    open(message: Message & { type: 'open' }) {
      const follows = message.resumed && place !== null && message.place.lastEventId === place.lastEventId;
      isJoining = false;
      if (message.resumed && !follows) return join();
      if (!message.resumed) reset();
      place = message.place;
    },
    events(message: Message & { type: 'events' }) {
      const expected = (place?.batch ?? 0) + (message.events.length > 0 ? 1 : 0);
      if (message.place.leader !== place?.leader || message.place.batch !== expected) return join();
      place = message.place;
      if (message.events.length > 0) take(message.events);
    },
    connection(message: Message & { type: 'connection' }) {
      setConnection(message.connection);
    },
  };

  /** Leads, or follows until the leader is gone. */
  async function compete(locks: LockManager): Promise<void> {
    while (!signal.aborted && connection.state !== 'refused') {
      const lost = new AbortController();
      const giveUp = new AbortController();
      let timer: ReturnType<typeof setTimeout> | undefined;
      onLeaderHeard = (ms) => {
        clearTimeout(timer);
        timer = setTimeout(() => giveUp.abort(), ms);
      };
      const leading = () => {
        clearTimeout(timer);
        onLeaderHeard = () => {};
        return lead(AbortSignal.any([signal, lost.signal]));
      };
      join();
      const queued = { signal: AbortSignal.any([signal, giveUp.signal]) };
      await locks.request(`oratorio:${name}`, queued, leading).catch(() => {
        // The wait was ended, or another tab took the lock from this one, which it found silent.
      });
      if (giveUp.signal.aborted && !signal.aborted) {
        await locks.request(`oratorio:${name}`, { steal: true }, leading).catch(() => {
          // The wait was ended, or another tab took the lock from this one, which it found silent.
        });
      }
      clearTimeout(timer);
      lost.abort();
      renew = null;
      isJoining = false;
    }
  }

  if (channel) channel.onmessage = (event: MessageEvent<Message>) => onMessage(event.data);
  signal.addEventListener('abort', () => channel?.close(), { once: true });
  void (locks ? compete(locks) : lead(signal));

  return {
    catchUp() {
      if (place === null) return null;
      const events = retained.all();
      if (events === null) {
        if (renew) renew();
        else join();
      }
      return events;
    },
  };
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
