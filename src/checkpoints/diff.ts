import { type BytePath, shownPath } from './byte-path.ts';
import type { ContentReader } from './content-reader.ts';
import { type Entry, isSame, type NotCovered, type Uncovered, uncoveredOf } from './entry.ts';
import { type History, notCoveredOf, ownerKey, plainEntry } from './history.ts';
import { type PutBack, putBackOf } from './put-back.ts';

/** One path that turns have changed. */
export interface ChangedFile {
  readonly path: string;
  readonly change: 'created' | 'modified' | 'deleted';
  readonly kind: 'file' | 'directory' | 'link';
  /** Lines; 0 for what is no text. */
  readonly additions: number;
  readonly deletions: number;
  /** Its content is not shown: no text, or too large. */
  readonly isBinary: boolean;
}

export interface TurnDiff extends Uncovered {
  readonly files: readonly ChangedFile[];
  /** Unified; undefined: a summary was asked for. */
  readonly diff: string | undefined;
  /** More changed than is shown. */
  readonly isCut: boolean;
  readonly putBack: readonly PutBack[];
}

export interface DiffRequest {
  readonly thread: string;
  /** Undefined: all turns of the thread. */
  readonly turn: string | undefined;
  readonly isUnified: boolean;
}

const maxFiles = 2_000;
const maxTextBytes = 512 * 1_024;
const maxDiffChars = 1_000_000;
/** Different lines after which two texts count as different as a whole: looking for more would block. */
const maxEditLength = 4_000;
/** As git decides that a file is no text. */
const binaryProbeBytes = 8_000;

/** Compares the files before and after turns: each path before the first of these changes, and after the last one. */
export async function diffOf(history: History, contents: ContentReader, request: DiffRequest): Promise<TurnDiff> {
  // Of a whole thread also turns that were taken back: the restore that did so is one of its turns, and both together change nothing.
  const turns = history.turns(request.thread).filter(({ turn }) => request.turn === undefined || turn === request.turn);
  const [first] = turns;
  if (!first)
    return { files: [], diff: request.isUnified ? '' : undefined, isCut: false, putBack: [], ...uncoveredOf([]) };
  const own = new Set(turns.map(ownerKey));
  const isOwn = ownersOf(history, own);
  const places = new Map<BytePath, { first: number; last: number }>();
  for (const { path, seq } of history.changes(first.startSeq, history.newestSeq)) {
    if (!isOwn(seq)) continue;
    const place = places.get(path);
    if (place) place.last = seq;
    else places.set(path, { first: seq, last: seq });
  }
  const { structuredPatch, formatPatch } = await import('diff');
  const files: ChangedFile[] = [];
  const notCovered: NotCovered[] = [];
  const patches: string[] = [];
  let length = 0;
  let isCut = false;
  for (const [path, { first: from, last }] of places) {
    const [before, after] = [history.at(path, from - 1), history.at(path, last)];
    if (isSame(before && plainEntry(before), after && plainEntry(after))) continue;
    const skipped = [after, before].find((each) => each?.kind === 'skipped');
    if (skipped) {
      notCovered.push(notCoveredOf(skipped));
      continue;
    }
    if (files.length >= maxFiles) {
      isCut = true;
      continue;
    }
    const shown = shownPath(path);
    const [old, now] = [textOf(contents, before), textOf(contents, after)];
    const names = [before ? `a/${shown}` : '/dev/null', after ? `b/${shown}` : '/dev/null'] as const;
    const isText = old !== undefined && now !== undefined;
    // Undefined: the texts differ in more places than are looked for.
    const patch = isText ? structuredPatch(...names, old, now, undefined, undefined, { maxEditLength }) : undefined;
    const lines = patch?.hunks.flatMap((hunk) => hunk.lines) ?? [];
    files.push({
      path: shown,
      change: before ? (after ? 'modified' : 'deleted') : 'created',
      kind: kindOf(after ?? before),
      additions: lines.filter((line) => line.startsWith('+')).length,
      deletions: lines.filter((line) => line.startsWith('-')).length,
      isBinary: !patch,
    });
    if (!request.isUnified) continue;
    if (length > maxDiffChars) {
      isCut = true;
      continue;
    }
    const body = patch ? formatPatch(patch).replace(/^(?:=+\n)?/, '') : `Binary files ${names.join(' and ')} differ\n`;
    const head = `${[`diff --git a/${shown} b/${shown}`, ...modeLines(before, after)].join('\n')}\n`;
    const text = head + (old === now ? '' : body);
    length += text.length;
    patches.push(text);
  }
  const diff = request.isUnified ? patches.join('') : undefined;
  return { files, diff, isCut, putBack: putBackOf(history, request), ...uncoveredOf(notCovered) };
}

/** Whether one of these turns ran when the changes at a mark were made. */
function ownersOf(history: History, own: ReadonlySet<string>): (seq: number) => boolean {
  const known = new Map<number, boolean>();
  return (seq) => {
    const isOwn = known.get(seq) ?? history.ownersAt(seq).running.some((owner) => own.has(ownerKey(owner)));
    known.set(seq, isOwn);
    return isOwn;
  };
}

function kindOf(entry: Entry | undefined): ChangedFile['kind'] {
  return entry?.kind === 'directory' || entry?.kind === 'link' ? entry.kind : 'file';
}

const octal = ({ kind, mode }: Entry): string => {
  if (kind === 'link') return '120000';
  return `${kind === 'directory' ? '040' : '100'}${mode.toString(8).padStart(3, '0')}`;
};

function modeLines(before: Entry | undefined, after: Entry | undefined): string[] {
  if (!before) return after ? [`new file mode ${octal(after)}`] : [];
  if (!after) return [`deleted file mode ${octal(before)}`];
  return octal(before) === octal(after) ? [] : [`old mode ${octal(before)}`, `new mode ${octal(after)}`];
}

/** @returns undefined: no text, or too large */
function textOf(contents: ContentReader, entry: Entry | undefined): string | undefined {
  if (!entry || entry.kind === 'directory') return '';
  if (entry.kind === 'link') return Buffer.from(entry.target ?? '', 'latin1').toString();
  if (entry.size > maxTextBytes) return undefined;
  const bytes = Buffer.concat([...contents.read(entry.hash ?? '')]);
  return bytes.subarray(0, binaryProbeBytes).includes(0) ? undefined : bytes.toString();
}
