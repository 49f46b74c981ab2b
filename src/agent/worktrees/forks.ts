import { randomUUID } from 'node:crypto';
import { copyFileSync, existsSync, lstatSync, mkdirSync, realpathSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';
import { forksDirectory } from '../../config/index.ts';
import { commandEnvironment, type EnvironmentSettings, newMarker } from '../tools/index.ts';
import { type Git, GitFailure, gitIn } from './git.ts';

/**
 * Makes the directory of a forked conversation beside the workspace, never below it: git, module resolution and instructions look
 * upwards. With git it is a worktree on no branch, with the workspace's index and without files; without git, or before the first
 * commit, it is empty.
 *
 * @param announce receives the path before the directory is made
 * @returns its path; the reason why it cannot be made, as `{reason}`
 */
export type OpenFork = (
  workspacePath: string,
  announce: (path: string) => Promise<void>,
) => Promise<string | { readonly reason: string }>;

/** Git runs nothing that the repository names, and checks out no file. */
export function forksOf(settings: EnvironmentSettings): OpenFork {
  const git = gitIn(commandEnvironment(settings, newMarker(settings.environment)));
  return async (workspacePath, announce) => {
    try {
      const parent = forksDirectory(workspacePath);
      makeOwn(parent);
      const path = join(realpathSync(parent), `${basename(workspacePath)}-${randomUUID().slice(0, 8)}`);
      await announce(path);
      if (!existsSync(join(workspacePath, '.git')) || (await isUnborn(git, workspacePath))) {
        mkdirSync(path, { mode: 0o700 });
        return path;
      }
      await git(['worktree', 'add', '--quiet', '--no-checkout', '--detach', path], { cwd: workspacePath });
      const indexOf = async (cwd: string) => resolve(cwd, await git(['rev-parse', '--git-path', 'index'], { cwd }));
      const index = await indexOf(workspacePath);
      if (existsSync(index)) copyFileSync(index, await indexOf(path));
      return path;
    } catch (error) {
      if (error instanceof GitFailure || (error as NodeJS.ErrnoException).code !== undefined) {
        return { reason: (error as Error).message };
      }
      throw error;
    }
  };
}

/** Whether the repository stands on a branch without a commit: a worktree needs one. */
async function isUnborn(git: Git, cwd: string): Promise<boolean> {
  const branch = await git(['branch', '--show-current'], { cwd });
  return branch !== '' && (await git(['for-each-ref', `refs/heads/${branch}`], { cwd })) === '';
}

/** Makes a directory that only this user can write. The parent of a workspace may be everybody's. */
function makeOwn(path: string): void {
  mkdirSync(path, { recursive: true, mode: 0o700 });
  const stats = lstatSync(path);
  if (!stats.isDirectory()) throw new GitFailure(`${path} is not a directory`);
  if (process.getuid && stats.uid !== process.getuid()) throw new GitFailure(`${path} belongs to another user`);
}
