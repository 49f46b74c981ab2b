import { type ReadonlySignal, type Signal, useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { messageOf } from '../../../lib/browser.ts';
import { streamEvents } from '../../../protocol/browser.ts';
import type { ReviewEventKind } from '../../../protocol/index.ts';
import type { App } from '../../app/app.ts';

export interface LiveResource<T> {
  readonly data: Signal<T | null>;
  /** Message of the last failure; null when the last request succeeded. */
  readonly error: ReadonlySignal<string | null>;
  /** When `data` was fetched, in milliseconds since the epoch. */
  readonly at: ReadonlySignal<number | null>;
  readonly reload: () => void;
}

/** Events that make a view fetch again. */
export interface Concern {
  readonly kinds: readonly ReviewEventKind[];
  /** Only events that name this pull request, or none. */
  readonly itemId?: string;
}

/** Pause in which events are gathered for one fetch. */
const gatherMs = 250;

/**
 * Fetched data, fetched again after each event that concerns it. One request runs at a time: changes during it are
 * fetched after it, so that a busy backend cannot keep a view empty for ever.
 */
export function useLive<T>(
  app: App,
  load: (signal: AbortSignal) => Promise<T>,
  concern: Concern,
  inputs: readonly unknown[] = [],
): LiveResource<T> {
  const data = useSignal<T | null>(null);
  const error = useSignal<string | null>(null);
  const at = useSignal<number | null>(null);
  const reloads = useSignal(0);
  const latest = useRef({ load, concern });
  latest.current = { load, concern };
  useEffect(() => {
    const abort = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    let isLoading = false;
    let isStale = false;
    const soon = () => {
      if (isLoading) isStale = true;
      else timer ??= setTimeout(fetchNow, gatherMs);
    };
    const fetchNow = () => {
      timer = undefined;
      isLoading = true;
      isStale = false;
      latest.current
        .load(abort.signal)
        .then(
          (value) => {
            if (abort.signal.aborted) return;
            data.value = value;
            error.value = null;
            at.value = Date.now();
          },
          (fault: unknown) => {
            if (!abort.signal.aborted) error.value = messageOf(fault);
          },
        )
        .finally(() => {
          isLoading = false;
          if (isStale && !abort.signal.aborted) soon();
        });
    };
    fetchNow();
    const stop = app.live.listen('events', {
      onReset: soon,
      onEvents: (events) => {
        if (events.some((each) => isAbout(each, latest.current.concern))) soon();
      },
    });
    return () => {
      stop();
      abort.abort();
      clearTimeout(timer);
    };
  }, [app, reloads.value, ...inputs]);
  const reload = useRef(() => {
    reloads.value += 1;
  }).current;
  return { data, error, at, reload };
}

function isAbout(
  { event, data }: { readonly event: string; readonly data: string },
  { kinds, itemId }: Concern,
): boolean {
  if (event === streamEvents.gap || event === 'backend.started') return true;
  if (!kinds.some((kind) => kind === event)) return false;
  if (itemId === undefined) return true;
  try {
    const { data: facts } = JSON.parse(data) as { readonly data?: { readonly itemId?: unknown } };
    return facts?.itemId === undefined || facts.itemId === itemId;
  } catch {
    return true;
  }
}

/** Sends a request and shows its result as a notice. Resolves with true after a success. */
export async function attempt(app: App, work: Promise<unknown>, done: string): Promise<boolean> {
  try {
    await work;
    app.toast({ text: done, ms: 3_000 });
    return true;
  } catch (fault) {
    app.toast({ text: messageOf(fault), tone: 'danger' });
    return false;
  }
}
