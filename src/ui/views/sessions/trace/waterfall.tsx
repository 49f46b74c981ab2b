import { useSignal } from '@preact/signals';
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks';
import { dollars, visible } from '../../../../lib/browser.ts';
import type { App } from '../../../app/app.ts';
import { Cell, ColumnHeader, HeaderRow } from '../../../parts/grid.tsx';
import { clockTime } from '../../../parts/time.ts';
import { VirtualList } from '../../../parts/virtual-list.tsx';
import { counted, moment, roughly, span as spell } from '../words.ts';
import { useBrush } from './brush.tsx';
import { detailOf, KindMark, nameOf } from './kinds.tsx';
import { Minimap } from './minimap.tsx';
import { humanMs, isTurn, lengthOf, type Span, type Turn } from './model.ts';
import type { SortColumn } from './rows.ts';
import { placeIn, type Range, ticks, zoomed } from './scale.ts';
import type { Trace } from './store.ts';
import { useTail } from './tail.tsx';

/** Minimum width of the list in CSS pixels for bars beside the names. */
const wideFrom = 640;

/** Tree of turns, rounds, requests and calls on one time axis. */
export function Waterfall({ app, trace }: { readonly app: App; readonly trace: Trace }) {
  const { rows, matching } = trace.spans.value;
  const range = trace.range.value;
  const now = trace.now.value;
  const selected = trace.selected.value?.row ?? -1;
  const tail = useTail(trace, rows.length);
  const box = useWheelZoom(trace);
  const isStacked = useStacked(box);
  const rowHeight = isStacked ? 46 : app.preferences.rows.value === 'comfortable' ? 32 : 26;
  return (
    <div
      class={`waterfall ${isStacked ? 'stacked' : ''}`}
      ref={box}
      style={{ '--rows': `${rows.length * rowHeight}px` }}
    >
      <Minimap trace={trace} />
      <VirtualList
        {...tail.props}
        label="Turns, rounds and calls"
        role="treegrid"
        class="bars"
        recycles
        count={rows.length}
        rowHeight={rowHeight}
        header={<Axis trace={trace} range={range} />}
        selected={selected}
        onSelect={(index) => trace.select(rows[index])}
        onOpen={(index) => foldOf(trace, rows[index])}
        onKey={(event, index) => foldKey(trace, event, rows, index)}
        rowKey={(index) => rows[index]?.id ?? index}
        rowProps={(index) => {
          const span = rows[index];
          if (!span) return {};
          return {
            'aria-level': levelOf(trace, span),
            'aria-expanded': hasParts(trace, span) ? !trace.isFolded(span) : undefined,
            'aria-current': index === selected ? 'true' : undefined,
            class: `bar-row ${span.state} ${matching && !matching.has(span) ? 'dim' : ''}`,
          };
        }}
        renderRow={(index) => {
          const span = rows[index];
          return span ? <Row trace={trace} span={span} range={range} now={now} /> : null;
        }}
      />
      {tail.button}
    </div>
  );
}

