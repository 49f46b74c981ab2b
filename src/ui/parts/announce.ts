import { useSignal } from '@preact/signals';
import { useCallback, useEffect, useRef } from 'preact/hooks';

/** Pause between two announcements: a screen reader gets summaries, not each event. */
const pauseMs = 5_000;

/**
 * Gathers counts and makes one sentence of them, at most every 5 s, for a live region.
 * @param phrase sentence about the gathered counts: `14 new events, 1 failed`
 */
export function useAnnouncer(phrase: (counts: ReadonlyMap<string, number>) => string) {
  const said = useSignal('');
  const counts = useRef(new Map<string, number>());
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  const latest = useRef(phrase);
  latest.current = phrase;
  useEffect(() => () => clearTimeout(timer.current), []);
  const note = useCallback((name: string, more: number) => {
    if (more === 0) return;
    counts.current.set(name, (counts.current.get(name) ?? 0) + more);
    timer.current ??= setTimeout(() => {
      timer.current = undefined;
      said.value = latest.current(counts.current);
      counts.current.clear();
    }, pauseMs);
  }, []);
  return { said, note };
}
