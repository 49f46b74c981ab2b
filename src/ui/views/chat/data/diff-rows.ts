import { parsePatch, structuredPatch } from 'diff';
import { unshownMark } from '../../../../protocol/browser.ts';
import type { FileChange } from './call-words.ts';

export interface DiffRow {
  readonly kind: 'file' | 'hunk' | 'same' | 'added' | 'removed';
  readonly text: string;
  /** Line numbers before and after; null on the other side. */
  readonly before: number | null;
  readonly after: number | null;
}

/** Most characters of one side for a comparison line by line; a larger change is shown as removed and added. */
const comparedChars = 100_000;
/** Number of differing lines that ends a comparison. */
const maxEdits = 2_000;

type Hunks = readonly { readonly oldStart: number; readonly newStart: number; readonly lines: readonly string[] }[];

/** Rows of a requested change. */
export function rowsOfChange({ path, before, after }: FileChange): readonly DiffRow[] {
  const file: DiffRow = { kind: 'file', text: path, before: null, after: null };
  const old = before ?? '';
  const isSmall = old.length <= comparedChars && after.length <= comparedChars;
  const patch = isSmall
    ? structuredPatch(path, path, old, after, '', '', { context: 3, maxEditLength: maxEdits })
    : null;
  if (patch) return [file, ...rowsOfHunks(patch.hunks, before !== null)];
  const whole = (text: string, kind: 'added' | 'removed') =>
    text === '' ? [] : text.split('\n').map((line) => ({ kind, text: line, before: null, after: null }) as const);
  return [file, ...whole(old, 'removed'), ...whole(after, 'added')];
}

/** The change that a person is asked to allow. */
export interface AskedChange {
  /** Null: no line of the change can be shown. */
  readonly rows: readonly DiffRow[] | null;
  /** Says which part is not shown; null: the change is whole. */
  readonly unshown: string | null;
}

/** The change in a question: the one that its call requests, else the preview of the agent server. */
export function askedChange(change: FileChange | null, preview: string | undefined): AskedChange {
  if (change) return { rows: rowsOfChange(change), unshown: null };
  if (preview === undefined) return { rows: null, unshown: null };
  const rows = rowsOfPatch(preview);
  const last = preview.slice(preview.lastIndexOf('\n') + 1);
  if (last.startsWith(unshownMark)) return { rows, unshown: last.slice(unshownMark.length) };
  return { rows, unshown: rows ? null : 'the change cannot be displayed' };
}

/** Names the parts of a request that a person must have seen. A change that is not shown whole is never seen. */
export const partsToSee = ({ rows, unshown }: AskedChange): readonly string[] => [
  'target',
  ...(rows ? ['change'] : []),
  ...(unshown === null ? [] : ['unshown']),
];

/** Rows of a unified diff, or null for other text. */
export function rowsOfPatch(text: string): readonly DiffRow[] | null {
  if (!/^@@ -\d+/m.test(text) || text.length > 10 * comparedChars) return null;
  try {
    const rows = parsePatch(text).flatMap(({ oldFileName, newFileName, hunks }) => {
      const name = newFileName === undefined || newFileName === '/dev/null' ? oldFileName : newFileName;
      const file: DiffRow = { kind: 'file', text: (name ?? '').replace(/^[ab]\//, ''), before: null, after: null };
      return hunks.length === 0 ? [] : [file, ...rowsOfHunks(hunks, false)];
    });
    return rows.length === 0 ? null : rows;
  } catch {
    // Output that only looks like a diff is shown as text.
    return null;
  }
}

/** Rows of hunks. @param isExcerpt their line numbers are not those of the file */
export function rowsOfHunks(hunks: Hunks, isExcerpt: boolean): DiffRow[] {
  return hunks.flatMap(({ oldStart, newStart, lines }) => {
    let before = oldStart;
    let after = newStart;
    const rows = lines.flatMap((line): DiffRow[] => {
      const text = line.slice(1);
      if (line.startsWith('\\')) return [];
      if (line.startsWith('-')) return [{ kind: 'removed', text, before: before++, after: null }];
      if (line.startsWith('+')) return [{ kind: 'added', text, before: null, after: after++ }];
      return [{ kind: 'same', text, before: before++, after: after++ }];
    });
    // Numbers within an excerpt are not those of the file.
    if (isExcerpt) return rows.map((row) => ({ ...row, before: null, after: null }));
    return [{ kind: 'hunk', text: `@@ -${oldStart} +${newStart} @@`, before: null, after: null } as const, ...rows];
  });
}
