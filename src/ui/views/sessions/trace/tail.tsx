import { useSignal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useRef } from 'preact/hooks';
import { Glyph } from '../../../parts/glyphs.tsx';
import type { ListHandle } from '../../../parts/virtual-list.tsx';
import { counted } from '../words.ts';
import type { Trace } from './store.ts';

/**
 * Follows new events of a running session while the end of the list is visible. Otherwise a button shows their number,
 * and goes there.
 */
export function useTail(trace: Trace, count: number) {
  const handle = useRef<ListHandle | null>(null);
  /** Number of events when the end went out of sight; undefined: the end is in sight. */
  const seen = useSignal<number | undefined>(undefined);
  trace.version.value;
  const all = trace.model.value.entries.length;
  const isFollowing = trace.isLive.value && !trace.isPaused.value && trace.selectedId.peek() === undefined;
  const fresh = seen.value === undefined || !trace.isLive.value ? 0 : all - seen.value;
  const props = {
    handle,
    followsTail: isFollowing,
    onAtEnd(isAtEnd: boolean) {
      seen.value = isAtEnd ? undefined : trace.model.peek().entries.length;
    },
  };
  const button: ComponentChildren = fresh > 0 && count > 0 && (
    <button type="button" class="new-events main" onClick={() => handle.current?.scrollToEnd()}>
      {counted(fresh, 'new event')} <Glyph name="down" />
    </button>
  );
  return { handle, props, button };
}
