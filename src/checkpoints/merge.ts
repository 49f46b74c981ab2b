import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { runGit } from '../git/index.ts';
import { type BytePath, isOfRepository, shownPath } from './byte-path.ts';
import type { ContentReader } from './content-reader.ts';
import type { Contents } from './contents.ts';
import type { Conflict, RestoreOp } from './directories.ts';
import { fitDirectories } from './directories.ts';
import { isSame, type NotCovered, type PathEntry, type StampedEntry } from './entry.ts';
import { CheckpointError } from './errors.ts';
import { type History, notCoveredOf, plainEntry } from './history.ts';
import { slicesOf } from './pieces.ts';

/** A path that a fork has changed since it was made. */
export interface ForkChange {
  readonly path: BytePath;
  readonly before: PathEntry | undefined;
  readonly after: PathEntry | undefined;
}

/**
 * A fork with the marks between which its turns have changed its files. The changes themselves may be many: they are read only
 * where they are needed.
 */
export interface ForkSpan {
  /** Canonical path of the fork. */
  readonly root: string;
  /** Store of the fork. */
  readonly directory: string;
  readonly since: number;
  readonly through: number;
}

export interface MergeOptions {
  readonly history: History;
  readonly contents: Contents;
  readonly changes: readonly ForkChange[];
  /** Contents of the fork; undefined: `contents` has them. */
  readonly theirs: ContentReader | undefined;
  /** Contents of the state before the changes. */
  readonly bases: ContentReader;
  /** Environment of git; undefined: texts are not merged. */
  readonly environment: Readonly<Record<string, string>> | undefined;
  /** Gives conflicting paths the fork's state. */
  readonly force: boolean;
}

export interface MergePlan {
  readonly ops: readonly RestoreOp[];
  readonly conflicts: readonly Conflict[];
  /** Paths left unchanged although `force` is set. */
  readonly notCovered: readonly NotCovered[];
}

/** Longest text that is merged line by line. */
const maxMergeBytes = 1_048_576;

/** Changes of a fork. */
export interface ForkChanges {
  readonly changes: readonly ForkChange[];
  readonly notCovered: readonly NotCovered[];
}

/** Compares a fork with the state of its original from which it was made. Both lists are sorted by path. */
export function changesSince(base: Iterable<StampedEntry>, fork: Iterable<StampedEntry>): ForkChanges {
  const changes: ForkChange[] = [];
  const notCovered: NotCovered[] = [];
  for (const [before, after] of pairsOf(base, fork)) {
    const { path } = before ?? after;
    // A copy has no entry that its checkpoint did not cover, and no repository.
    if (path === '' || isOfRepository(path) || (before?.kind === 'skipped' && !after)) continue;
    const skipped = [after, before].find((each) => each?.kind === 'skipped');
    if (skipped) notCovered.push(notCoveredOf(skipped));
    else if (!isSame(before && plainEntry(before), after && plainEntry(after))) {
      changes.push({ path, before: before && plainEntry(before), after: after && plainEntry(after) });
    }
  }
  return { changes, notCovered };
}

type Pair = readonly [StampedEntry, StampedEntry | undefined] | readonly [undefined, StampedEntry];

/** Pairs of two sorted lists by path. */
function* pairsOf(base: Iterable<StampedEntry>, fork: Iterable<StampedEntry>): Generator<Pair> {
  const [left, right] = [base[Symbol.iterator](), fork[Symbol.iterator]()];
  let [one, two] = [left.next(), right.next()];
  while (!one.done || !two.done) {
    if (two.done || (!one.done && one.value.path < two.value.path)) {
      if (!one.done) yield [one.value, undefined];
      one = left.next();
    } else if (one.done || two.value.path < one.value.path) {
      yield [undefined, two.value];
      two = right.next();
    } else {
      yield [one.value, two.value];
      one = left.next();
      two = right.next();
    }
  }
}

