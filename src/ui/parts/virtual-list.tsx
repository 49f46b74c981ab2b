import {
  elementScroll,
  measureElement,
  observeElementOffset,
  observeElementRect,
  Virtualizer,
  type VirtualizerOptions,
} from '@tanstack/virtual-core';
import type { ComponentChildren } from 'preact';
import { useEffect, useId, useLayoutEffect, useReducer, useRef, useState } from 'preact/hooks';
import './virtual-list.css';

/** Attributes of one row for assistive technology, beyond its position: level, whether it is expanded. */
export interface RowProps {
  readonly class?: string | undefined;
  readonly title?: string | undefined;
  readonly 'aria-label'?: string | undefined;
  readonly 'aria-level'?: number | undefined;
  readonly 'aria-expanded'?: boolean | undefined;
  readonly 'aria-current'?: 'true' | undefined;
  /** Position among its siblings, if it differs from the position in the list. */
  readonly 'aria-posinset'?: number | undefined;
  readonly 'aria-setsize'?: number | undefined;
}

/** Requests of a view to its list. */
export interface ListHandle {
  scrollToIndex(index: number, align?: 'auto' | 'start' | 'center' | 'end'): void;
  scrollToEnd(): void;
  focus(): void;
}

export interface VirtualListProps {
  /** Name of the list for assistive technology. */
  readonly label: string;
  /** `listbox` (default): a row is one option. `grid` and `treegrid`: `renderRow` gives cells (`role="gridcell"`). */
  readonly role?: 'listbox' | 'grid' | 'treegrid';
  readonly class?: string;
  readonly count: number;
  /** Number of all rows when some are not loaded yet; -1: unknown. Default `count`. */
  readonly total?: number;
  /** Height of a row in CSS pixels: exact, or with `isMeasured` a first guess until the row was seen. */
  readonly rowHeight: number | ((index: number) => number);
  readonly isMeasured?: boolean;
  /** Key that identifies a row when rows before it are added or removed. Required with `isMeasured`. Default: the index. */
  readonly rowKey?: (index: number) => string | number;
  readonly renderRow: (index: number, isSelected: boolean) => ComponentChildren;
  /**
   * Reuses the elements of rows that leave the screen for rows that enter it: several times as fast. Only for rows of one
   * height that have no state of their own, such as an opened menu.
   */
  readonly recycles?: boolean;
  readonly rowProps?: (index: number) => RowProps;
  /** Index of the selected row; -1: none. */
  readonly selected?: number;
  readonly onSelect?: (index: number) => void;
  /** Enter, or a double click. */
  readonly onOpen?: (index: number) => void;
  /** Handles keys that the list does not use itself. Returns true for a handled key. */
  readonly onKey?: (event: KeyboardEvent, index: number) => boolean;
  /** Whether the list stays at the end while rows are added, if the end is visible. */
  readonly followsTail?: boolean;
  readonly onAtEnd?: (isAtEnd: boolean) => void;
  /** Called when the first row comes into sight or leaves it. */
  readonly onAtTop?: (isAtTop: boolean) => void;
  /** The end of the loaded rows comes into sight: time to fetch more. */
  readonly onNearEnd?: () => void;
  /** Column headers of a grid (`role="row"`), which stay at the top. */
  readonly header?: ComponentChildren;
  readonly handle?: { current: ListHandle | null };
}

const overscan = 8;
const nearEndRows = 20;

/**
 * List that keeps only the visible rows in the document: a million rows cost no more than forty. Moves with the arrow
 * keys, Page Up, Page Down, Home and End; the focus stays on the list itself and `aria-activedescendant` names the selected
 * row.
 */
export const VirtualList = (props: VirtualListProps) => (
  // The list needs the height of its rows before its first render.
  <Rows key={typeof props.rowHeight === 'number' ? props.rowHeight : 0} {...props} />
);

