import { count, cutLine } from '../text.ts';
import { maxPlaces, placesOf, type Span, tolerantPlacesOf } from './edit-match.ts';
import { nearestText } from './edit-nearest.ts';

export interface Edit {
  readonly oldText: string;
  readonly newText: string;
  readonly replaceAll: boolean;
}

/** A piece of the old text and what is there now. */
export interface Change extends Span {
  readonly replacement: string;
}

export type EditResult =
  | { readonly ok: true; readonly text: string; readonly changes: readonly Change[]; readonly isTolerant: boolean }
  /** `problem`: sentences for the model. */
  | { readonly ok: false; readonly problem: string };

/**
 * Replaces `oldText`, which must be there once (or, with `replaceAll`, at least once). Only line ends and spaces before them
 * may differ, and then only if there is one such place. The text keeps its own line ends.
 */
export function applyEdit(text: string, edit: Edit): EditResult {
  const { oldText, newText, replaceAll } = edit;
  if (oldText === '') return problem('oldText is empty. To make a file or replace it whole, use WriteFile.');
  if (oldText === newText) return problem('oldText and newText are the same: there is nothing to change.');
  const found = find(text, oldText, replaceAll);
  if (found.places.length === 0) return problem(notFound(text, edit));
  if (found.places.length > 1 && !(replaceAll && !found.isTolerant)) return problem(ambiguous(text, edit, found));
  const changes = found.places.map((span) => ({ ...span, replacement: withLineEndsOf(text, span, newText) }));
  const result = splice(text, changes);
  if (result === text) {
    return problem(
      'The edit would change nothing: oldText and newText differ only in line ends, and the file retains its own.',
    );
  }
  return { ok: true, text: result, changes, isTolerant: found.isTolerant };
}

const problem = (text: string): EditResult => ({ ok: false, problem: text });

interface Found {
  readonly places: readonly Span[];
  /** Line ends or spaces before them differ. */
  readonly isTolerant: boolean;
}

function find(text: string, oldText: string, replaceAll: boolean): Found {
  const exact = (piece: string) =>
    replaceAll ? placesOf(text, piece, piece.length, Number.POSITIVE_INFINITY) : placesOf(text, piece);
  const asGiven = exact(oldText);
  if (asGiven.length > 0) return { places: asGiven, isTolerant: false };
  // Models are shown no CR: in a file of CR LF their line ends mean those.
  const asInFile = exact(toLineEnd(oldText, lineEndOf(text)));
  if (asInFile.length > 0) return { places: asInFile, isTolerant: false };
  return { places: tolerantPlacesOf(text, oldText), isTolerant: true };
}

/** Pieces are put together: no pattern of `String.replace` gets a meaning. */
function splice(text: string, changes: readonly Change[]): string {
  const pieces: string[] = [];
  let at = 0;
  for (const { start, end, replacement } of changes) {
    pieces.push(text.slice(at, start), replacement);
    at = end;
  }
  return pieces.join('') + text.slice(at);
}

type LineEnd = '\n' | '\r\n';

/** The more frequent one; undefined when there are no lines. */
function lineEndOf(text: string): LineEnd | undefined {
  let all = 0;
  let withReturn = 0;
  for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', at + 1)) {
    all += 1;
    if (text[at - 1] === '\r') withReturn += 1;
  }
  if (all === 0) return undefined;
  return withReturn * 2 > all ? '\r\n' : '\n';
}

const toLineEnd = (text: string, lineEnd: LineEnd | undefined): string =>
  lineEnd === undefined ? text : text.replaceAll(/\r?\n/g, lineEnd);

/** Line ends are those of the place, or if it has none those of the file. */
function withLineEndsOf(text: string, { start, end }: Span, replacement: string): string {
  if (!replacement.includes('\n')) return replacement;
  return toLineEnd(replacement, lineEndOf(text.slice(start, end)) ?? lineEndOf(text));
}

/** Shorter texts are found by chance. */
const tellingChars = 8;

function notFound(text: string, { oldText, newText }: Edit): string {
  const applied = newText.trim().length >= tellingChars ? placesOf(text, toLineEnd(newText, lineEndOf(text))) : [];
  if (applied[0]) {
    const line = lineNumber(text, applied[0].start);
    return `oldText is not in the file, but newText already is, at line ${line}: the edit seems to have been made before. Nothing was changed.`;
  }
  const nearest = nearestText(text, oldText);
  if (!nearest) return 'oldText is not in the file, and nothing in it is similar. Read the file again.';
  const lines = nearest.lines.map((line) => cutLine(line, 500)).join('\n');
  const hint = nearest.differsInSpaces ? ' (only spaces or indentation differ)' : '';
  return `oldText is not in the file. The nearest text begins at line ${nearest.line}${hint}:\n${lines}\nCopy oldText exactly from the file.`;
}

function ambiguous(text: string, { replaceAll }: Edit, { places, isTolerant }: Found): string {
  const shown = places.slice(0, 10).map(({ start }) => lineNumber(text, start));
  const more = places.length > shown.length ? ', …' : '';
  const number = places.length >= maxPlaces ? `${maxPlaces} places or more` : count(places.length, 'place');
  const lines = `${number} (lines ${shown.join(', ')}${more})`;
  if (isTolerant && replaceAll) {
    return `oldText is in the file only with other spaces at line ends, at ${lines}; with replaceAll it must match exactly.`;
  }
  const how = isTolerant ? ', but for spaces at line ends,' : '';
  return `oldText is${how} at ${lines}. Add lines around it that make it unique, or set replaceAll.`;
}

/** Of the position `at`, from 1. */
export function lineNumber(text: string, at: number): number {
  let line = 1;
  for (let feed = text.indexOf('\n'); feed !== -1 && feed < at; feed = text.indexOf('\n', feed + 1)) line += 1;
  return line;
}
