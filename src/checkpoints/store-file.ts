import { closeSync, constants, fstatSync, openSync } from 'node:fs';
import type { Contents } from './contents.ts';
import type { SkipReason, StampedEntry } from './entry.ts';
import { codeOf } from './errors.ts';
import { racyMs, readTries } from './limits.ts';
import { piecesOf } from './pieces.ts';
import type { Candidate } from './scan.ts';
import { linkTarget, type Tree } from './tree.ts';

export interface StoreFileOptions {
  readonly tree: Tree;
  readonly contents: Contents;
  readonly maxBytes: number;
}

const { O_RDONLY, O_NOFOLLOW = 0, O_NONBLOCK = 0 } = constants;
const goneCodes = new Set(['ENOENT', 'ENOTDIR', 'ELOOP', 'EINVAL']);

/**
 * Stores the content of a file, or the target of a link. Reads a file again, a few times, when it changes during the read.
 *
 * @returns undefined: the entry is gone, or has another kind
 */
export function storeCandidate(candidate: Candidate, options: StoreFileOptions): StampedEntry | undefined {
  const { kind, reason } = candidate;
  if (reason) return skipped(candidate, reason);
  const base = { ...stampedOf(candidate), hash: null, target: null };
  if (kind === 'directory') return base;
  try {
    if (kind === 'link') return { ...base, target: linkTarget(options.tree.at(candidate.path)) };
    if (candidate.size > options.maxBytes) return skipped(candidate, 'tooLarge');
    return storeFile(candidate, options);
  } catch (error) {
    const code = codeOf(error) ?? '';
    if (goneCodes.has(code)) return undefined;
    if (code === 'EACCES' || code === 'EPERM' || code === 'EIO' || code === 'EBUSY') {
      return skipped(candidate, 'unreadable');
    }
    throw error;
  }
}

/** Turns a candidate into an entry that is not covered; its facts show whether it changes. */
export function skipped(candidate: Candidate, reason: SkipReason): StampedEntry {
  return { ...stampedOf(candidate), kind: 'skipped', hash: null, target: reason };
}

const stampedOf = ({ path, kind, mode, size, mtime, ctime, ino }: Candidate) => ({
  ...{ path, kind, mode, size, mtime, ctime, ino },
});

function storeFile(candidate: Candidate, options: StoreFileOptions): StampedEntry | undefined {
  const { path } = candidate;
  const { tree, contents, maxBytes } = options;
  for (let tries = 0; tries < readTries; tries += 1) {
    // Without O_NONBLOCK the open of a FIFO would block.
    const fd = openSync(tree.at(path), O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
    try {
      const before = fstatSync(fd);
      if (!before.isFile()) return undefined;
      if (before.size > maxBytes) return skipped({ ...candidate, size: before.size, ctime: null }, 'tooLarge');
      const hash = storeContent(fd, before.size, contents);
      const after = fstatSync(fd);
      const isSteady =
        hash !== undefined &&
        after.size === before.size &&
        after.mtimeMs === before.mtimeMs &&
        after.ctimeMs === before.ctimeMs;
      if (!isSteady) continue;
      const isRacy = after.ctimeMs >= Date.now() - racyMs;
      return {
        ...{ path, kind: 'file', mode: after.mode & 0o7777, size: after.size, hash, target: null },
        ...{ mtime: after.mtimeMs, ctime: isRacy ? null : after.ctimeMs, ino: after.ino },
      };
    } finally {
      closeSync(fd);
    }
  }
  return skipped({ ...candidate, ctime: null }, 'changing');
}

/** @returns undefined: the file was shorter or longer than its size */
function storeContent(fd: number, size: number, contents: Contents): string | undefined {
  const pieces: string[] = [];
  let total = 0;
  for (const piece of piecesOf(fd, size)) {
    pieces.push(contents.put(piece));
    total += piece.length;
  }
  if (total !== size) return undefined;
  const [only] = pieces;
  return pieces.length === 1 ? only : contents.putList(pieces, size);
}
