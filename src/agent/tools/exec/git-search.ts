import { type Dirent, lstatSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { directoryName } from '../../../config/index.ts';

/** A path that may have bytes that are not UTF-8. */
export type BytePath = string | Buffer;

/** A place at which git finds a repository. */
export interface GitEntry {
  /** The `.git` entry, or the bare repository itself. */
  readonly path: BytePath;
  readonly kind: 'directory' | 'file' | 'link' | 'bare';
}

interface KnownDirectory {
  readonly ctimeMs: number;
  readonly inode: number;
  readonly readAt: number;
  readonly directories: readonly BytePath[];
  readonly entries: readonly GitEntry[];
}

/** A directory that changed this shortly before it was read may change again within the same tick of the file system's clock. */
export const tickMs = 30;
/** Directories between two pauses, in which other work gets its turn. */
const sliceLength = 400;
/** Most directories of a workspace that are searched. */
const maxDirectories = 200_000;

/** Finds the repositories below a directory. Each directory is read again only when it has changed. */
export class GitSearch {
  readonly #root: string;
  #known = new Map<string, KnownDirectory>();

  /** @param root canonical */
  constructor(root: string) {
    this.#root = root;
  }

  /** Directories of the last search. */
  get size(): number {
    return this.#known.size;
  }

  /** Whether the last search reached every directory. */
  isComplete = true;

  /** Searches all directories, those near the root first. Not for two calls at a time. */
  async find(): Promise<readonly GitEntry[]> {
    const known = new Map<string, KnownDirectory>();
    const found: GitEntry[] = [];
    let level: readonly BytePath[] = [this.#root];
    this.isComplete = true;
    let left = sliceLength;
    while (level.length > 0) {
      const next: BytePath[] = [];
      for (const path of level) {
        const key = keyOf(path);
        const directory = known.size < maxDirectories ? this.#read(path, key) : undefined;
        if (known.size >= maxDirectories) this.isComplete = false;
        if (!directory) continue;
        known.set(key, directory);
        found.push(...directory.entries);
        for (const each of directory.directories) next.push(each);
        left -= 1;
        if (left > 0) continue;
        left = sliceLength;
        await new Promise((resolve) => setImmediate(resolve));
      }
      level = next;
    }
    this.#known = known;
    return found;
  }

  #read(path: BytePath, key: string): KnownDirectory | undefined {
    try {
      const now = Date.now();
      const stats = lstatSync(path, { throwIfNoEntry: false });
      if (!stats?.isDirectory()) return undefined;
      const { ctimeMs, ino: inode } = stats;
      const known = this.#known.get(key);
      if (known?.ctimeMs === ctimeMs && known.inode === inode && ctimeMs < known.readAt - tickMs) return known;
      const names = namesIn(path);
      const isBare = names.has('HEAD') && (names.has('objects') || names.has('commondir'));
      const git = names.get('.git');
      names.delete('.git');
      if (path === this.#root) names.delete(directoryName);
      const below = [...names.values()].filter((entry) => entry.isDirectory());
      return {
        ...{ ctimeMs, inode, readAt: now },
        directories: below.map(({ name }) => joined(path, name)),
        entries: [
          ...(git ? [{ path: joined(path, git.name), kind: kindOf(git) }] : []),
          ...(isBare ? [{ path, kind: 'bare' as const }] : []),
        ],
      };
    } catch {
      // A directory that cannot be read, or is gone.
      return undefined;
    }
  }
}

/** Distinct for distinct paths. */
export const keyOf = (path: BytePath): string => (typeof path === 'string' ? path : `\0${path.toString('latin1')}`);

export const joined = (directory: BytePath, name: BytePath): BytePath =>
  typeof directory === 'string' && typeof name === 'string'
    ? join(directory, name)
    : Buffer.concat([Buffer.from(directory), Buffer.from('/'), Buffer.from(name)]);

/** Directory of a path. */
export function parentOf(path: BytePath): BytePath {
  if (typeof path === 'string') return path.slice(0, path.lastIndexOf('/')) || '/';
  const parent = path.subarray(0, path.lastIndexOf(0x2f));
  const text = parent.toString();
  return Buffer.from(text).equals(parent) ? text : parent;
}

const caseFolds = process.platform === 'darwin';
const fold = (name: string): string => (caseFolds && name.toLowerCase() === '.git' ? '.git' : name);

/** Entries by name. Names that are not UTF-8 are bytes. */
function namesIn(path: BytePath): Map<string, Dirent<string> | Dirent<Buffer>> {
  const entries = readdirSync(path, { withFileTypes: true });
  if (!entries.some(({ name }) => name.includes('\ufffd')))
    return new Map(entries.map((each) => [fold(each.name), each]));
  const raw = readdirSync(path, { withFileTypes: true, encoding: 'buffer' });
  return new Map(raw.map((each) => [fold(each.name.toString('latin1')), each]));
}

function kindOf(entry: Dirent<string> | Dirent<Buffer>): GitEntry['kind'] {
  if (entry.isSymbolicLink()) return 'link';
  return entry.isDirectory() ? 'directory' : 'file';
}
