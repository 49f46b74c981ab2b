import { useSignal } from '@preact/signals';
import { useLayoutEffect, useRef } from 'preact/hooks';
import { age, duration } from '../../parts/format.ts';
import { Mark } from '../../parts/icons.tsx';
import { lookOf } from '../../parts/tone.ts';
import type { Store } from './store.ts';
import { nameOf, stateWord, type TreeRow, troublesOf } from './tree-rows.ts';

/** Height of a row in CSS pixels, as in actors.css. */
const rowHeight = 44;
const overscan = 6;

const domId = (id: string): string => `actor-${encodeURIComponent(id)}`;

/** Tree of the actors, with only the visible rows in the document. The focus stays on the tree itself. */
export function Tree({ store }: { readonly store: Store }) {
  const box = useRef<HTMLDivElement>(null);
  const { first, count, height, scrollTo } = useWindow(box, store.rows.value.length);
  const rows = store.rows.value;
  const selected = store.selectedId.value;
  const at = rows.findIndex((row) => row.id === selected);
  const filter = store.filter.value;
  // Scrolls results to their beginning, unless the selected actor is among them.
  useLayoutEffect(() => scrollTo(Math.max(0, at)), [selected, at >= 0, filter]);

  const shown = rows.slice(first, first + count);
  const isShown = at >= first && at < first + count;
  return (
    <div
      ref={box}
      class="tree"
      role="tree"
      tabIndex={0}
      aria-label="Actors"
      aria-activedescendant={isShown && selected !== null ? domId(selected) : undefined}
      onKeyDown={(event) => onKeyDown(event, store, at)}
    >
      <div class="tree-all" role="presentation" style={{ height: `${height}px` }}>
        <div class="tree-part" role="presentation" style={{ transform: `translateY(${first * rowHeight}px)` }}>
          {shown.map((row) => (
            <Row key={row.id} row={row} store={store} isSelected={row.id === selected} />
          ))}
        </div>
      </div>
    </div>
  );
}

function useWindow(box: { readonly current: HTMLDivElement | null }, rows: number) {
  const top = useSignal(0);
  const room = useSignal(600);
  useLayoutEffect(() => {
    const element = box.current;
    if (!element) return;
    const measure = () => {
      top.value = element.scrollTop;
      room.value = element.clientHeight;
    };
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    element.addEventListener('scroll', measure, { passive: true });
    return () => {
      observer.disconnect();
      element.removeEventListener('scroll', measure);
    };
  }, [box, top, room]);
  const first = Math.max(0, Math.min(Math.floor(top.value / rowHeight), rows - 1) - overscan);
  return {
    first,
    count: Math.ceil(room.value / rowHeight) + 2 * overscan,
    height: rows * rowHeight,
    scrollTo(index: number) {
      const element = box.current;
      if (!element) return;
      const [start, end] = [index * rowHeight, (index + 1) * rowHeight];
      if (start < element.scrollTop) element.scrollTop = start;
      else if (end > element.scrollTop + element.clientHeight) element.scrollTop = end - element.clientHeight;
      top.value = element.scrollTop;
    },
  };
}

function onKeyDown(event: KeyboardEvent, store: Store, at: number): void {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const rows = store.rows.peek();
  const row = rows[at];
  const to = moveTo(event.key, rows, at);
  if (to !== undefined) {
    const next = rows[Math.max(0, Math.min(rows.length - 1, to))];
    if (next) store.select(next.id);
  } else if (event.key === 'ArrowRight' && row?.isOpen === false) store.setOpen(row.id, true);
  else if (event.key === 'ArrowLeft' && row?.isOpen === true) store.setOpen(row.id, false);
  else if (event.key !== 'ArrowRight' && event.key !== 'ArrowLeft') return;
  event.preventDefault();
}

/** The row a key leads to; undefined: it leads nowhere. */
function moveTo(key: string, rows: readonly TreeRow[], at: number): number | undefined {
  const row = rows[at];
  switch (key) {
    case 'ArrowDown':
      return at + 1;
    case 'ArrowUp':
      return at - 1;
    case 'PageDown':
      return at + 10;
    case 'PageUp':
      return at - 10;
    case 'Home':
      return 0;
    case 'End':
      return rows.length - 1;
    case 'ArrowRight':
      return row?.isOpen === true ? at + 1 : undefined;
    case 'ArrowLeft': {
      const above = rows.slice(0, Math.max(0, at)).findLastIndex((each) => each.level < (row?.level ?? 1));
      return row?.isOpen !== true && above >= 0 ? above : undefined;
    }
    default:
      return undefined;
  }
}

interface RowProps {
  readonly row: TreeRow;
  readonly store: Store;
  readonly isSelected: boolean;
}

function Row({ row, store, isSelected }: RowProps) {
  const { actor, id, isOpen } = row;
  const hasEnded = actor !== null && actor.ending !== null;
  const toggle = () => store.setOpen(id, isOpen !== true);
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: the tree handles the keys of all its items
    // biome-ignore lint/a11y/useFocusableInteractive: the focus stays on the tree, which names its active item
    <div
      role="treeitem"
      id={domId(id)}
      class={`row level-${Math.min(row.level, 4)} ${hasEnded ? 'ended' : ''}`}
      aria-level={row.level}
      aria-posinset={row.position}
      aria-setsize={row.siblings}
      aria-selected={isSelected}
      aria-expanded={isOpen}
      title={actor?.title}
      onClick={() => (actor ? store.select(id) : toggle())}
      onDblClick={() => isOpen !== undefined && actor && toggle()}
    >
      {isOpen === undefined ? (
        <i class="twist" />
      ) : (
        // biome-ignore lint/a11y/noStaticElementInteractions: the arrow keys of the tree do the same
        // biome-ignore lint/a11y/useKeyWithClickEvents: the arrow keys of the tree do the same
        <i
          class={`twist ${isOpen ? 'open' : 'closed'}`}
          onClick={(event) => {
            event.stopPropagation();
            toggle();
          }}
        />
      )}
      {actor ? <About row={row} store={store} /> : <EndedHeading store={store} />}
    </div>
  );
}

function EndedHeading({ store }: { readonly store: Store }) {
  return (
    <span class="heading">
      Recently ended <span class="quiet">{store.counts.value.ended}</span>
    </span>
  );
}

function About({ row: { actor }, store }: Pick<RowProps, 'row' | 'store'>) {
  if (!actor) return null;
  const { tone, shape } = lookOf(actor);
  const { head, tail } = nameOf(actor);
  const troubles = troublesOf(actor);
  return (
    <>
      <Mark tone={tone} shape={shape} />
      <span class="names">
        <b>{tail}</b>
        {head && <small>{head}</small>}
      </span>
      <span class={`badge ${actor.ending ? '' : tone}`}>{stateWord(actor)}</span>
      <span class="age">
        {troubles > 0 && <span class="troubles" title="Failures, restarts and dead letters">{`${troubles} ⚠ `}</span>}
        {actor.ending
          ? `ran ${duration(actor.ending.at - actor.createdAt.getTime())}`
          : age(store.clock.value - actor.since.getTime())}
      </span>
    </>
  );
}
