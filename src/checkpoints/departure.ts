import { type BytePath, isOfRepository, parentOf, shownPath } from './byte-path.ts';
import type { Contents } from './contents.ts';
import type { StampedEntry } from './entry.ts';
import { CheckpointError } from './errors.ts';
import { type History, plainEntry } from './history.ts';
import type { RunGit } from './ignored.ts';
import { problemOf, type TransferLine, TransferWriter, transferLimits } from './transfer.ts';

/** Files of a conversation that leaves for another machine. */
export interface Departure {
  /** Commit that the target must have, too; null: the tree has no commit, and goes as a whole. */
  readonly head: string | null;
  /** Mark of the files as they left. */
  readonly seq: number;
  readonly entries: number;
  readonly bytes: number;
}

export interface DepartureOptions {
  readonly history: History;
  readonly contents: Contents;
  readonly git: RunGit | undefined;
  readonly thread: string;
  /** File of the transfer, in a private directory. */
  readonly file: string;
}

/** Names that a refusal lists. */
const shownNames = 10;

/**
 * Writes the changed files of a conversation to the file of a transfer: everything that changed since its first turn, ignored files
 * included, and everything that differs from the commit. The current state must be saved.
 *
 * @throws CheckpointError with the reason and the next step when the move would lose something
 */
export async function depart({ history, contents, git, thread, file }: DepartureOptions): Promise<Departure> {
  const { newestSeq: seq } = history;
  const { head, dirty } = await commitOf(git, history);
  const since = history.turns(thread)[0]?.startSeq ?? seq;
  const touched = new Set(history.changes(since, seq).map(({ path }) => path));
  const lines: TransferLine[] = [...withParents([...touched, ...dirty])].sort(byBytes).map((path) => {
    const before = history.at(path, since);
    const isOwn = touched.has(path) || !dirty.has(path);
    return { path, before: isOwn ? plainOr(before) : 'clean', after: plainOr(history.current(path)) };
  });
  requireCovered(history, lines);
  const bytes = lines.reduce((sum, { after }) => sum + (after?.kind === 'file' ? after.size : 0), 0);
  if (lines.length > transferLimits.entries || bytes > transferLimits.bytes)
    throw new CheckpointError(
      `the changed files are ${lines.length} entries with ${bytes} bytes; a move takes ${transferLimits.entries} and ${transferLimits.bytes}. Remove or commit files that the conversation does not need`,
    );
  const writer = new TransferWriter(file);
  try {
    for (const line of lines) {
      const { after } = line;
      writer.write(line, after?.kind === 'file' && after.hash !== null ? contents.read(after.hash) : []);
    }
  } finally {
    writer.close();
  }
  return { head, seq, entries: lines.length, bytes };
}

const byBytes = (a: BytePath, b: BytePath): number => (a < b ? -1 : 1);

const plainOr = (entry: StampedEntry | undefined): TransferLine['after'] =>
  entry === undefined ? null : plainEntry(entry);

/** Paths with the directories above them, which may be missing at the target. */
function withParents(paths: readonly BytePath[]): Set<BytePath> {
  const all = new Set<BytePath>();
  for (const path of paths) {
    for (let at: BytePath | undefined = path; at !== undefined && at !== '' && !all.has(at); at = parentOf(at))
      all.add(at);
  }
  return all;
}

/** @throws CheckpointError for files that no checkpoint holds, and for repositories in directories */
function requireCovered(history: History, lines: readonly TransferLine[]): void {
  const problems = lines.flatMap((line) => {
    const skipped = history.current(line.path);
    const reason =
      skipped?.kind === 'skipped'
        ? `no checkpoint holds it: ${skipped.target}`
        : isOfRepository(line.path)
          ? 'a repository in a directory'
          : problemOf(line);
    return reason === undefined ? [] : [`${shownPath(line.path)} (${reason})`];
  });
  if (problems.length === 0) return;
  const more = problems.length > shownNames ? ` and ${problems.length - shownNames} more` : '';
  throw new CheckpointError(
    `the move would lose ${problems.slice(0, shownNames).join(', ')}${more}. Remove or commit it, then try again`,
  );
}

/** Commit of the tree, and paths that differ from it. A tree without a commit differs as a whole. */
async function commitOf(
  git: RunGit | undefined,
  history: History,
): Promise<{ readonly head: string | null; readonly dirty: ReadonlySet<BytePath> }> {
  const head = await headOf(git);
  if (git === undefined || head === null) {
    const all = [...history.currentEntries()].map(({ path }) => path).filter((path) => path !== '');
    return { head: null, dirty: new Set(all) };
  }
  if (((await git(['ls-files', '-z', '--stage'], '')) ?? '').split('\0').some((line) => line.startsWith('160000 ')))
    throw new CheckpointError('the workspace has submodules, which do not move. Move their files by git instead');
  const staged = await git(['diff', '--cached', '--name-only', '-z', '--no-renames'], '');
  if (staged === undefined) throw notCompared();
  if (staged !== '')
    throw new CheckpointError(
      `the index has staged changes, which do not move: ${namesIn(staged).slice(0, shownNames).join(', ')}. Run git restore --staged . or commit them, then try again`,
    );
  return { head, dirty: new Set(await dirtyPaths(git)) };
}

const notCompared = (): CheckpointError =>
  new CheckpointError('git could not compare the workspace with its commit. Run git status there, then try again');

const namesIn = (list: string): string[] =>
  list
    .split('\0')
    .filter((each) => each !== '')
    .map(shownPath);

/** Commit of HEAD; null without a commit, a repository or git. */
export async function headOf(git: RunGit | undefined): Promise<string | null> {
  const printed = (await git?.(['rev-parse', '--verify', '--quiet', 'HEAD'], ''))?.trim();
  return printed !== undefined && /^[0-9a-f]{40,64}$/.test(printed) ? printed : null;
}

/** Paths that differ from HEAD, and new ones that git does not ignore. @throws CheckpointError */
export async function dirtyPaths(git: RunGit): Promise<readonly BytePath[]> {
  const args = ['status', '--porcelain=v1', '-z', '--untracked-files=all', '--no-renames', '--ignore-submodules=all'];
  const printed = await git(args, '');
  if (printed === undefined) throw notCompared();
  return printed.split('\0').flatMap((line) => {
    const path = line.slice(3);
    return path === '' || path.endsWith('/') || isOwnState(path) ? [] : [path];
  });
}

/** State of Oratorio in the workspace, which belongs to its machine. */
const isOwnState = (path: BytePath): boolean => path.split('/').some((name) => name.startsWith('.oratorio'));
