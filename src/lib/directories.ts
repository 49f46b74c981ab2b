import { chmodSync, mkdirSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { describeUser } from './users.ts';

/** A directory that must be private belongs to another user, or the path is not a directory. */
export class PrivateDirectoryError extends Error {
  override readonly name = 'PrivateDirectoryError';
}

/**
 * Creates `path` and its missing parents. Unlike `mkdir` with `recursive`, which never returns below a directory that
 * answers ENOENT to every `mkdir` (`/proc`), it tries each directory once.
 *
 * @param path absolute
 * @throws the system's error of the first directory that cannot be created; EEXIST when `path` is a file, with the next step
 */
export function makeDirectory(path: string, mode = 0o777): void {
  if (create(path, mode) === 'exists') return;
  const parent = dirname(path);
  if (parent !== path && !isDirectory(parent)) makeDirectory(parent, mode);
  if (create(path, mode) === 'noParent') {
    throw Object.assign(new Error(`ENOENT: cannot create the directory ${path}`), { code: 'ENOENT' });
  }
}

/** Creates `path` and its parents with mode 0700; tightens an existing directory of this user. Follows a link to a directory: the user's choice. */
export function ensurePrivateDirectory(path: string): void {
  makeDirectory(path, 0o700);
  if (process.platform === 'win32') return;
  const { mode, uid } = statSync(path);
  if ((mode & 0o077) === 0) return;
  if (uid !== process.getuid?.()) {
    throw new PrivateDirectoryError(
      `${path} must be accessible to its owner only, and belongs to another user, ${describeUser(uid)}`,
    );
  }
  chmodSync(path, 0o700);
}

function create(path: string, mode: number): 'exists' | 'noParent' {
  try {
    mkdirSync(path, { mode });
    return 'exists';
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') return 'noParent';
    // EROFS and EACCES too are answers for a directory that exists.
    if (isDirectory(path)) return 'exists';
    if (code === 'EEXIST')
      throw Object.assign(new Error(`${path} is not a directory. Move it aside: it is made when it is needed`), {
        code,
      });
    throw error;
  }
}

const isDirectory = (path: string): boolean => {
  try {
    return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
  } catch {
    return false;
  }
};
