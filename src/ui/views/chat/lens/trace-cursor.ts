import { effect, type ReadonlySignal } from '@preact/signals';
import { isTurn, type Span, type TraceModel, type Turn } from '../../sessions/trace/model.ts';
import type { Trace } from '../../sessions/trace/store.ts';
import type { Cursor, MoveTo } from './cursor.ts';

/** Bar of a trace at a moment: the call, the bar that starts then, or the last bar before. */
export function spanAt(model: TraceModel, { turn: turnId, call, at }: Cursor): Span | undefined {
  const turn = model.roots.find((root): root is Turn => isTurn(root) && root.turnId === turnId);
  if (!turn) return undefined;
  const { children } = turn;
  if (call !== undefined) {
    const own = children.filter(({ callId }) => callId === call);
    return own.find(({ start, kind }) => start === at && kind !== 'tool') ?? own.find(({ kind }) => kind === 'tool');
  }
  if (at === undefined || at === turn.start) return turn;
  return children.find(({ start }) => start === at) ?? children.findLast(({ start }) => start <= at) ?? turn;
}

/** Id of the selection at a moment. In the list of events, this is the event itself. */
function idAt(trace: Trace, cursor: Cursor): number | undefined {
  const { turn, call, at } = cursor;
  const span = spanAt(trace.model.peek(), cursor);
  if (!span || trace.view.peek() !== 'list') return span?.id;
  const event = trace.model
    .peek()
    .entries.find((each) => each.turnId === turn && each.at === at && (call === undefined || each.callId === call));
  return event?.id ?? span.id;
}

function cursorAt(trace: Trace, id: number): Cursor | undefined {
  const span = trace.selected.peek();
  const turn = span && (isTurn(span) ? span : span.turn);
  if (!span || !turn) return undefined;
  const event = trace.view.peek() === 'list' ? trace.model.peek().entries.find((each) => each.id === id) : undefined;
  return { turn: turn.turnId, call: span.callId, at: event?.at ?? span.start };
}

/** Synchronizes the selection of a trace with the cursor. Returns a function that stops this. */
export function followCursor(trace: Trace, cursor: ReadonlySignal<Cursor>, moveTo: MoveTo): () => void {
  /** Last selection that the cursor caused. */
  let caused: number | undefined;
  const stopReading = effect(() => {
    trace.version.value;
    trace.view.value;
    const wanted = cursor.value;
    const id = idAt(trace, wanted);
    if (id === caused || (id === undefined && wanted.turn !== undefined)) return;
    const chosen = trace.selectedId.peek();
    const isSame = chosen !== undefined && isAt(cursorAt(trace, chosen), wanted);
    caused = isSame ? chosen : id;
    if (isSame) return;
    if (id === undefined || trace.view.peek() === 'list') trace.selectedId.value = id;
    else trace.select(spanAt(trace.model.peek(), wanted));
  });
  const stopWriting = effect(() => {
    const id = trace.selectedId.value;
    if (id === caused) return;
    caused = id;
    const next = id === undefined ? undefined : cursorAt(trace, id);
    if (next && !isAt(next, cursor.peek())) moveTo(next);
  });
  return () => {
    stopReading();
    stopWriting();
  };
}

const isAt = (one: Cursor | undefined, other: Cursor): boolean =>
  one !== undefined && one.turn === other.turn && one.call === other.call && one.at === other.at;
