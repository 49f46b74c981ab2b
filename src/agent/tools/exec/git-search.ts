import { type Dirent, lstatSync } from 'node:fs';
import { directoryName } from '../../../config/index.ts';
import { type BytePath, joined, keyOf, readEntries } from './byte-path.ts';
import { inDirectory } from './held-directory.ts';

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
  /** Directories that the user cannot read. */
  readonly #closed = new Set<string>();
  #opens = false;

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

  /**
   * Searches all directories, those near the root first. Not for two calls at a time.
   *
   * @param opens directories that became unreadable since the last search without it get the rights of their owner back: git works in a
   *   directory that cannot be listed
   */
  async find(opens = false): Promise<readonly GitEntry[]> {
    this.#opens = opens;
    if (!opens) this.#closed.clear();
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

  #namesIn(path: BytePath, key: string): ReturnType<typeof namesIn> {
    try {
      return namesIn(path);
    } catch (error) {
      if (!this.#opens) this.#closed.add(key);
      if (this.#closed.has(key)) throw error;
      inDirectory(path, () => undefined);
      return namesIn(path);
    }
  }

  #read(path: BytePath, key: string): KnownDirectory | undefined {
    try {
      const now = Date.now();
      const stats = lstatSync(path, { throwIfNoEntry: false });
      if (!stats?.isDirectory()) return undefined;
      const { ctimeMs, ino: inode } = stats;
      const known = this.#known.get(key);
      if (known?.ctimeMs === ctimeMs && known.inode === inode && ctimeMs < known.readAt - tickMs) return known;
      const names = this.#namesIn(path, key);
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

const caseFolds = process.platform === 'darwin';
const fold = (name: string): string => (caseFolds && name.toLowerCase() === '.git' ? '.git' : name);

function namesIn(path: BytePath): Map<string, Dirent<string> | Dirent<Buffer>> {
  const keyOfEntry = ({ name }: Dirent<string> | Dirent<Buffer>) =>
    fold(typeof name === 'string' ? name : name.toString('latin1'));
  return new Map(readEntries(path).map((each) => [keyOfEntry(each), each]));
}

function kindOf(entry: Dirent<string> | Dirent<Buffer>): GitEntry['kind'] {
  if (entry.isSymbolicLink()) return 'link';
  return entry.isDirectory() ? 'directory' : 'file';
}
