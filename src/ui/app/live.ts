import { type ReadonlySignal, signal } from '@preact/signals';
import { streamEvents } from '../../protocol/browser.ts';
import { type SharedStream, type SharedStreamOptions, shareStream } from './shared-stream.ts';
import { type Connection, readStream, type StreamEvent } from './stream.ts';

export type { Connection, StreamEvent } from './stream.ts';

/** Streams of a server: its events (traces of a workspace, lifecycle of the Hub) and its actors. */
export type StreamName = 'events' | 'inspect';

export interface StreamListener {
  /** Records in order, several at a time. */
  readonly onEvents: (events: readonly StreamEvent[]) => void;
  /** The stream restarts: data received from it before may have gaps. Called before its first events. */
  readonly onReset?: () => void;
}

/**
 * Live streams for the views: connected while they have listeners, and reconnected after each loss. All tabs
 * of a browser share one connection per stream: see shared-stream.ts.
 */
export interface Live {
  /** State of each stream while it has listeners. */
  readonly connections: Readonly<Record<StreamName, ReadonlySignal<Connection>>>;
  /** Streams that have listeners. */
  readonly listened: ReadonlySignal<readonly StreamName[]>;
  /**
   * Adds a listener. Returns a function that removes it. A listener that joins a connected stream gets `onReset`, then the first
   * events of a new connection: of `inspect` every actor and its last transitions; of `events` the `stream.hello` of the
   * connection, whose `newest` may have been passed since: fetch the shown data after `onReset`.
   * @param actor of `inspect`: only this actor
   */
  listen(name: StreamName, listener: StreamListener, actor?: string): () => void;
}

export interface LiveOptions {
  readonly paths: Readonly<Record<StreamName, string>>;
  readonly token: () => Promise<string | null>;
  readonly onRefused: () => void;
}

/** Events that a late listener needs. The Hub's lifecycle stream begins with none. */
const retains: Readonly<Record<StreamName, SharedStreamOptions['retain']>> = {
  events: ({ event }) => (event === streamEvents.hello ? 'afresh' : 'no'),
  // After `dropped` the server sends every actor again.
  inspect: ({ event }) => (event === 'dropped' ? 'afresh' : 'yes'),
};

interface Tuned {
  readonly name: StreamName;
  /** Listeners, also those that are not caught up yet. */
  users: number;
  readonly listeners: Set<StreamListener>;
  readonly stream: SharedStream;
  readonly abort: AbortController;
}

export function createLive({ paths, token, onRefused }: LiveOptions): Live {
  const connections = {
    events: signal<Connection>({ state: 'connecting' }),
    inspect: signal<Connection>({ state: 'connecting' }),
  };
  const listened = signal<readonly StreamName[]>([]);
  /** By address. */
  const tuned = new Map<string, Tuned>();
  const list = () => {
    listened.value = [...tuned.values()].map(({ name }) => name);
  };

  function tune(name: StreamName, url: string): Tuned {
    const listeners = new Set<StreamListener>();
    const abort = new AbortController();
    const stream = shareStream({
      name: url,
      signal: abort.signal,
      // Only secure contexts have locks, although the type is not optional.
      locks: typeof BroadcastChannel === 'undefined' ? undefined : navigator.locks,
      retain: retains[name],
      read: (options) => readStream({ ...options, url, token }),
      onEvents: (events) => {
        for (const listener of [...listeners]) listener.onEvents(events);
      },
      onReset: () => {
        for (const listener of [...listeners]) listener.onReset?.();
      },
      onConnection: (next) => {
        connections[name].value = next;
        if (next.state === 'refused') onRefused();
      },
    });
    return { name, users: 0, listeners, stream, abort };
  }

  function turnOff(url: string, { name, abort }: Tuned): void {
    abort.abort();
    tuned.delete(url);
    list();
    connections[name].value = { state: 'connecting' };
  }

  return {
    connections,
    listened,
    listen(name, listener, actor) {
      const url = actor === undefined ? paths[name] : `${paths[name]}?${new URLSearchParams({ actor })}`;
      const known = tuned.get(url);
      const station = known ?? tune(name, url);
      station.users += 1;
      let isEnded = false;
      if (known) {
        queueMicrotask(() => {
          if (!isEnded) catchUp(station, listener);
        });
      } else {
        station.listeners.add(listener);
        tuned.set(url, station);
        list();
      }
      return () => {
        if (isEnded) return;
        isEnded = true;
        station.users -= 1;
        station.listeners.delete(listener);
        // A view that takes the place of another one listens in the same moment.
        queueMicrotask(() => {
          if (station.users === 0 && tuned.get(url) === station) turnOff(url, station);
        });
      };
    },
  };
}

function catchUp({ stream, listeners }: Tuned, listener: StreamListener): void {
  const events = stream.catchUp();
  listeners.add(listener);
  if (events === null) return;
  listener.onReset?.();
  if (events.length > 0) listener.onEvents(events);
}
