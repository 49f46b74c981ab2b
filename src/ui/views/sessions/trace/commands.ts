import type { Command } from '../../../app/commands.ts';
import { toggle } from './log.tsx';
import { isTurn, type Span, type TraceModel } from './model.ts';
import { around, moved, zoomed } from './scale.ts';
import { type Trace, traceViews } from './store.ts';

const group = 'Trace';
const zoomStep = 0.6;
const moveStep = 0.25;

/** Commands of the page of a session. */
export function traceCommands(trace: Trace, focusFilter: () => void, focusList: () => void): Command[] {
  const zoom = (factor: number) =>
    trace.zoomTo(zoomed(trace.bounds.peek(), trace.range.peek(), factor, middleOf(trace.selected.peek())));
  const move = (share: number) => trace.zoomTo(moved(trace.bounds.peek(), trace.range.peek(), share));
  const isWaterfall = () => trace.view.peek() === 'waterfall';
  const hasSelection = () => trace.selectedId.peek() !== undefined;
  const go = (span: Span | undefined) => {
    if (!span) return;
    trace.select(span);
    focusList();
  };
  const walk = (by: 1 | -1) => {
    step(trace, by);
    focusList();
  };
  const named = (id: string, title: string, keys: readonly string[], run: () => void): Command => ({
    ...{ id: `trace.${id}`, title, group, keys, run },
  });
  return [
    named('next', 'Select the next row', ['j'], () => walk(1)),
    named('previous', 'Select the previous row', ['k'], () => walk(-1)),
    named('nextFailure', 'Go to the next failure', ['e'], () => go(failureFrom(trace, 1))),
    named('previousFailure', 'Go to the previous failure', ['Shift+E'], () => go(failureFrom(trace, -1))),
    named('nextTurn', 'Go to the next turn', [']'], () => go(turnFrom(trace, 1))),
    named('previousTurn', 'Go to the previous turn', ['['], () => go(turnFrom(trace, -1))),
    named('open', 'Open or fold the selection', ['o'], () => toggleSelected(trace)),
    named('filter', 'Filter this trace', ['/'], focusFilter),
    { ...named('pause', 'Pause or resume', ['p'], () => trace.pause(!trace.isPaused.peek())) },
    { ...named('in', 'Zoom in', ['w'], () => zoom(zoomStep)), isEnabled: isWaterfall },
    { ...named('out', 'Zoom out', ['s'], () => zoom(1 / zoomStep)), isEnabled: isWaterfall },
    { ...named('earlier', 'Move to earlier', ['a'], () => move(-moveStep)), isEnabled: isWaterfall },
    { ...named('later', 'Move to later', ['d'], () => move(moveStep)), isEnabled: isWaterfall },
    { ...named('fit', 'Fit the selection, or everything', ['f'], () => fit(trace)), isEnabled: isWaterfall },
    named('fold', 'Fold all turns', ['Shift+O'], () => trace.foldAll(trace.folded.peek().size === 0)),
    ...traceViews.map((view, index) =>
      named(`view.${view}`, `Show the ${view}`, [String(index + 1)], () => {
        trace.view.value = view;
      }),
    ),
    {
      ...named('close', 'Close the details', ['Escape'], () => {
        trace.selectedId.value = undefined;
        focusList();
      }),
      isEnabled: hasSelection,
    },
  ];
}

const middleOf = (span: Span | undefined): number | undefined => span && (span.start + (span.end ?? span.start)) / 2;

/** Moves the selection among the rows of the view that is shown. */
function step(trace: Trace, by: number): void {
  const rows: readonly { readonly id: number }[] =
    trace.view.peek() === 'list' ? trace.entries.peek().rows : trace.spans.peek().rows;
  const at = rowOf(trace, rows);
  const to = Math.min(rows.length - 1, Math.max(0, at + by));
  const row = rows[to];
  if (!row) return;
  if (trace.view.peek() === 'list') trace.selectedId.value = row.id;
  else trace.select(trace.spans.peek().rows[to]);
}

function rowOf(trace: Trace, rows: readonly { readonly id: number }[]): number {
  if (trace.view.peek() !== 'list') return trace.selected.peek()?.row ?? -1;
  return rows.findIndex(({ id }) => id === trace.selectedId.peek());
}

function toggleSelected(trace: Trace): void {
  const span = trace.selected.peek();
  if (trace.view.peek() === 'log') toggle(trace, span);
  else if (span && trace.tree.peek().childrenOf(span).length > 0) trace.fold(span);
  else if (span?.turn) trace.fold(span.turn);
}

/** Zooms to the selection; again, or without one, to everything. */
function fit(trace: Trace): void {
  const span = trace.selected.peek();
  const bounds = trace.bounds.peek();
  const wanted = span && around(bounds, { from: span.start, to: span.end ?? trace.now.peek() });
  const { from, to } = trace.range.peek();
  const isThere = wanted && Math.abs(wanted.from - from) < 2 && Math.abs(wanted.to - to) < 2;
  trace.zoomTo(isThere ? undefined : wanted);
}

function* allSpans(model: TraceModel): Generator<Span> {
  for (const root of model.roots) {
    yield root;
    if (isTurn(root)) yield* root.children;
  }
}

/** The nearest failure before or after the selection; wraps round at the ends of the session. */
function failureFrom(trace: Trace, by: 1 | -1): Span | undefined {
  return nextOf([...allSpans(trace.model.peek())], trace.selected.peek(), by, ({ state, kind }) => {
    return state === 'failed' && kind !== 'turn';
  });
}

function turnFrom(trace: Trace, by: 1 | -1): Span | undefined {
  const turns = trace.model.peek().roots.filter(isTurn);
  const selected = trace.selected.peek();
  const current = selected?.turn ?? selected;
  if (by < 0 && selected?.turn) return selected.turn;
  return nextOf<Span>(turns, current, by, () => true);
}

function nextOf<T>(
  all: readonly T[],
  current: T | undefined,
  by: 1 | -1,
  isWanted: (each: T) => boolean,
): T | undefined {
  const from = current === undefined ? -1 : all.indexOf(current);
  for (let distance = 1; distance <= all.length; distance += 1) {
    const start = from < 0 && by < 0 ? 0 : from;
    const each = all[(((start + distance * by) % all.length) + all.length) % all.length];
    if (each !== undefined && isWanted(each)) return each;
  }
  return undefined;
}
