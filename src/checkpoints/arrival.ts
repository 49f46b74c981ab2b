import type { BytePath } from './byte-path.ts';
import type { Contents } from './contents.ts';
import { dirtyPaths } from './departure.ts';
import { isSame, type PathEntry } from './entry.ts';
import { CheckpointError } from './errors.ts';
import { type History, plainEntry } from './history.ts';
import type { RunGit } from './ignored.ts';
import { type ForkChange, type MergePlan, planMerge } from './merge.ts';
import { invalidTransfer, type TransferLine, TransferReader } from './transfer.ts';

export interface ArrivalOptions {
  readonly history: History;
  /** Takes the contents of the transfer, uncommitted. */
  readonly contents: Contents;
  readonly git: RunGit | undefined;
  /** File of the transfer. */
  readonly file: string;
  /** Mark at which the conversation left this tree for another machine; undefined: it was never here. */
  readonly departed: number | undefined;
}

/**
 * Plans how the files of a transfer come into this tree. A path may change only where its current state is the state before the
 * conversation, the state at its departure from here, or the new state; everything else is a conflict.
 *
 * @throws CheckpointError for an invalid transfer
 */
export async function planArrival(options: ArrivalOptions): Promise<MergePlan> {
  const { history, contents, git, file, departed } = options;
  const clean = await cleanTree(git);
  const known = departed !== undefined && history.hasMark(departed) ? departed : undefined;
  const changes: ForkChange[] = [];
  const reader = new TransferReader(file);
  try {
    for (const line of reader.lines()) {
      const { path, after } = line;
      if (after?.kind === 'file') takeContent(reader, contents, after);
      const present = currentAt(history, path);
      const left = known === undefined ? undefined : plainOf(history.at(path, known));
      const isKnown = known !== undefined && isAlike(present, left);
      // A directory that is already here stays unchanged.
      if (present?.kind === 'directory' && after?.kind === 'directory' && !isKnown) continue;
      const mayChange = isKnown || isUnchanged(line, present, clean);
      const before = mayChange ? present : line.before === 'clean' ? undefined : (line.before ?? undefined);
      changes.push({ path, before, after: after ?? undefined });
    }
  } finally {
    reader.close();
  }
  return planMerge({
    history,
    contents,
    changes,
    theirs: undefined,
    bases: contents,
    environment: undefined,
    force: false,
  });
}

const plainOf = (entry: ReturnType<History['current']>): PathEntry | undefined => entry && plainEntry(entry);
const currentAt = (history: History, path: BytePath): PathEntry | undefined => plainOf(history.current(path));

/** @throws CheckpointError when the content differs from the announced hash */
function takeContent(reader: TransferReader, contents: Contents, { size, hash }: PathEntry): void {
  if (contents.putAll(reader.content(size), size) !== hash)
    throw invalidTransfer('the content of a file differs from its announced hash');
}

/** Whether two entries are equal; rights that git does not record may differ between machines. */
function isAlike(present: PathEntry | undefined, expected: PathEntry | undefined): boolean {
  if (!present || !expected || present.kind === 'skipped' || present.kind !== expected.kind)
    return present === expected;
  if (present.kind === 'file' && (present.mode & 0o100) !== (expected.mode & 0o100)) return false;
  return isSame({ ...present, mode: 0, size: 0 }, { ...expected, mode: 0, size: 0 });
}

type IsClean = (path: BytePath, present: PathEntry | undefined) => boolean;

/** Whether a path is as in the commit, or new. */
async function cleanTree(git: RunGit | undefined): Promise<IsClean> {
  if (!git) return (_, present) => present === undefined;
  let dirty: ReadonlySet<BytePath>;
  try {
    dirty = new Set(await dirtyPaths(git));
  } catch (error) {
    // Without a repository, only new paths are clean.
    if (error instanceof CheckpointError) return (_, present) => present === undefined;
    throw error;
  }
  const tracked = new Set(((await git(['ls-files', '-z'], '')) ?? '').split('\0'));
  return (path, present) => !dirty.has(path) && (present === undefined || tracked.has(path));
}

const isUnchanged = ({ path, before }: TransferLine, present: PathEntry | undefined, isClean: IsClean): boolean =>
  before === 'clean' ? isClean(path, present) : isAlike(present, before ?? undefined);
