import { structuredPatch } from 'diff';
import { type BytePath, isOfRepository, shownPath } from './byte-path.ts';
import type { ContentReader } from './content-reader.ts';
import { isSame, type NotCovered, type PathEntry, type Uncovered, uncoveredOf } from './entry.ts';
import { type History, notCoveredOf, plainEntry } from './history.ts';
import { movedIn } from './moved-repositories.ts';
import { ownerKey } from './owner.ts';
import { type PutBack, putBackOf } from './put-back.ts';
import type { SavedStates } from './repositories.ts';
import { unifiedText } from './unified.ts';

/** One path that turns have changed. */
export interface ChangedFile {
  readonly path: string;
  readonly change: 'created' | 'modified' | 'deleted';
  readonly kind: 'file' | 'directory' | 'link';
  /** Added lines; 0 for binary files. */
  readonly additions: number;
  readonly deletions: number;
  /** Whether the content is hidden: not a text, or too large. */
  readonly isBinary: boolean;
}

export interface TurnDiff extends Uncovered {
  readonly files: readonly ChangedFile[];
  /** Unified diff; undefined: a summary was requested. */
  readonly diff: string | undefined;
  /** Whether more paths changed than the diff shows. */
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
/** Different lines after which two texts count as different as a whole: a longer search would block. */
const maxEditLength = 4_000;
/** Bytes at the start of a file that show whether it is binary, as in git. */
const binaryProbeBytes = 8_000;

export interface DiffedStore {
  readonly history: History;
  readonly contents: ContentReader;
  readonly repositories: SavedStates;
}

/** Compares the files before and after turns: each path before the first of these changes, and after the last one. */
export async function diffOf(
  { history, contents, repositories }: DiffedStore,
  request: DiffRequest,
): Promise<TurnDiff> {
  // For a whole thread, also turns that were taken back: their restore is one of its turns, and both together change nothing.
  const turns = history.turns(request.thread).filter(({ turn }) => request.turn === undefined || turn === request.turn);
  const [first] = turns;
  if (!first)
    return { files: [], diff: request.isUnified ? '' : undefined, isCut: false, putBack: [], ...uncoveredOf([]) };
  const own = new Set(turns.map(ownerKey));
  const isOwn = ownersOf(history, own);
  const places = new Map<BytePath, { first: number; last: number }>();
  for (const { path, seq } of history.changes(first.startSeq, history.newestSeq)) {
    if (isOfRepository(path) || !isOwn(seq)) continue;
    const place = places.get(path);
    if (place) place.last = seq;
    else places.set(path, { first: seq, last: seq });
  }
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
    const patchOf = (old: PathEntry | undefined, now: PathEntry | undefined) => {
      const [one, two] = [textOf(contents, old), textOf(contents, now)];
      if (one === undefined || two === undefined) return undefined;
      // Undefined: the texts differ in more places than the search allows.
      return structuredPatch('a', 'b', one, two, undefined, undefined, { maxEditLength });
    };
    const patch = patchOf(before, after);
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
    const text = unifiedText({ path, before, after, patch }, patchOf);
    length += text.length;
    patches.push(text);
  }
  notCovered.push(...movedIn(history, repositories, turns));
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

function kindOf(entry: PathEntry | undefined): ChangedFile['kind'] {
  return entry?.kind === 'directory' || entry?.kind === 'link' ? entry.kind : 'file';
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** @returns undefined: no text in UTF-8, or too large */
function textOf(contents: ContentReader, entry: PathEntry | undefined): string | undefined {
  if (!entry || entry.kind === 'directory') return '';
  if (entry.kind === 'link') return Buffer.from(entry.target ?? '', 'latin1').toString();
  if (entry.size > maxTextBytes) return undefined;
  const bytes = Buffer.concat([...contents.read(entry.hash ?? '')]);
  if (bytes.subarray(0, binaryProbeBytes).includes(0)) return undefined;
  try {
    // Replaced bytes would make a diff that writes other contents.
    return utf8.decode(bytes);
  } catch {
    return undefined;
  }
}
