import { randomBytes } from 'node:crypto';
import { lstat, mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { GitError } from './error.ts';
import { trashPath } from './layout.ts';
import { splitAtNul } from './listing.ts';
import { readRecord } from './metadata.ts';
import { insideRoot } from './paths.ts';
import { makeReadOnly } from './read-only.ts';
import { removeTree } from './remove.ts';
import { failureText } from './runner.ts';
import { type StoreContext, storeDirectory } from './store.ts';
import { together } from './together.ts';
import { planTree, type TreePlan } from './tree.ts';

/** A worktree and its store. */
export interface WorktreePlace {
  readonly key: string;
  readonly storeKey: string;
}

const gitDirOf = (context: StoreContext, { key, storeKey }: WorktreePlace): string =>
  join(storeDirectory(context.layout, storeKey), 'worktrees', key);

/**
 * Adds the worktree to its store, still without files: from now on its commit is protected. Within `withStore`.
 *
 * These are the files of gitrepository-layout(5), written without `git worktree add`, which starts two processes for them.
 * @throws GitError `pathOutside` when something is in the way
 */
export async function addWorktree(context: StoreContext, place: WorktreePlace, sha: string): Promise<void> {
  const path = insideRoot(context.layout.root, place.key);
  await mkdir(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'EEXIST') throw new GitError('pathOutside', `Something that is not ours is at ${path}`);
    throw error;
  });
  const gitDir = gitDirOf(context, place);
  await removeTree(gitDir);
  await mkdir(gitDir, { recursive: true });
  await together([
    writeFile(join(gitDir, 'commondir'), '../..\n'),
    writeFile(join(gitDir, 'gitdir'), `${join(path, '.git')}\n`),
    writeFile(join(gitDir, 'HEAD'), `${sha}\n`),
    writeFile(join(path, '.git'), pointerTo(gitDir)),
  ]);
}

/** Writes the files and removes the right to write. @throws GitError `treeUnsafe` */
export async function fillWorktree(
  context: StoreContext,
  place: WorktreePlace,
  sha: string,
  plan: TreePlan,
  signal: AbortSignal | undefined,
): Promise<void> {
  const workTree = insideRoot(context.layout.root, place.key);
  const repository = { gitDir: gitDirOf(context, place), workTree, signal };
  try {
    if (plan.omitted.length === 0) {
      await context.git.run({ ...repository, args: ['read-tree', '--reset', '-u', sha] });
    } else {
      await context.git.run({ ...repository, args: ['read-tree', '--reset', sha] });
      const args = ['update-index', '-z', '--skip-worktree', '--stdin'];
      await context.git.run({ ...repository, args, stdin: plan.omittedPaths });
      await context.git.run({ ...repository, args: ['checkout-index', '--all', '--force', '--index', '--quiet'] });
    }
  } catch (error) {
    if (!/invalid path/i.test(failureText(error))) throw error;
    throw new GitError('treeUnsafe', `The commit has names that git refuses: ${failureText(error)}`, { cause: error });
  }
  await makeReadOnly(workTree, signal);
}

/**
 * Compares every file with the commit. Trusts nothing that could have been changed from within the worktree: neither its
 * pointer to the store, nor the index, nor its ignore rules.
 * @throws GitError `worktreeDirty`
 */
export async function checkClean(context: StoreContext, key: string): Promise<void> {
  const { git, layout } = context;
  const found = readRecord(layout.root, key);
  if (found.kind !== 'ok') throw new GitError('worktreeDirty', 'The worktree is not known');
  const { store, headSha } = found.value;
  const gitDir = gitDirOf(context, { key, storeKey: store });
  const workTree = insideRoot(layout.root, key);
  const isPointed = (await pointerOf(workTree)) === pointerTo(gitDir);
  const head = await readFile(join(gitDir, 'HEAD'), 'utf8').catch(() => '');
  if (!isPointed || head.trim() !== headSha) throw new GitError('worktreeDirty', 'The worktree is at another commit');
  const indexFile = join(gitDir, `verify-${randomBytes(4).toString('hex')}`);
  try {
    await git.run({ gitDir, workTree, indexFile, args: ['read-tree', headSha] });
    const args = ['status', '--porcelain=v1', '-z', '--untracked-files=all', '--ignored=traditional', '--no-renames'];
    const status = await git.run({
      gitDir,
      workTree,
      indexFile,
      args: [...args, '--ignore-submodules=dirty'],
      mayCut: true,
    });
    await judge(context, gitDir, headSha, status.stdout);
  } finally {
    await removeTree(indexFile);
  }
}

/** Judges the status of a worktree. Files that were left out of it may be missing. */
async function judge(context: StoreContext, gitDir: string, headSha: string, status: Buffer): Promise<void> {
  const lines = splitAtNul(status);
  const isMissing = (line: Buffer) => line.toString('latin1', 0, 3) === ' D ';
  const omitted = new Set<string>();
  if (lines.some(isMissing)) {
    const plan = await planTree({ ...context, gitDir, signal: undefined }, headSha);
    for (const path of splitAtNul(plan.omittedPaths)) omitted.add(path.toString('latin1'));
  }
  const dirty = lines.filter((line) => !(isMissing(line) && omitted.has(line.toString('latin1', 3))));
  if (dirty.length === 0) return;
  const names = dirty.slice(0, 5).map((line) => JSON.stringify(line.toString('utf8', 3)));
  throw new GitError('worktreeDirty', `The worktree was changed: ${names.join(', ')} (${dirty.length} in all)`);
}

/** Removes the worktree, or the rest of one. `clean` finds the trash of a crash in between. Within `withStore`. */
export async function dropWorktree(context: StoreContext, place: WorktreePlace): Promise<void> {
  const { layout, git } = context;
  const trash = trashPath(layout.root);
  await rename(insideRoot(layout.root, place.key), trash).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT') throw error;
  });
  await removeTree(trash);
  const gitDir = storeDirectory(layout, place.storeKey);
  if (!(await lstat(gitDir).catch(() => null))) return;
  await git.run({ gitDir, args: ['worktree', 'prune', '--expire=now'] });
}

const pointerTo = (gitDir: string): string => `gitdir: ${gitDir}\n`;

/** Reads the pointer of a worktree to its repository. */
export async function pointerOf(worktree: string): Promise<string | null> {
  const file = join(worktree, '.git');
  const found = await lstat(file).catch(() => null);
  return found?.isFile() && found.size < 10_000 ? await readFile(file, 'utf8') : null;
}
