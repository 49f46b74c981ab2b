import { chmodSync, mkdirSync, statSync } from 'node:fs';

/** A directory that should hold secrets is open to others and not ours to close, or is no directory. */
export class PrivateDirectoryError extends Error {
  override readonly name = 'PrivateDirectoryError';
}

/** Makes `path` (and its parents) with mode 0700; tightens one that exists and is ours. A link to a directory is followed: the user's choice. */
export function ensurePrivateDirectory(path: string): void {
  mkdirSync(path, { recursive: true, mode: 0o700 });
  if (process.platform === 'win32') return;
  const { mode, uid } = statSync(path);
  if ((mode & 0o077) === 0) return;
  if (uid !== process.getuid?.()) {
    throw new PrivateDirectoryError(`${path} must be accessible to its owner only, and belongs to another user`);
  }
  chmodSync(path, 0o700);
}
