import { lstatSync } from 'node:fs';
import { dirname, sep } from 'node:path';

/** A path without a symlink in any part: its own real path. */
export interface PlainPath {
  readonly path: string;
  /** Identities of the path and of everything above it, upward. */
  readonly chain: readonly [string, ...string[]];
  readonly exists: boolean;
}

interface Part {
  /** `unclear`: a symlink, or unreadable. */
  readonly kind: 'directory' | 'other' | 'missing' | 'unclear';
  readonly identity: string;
}

/** Elsewhere the real path of a file may be spelled otherwise than its name, without a symlink. */
const canCompareNames = process.platform === 'linux';

/**
 * Checks paths without waiting: a system call of a local file system takes less time than to have it made by another thread. No
 * symlink is followed, because a repository could have it lead to a file system that does not answer. Each part is read once, so an
 * instance is for one moment. For paths below directories of Oratorio and of the user's choice.
 */
export class PlainPaths {
  readonly #parts = new Map<string, Part>();

  /** @param path absolute and normal @returns undefined: it must be resolved */
  at(path: string): PlainPath | undefined {
    if (!canCompareNames) return undefined;
    const { kind, identity } = this.#part(path);
    if (kind === 'unclear') return undefined;
    const above: string[] = [];
    for (let at = path; at !== dirname(at); ) {
      at = dirname(at);
      above.push(this.#part(at).identity);
    }
    return { path, chain: [identity, ...above], exists: kind !== 'missing' };
  }

  #part(path: string): Part {
    const known = this.#parts.get(path);
    if (known) return known;
    const parent = dirname(path);
    const above = parent === path ? 'directory' : this.#part(parent).kind;
    const part = above === 'directory' ? look(path) : below(above, path);
    this.#parts.set(path, part);
    return part;
  }
}

const below = (above: Exclude<Part['kind'], 'directory'>, path: string): Part => ({
  kind: above === 'unclear' ? 'unclear' : 'missing',
  identity: nameIdentity(path),
});

/**
 * Whether a file is missing for certain: found out as in `PlainPaths`, for less.
 *
 * @param directory is above `path`; no part of it is chosen by a repository
 */
export function isMissingBelow(directory: string, path: string): boolean {
  for (let end = directory.length; end !== -1; ) {
    end = path.indexOf(sep, end + 1);
    const part = end === -1 ? path : path.slice(0, end);
    try {
      const stats = lstatSync(part, { throwIfNoEntry: false });
      if (!stats) return true;
      if (stats.isSymbolicLink()) return false;
    } catch {
      return false;
    }
  }
  return false;
}

function look(path: string): Part {
  const identity = nameIdentity(path);
  try {
    const stats = lstatSync(path, { bigint: true, throwIfNoEntry: false });
    if (!stats) return { kind: 'missing', identity };
    if (stats.isSymbolicLink()) return { kind: 'unclear', identity };
    return { kind: stats.isDirectory() ? 'directory' : 'other', identity: identityIn(stats, path) };
  } catch {
    return { kind: 'unclear', identity };
  }
}

/** Device and inode of a file. */
export const identityIn = ({ dev, ino }: { readonly dev: bigint; readonly ino: bigint }, path: string): string =>
  ino === 0n ? nameIdentity(path) : `${dev}:${ino}`;

/** A text that equals the identity of no other path, for a file that has none. */
export const nameIdentity = (path: string): string => `name ${path}`;
