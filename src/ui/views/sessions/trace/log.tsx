import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import type { App } from '../../../app/app.ts';
import { Cell } from '../../../parts/grid.tsx';
import { clockTime } from '../../../parts/time.ts';
import { VirtualList } from '../../../parts/virtual-list.tsx';
import { counted, moment, span as spell } from '../words.ts';
import type { Bodies, Body } from './bodies.ts';
import { textOf } from './entry.ts';
import { KindMark, nameOf } from './kinds.tsx';
import { isTurn, lengthOf, type Span } from './model.ts';
import type { Trace } from './store.ts';
import { useTail } from './tail.tsx';

/** Time for which a row must be visible before its text is fetched: rows that only scroll past are not. */
const settleMs = 120;
const guessPx = 58;

/** All thinking, answers and actions, in their order, as a text to read. */
export function Log({ app, trace, bodies }: { readonly app: App; readonly trace: Trace; readonly bodies: Bodies }) {
  const { rows, matching } = trace.spans.value;
  const tail = useTail(trace, rows.length);
  useEffect(() => () => bodies.forgetQueue(), [bodies]);
  return (
    <div class="log-view">
      <VirtualList
        {...tail.props}
        label="Thoughts, messages and actions"
        role="grid"
        class="log"
        count={rows.length}
        rowHeight={guessPx}
        isMeasured
        selected={trace.selected.value?.row ?? -1}
        onSelect={(index) => trace.select(rows[index])}
        onOpen={(index) => toggle(trace, rows[index])}
        rowKey={(index) => rows[index]?.id ?? index}
        rowProps={(index) => {
          const span = rows[index];
          const isDim = span && matching && !matching.has(span);
          return { class: span ? `log-row ${span.kind} ${span.state} ${isDim ? 'dim' : ''}` : '' };
        }}
        renderRow={(index) => {
          const span = rows[index];
          return span ? <TraceEntry app={app} trace={trace} bodies={bodies} span={span} /> : null;
        }}
      />
      {tail.button}
    </div>
  );
}

/** Action of Enter and `o` on a row: opens a call, folds a turn. */
export function toggle(trace: Trace, span: Span | undefined): void {
  if (!span) return;
  if (isTurn(span)) trace.fold(span);
  else trace.toggleBody(span.id);
}

interface EntryProps {
  readonly app: App;
  readonly trace: Trace;
  readonly bodies: Bodies;
  readonly span: Span;
}

function TraceEntry({ trace, bodies, span }: EntryProps) {
  const now = trace.now.value;
  const took = span.kind === 'moment' ? '' : spell(lengthOf(span, now));
  return (
    <Cell>
      <p class="log-head">
        <KindMark span={span} />
        <b>{nameOf(span)}</b>
        <span class="quiet">
          {isTurn(span) && `${counted(span.children.length, 'step')} · `}
          {span.end === undefined && span.kind !== 'moment' ? `running ${took}` : took}
        </span>
        <time class="quiet mono" title={moment(span.start)}>
          {clockTime(span.start)}
        </time>
      </p>
      {span.kind === 'tool' ? (
        <Call trace={trace} bodies={bodies} span={span} />
      ) : span.kind === 'thinking' || span.kind === 'response' ? (
        <Said bodies={bodies} span={span} />
      ) : (
        (span.text || span.outcome) && <p class="log-text">{[span.text, span.outcome].filter(Boolean).join('\n')}</p>
      )}
    </Cell>
  );
}

/** Whole text of thinking or of an answer: the rest of a long one is fetched when it stays in sight. */
function Said({ bodies, span }: { readonly bodies: Bodies; readonly span: Span }) {
  const body = useBody(bodies, span.isShortened ? span.id : undefined);
  return (
    <div class="log-text">
      <Whole body={body} otherwise={span.text} />
    </div>
  );
}

/** Arguments and result of a call: one line each, until the user opens them. */
function Call({ trace, bodies, span }: Omit<EntryProps, 'app'>) {
  const isOpen = trace.expanded.value.has(span.id);
  const begun = useBody(bodies, isOpen && span.id > 0 ? span.id : undefined);
  const ended = useBody(bodies, isOpen && span.endId !== span.id ? span.endId : undefined);
  return (
    <>
      <div class={`log-text mono ${isOpen ? '' : 'cut'}`}>
        {isOpen ? <Whole body={begun} otherwise={span.text} /> : span.text}
      </div>
      {span.endId !== undefined && (
        <div class={`log-text mono result ${isOpen ? '' : 'cut'}`}>
          {isOpen ? <Whole body={ended} otherwise={span.outcome} /> : span.outcome}
        </div>
      )}
      <button
        type="button"
        class="bare"
        tabIndex={-1}
        onClick={(event) => {
          event.stopPropagation();
          trace.toggleBody(span.id);
        }}
      >
        {isOpen ? 'Less' : 'All of it'}
      </button>
    </>
  );
}

function Whole({ body, otherwise }: { readonly body: Body | undefined; readonly otherwise: string }) {
  if (body?.is === 'there') return <>{textOf(body.event.type, body.event.data)}</>;
  return (
    <>
      {otherwise}
      {body?.is === 'failed' && <span class="danger"> The rest could not be fetched: {body.message}</span>}
    </>
  );
}

/** Whole event, fetched when the row stays in sight; undefined while it is not needed. */
function useBody(bodies: Bodies, id: number | undefined): Body | undefined {
  const wanted = useSettled(id);
  return wanted === undefined ? undefined : bodies.of(wanted).value;
}

function useSettled(id: number | undefined): number | undefined {
  const settled = useSignal<number | undefined>(undefined);
  useEffect(() => {
    const timer = setTimeout(() => {
      settled.value = id;
    }, settleMs);
    return () => clearTimeout(timer);
  }, [id]);
  return settled.value === id ? id : undefined;
}