/** Compares two states of a fork. @throws CheckpointError when the first one has been deleted */
export function changesOf(history: History, { since, through }: ForkSpan): ForkChanges {
  if (!history.hasMark(since)) throw new CheckpointError('the checkpoints of the fork were deleted meanwhile');
  const paths = new Set(history.changes(since, through).map(({ path }) => path));
  const changes: ForkChange[] = [];
  const notCovered: NotCovered[] = [];
  for (const path of paths) {
    const [before, after] = [history.at(path, since), history.at(path, through)];
    const skipped = [after, before].find((each) => each?.kind === 'skipped');
    if (skipped) notCovered.push(notCoveredOf(skipped));
    else if (
      path !== '' &&
      !isOfRepository(path) &&
      !isSame(before && plainEntry(before), after && plainEntry(after))
    ) {
      changes.push({ path, before: before && plainEntry(before), after: after && plainEntry(after) });
    }
  }
  return { changes, notCovered };
}

/**
 * Plans how changes of a fork come into the workspace. A path that has not changed here since the fork takes the fork's state,
 * texts that both changed are merged line by line, and everything else is a conflict, which `force` overwrites.
 */
export async function planMerge(options: MergeOptions): Promise<MergePlan> {
  const { history, contents, changes, theirs, force } = options;
  const ops = new Map<BytePath, RestoreOp>();
  const conflicts: Conflict[] = [];
  const notCovered: NotCovered[] = [];
  for (const { path, before, after } of changes) {
    const have = history.current(path);
    const present = have && plainEntry(have);
    if (isSame(present, after)) continue;
    const isConcurrent = !isSame(present, before);
    const merged = isConcurrent ? await mergedText({ ...options, have, before, after }) : undefined;
    if (isConcurrent && !merged) {
      const change = !before ? 'created' : !have ? 'deleted' : 'modified';
      // Content that no checkpoint holds could not be brought back.
      if (force && have?.kind === 'skipped') notCovered.push(notCoveredOf(have));
      else conflicts.push({ path: shownPath(path), change, by: 'user' });
      if (!force || have?.kind === 'skipped') continue;
    }
    if (!merged && theirs && after?.kind === 'file') contents.putAll(theirs.read(after.hash ?? ''), after.size);
    ops.set(path, { path, have: have ?? null, want: merged ?? after ?? null });
  }
  conflicts.push(...fitDirectories({ history, ops, force, modeOf: () => undefined }));
  return { ops: [...ops.values()], conflicts, notCovered };
}

interface Versions extends Pick<MergeOptions, 'contents' | 'theirs' | 'bases' | 'environment'> {
  readonly have: StampedEntry | undefined;
  readonly before: PathEntry | undefined;
  readonly after: PathEntry | undefined;
}

/** @returns undefined: the versions cannot be merged */
async function mergedText({
  contents,
  theirs,
  bases,
  have,
  before,
  after,
  environment,
}: Versions): Promise<PathEntry | undefined> {
  const versions = [have, before, after];
  const isText = versions.every((each) => each?.kind === 'file' && each.size <= maxMergeBytes);
  if (!isText || !have || !before || !after || !theirs || !environment) return undefined;
  const whole = (store: ContentReader, { hash }: PathEntry) => Buffer.concat([...store.read(hash ?? '')]);
  const texts = [whole(contents, have), whole(bases, before), whole(theirs, after)];
  const merged = await mergeFile(texts, environment);
  if (!merged) return undefined;
  const hash = contents.putAll(slicesOf(merged), merged.length);
  const mode = have.mode === before.mode ? after.mode : have.mode;
  return { kind: 'file', mode, size: merged.length, hash, target: null };
}

/** Three-way merge by git, in a directory without any repository. @returns undefined: a conflict, or no text */
async function mergeFile(
  texts: readonly Buffer[],
  environment: Readonly<Record<string, string>>,
): Promise<Buffer | undefined> {
  const directory = mkdtempSync(join(tmpdir(), 'oratorio-merge-'));
  try {
    const names = ['ours', 'base', 'theirs'].map((name) => join(directory, name));
    for (const [index, content] of texts.entries()) {
      writeFileSync(names[index] ?? '', content, { mode: 0o600 });
    }
    const printed: Buffer[] = [];
    const { exitCode } = await runGit({
      ...{ args: ['merge-file', '--stdout', '--quiet', ...names], cwd: directory, env: environment },
      timeoutMs: 30_000,
      stdout: (chunk) => printed.push(chunk),
    });
    return exitCode === 0 ? Buffer.concat(printed) : undefined;
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}
