import {
  elementScroll,
  measureElement,
  observeElementOffset,
  observeElementRect,
  Virtualizer,
  type VirtualizerOptions,
} from '@tanstack/virtual-core';
import { useEffect, useLayoutEffect, useReducer, useRef, useState } from 'preact/hooks';
import { Glyph } from '../../../parts/glyphs.tsx';
import type { Conversation } from '../data/conversation.ts';
import type { Row } from '../data/rows.ts';
import { RowView } from './row-view.tsx';

/** First guess of the height of a row, in CSS pixels. */
const guessPx: Readonly<Record<Row['kind'], number>> = {
  user: 62,
  answer: 180,
  thinking: 34,
  tool: 38,
  plan: 90,
  notice: 30,
  error: 60,
  end: 32,
};
/** Distance from the end that still counts as the end. */
const endSlackPx = 40;
/** Distance from the top at which older rows are fetched. */
const nearTopRows = 12;
const nearTopPx = 3_000;

interface TranscriptListProps {
  readonly conversation: Conversation;
  /** Turn in the address, shown instead of the end. */
  readonly turnId: string | undefined;
}

/**
 * Rows of a conversation, with only the visible ones in the document. The list stays at the end while the end is in sight;
 * otherwise it keeps its position, also when rows are added above.
 */
export function TranscriptList({ conversation, turnId }: TranscriptListProps) {
  const { transcript } = conversation;
  // Subscribes to the list of rows.
  const changes = transcript.changes.value;
  const { rows } = transcript;
  const scroller = useRef<HTMLDivElement>(null);
  const [isAtEnd, setAtEnd] = useState(true);
  const virtualizer = useTranscriptVirtualizer(scroller, rows);
  const items = virtualizer.getVirtualItems();
  const first = items[0]?.index ?? 0;

  useEffect(() => {
    // The rows of the first drawing are those at the top, before the list is scrolled to its end.
    const isNearTop = first < nearTopRows && (scroller.current?.scrollTop ?? nearTopPx) < nearTopPx;
    if (isNearTop && !transcript.isAtBeginning) void conversation.loadOlder();
  }, [first, changes]);
  useStart(virtualizer, conversation, rows.length > 0, turnId);
  useEndInSight(scroller, virtualizer, isAtEnd);

  const lookWhere = () => {
    const element = scroller.current;
    if (element) setAtEnd(element.scrollHeight - element.scrollTop - element.clientHeight <= endSlackPx);
  };
  return (
    <div class="transcript">
      <div
        ref={scroller}
        class="log"
        role="log"
        aria-label="Conversation"
        aria-live="off"
        // biome-ignore lint/a11y/noNoninteractiveTabindex: scrollable regions must be focusable (WCAG 2.1.1)
        tabIndex={0}
        onScroll={lookWhere}
      >
        <div class="log-all" style={{ height: `${virtualizer.getTotalSize()}px` }}>
          <div class="log-part" style={{ transform: `translateY(${items[0]?.start ?? 0}px)` }}>
            {items.map(({ index, key }) => {
              const row = rows[index];
              return (
                row && (
                  <div key={key} ref={virtualizer.measureElement} data-index={index} class={`row row-${row.kind}`}>
                    <RowView conversation={conversation} row={row} />
                  </div>
                )
              );
            })}
          </div>
        </div>
      </div>
      {!isAtEnd && rows.length > 0 && (
        <button type="button" class="latest" onClick={() => virtualizer.scrollToEnd()}>
          <Glyph name="down" /> Jump to latest
        </button>
      )}
    </div>
  );
}

type Box = { readonly current: HTMLDivElement | null };
type LogVirtualizer = Virtualizer<HTMLDivElement, HTMLDivElement>;

function useTranscriptVirtualizer(scroller: Box, rows: readonly Row[]): LogVirtualizer {
  const [, redraw] = useReducer((count: number, _: undefined) => count + 1, 0);
  const latest = useRef(rows);
  latest.current = rows;
  // The virtualizer keeps its cached sizes and positions only while these functions stay the same objects.
  const [stable] = useState<Omit<VirtualizerOptions<HTMLDivElement, HTMLDivElement>, 'count'>>(() => ({
    getScrollElement: () => scroller.current,
    estimateSize: (index) => guessPx[latest.current[index]?.kind ?? 'notice'],
    getItemKey: (index) => latest.current[index]?.key ?? index,
    onChange: () => redraw(undefined),
    scrollToFn: elementScroll,
    observeElementRect,
    observeElementOffset,
    measureElement,
    overscan: 6,
    anchorTo: 'end',
    followOnAppend: true,
    scrollEndThreshold: endSlackPx,
  }));
  const options = { ...stable, count: rows.length };
  const [virtualizer] = useState<LogVirtualizer>(() => new Virtualizer(options));
  virtualizer.setOptions(options);
  useLayoutEffect(() => virtualizer._didMount(), []);
  useLayoutEffect(() => virtualizer._willUpdate());
  return virtualizer;
}

/** The end stays in sight when the box becomes lower: a question appears below it, or the keyboard of a phone. */
function useEndInSight(scroller: Box, virtualizer: LogVirtualizer, isAtEnd: boolean): void {
  const wasAtEnd = useRef(isAtEnd);
  wasAtEnd.current = isAtEnd;
  useEffect(() => {
    const element = scroller.current;
    if (!element) return;
    const observer = new ResizeObserver(() => {
      if (wasAtEnd.current) virtualizer.scrollToEnd();
    });
    observer.observe(element);
    return () => observer.disconnect();
  }, [virtualizer]);
}

/** A conversation opens at its end, or at the turn that the address names. */
function useStart(virtualizer: LogVirtualizer, conversation: Conversation, hasRows: boolean, turnId?: string): void {
  useLayoutEffect(() => {
    if (hasRows && turnId === undefined) virtualizer.scrollToEnd();
  }, [conversation, hasRows]);
  useEffect(() => {
    if (!hasRows || turnId === undefined) return;
    let isLeft = false;
    void conversation.find(turnId).then((index) => {
      if (isLeft) return;
      if (index < 0) virtualizer.scrollToEnd();
      // The list is drawn with the rows that were found before it is scrolled to them.
      else requestAnimationFrame(() => virtualizer.scrollToIndex(index, { align: 'start' }));
    });
    return () => {
      isLeft = true;
    };
  }, [conversation, hasRows, turnId]);
}
