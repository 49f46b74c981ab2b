import { type ReadonlySignal, type Signal, useSignal } from '@preact/signals';
import { useCallback, useEffect, useRef } from 'preact/hooks';
import { messageOf } from '../../lib/browser.ts';

/** Fetched data and the state of the request. Data stays while newer data is fetched, or cannot be fetched. */
export interface Resource<T> {
  readonly data: Signal<T | null>;
  /** Message of the last failure; null when the last request succeeded. */
  readonly error: ReadonlySignal<string | null>;
  /** When `data` was fetched, in milliseconds since the epoch. */
  readonly at: ReadonlySignal<number | null>;
  /** Fetches again; aborts a running request. */
  readonly reload: () => void;
}

/**
 * Fetches when the component appears, and again when `inputs` change or `reload` is called. Only the answer to the last
 * request counts.
 */
export function useResource<T>(
  load: (signal: AbortSignal) => Promise<T>,
  inputs: readonly unknown[] = [],
): Resource<T> {
  const data = useSignal<T | null>(null);
  const error = useSignal<string | null>(null);
  const at = useSignal<number | null>(null);
  const latest = useRef(load);
  latest.current = load;
  const underWay = useRef<AbortController | null>(null);

  const reload = useCallback(() => {
    underWay.current?.abort();
    const abort = new AbortController();
    underWay.current = abort;
    latest.current(abort.signal).then(
      (value) => {
        if (abort.signal.aborted) return;
        data.value = value;
        error.value = null;
        at.value = Date.now();
      },
      (fault: unknown) => {
        if (!abort.signal.aborted) error.value = messageOf(fault);
      },
    );
  }, []);
  useEffect(() => {
    reload();
    return () => underWay.current?.abort();
  }, inputs);
  return { data, error, at, reload };
}
