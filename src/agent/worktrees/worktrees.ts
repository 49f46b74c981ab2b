import { copyFile, mkdir, mkdtemp, realpath, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { directoryName } from '../../config/index.ts';
import { commandEnvironment, type EnvironmentSettings, newMarker } from '../tools/index.ts';
import type { WorktreeBase } from '../turn-actor-store.ts';
import { type Git, GitFailure, gitIn } from './git.ts';

/** A worktree of a sub-agent. */
export interface OpenedWorktree {
  /** Absolute. */
  readonly path: string;
  readonly origin: WorktreeBase;
  /**
   * Ends it.
   *
   * @param isComplete the changes are wanted: they are put into the workspace, all or none; changes that cannot be stay in the worktree
   * @returns the outcome of the changes, in a sentence for the model; empty: nothing was changed
   */
  readonly close: (isComplete: boolean) => Promise<string>;
}

/**
 * Makes a worktree with all files of a workspace that git does not ignore.
 *
 * @param worktree its name; or a worktree that an earlier process made, which is taken over @returns why it cannot be made, as a text
 */
export type OpenWorktree = (workspacePath: string, worktree: string | WorktreeBase) => Promise<OpenedWorktree | string>;

/** Our own directory is not part of the change. */
const ownFiles = ['--', '.', `:(exclude,top)${directoryName}`];

/** Git runs nothing that the repository names: a worktree has the unfiltered bytes of the workspace's files. */
export function worktreesOf(settings: EnvironmentSettings): OpenWorktree {
  const git = gitIn(commandEnvironment(settings, newMarker(settings.environment)));
  /** Changes are brought back one after the other. */
  let last: Promise<unknown> = Promise.resolve();
  return async (workspacePath, worktree) => {
    const left = typeof worktree === 'string' ? undefined : worktree;
    const name = typeof worktree === 'string' ? worktree : worktree.name;
    const path = join(workspacePath, directoryName, 'worktrees', name);
    try {
      const { base, files } = left ?? (await snapshot(git, workspacePath));
      if (!left) {
        await mkdir(join(path, '..'), { recursive: true, mode: 0o700 });
        await git(['worktree', 'add', '--quiet', '--no-checkout', '--detach', path, base], { cwd: workspacePath });
        await git(['reset', '--hard', '--quiet'], { cwd: path });
      }
      return {
        path,
        origin: { name, base, files },
        close(isComplete) {
          const closed = last.then(() => bringBack(git, { workspacePath, path, base, files, isComplete }));
          last = closed.catch(() => undefined);
          return closed;
        },
      };
    } catch (error) {
      if (!(error instanceof GitFailure)) throw error;
      return error.message;
    }
  };
}

interface Snapshot {
  /** A commit of the current files, on no branch. */
  readonly base: string;
  /** Pathspec of the files that are compared. */
  readonly files: readonly string[];
}

/** Neither the index nor a branch of the user changes. @throws GitFailure */
async function snapshot(git: Git, workspacePath: string): Promise<Snapshot> {
  const root = await git(['rev-parse', '--show-toplevel'], { cwd: workspacePath });
  if ((await realpath(root)) !== workspacePath) throw new GitFailure('the workspace is not the root of its repository');
  return withDirectory(async (directory) => {
    const at = { cwd: workspacePath, index: join(directory, 'index') };
    const own = await git(['rev-parse', '--git-path', 'index'], { cwd: workspacePath });
    // With the times of the files in it git reads only those that have changed.
    await copyFile(resolve(workspacePath, own), at.index).catch(() => undefined);
    const files = [...ownFiles, ...(await submodulesIn(git, at))];
    await replaceFiltered(git, at, files);
    await git(['add', '--all', ...files], at);
    const tree = await git(['write-tree'], at);
    const commit = ['commit-tree', tree, '-p', 'HEAD', '-m', 'Files of the workspace'];
    return { base: await git(commit, { cwd: workspacePath }), files };
  });
}

interface IndexPlace {
  readonly cwd: string;
  readonly index: string;
}

/** Pathspec without the submodules: git would compare their files, with programs that their own configuration names. */
async function submodulesIn(git: Git, at: IndexPlace): Promise<string[]> {
  const entries = (await git(['ls-files', '-z', '--stage'], at)).split('\0');
  const links = entries.filter((entry) => entry.startsWith('160000 '));
  return links.map((entry) => `:(exclude,top,literal)${entry.slice(entry.indexOf('\t') + 1)}`);
}

/** Replaces entries that a filter has made, as the pointers of LFS: the worktree gets the files as they lie in the workspace. */
async function replaceFiltered(git: Git, at: IndexPlace, files: readonly string[]): Promise<void> {
  const filtered = [...files, ':(exclude,attr:!filter)'];
  const paths = await git(['ls-files', '-z', ...filtered], at);
  if (paths === '') return;
  await git(['rm', '--cached', '-r', '--quiet', '--force', ...filtered], at);
  await git(['update-index', '--add', '--remove', '-z', '--stdin'], { ...at, input: paths });
}

interface Return extends Snapshot {
  readonly workspacePath: string;
  readonly path: string;
  readonly isComplete: boolean;
}

async function bringBack(git: Git, { workspacePath, path, base, files, isComplete }: Return): Promise<string> {
  const kept = `The changes of the sub-agent are only in its worktree ${path}`;
  try {
    return await withDirectory(async (directory) => {
      const patch = join(directory, 'patch');
      await git(['add', '--all', ...files], { cwd: path });
      const tree = await git(['write-tree'], { cwd: path });
      const names = await git(['diff', '--name-only', '--no-ext-diff', base, tree, ...files], { cwd: path });
      if (names !== '' && !isComplete) return `${kept}, because it did not end as it should.`;
      if (names !== '') {
        const as = ['--binary', '--full-index', '--no-ext-diff', '--no-textconv', '--no-renames', '--no-color'];
        await git(['diff', ...as, `--output=${patch}`, base, tree, ...files], { cwd: path });
        await git(['apply', '--whitespace=nowarn', patch], { cwd: workspacePath });
      }
      await git(['worktree', 'remove', '--force', path], { cwd: workspacePath });
      return names === '' ? '' : `It worked in a worktree; its changes are in the workspace now: ${listed(names)}.`;
    });
  } catch (error) {
    if (!(error instanceof GitFailure)) throw error;
    return `${kept}, because they do not fit the workspace: ${error.message}.`;
  }
}

const maxListed = 20;

function listed(names: string): string {
  const all = names.split('\n');
  const more = all.length - maxListed;
  return `${all.slice(0, maxListed).join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
}

async function withDirectory<T>(work: (directory: string) => Promise<T>): Promise<T> {
  const directory = await mkdtemp(join(tmpdir(), 'oratorio-worktree-'));
  try {
    return await work(directory);
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}
