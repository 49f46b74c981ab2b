import { useRef } from 'preact/hooks';
import type { TreeRow } from '../state/actors.ts';
import type { Store } from '../state/store.ts';
import { lookOf, publicState } from '../state/tone.ts';
import { age, splitPath } from './format.ts';
import { Mark } from './icons.tsx';

export function Tree({ store }: { readonly store: Store }) {
  const list = useRef<HTMLDivElement>(null);
  const rows = store.rows.value;
  const selected = store.selected.value?.id;

  const onKeyDown = (event: KeyboardEvent) => {
    const at = rows.findIndex((row) => row.actor.id === selected);
    const level = rows[at]?.level ?? 1;
    const next = {
      ArrowDown: at + 1,
      ArrowUp: at - 1,
      Home: 0,
      End: rows.length - 1,
      ArrowLeft: rows.slice(0, Math.max(0, at)).findLastIndex((row) => row.level < level),
      ArrowRight: (rows[at + 1]?.level ?? 0) > level ? at + 1 : at,
    }[event.key];
    const row = next === undefined ? undefined : rows[next];
    if (next === undefined) return;
    event.preventDefault();
    if (!row) return;
    store.select(row.actor.id);
    const items = list.current?.querySelectorAll<HTMLElement>('[role=treeitem]');
    items?.[next]?.focus();
  };

  return (
    <div class="tree" role="tree" tabIndex={-1} aria-label="Actors" ref={list} onKeyDown={onKeyDown}>
      {rows.map((row) => (
        <Row key={row.actor.id} row={row} store={store} isSelected={row.actor.id === selected} />
      ))}
      {rows.length === 0 && store.filter.value !== '' && <p class="quiet none">Nothing matches.</p>}
    </div>
  );
}

function Row({ row, store, isSelected }: { row: TreeRow; store: Store; isSelected: boolean }) {
  const { actor } = row;
  const { tone, shape } = lookOf(actor);
  const { head, tail } = splitPath(actor.title);
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: the tree handles the keys of all its items
    <div
      role="treeitem"
      class={`row level-${Math.min(row.level, 4)}`}
      aria-level={row.level}
      aria-posinset={row.position}
      aria-setsize={row.siblings}
      aria-selected={isSelected}
      tabIndex={isSelected ? 0 : -1}
      title={actor.title}
      onClick={() => store.select(actor.id)}
    >
      <Mark tone={tone} shape={shape} />
      <span class="names">
        <b>{tail}</b>
        {head && <small>{head}</small>}
      </span>
      <span class={`badge ${tone}`}>{publicState(actor.states)}</span>
      <span class="age">{age(store.now.value - actor.since.getTime())}</span>
    </div>
  );
}
