import { randomBytes } from 'node:crypto';
import { chmod, lstat, mkdir, readdir, realpath } from 'node:fs/promises';
import { join } from 'node:path';
import { GitError } from './error.ts';

/**
 * Paths below the worktree root: `<key>` a worktree and `<key>.json` its record; `.stores/<key>.git` the objects, with `.lock`
 * and `.busy` beside; `.empty` a directory that stays empty; `.trash-*` directories being removed.
 */
export interface Layout {
  readonly root: string;
  readonly stores: string;
  readonly empty: string;
}

const trashPrefix = '.trash-';

/** Creates missing directories. @throws GitError `pathOutside` when something else is in the way */
export async function openLayout(worktreeRoot: string): Promise<Layout> {
  await mkdir(worktreeRoot, { recursive: true, mode: 0o700 });
  const root = await realpath(worktreeRoot);
  const layout = { root, stores: join(root, '.stores'), empty: join(root, '.empty') };
  await ownDirectory(layout.stores, 0o700);
  await ownDirectory(layout.empty, 0o500);
  if ((await readdir(layout.empty)).length > 0) {
    throw new GitError('pathOutside', `${layout.empty} must be empty: hooks are looked for in it`);
  }
  return layout;
}

/** A real directory: a link could point anywhere. */
async function ownDirectory(path: string, mode: number): Promise<void> {
  await mkdir(path, { mode }).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'EEXIST') throw error;
  });
  const found = await lstat(path);
  if (!found.isDirectory()) throw new GitError('pathOutside', `${path} must be a directory`);
  if ((found.mode & 0o777) !== mode) await chmod(path, mode);
}

/** A name in `directory` for a directory that is to be removed. */
export const trashPath = (directory: string): string =>
  join(directory, `${trashPrefix}${randomBytes(6).toString('hex')}`);

export const isTrash = (name: string): boolean => name.startsWith(trashPrefix);
