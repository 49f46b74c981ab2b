import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { amount, counted } from '../words.ts';
import { isFailed } from './entry.ts';
import type { Trace } from './store.ts';

/** Announces totals, not every event, to users of a screen reader. */
const everyMs = 5_000;

/** Announces the new events of a running session. */
export function Announcer({ trace }: { readonly trace: Trace }) {
  const words = useSignal('');
  useEffect(() => {
    const openedAt = Date.now();
    let lastId = 0;
    const note = () => {
      const { entries } = trace.model.peek();
      const from = lastId;
      const since = entries.findLastIndex(({ id, at }) => id <= from || at < openedAt) + 1;
      const fresh = entries.slice(since);
      lastId = entries.at(-1)?.id ?? lastId;
      if (fresh.length === 0) return;
      const failed = fresh.filter(isFailed).length;
      words.value = `${counted(fresh.length, 'new event')}${failed > 0 ? `, ${amount(failed)} failed` : ''}`;
    };
    const timer = setInterval(note, everyMs);
    return () => clearInterval(timer);
  }, [trace]);
  return (
    <p class="unseen" role="status">
      {words.value}
    </p>
  );
}
