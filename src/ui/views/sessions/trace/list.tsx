import type { App } from '../../../app/app.ts';
import { Cell, ColumnHeader, HeaderRow } from '../../../parts/grid.tsx';
import { VirtualList } from '../../../parts/virtual-list.tsx';
import { moment, span as spell } from '../words.ts';
import { isFailed, type TraceEntry } from './entry.ts';
import { toggleTerm } from './filter.ts';
import type { Trace } from './store.ts';
import { useTail } from './tail.tsx';

/** Every recorded event, also those of unknown types. Press a value to filter by it. */
export function List({ app, trace }: { readonly app: App; readonly trace: Trace }) {
  const { rows, isMatch } = trace.entries.value;
  const tail = useTail(trace, rows.length);
  const isComfortable = app.preferences.rows.value === 'comfortable';
  const start = trace.bounds.value.from;
  return (
    <div class="list-view">
      <VirtualList
        {...tail.props}
        label="Events"
        role="grid"
        class="raw"
        recycles
        count={rows.length}
        rowHeight={isComfortable ? 32 : 26}
        header={<Header />}
        selected={indexOf(rows, trace.selectedId.value)}
        onSelect={(index) => {
          trace.selectedId.value = rows[index]?.id;
        }}
        rowKey={(index) => rows[index]?.id ?? index}
        rowProps={(index) => {
          const entry = rows[index];
          return { class: `raw-row ${entry && !isMatch(entry) ? 'dim' : ''}` };
        }}
        renderRow={(index) => {
          const entry = rows[index];
          return entry ? <Cells trace={trace} entry={entry} start={start} /> : null;
        }}
      />
      {tail.button}
    </div>
  );
}

/** Rows are in the order of their ids. */
export function indexOf(rows: readonly TraceEntry[], id: number | undefined): number {
  if (id === undefined) return -1;
  let low = 0;
  let high = rows.length - 1;
  while (low <= high) {
    const middle = (low + high) >> 1;
    const at = rows[middle]?.id ?? 0;
    if (at === id) return middle;
    if (at < id) low = middle + 1;
    else high = middle - 1;
  }
  return -1;
}

const columns = ['Time', 'Type', 'Turn', 'Tool', 'Took', 'What'] as const;

const Header = () => (
  <HeaderRow class="raw-row head-row">
    {columns.map((name) => (
      <ColumnHeader key={name} class={name === 'Time' || name === 'Took' ? 'number' : ''}>
        {name}
      </ColumnHeader>
    ))}
  </HeaderRow>
);

function Cells({ trace, entry, start }: { readonly trace: Trace; readonly entry: TraceEntry; readonly start: number }) {
  const { type, turnId, tool, durationMs, at, text } = entry;
  return (
    <>
      <Cell class="number mono" title={moment(at)}>
        +{spell(at - start)}
      </Cell>
      <Cell class="cut">
        <Value trace={trace} name="type" value={type} class={isFailed(entry) ? 'danger' : ''} />
      </Cell>
      <Cell class="cut">
        <Value trace={trace} name="turn" value={turnId} />
      </Cell>
      <Cell class="cut">
        <Value trace={trace} name="tool" value={tool} />
      </Cell>
      <Cell class="number mono">{durationMs === undefined ? '' : spell(durationMs)}</Cell>
      <Cell class="cut">{text}</Cell>
    </>
  );
}

interface ValueProps {
  readonly trace: Trace;
  readonly name: 'type' | 'tool' | 'turn';
  readonly value: string | undefined;
  readonly class?: string;
}

/** Value that filters the list when clicked. Keyboard users filter in the details of the event. */
export function Value({ trace, name, value, class: more = '' }: ValueProps) {
  if (value === undefined) return null;
  return (
    <button
      type="button"
      class={`value mono ${more}`}
      tabIndex={-1}
      title={`Filter by ${name}:${value}`}
      onClick={(event) => {
        event.stopPropagation();
        trace.filterText.value = toggleTerm(trace.filterText.peek(), { name, value, isExcluded: false });
      }}
    >
      {value}
    </button>
  );
}
