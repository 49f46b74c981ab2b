import { computed, effect, type ReadonlySignal, type Signal, signal } from '@preact/signals';
import type { App } from '../../../app/app.ts';
import { parseFilter } from './filter.ts';
import { TraceLoader } from './loader.ts';
import { isTurn, type Span } from './model.ts';
import { entryRows, isFolded, type Showing, type SortColumn, spanRows, treeRows } from './rows.ts';
import { parseZoom, type Range, spellZoom } from './scale.ts';
import { createSearch } from './search.ts';
import { foldKey, TraceTree } from './tree.ts';

export const traceViews = ['waterfall', 'log', 'list'] as const;
export type TraceView = (typeof traceViews)[number];

/** A browser refuses addresses that change too often. */
const addressMs = 200;

/** Part of the state that the address holds. */
interface AddressedState {
  readonly view: Signal<TraceView>;
  readonly filterText: Signal<string>;
  readonly selectedId: Signal<number | undefined>;
  readonly zoomText: Signal<string | undefined>;
}

/**
 * State of one session's page, and the actions of its user.
 *
 * @param shown layout as a part of another page, which uses the address itself; absent: the address stores the state
 */
export function createTrace(app: App, sessionKey: string, shown?: TraceView) {
  const loader = new TraceLoader(app, sessionKey);
  const { model, version, session, state, isPaused, waitingCount, omits } = loader;
  const query = shown === undefined ? app.router.route.peek().query : {};
  const view = signal<TraceView>(shown ?? viewOf(query['view']));
  const filterText = signal(query['q'] ?? '');
  const selectedId = signal<number | undefined>(idOf(query['event']));
  const zoomText = signal(query['zoom']);
  const addressed: AddressedState = { view, filterText, selectedId, zoomText };
  const folded = signal<ReadonlySet<string>>(new Set());
  const isDimmed = signal(false);
  const withoutHuman = signal(false);
  /** Bars of the log that are open in full, by id. */
  const expanded = signal<ReadonlySet<number>>(new Set());

  const filter = computed(() => parseFilter(filterText.value));
  const search = createSearch(app, sessionKey, filter);
  const isLive = computed(() => session.value?.isRunning === true);
  /** End of running spans, milliseconds since the epoch. Constant while nothing runs, so that the page is not redrawn. */
  const now = computed(() => {
    version.value;
    const { end } = model.value;
    return isLive.value ? Math.max(app.now.value, end) : end;
  });
  const showing = computed<Showing>(() => ({
    terms: filter.value.terms,
    found: search.found.value,
    isDimmed: isDimmed.value,
    folded: folded.value,
    now: now.peek(),
  }));
  const sort = signal<SortColumn>('start');
  const tree = computed(() => {
    model.value;
    return new TraceTree();
  });
  const spans = computed(() => {
    version.value;
    return view.value === 'waterfall'
      ? treeRows(model.value, tree.value, showing.value, sort.value)
      : spanRows(model.value, showing.value);
  });
  const entries = computed(() => {
    version.value;
    return entryRows(model.value, showing.value);
  });
  const bounds = computed<Range>(() => {
    version.value;
    const { start } = model.value;
    return Number.isFinite(start) ? { from: start, to: Math.max(now.value, start + 1) } : { from: 0, to: 1 };
  });
  const zoom = computed(() => parseZoom(zoomText.value, bounds.value.from));
  const range = computed(() => zoom.value ?? bounds.value);
  const selected: ReadonlySignal<Span | undefined> = computed(() => {
    spans.value;
    const id = selectedId.value;
    return id === undefined ? undefined : (model.value.spanOf(id) ?? tree.value.groupOf(id));
  });

  function select(span: Span | undefined): void {
    if (span) unfoldAround(span);
    selectedId.value = span && (span.id > 0 ? span.id : span.endId);
  }

  /** Unfolds the ancestors of a bar. */
  function unfoldAround(span: Span): void {
    const around = view.peek() === 'waterfall' ? tree.peek().parentOf(span) : span.turn;
    if (!around) return;
    unfoldAround(around);
    fold(around, false);
  }

  function fold(span: Span, folds = !isFolded(showing.peek(), span)): void {
    if (folds === isFolded(showing.peek(), span)) return;
    const next = new Set(folded.peek());
    if (!next.delete(foldKey(span))) next.add(foldKey(span));
    folded.value = next;
  }

  return {
    ...{ model, version, session, state, isPaused, waitingCount, omits },
    pause: (isPaused: boolean) => loader.pause(isPaused),
    more: () => loader.more(),
    toEnd: () => loader.toEnd(),
    ...{ sessionKey, view, filterText, filter, search, selectedId, selected, zoom, range, bounds, zoomText },
    ...{ folded, isDimmed, withoutHuman, expanded, spans, tree, sort, entries, now, isLive, select, fold },
    isFolded: (span: Span) => isFolded(showing.peek(), span),

    /** Loads the session, follows new events, and updates the address. @returns a function that ends this */
    start(): () => void {
      const stops = [loader.start(), search.start()];
      if (shown === undefined) stops.push(followAddress(app, sessionKey, addressed));
      return () => {
        for (const stop of stops) stop();
      };
    },

    zoomTo(next: Range | undefined): void {
      zoomText.value = spellZoom(next, bounds.peek().from);
    },

    foldAll(isFolded: boolean): void {
      const turns = model.peek().roots.filter(isTurn);
      folded.value = new Set(isFolded ? turns.map(({ turnId }) => turnId) : []);
    },

    toggleBody(id: number): void {
      const next = new Set(expanded.peek());
      if (!next.delete(id)) next.add(id);
      expanded.value = next;
    },
  };
}

/** Writes the state to the address, and reads it from a changed address. @returns a function that ends this */
function followAddress(
  app: App,
  sessionKey: string,
  { view, selectedId, filterText, zoomText }: AddressedState,
): () => void {
  const address = computed(() => ({
    view: view.value === 'waterfall' ? undefined : view.value,
    event: selectedId.value === undefined ? undefined : String(selectedId.value),
    q: filterText.value,
    zoom: zoomText.value,
  }));
  let written = '';
  let timer: ReturnType<typeof setTimeout> | undefined;
  const write = effect(() => {
    const next = address.value;
    clearTimeout(timer);
    timer = setTimeout(() => {
      written = JSON.stringify(next);
      app.router.set(next);
    }, addressMs);
  });
  const read = effect(() => {
    const { path, query } = app.router.route.value;
    const { view: name, event, q, zoom: wanted } = query;
    const given = { view: name === 'waterfall' ? undefined : name, event, q: q ?? '', zoom: wanted };
    if (path[0] !== sessionKey || JSON.stringify(given) === written) return;
    written = JSON.stringify(given);
    view.value = viewOf(name);
    selectedId.value = idOf(event);
    filterText.value = q ?? '';
    zoomText.value = wanted;
  });
  return () => {
    clearTimeout(timer);
    write();
    read();
  };
}

export type Trace = ReturnType<typeof createTrace>;

const viewOf = (name: string | undefined): TraceView => traceViews.find((each) => each === name) ?? 'waterfall';
const idOf = (text: string | undefined): number | undefined =>
  text !== undefined && /^\d+$/.test(text) ? Number(text) : undefined;