function Rows(props: VirtualListProps) {
  const { role = 'listbox', count, selected = -1, isMeasured = false } = props;
  const id = useId();
  const scroller = useRef<HTMLDivElement>(null);
  const latest = useRef(props);
  latest.current = props;
  const isAtEnd = useRef(true);
  const isAtTop = useRef(true);
  const virtualizer = useVirtualizer(scroller, latest);
  const total = virtualizer.getTotalSize();
  const items = virtualizer.getVirtualItems();
  const last = items.at(-1)?.index ?? -1;
  const slotOf = useSlots(items, props.recycles === true);

  const lookWhere = () => {
    const box = scroller.current;
    if (!box) return;
    const isTop = box.scrollTop < endSlackPx;
    if (isTop !== isAtTop.current) latest.current.onAtTop?.(isTop);
    isAtTop.current = isTop;
    const now = box.scrollHeight - box.scrollTop - box.clientHeight < endSlackPx;
    if (now === isAtEnd.current) return;
    isAtEnd.current = now;
    latest.current.onAtEnd?.(now);
  };
  useLayoutEffect(() => {
    // Keeps the end in sight when rows are added, or turn out to be higher than guessed.
    if (props.followsTail && isAtEnd.current && scroller.current) scroller.current.scrollTop = total;
    else lookWhere();
  }, [props.followsTail, total]);
  useHandle(props.handle, scroller, virtualizer);
  useReveal(virtualizer, selected, props.rowKey);
  useEffect(() => {
    if (last >= 0 && last >= count - nearEndRows) latest.current.onNearEnd?.();
  }, [last, count]);

  const idOf = (index: number) => `${id}-${props.rowKey?.(index) ?? index}`;
  const isShown = items.some(({ index }) => index === selected);
  const isGrid = role !== 'listbox';
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: the role is one of three, each of which is interactive.
    // biome-ignore lint/a11y/useAriaPropsSupportedByRole: each of the three supports the given properties.
    <div
      ref={scroller}
      class={`vlist ${props.class ?? ''}`}
      role={role}
      tabIndex={0}
      aria-label={props.label}
      aria-activedescendant={isShown ? idOf(selected) : undefined}
      aria-rowcount={isGrid ? rowCount(props) : undefined}
      onScroll={lookWhere}
      onKeyDown={(event) => onKeyDown(event, latest.current, virtualizer)}
      onClick={(event) => withRow(event, latest.current.onSelect)}
      onDblClick={(event) => withRow(event, latest.current.onOpen)}
    >
      {props.header}
      <div class="vlist-all" role="presentation" style={{ height: `${total}px` }}>
        <div class="vlist-part" role="presentation" style={{ transform: `translateY(${items[0]?.start ?? 0}px)` }}>
          {items.map(({ index, key, size }) => (
            <div
              key={slotOf(key)}
              id={idOf(index)}
              ref={isMeasured ? virtualizer.measureElement : null}
              data-index={index}
              {...rowAttributes(props, index, index === selected)}
              style={isMeasured ? undefined : { height: `${size}px` }}
            >
              {props.renderRow(index, index === selected)}
            </div>
          ))}
        </div>
      </div>
    </div>
  );
}

/** How far from the end still counts as the end. */
const endSlackPx = 24;

function rowCount({ total, count, header }: VirtualListProps): number {
  const rows = total ?? count;
  return rows < 0 ? -1 : rows + (header ? 1 : 0);
}

function rowAttributes(props: VirtualListProps, index: number, isSelected: boolean) {
  const { role = 'listbox', total, count, header } = props;
  const place =
    role === 'listbox'
      ? { role: 'option' as const, 'aria-setsize': total ?? count, 'aria-posinset': index + 1 }
      : { role: 'row' as const, 'aria-rowindex': index + (header ? 2 : 1) };
  const own = props.rowProps?.(index);
  return { ...place, 'aria-selected': isSelected, ...own, class: `vrow ${own?.class ?? ''}` };
}

/** Calls with the row that an event came from, if any. */
function withRow(event: Event, call: ((index: number) => void) | undefined): void {
  const row = event.target instanceof Element ? event.target.closest('[data-index]') : null;
  if (call && row instanceof HTMLElement) call(Number(row.dataset['index']));
}

type Box = { readonly current: HTMLDivElement | null };
type ListVirtualizer = Virtualizer<HTMLDivElement, HTMLDivElement>;

