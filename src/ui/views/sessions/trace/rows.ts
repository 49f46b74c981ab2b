import type { TraceEntry } from './entry.ts';
import { matchesEntry, matchesSpan, type Term, type TextMatches } from './filter.ts';
import { isTurn, type Span, type TraceModel, type Turn } from './model.ts';

/** Filter and folding of a session's rows. */
export interface Showing {
  readonly terms: readonly Term[];
  readonly found: TextMatches;
  /** Also show rows that do not match, but fainter. */
  readonly isDimmed: boolean;
  /** Turns that are folded, by turn id. */
  readonly folded: ReadonlySet<string>;
  readonly now: number;
}

export interface SpanRows {
  readonly rows: readonly Span[];
  /** Rows that match; all of them without a filter. */
  readonly matching: ReadonlySet<Span> | undefined;
  readonly matchCount: number;
}

/** Bars in the order of their beginning, each turn before its children; a turn is shown while one of its children matches. */
export function spanRows(model: TraceModel, showing: Showing): SpanRows {
  const { terms, found, isDimmed, folded, now } = showing;
  const rows: Span[] = [];
  const matching = terms.length > 0 ? new Set<Span>() : undefined;
  const isMatch = (span: Span): boolean => {
    if (!matching) return true;
    const isOne = matchesSpan(terms, span, found, now);
    if (isOne) matching.add(span);
    return isOne;
  };
  const put = (span: Span, isShown: boolean) => {
    span.row = isShown ? rows.length : -1;
    if (isShown) rows.push(span);
  };
  for (const root of model.roots) {
    if (!isTurn(root)) {
      put(root, isMatch(root) || isDimmed);
      continue;
    }
    putTurn(root, isMatch, put, isDimmed, folded.has(root.turnId), matching);
  }
  return { rows, matching, matchCount: matching ? matching.size : rows.length };
}

function putTurn(
  turn: Turn,
  isMatch: (span: Span) => boolean,
  put: (span: Span, isShown: boolean) => void,
  isDimmed: boolean,
  isFolded: boolean,
  matching: ReadonlySet<Span> | undefined,
): void {
  const isTurnMatch = isMatch(turn);
  let hasMatch = isTurnMatch;
  if (matching) for (const child of turn.children) hasMatch = isMatch(child) || hasMatch;
  put(turn, hasMatch || isDimmed);
  for (const child of turn.children) put(child, !isFolded && (!matching || isDimmed || matching.has(child)));
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
