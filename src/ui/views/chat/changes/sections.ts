import { parsePatch } from 'diff';
import { cutText, diffFileLine, diffHead } from '../../../../protocol/browser.ts';
import type { FileDiff } from '../../../../protocol/index.ts';
import { type DiffRow, rowsOfHunks } from '../data/diff-rows.ts';

export type ChangedFile = FileDiff['files'][number];

/** One file of a diff, with its part of the text. */
export interface FileSection {
  readonly file: ChangedFile;
  /** Permissions before and after, if they differ. */
  readonly modes: readonly [string, string] | null;
  /** Hunks as text; null: the text is not part of the answer. */
  readonly hunks: string | null;
}

const modeLines = /(?:(?:new file|deleted file|old|new) mode \d+\n)*/y;
const changedModes = /^old mode \d*(\d{3})\nnew mode \d*(\d{3})\n/;
const nextFile = '\ndiff --git ';

/**
 * Divides a unified diff into its files, by the names in the summary: a name may contain line ends and look like another part of
 * a diff.
 */
export function sectionsOf({ files, diff = '' }: Pick<FileDiff, 'files' | 'diff'>): FileSection[] {
  let at = 0;
  return files.map((file) => {
    const { path } = file;
    // An agent server of an earlier version quotes no name.
    const head =
      [`${diffHead(path)}\n`, `diff --git a/${path} b/${path}\n`].find((each) => diff.startsWith(each, at)) ?? '';
    if (file.kind === 'directory' && head === '') return { file, modes: null, hunks: null };
    // A name in which the server has redacted something is not the one of the summary.
    const isKnown = head !== '';
    const from = isKnown ? at + head.length : at;
    const modes = isKnown ? modesAt(diff, from) : '';
    const names = [`${diffFileLine('---', path)}\n`, `--- a/${path}\n`, '--- /dev/null\n'].find((name) =>
      diff.startsWith(name, from + modes.length),
    );
    const after = [`${diffFileLine('+++', path)}\n`, `+++ b/${path}\n`, '+++ /dev/null\n'].find((name) =>
      diff.startsWith(name, from + modes.length + (names?.length ?? 0)),
    );
    const start = from + modes.length + (names?.length ?? 0) + (after?.length ?? 0);
    // A line of a hunk begins with a sign: this is the next file.
    const end = nextAt(diff, start);
    const [, before, now] = changedModes.exec(modes) ?? [];
    at = end;
    // A file that became a link has two parts: one that goes, one that comes.
    while (isKnown && diff.startsWith(head, at)) at = nextAt(diff, at + head.length);
    return {
      file,
      modes: before !== undefined && now !== undefined ? [before, now] : null,
      hunks: isKnown && names !== undefined && after !== undefined ? diff.slice(start, end) : null,
    };
  });
}

/** Place of the next file at or after a line. */
function nextAt(diff: string, start: number): number {
  const found = diff.indexOf(nextFile, start - 1);
  return found === -1 ? diff.length : found + 1;
}

function modesAt(diff: string, at: number): string {
  modeLines.lastIndex = at;
  return modeLines.exec(diff)?.[0] ?? '';
}

/** Longest line that is shown whole. */
const maxLineChars = 2_000;

/** Rows of one file, with lines of a length that can be shown; null: its text cannot be read. */
export function rowsOfSection({ file, hunks }: FileSection): readonly DiffRow[] | null {
  if (hunks === null || hunks === '') return null;
  try {
    const rows = parsePatch(`--- a\n+++ b\n${hunks}`).flatMap((patch) => rowsOfHunks(patch.hunks, false));
    const name: DiffRow = { kind: 'file', text: file.path, before: null, after: null };
    return [name, ...rows.map((row) => ({ ...row, text: shortened(row.text) }))];
  } catch {
    // The text was cut or redacted in the middle of a hunk.
    return null;
  }
}

function shortened(line: string): string {
  const shown = cutText(line, maxLineChars);
  const hidden = line.length - shown.length;
  return hidden === 0 ? line : `${shown} … ${hidden.toLocaleString('en')} more characters`;
}

/** One row with two sides; a heading of a hunk is on both. */
export interface Pair {
  readonly left: DiffRow | null;
  readonly right: DiffRow | null;
}

/** Puts removed lines beside the added ones that follow them. */
export function pairsOf(rows: readonly DiffRow[]): readonly Pair[] {
  const pairs: Pair[] = [];
  let removed: DiffRow[] = [];
  let added: DiffRow[] = [];
  const end = () => {
    for (let index = 0; index < Math.max(removed.length, added.length); index += 1) {
      pairs.push({ left: removed[index] ?? null, right: added[index] ?? null });
    }
    [removed, added] = [[], []];
  };
  for (const row of rows) {
    if (row.kind === 'removed') {
      if (added.length > 0) end();
      removed.push(row);
    } else if (row.kind === 'added') added.push(row);
    else {
      end();
      if (row.kind !== 'file') pairs.push({ left: row, right: row });
    }
  }
  end();
  return pairs;
}