function useVirtualizer(scroller: Box, latest: { readonly current: VirtualListProps }): ListVirtualizer {
  const [, redraw] = useReducer((count: number, _: undefined) => count + 1, 0);
  // The virtualizer keeps its cached sizes and positions only while these functions stay the same objects.
  const [stable] = useState<Omit<VirtualizerOptions<HTMLDivElement, HTMLDivElement>, 'count'>>(() => ({
    getScrollElement: () => scroller.current,
    estimateSize: (index: number) => {
      const { rowHeight } = latest.current;
      return typeof rowHeight === 'number' ? rowHeight : rowHeight(index);
    },
    getItemKey: (index: number) => latest.current.rowKey?.(index) ?? index,
    onChange: () => redraw(undefined),
    scrollToFn: elementScroll,
    observeElementRect,
    observeElementOffset,
    measureElement,
    overscan,
  }));
  const options = { ...stable, count: latest.current.count };
  const [virtualizer] = useState<ListVirtualizer>(() => new Virtualizer(options));
  virtualizer.setOptions(options);
  useLayoutEffect(() => virtualizer._didMount(), []);
  useLayoutEffect(() => virtualizer._willUpdate());
  return virtualizer;
}

/** Which element a row is shown in: its own, or one that another row has left. Rows in sight keep theirs. */
function useSlots(items: readonly { readonly key: Key }[], recycles: boolean): (key: Key) => Key {
  const slots = useRef(new Map<Key, number>());
  if (!recycles) return (key) => key;
  const before = slots.current;
  const next = new Map<Key, number>();
  for (const { key } of items) {
    const slot = before.get(key);
    if (slot !== undefined) next.set(key, slot);
  }
  const taken = new Set(next.values());
  const free = [...before.values()].filter((slot) => !taken.has(slot)).sort((a, b) => b - a);
  let fresh = before.size === 0 ? 0 : Math.max(...before.values()) + 1;
  for (const { key } of items) {
    if (next.has(key)) continue;
    const slot = free.pop() ?? fresh++;
    next.set(key, slot);
  }
  slots.current = next;
  return (key) => next.get(key) ?? key;
}

type Key = string | number | bigint;

function useHandle(handle: VirtualListProps['handle'], scroller: Box, virtualizer: ListVirtualizer): void {
  useLayoutEffect(() => {
    if (!handle) return;
    handle.current = {
      scrollToIndex: (index, align = 'auto') => virtualizer.scrollToIndex(index, { align }),
      scrollToEnd: () => virtualizer.scrollToEnd(),
      focus: () => scroller.current?.focus(),
    };
    return () => {
      handle.current = null;
    };
  }, [handle]);
}

/** Brings another selection into sight; the same row at another index is no other selection. */
function useReveal(virtualizer: ListVirtualizer, selected: number, rowKey: VirtualListProps['rowKey']): void {
  const key = selected < 0 ? undefined : (rowKey?.(selected) ?? selected);
  useLayoutEffect(() => {
    if (key !== undefined) virtualizer.scrollToIndex(selected, { align: 'auto' });
  }, [key]);
}

function onKeyDown(event: KeyboardEvent, props: VirtualListProps, virtualizer: ListVirtualizer): void {
  const { selected = -1, count } = props;
  const isOnList = event.target === event.currentTarget;
  if (!isOnList || event.ctrlKey || event.metaKey || event.altKey || count === 0) return;
  if (event.key === 'Enter' && selected >= 0 && props.onOpen) props.onOpen(selected);
  else if (moves[event.key]) {
    const { startIndex = 0, endIndex = 0 } = virtualizer.range ?? {};
    const page = Math.max(1, endIndex - startIndex - 1);
    const to = Math.min(count - 1, Math.max(0, moves[event.key]?.(selected, page, count) ?? 0));
    props.onSelect?.(to);
    // Also when it was selected before, and has been scrolled out of sight.
    virtualizer.scrollToIndex(to, { align: 'auto' });
  } else if (!props.onKey?.(event, selected)) return;
  event.preventDefault();
}

const moves: Readonly<Record<string, (at: number, page: number, count: number) => number>> = {
  ArrowDown: (at) => at + 1,
  ArrowUp: (at) => at - 1,
  PageDown: (at, page) => at + page,
  PageUp: (at, page) => at - page,
  Home: () => 0,
  End: (_at, _page, count) => count - 1,
};
