import { count } from '../../../lib/index.ts';
import { cutLine } from '../text.ts';
import { type FoundEdit, findEdit } from './edit-find.ts';
import { lineEndOf, toLineEnd } from './edit-line-ends.ts';
import type { Change, Edit } from './edit-lines.ts';
import { maxPlaces, placesOf, type Span } from './edit-match.ts';
import { nearestText } from './edit-nearest.ts';

export type EditResult =
  | {
      readonly ok: true;
      readonly text: string;
      readonly changes: readonly Change[];
      /** Difference between the old text and the file's text, in words; undefined: no difference. */
      readonly differs: string | undefined;
    }
  /** `problem`: sentences for the model. */
  | { readonly ok: false; readonly problem: string };

/**
 * Replaces `oldText`, which must be there once (or, with `replaceAll`, at least once). Usual slips of models are understood where
 * they leave one place and one meaning, see `findEdit`. The text keeps its own line ends. Several edits are all found in the
 * original text, must not overlap, and are made all or none.
 */
export function applyEdits(text: string, edits: readonly Edit[]): EditResult {
  const made: { readonly change: Change; readonly number: number }[] = [];
  const differences = new Set<string>();
  for (const [index, edit] of edits.entries()) {
    const found = changesOf(text, edit);
    if ('problem' in found) return problem(edits.length > 1 ? `edit ${index + 1}: ${found.problem}` : found.problem);
    if (found.differs !== undefined) differences.add(found.differs);
    made.push(...found.changes.map((change) => ({ change, number: index + 1 })));
  }
  made.sort((a, b) => a.change.start - b.change.start);
  for (const [index, { change, number }] of made.entries()) {
    const before = made[index - 1];
    if (before && change.start < before.change.end) {
      return problem(`edits ${before.number} and ${number} overlap. Make one edit of them.`);
    }
  }
  const changes = made.map(({ change }) => change);
  const result = splice(text, changes);
  if (result === text) {
    return problem(
      'The edit would change nothing: oldText and newText differ only in line ends, and the file retains its own.',
    );
  }
  return { ok: true, text: result, changes, differs: differences.size > 0 ? [...differences].join('; ') : undefined };
}

/** One edit, see `applyEdits`. */
export const applyEdit = (text: string, edit: Edit): EditResult => applyEdits(text, [edit]);

function changesOf(text: string, edit: Edit): FoundEdit | { readonly problem: string } {
  const { oldText, newText, replaceAll } = edit;
  if (oldText === '') return { problem: 'oldText is empty. To make a file or replace it whole, use WriteFile.' };
  if (oldText === newText) return { problem: 'oldText and newText are the same: there is nothing to change.' };
  const found = findEdit(text, edit);
  if (found.changes.length === 0) return { problem: notFound(text, edit) };
  if (found.changes.length > 1 && !(replaceAll && found.differs === undefined)) {
    return { problem: ambiguous(text, edit, found) };
  }
  const changes = found.changes.map((change) => ({
    ...change,
    replacement: withLineEndsOf(text, change, change.replacement),
  }));
  return { changes, differs: found.differs };
}

const problem = (text: string): EditResult => ({ ok: false, problem: text });

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

/** Gives the replacement the line ends of the place, or of the file if the place has none. */
function withLineEndsOf(text: string, { start, end }: Span, replacement: string): string {
  if (!replacement.includes('\n')) return replacement;
  return toLineEnd(replacement, lineEndOf(text.slice(start, end)) ?? lineEndOf(text));
}

/** Shorter texts are found by chance. */
const distinctiveChars = 8;

function notFound(text: string, { oldText, newText }: Edit): string {
  const applied = newText.trim().length >= distinctiveChars ? placesOf(text, toLineEnd(newText, lineEndOf(text))) : [];
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

function ambiguous(text: string, { replaceAll }: Edit, { changes, differs }: FoundEdit): string {
  const shown = changes.slice(0, 10).map(({ start }) => lineNumber(text, start));
  const more = changes.length > shown.length ? ', …' : '';
  const number = changes.length >= maxPlaces ? `${maxPlaces} places or more` : count(changes.length, 'place');
  const lines = `${number} (lines ${shown.join(', ')}${more})`;
  if (differs !== undefined && replaceAll) {
    return `oldText is in the file only with other ${differs}, at ${lines}; with replaceAll it must match exactly.`;
  }
  const how = differs === undefined ? '' : `, but for ${differs},`;
  return `oldText is${how} at ${lines}. Add lines around it that make it unique, or set replaceAll.`;
}

/** Line of the position `at`, from 1. */
export function lineNumber(text: string, at: number): number {
  let line = 1;
  for (let feed = text.indexOf('\n'); feed !== -1 && feed < at; feed = text.indexOf('\n', feed + 1)) line += 1;
  return line;
}
