import { type ReadonlySignal, type Signal, signal } from '@preact/signals';
import { useEffect, useMemo, useRef } from 'preact/hooks';
import { messageOf } from '../../lib/browser.ts';
import type { Live, StreamEvent } from './live.ts';

/** Fetched data and the state of the request. Data stays while newer data is fetched, or cannot be fetched. */
export interface Resource<T> {
  readonly data: Signal<T | null>;
  /** Message of the last failure; null when the last request succeeded. */
  readonly error: ReadonlySignal<string | null>;
  /** When `data` was fetched, in milliseconds since the epoch. */
  readonly at: ReadonlySignal<number | null>;
  /** Refetches at once, and aborts a running request. */
  readonly reload: () => void;
}

export interface ListOptions<T> {
  readonly load: (signal: AbortSignal) => Promise<T>;
  /** Stream whose events change the list. Absent: only `reload` and `reloadSoon` fetch again. */
  readonly live?: Live;
  /** Whether this event changes the list, so that it must be fetched again. */
  readonly isConcerned?: (event: StreamEvent) => boolean;
  /** Delay in milliseconds during which events are collected for one request; 0: no delay. */
  readonly gatherMs?: number;
}

export interface ListStore<T> extends Resource<T> {
  readonly error: Signal<string | null>;
  /**
   * Fetches once after the delay, or after a running request has ended, so that a busy server cannot keep a list empty forever.
   */
  readonly reloadSoon: () => void;
  /** Listens to the stream. Returns a function that stops listening and aborts a running request. */
  readonly start: () => () => void;
}

const defaultGatherMs = 250;

/** List that is fetched as a whole, and again after each event that changes it. Only the answer to the last request counts. */
export function createListStore<T>(options: ListOptions<T>): ListStore<T> {
  const { load, live, isConcerned = () => false, gatherMs = defaultGatherMs } = options;
  const data = signal<T | null>(null);
  const error = signal<string | null>(null);
  const at = signal<number | null>(null);
  let request: AbortController | null = null;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let isStale = false;

  const stop = () => {
    clearTimeout(timer);
    timer = undefined;
    request?.abort();
    request = null;
    isStale = false;
  };
  const reload = () => {
    stop();
    void fetchOnce();
  };
  const reloadSoon = () => {
    if (request !== null) isStale = true;
    else if (gatherMs === 0) reload();
    else timer ??= setTimeout(reload, gatherMs);
  };
  async function fetchOnce(): Promise<void> {
    const own = new AbortController();
    request = own;
    try {
      const found = await load(own.signal);
      if (own.signal.aborted) return;
      data.value = found;
      error.value = null;
      at.value = Date.now();
    } catch (fault) {
      if (own.signal.aborted) return;
      error.value = messageOf(fault);
    }
    request = null;
    const isDue = isStale;
    isStale = false;
    if (isDue) reloadSoon();
  }
  return {
    data,
    error,
    at,
    reload,
    reloadSoon,
    start() {
      const leave = live?.listen('events', {
        onReset: reloadSoon,
        onEvents: (events) => {
          if (events.some(isConcerned)) reloadSoon();
        },
      });
      return () => {
        leave?.();
        stop();
      };
    },
  };
}

/** Fetches when the component appears, when `inputs` change, and after events of `live` that change the list. */
export function useResource<T>(
  load: (signal: AbortSignal) => Promise<T>,
  inputs: readonly unknown[] = [],
  { live, isConcerned, gatherMs }: Omit<ListOptions<T>, 'load'> = {},
): Resource<T> {
  const latest = useRef({ load, isConcerned });
  latest.current = { load, isConcerned };
  const store = useMemo(
    () =>
      createListStore<T>({
        load: (signal) => latest.current.load(signal),
        isConcerned: (event) => latest.current.isConcerned?.(event) ?? false,
        ...(live && { live }),
        ...(gatherMs !== undefined && { gatherMs }),
      }),
    [live],
  );
  useEffect(() => store.start(), [store]);
  useEffect(() => store.reload(), [store, ...inputs]);
  return store;
}