/** Whether the list is too narrow for bars beside the names. */
function useStacked(box: { readonly current: HTMLDivElement | null }): boolean {
  const isStacked = useSignal(false);
  useLayoutEffect(() => {
    const element = box.current;
    if (!element) return;
    const measure = () => {
      isStacked.value = element.clientWidth < wideFrom;
    };
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  return isStacked.value;
}

const hasParts = (trace: Trace, span: Span): boolean => trace.tree.value.childrenOf(span).length > 0;

function levelOf(trace: Trace, span: Span): number {
  const parent = trace.tree.value.parentOf(span);
  return parent ? levelOf(trace, parent) + 1 : 1;
}

function foldOf(trace: Trace, span: Span | undefined): void {
  if (span && hasParts(trace, span)) trace.fold(span);
}

/** Left and right keys, as in every tree: fold, unfold, select the parent. */
function foldKey(trace: Trace, event: KeyboardEvent, rows: readonly Span[], index: number): boolean {
  const span = rows[index];
  if (!span || (event.key !== 'ArrowLeft' && event.key !== 'ArrowRight')) return false;
  const isLeft = event.key === 'ArrowLeft';
  if (hasParts(trace, span) && trace.isFolded(span) !== isLeft) trace.fold(span, isLeft);
  else if (isLeft) trace.select(trace.tree.peek().parentOf(span) ?? span);
  return true;
}

interface RowProps {
  readonly trace: Trace;
  readonly span: Span;
  readonly range: Range;
  readonly now: number;
}

function Row({ trace, span, range, now }: RowProps) {
  const start = trace.bounds.value.from;
  const length = lengthOf(span, now);
  const { tokens, costUsd } = span;
  return (
    <>
      <Cell class="span-name cut" style={{ '--level': levelOf(trace, span) }}>
        {hasParts(trace, span) && <ExpandButton trace={trace} span={span} />}
        <KindMark span={span} />
        <b>{nameOf(span)}</b>{' '}
        <span class="quiet">{isTurn(span) ? turnWords(span) : visible(detailOf(span), { multiline: false })}</span>
        {span.kind === 'tool' && span.isByRule && (
          <span class="by-rule quiet" title="Allowed by a rule">
            {' '}
            ◇<span class="unseen"> allowed by a rule</span>
          </span>
        )}
      </Cell>
      <Cell class="number mono">{span.kind === 'moment' ? '' : spell(shownLength(trace, span, length, now))}</Cell>
      <Cell class="number mono c-tokens" title={tokens > 0 ? `${tokens} tokens` : undefined}>
        {tokens > 0 ? roughly(tokens) : ''}
      </Cell>
      {/* The costs of the rounds of a turn are those of its requests, so that each column adds up. */}
      <Cell class="number mono c-cost">{costUsd > 0 && span.kind !== 'request' ? dollars(costUsd) : ''}</Cell>
      <Cell
        class="track"
        aria-label={`begins at ${spell(span.start - start)}${span.end === undefined ? ', running' : ''}`}
        title={`${moment(span.start)}\n+${spell(span.start - start)}`}
      >
        <Bar span={span} range={range} now={now} />
      </Cell>
    </>
  );
}

/** Length of a span; of a turn without the time in which it waited for a person, if the user chose this. */
function shownLength(trace: Trace, span: Span, length: number, now: number): number {
  return isTurn(span) && trace.withoutHuman.value ? Math.max(0, length - humanMs(span, now)) : length;
}

/** The kinds of spans that a turn has, with their numbers. */
function turnWords({ thinking, responses, tools, failures }: Turn): string {
  return [
    thinking > 0 && `${thinking} thinking`,
    responses > 0 && `${responses} response`,
    tools > 0 && counted(tools, 'tool'),
    failures > 0 && `${failures} failed`,
  ]
    .filter(Boolean)
    .join(' · ');
}

function ExpandButton({ trace, span }: { readonly trace: Trace; readonly span: Span }) {
  const isOpen = !trace.isFolded(span);
  return (
    <button
      type="button"
      class="twisty"
      tabIndex={-1}
      aria-label={`${isOpen ? 'Fold' : 'Unfold'} this ${span.kind === 'calls' ? 'run of calls' : span.kind}`}
      onClick={(event) => {
        event.stopPropagation();
        trace.fold(span);
      }}
    >
      {isOpen ? '▾' : '▸'}
    </button>
  );
}

function Bar({ span, range, now }: { readonly span: Span; readonly range: Range; readonly now: number }) {
  const from = placeIn(range, span.start);
  const to = placeIn(range, span.end ?? Math.max(now, span.start));
  if (to < 0 || from > 1) return <i class={`beyond ${to < 0 ? 'before' : 'after'}`} aria-hidden="true" />;
  const left = Math.max(0, from);
  const width = Math.max(0, Math.min(1, to) - left);
  return (
    <i
      class={`bar ${span.kind} ${span.state} ${span.end === undefined ? 'ghost' : ''}`}
      style={{ left: `${(left * 100).toFixed(3)}%`, width: `${(width * 100).toFixed(3)}%` }}
      aria-hidden="true"
    />
  );
}

/** The header: names of the columns, and moments. Drawing over it shows that stretch of time. */
function Axis({ trace, range }: { readonly trace: Trace; readonly range: Range }) {
  const { brush, handlers } = useBrush(range, (next) => trace.zoomTo(next));
  const start = trace.bounds.value.from;
  return (
    <HeaderRow class="bar-row axis-row">
      <ColumnHeader>What</ColumnHeader>
      <SortHeader trace={trace} column="took" title="Took" />
      <SortHeader trace={trace} column="tokens" title="Tokens" />
      <SortHeader trace={trace} column="cost" title="Cost" />
      <ColumnHeader class="axis" {...handlers}>
        <span class="unseen">When</span>
        {ticks(range, start, 6).map((at) => (
          <span
            key={at}
            class="tick"
            aria-hidden="true"
            style={{ left: `${placeIn(range, at) * 100}%` }}
            title={moment(at)}
          >
            <b>+{spell(at - start)}</b> <small>{clockTime(at)}</small>
          </span>
        ))}
        {brush}
      </ColumnHeader>
    </HeaderRow>
  );
}

interface SortHeaderProps {
  readonly trace: Trace;
  readonly column: SortColumn;
  readonly title: string;
}

/** Sorts the bars of each parent, largest first. A second press restores the order of time. */
function SortHeader({ trace, column, title }: SortHeaderProps) {
  const isSorted = trace.sort.value === column;
  return (
    <ColumnHeader class={`number c-${column}`} aria-sort={isSorted ? 'descending' : undefined}>
      <button
        type="button"
        class="bare"
        tabIndex={-1}
        onClick={() => {
          trace.sort.value = isSorted ? 'start' : column;
        }}
      >
        {title}
        {isSorted && ' ▾'}
      </button>
    </ColumnHeader>
  );
}

/** The wheel with Ctrl (or a pinch) zooms where the pointer is. */
function useWheelZoom(trace: Trace) {
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const onWheel = (event: WheelEvent) => {
      const axis = box.current?.querySelector('.axis')?.getBoundingClientRect();
      if (!event.ctrlKey || !axis || axis.width === 0) return;
      event.preventDefault();
      const range = trace.range.peek();
      const place = Math.min(1, Math.max(0, (event.clientX - axis.left) / axis.width));
      const at = range.from + place * (range.to - range.from);
      trace.zoomTo(zoomed(trace.bounds.peek(), range, event.deltaY < 0 ? 0.8 : 1.25, at));
    };
    const element = box.current;
    element?.addEventListener('wheel', onWheel, { passive: false });
    return () => element?.removeEventListener('wheel', onWheel);
  }, []);
  return box;
}
