import type { TraceEntry } from './entry.ts';
import { matchesEntry, matchesSpan, type Term, type TextMatches } from './filter.ts';
import { isTurn, lengthOf, type Span, type TraceModel } from './model.ts';
import { foldKey, isFoldedAtFirst, isGroup, type TraceTree } from './tree.ts';

/** Filter and folding of a session's rows. */
export interface Showing {
  readonly terms: readonly Term[];
  readonly found: TextMatches;
  /** Also show rows that do not match, but fainter. */
  readonly isDimmed: boolean;
  /** Keys (`foldKey`) of bars whose fold state differs from the default. */
  readonly folded: ReadonlySet<string>;
  readonly now: number;
}

export interface SpanRows {
  readonly rows: readonly Span[];
  /** Rows that match; all of them without a filter. */
  readonly matching: ReadonlySet<Span> | undefined;
  readonly matchCount: number;
}

/** Columns by which the bars of a parent can be sorted; `start`: by start time. */
export const sortColumns = ['start', 'took', 'tokens', 'cost'] as const;
export type SortColumn = (typeof sortColumns)[number];

/** Bars in the order of their beginning, each turn before its children; a turn is shown while one of its children matches. */
export function spanRows(model: TraceModel, showing: Showing): SpanRows {
  return rowsOf(model, showing, (span) => (isTurn(span) ? span.children : []));
}

/** Bars as a tree: turns, rounds, requests and calls. */
export function treeRows(model: TraceModel, tree: TraceTree, showing: Showing, sort: SortColumn = 'start'): SpanRows {
  for (const root of model.roots) if (isTurn(root)) tree.read(root);
  const below = (span: Span) => tree.childrenOf(span);
  if (sort === 'start') return rowsOf(model, showing, below);
  const sizeOf: Readonly<Record<Exclude<SortColumn, 'start'>, (span: Span) => number>> = {
    took: (span) => (span.kind === 'moment' ? 0 : lengthOf(span, showing.now)),
    tokens: ({ tokens }) => tokens,
    cost: ({ costUsd }) => costUsd,
  };
  return rowsOf(model, showing, (span) => [...below(span)].sort((a, b) => sizeOf[sort](b) - sizeOf[sort](a)));
}

function rowsOf(model: TraceModel, showing: Showing, childrenOf: (span: Span) => readonly Span[]): SpanRows {
  const { terms, found, isDimmed, now } = showing;
  const rows: Span[] = [];
  const matching = terms.length > 0 ? new Set<Span>() : undefined;
  const around = new Set<Span>();
  /** Whether a bar or one of its descendants matches. */
  const search = (span: Span): boolean => {
    const isOne = !isGroup(span) && matchesSpan(terms, span, found, now);
    if (isOne) matching?.add(span);
    const hasOne = childrenOf(span).reduce((has, child) => search(child) || has, isOne);
    if (hasOne) around.add(span);
    return hasOne;
  };
  const put = (span: Span, isShown: boolean) => {
    const isRow = isShown && (!matching || isDimmed || around.has(span));
    span.row = isRow ? rows.length : -1;
    if (isRow) rows.push(span);
    const isOpen = isShown && !isFolded(showing, span);
    for (const child of childrenOf(span)) put(child, isOpen);
  };
  for (const root of model.roots) {
    if (matching) search(root);
    put(root, true);
  }
  return { rows, matching, matchCount: matching ? matching.size : rows.length };
}

/** Whether the descendants of a bar are hidden. A filter also shows matching bars in folded parents. */
export function isFolded({ folded, terms }: Pick<Showing, 'folded' | 'terms'>, span: Span): boolean {
  const isAtFirst = isFoldedAtFirst(span);
  return folded.has(foldKey(span)) ? !isAtFirst : isAtFirst && terms.length === 0;
}

export interface EntryRows {
  readonly rows: readonly TraceEntry[];
  readonly matchCount: number;
  readonly isMatch: (entry: TraceEntry) => boolean;
}

/** Events as they came. */
export function entryRows(model: TraceModel, { terms, found, isDimmed }: Showing): EntryRows {
  if (terms.length === 0) return { rows: model.entries, matchCount: model.entries.length, isMatch: () => true };
  const isMatch = (entry: TraceEntry) => matchesEntry(terms, entry, found);
  const rows = model.entries.filter(isMatch);
  return { rows: isDimmed ? model.entries : rows, matchCount: rows.length, isMatch };
}
