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
import { dayOf } from '../../../parts/time.ts';
import type { Conversation } from '../data/conversation.ts';
import { isPrinted } from '../data/printing.ts';
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
  const [isAtEnd, setAtEnd] = useState(turnId === undefined);
  const virtualizer = useTranscriptVirtualizer(scroller, rows);
  const items = virtualizer.getVirtualItems();
  const first = items[0]?.index ?? 0;

  const isPlaced = useStart(scroller, virtualizer, conversation, rows.length > 0, turnId);
  useEffect(() => {
    // The rows of the first drawing are those at the top, before the list is scrolled to its end.
    const isNearTop = first < nearTopRows && (scroller.current?.scrollTop ?? nearTopPx) < nearTopPx;
    if (isPlaced && isNearTop && !transcript.isAtBeginning) void conversation.loadOlder();
  }, [first, changes, isPlaced]);
  useEndInSight(scroller, virtualizer, isAtEnd);
  useSent(virtualizer, conversation);
  useFound(scroller, virtualizer, conversation);

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
        <div class="log-all" style={isPrinted.value ? {} : { height: `${virtualizer.getTotalSize()}px` }}>
          <div class="log-part" style={isPrinted.value ? {} : { transform: `translateY(${items[0]?.start ?? 0}px)` }}>
            {(isPrinted.value ? rows.map((_, index) => index) : items.map(({ index }) => index)).map((index) => {
              const row = rows[index];
              return (
                row && (
                  <div
                    key={row.key}
                    ref={virtualizer.measureElement}
                    data-index={index}
                    class={`row row-${row.kind}${row.key === conversation.found.value.key ? ' found' : ''}`}
                  >
                    <Day rows={rows} index={index} />
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

/** Day of a message, above the first one of each day. */
function Day({ rows, index }: { readonly rows: readonly Row[]; readonly index: number }) {
  const row = rows[index];
  if (row?.kind !== 'user') return null;
  const before = rows.slice(0, index).findLast((each) => each.kind === 'user');
  const day = dayOf(Date.parse(row.at));
  return before && dayOf(Date.parse(before.at)) === day ? null : <p class="day quiet">{day}</p>;
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

/** A message of this tab is shown also to a person who has scrolled up. */
function useSent(virtualizer: LogVirtualizer, conversation: Conversation): void {
  const sent = conversation.sent.value;
  const seen = useRef({ conversation, sent });
  useLayoutEffect(() => {
    const isNew = seen.current.conversation === conversation && sent > seen.current.sent;
    seen.current = { conversation, sent };
    if (isNew) virtualizer.scrollToEnd();
  }, [conversation, sent]);
}

/** Frames in which a row has to stay in its place before it counts as placed. */
const calmFrames = 4;
/** Events with which a person takes the position over. */
const ownMoves = ['wheel', 'touchmove', 'pointerdown', 'keydown'] as const;

/**
 * Scrolls to a row until it stays there: rows above it may be measured or arrive meanwhile. Ends when a person scrolls.
 *
 * @param indexOf present index of the row; -1: the list is scrolled to its end
 * @param onEnd called once; not after the returned function, which stops this
 */
function place(
  element: HTMLElement,
  virtualizer: LogVirtualizer,
  align: 'start' | 'center',
  indexOf: () => number,
  onEnd: () => void,
): () => void {
  let calm = 0;
  let frame = requestAnimationFrame(step);
  const stop = () => {
    cancelAnimationFrame(frame);
    for (const name of ownMoves) element.removeEventListener(name, end);
  };
  const end = () => {
    stop();
    onEnd();
  };
  for (const name of ownMoves) element.addEventListener(name, end, { passive: true });
  function step() {
    const index = indexOf();
    if (index < 0) virtualizer.scrollToEnd();
    const [top = null] = (index >= 0 && virtualizer.getOffsetForIndex(index, align)) || [];
    calm = top !== null && Math.abs(element.scrollTop - top) < 2 ? calm + 1 : 0;
    if (top === null || calm === calmFrames) return end();
    if (calm === 0) virtualizer.scrollToIndex(index, { align });
    frame = requestAnimationFrame(step);
  }
  return stop;
}

/**
 * A conversation opens at its end, or at the turn that the address names. Returns false until that turn is at the top: older
 * rows, whose arrival gives every row another index, are not read before.
 */
function useStart(
  scroller: Box,
  virtualizer: LogVirtualizer,
  conversation: Conversation,
  hasRows: boolean,
  turnId?: string,
): boolean {
  const [placed, setPlaced] = useState<string>();
  useLayoutEffect(() => {
    if (hasRows && turnId === undefined) virtualizer.scrollToEnd();
  }, [conversation, hasRows]);
  useEffect(() => {
    const element = scroller.current;
    if (!hasRows || turnId === undefined || !element) return;
    let isLeft = false;
    let stop = () => {};
    void conversation.find(turnId).then(() => {
      const indexOf = () => conversation.indexOf((row) => row.turnId === turnId);
      if (!isLeft) stop = place(element, virtualizer, 'start', indexOf, () => setPlaced(turnId));
    });
    return () => {
      isLeft = true;
      stop();
    };
  }, [conversation, hasRows, turnId]);
  return turnId === undefined || placed === turnId;
}

/** Shows the row that a search has found. */
function useFound(scroller: Box, virtualizer: LogVirtualizer, conversation: Conversation): void {
  const { key } = conversation.found.value;
  useEffect(() => {
    if (key === null || !scroller.current) return;
    const indexOf = () => conversation.indexOf((row) => row.key === key);
    return place(scroller.current, virtualizer, 'center', indexOf, () => {});
  }, [conversation, conversation.found.value]);
}
