import type { Dirent } from 'node:fs';
import { directoryName } from '../../../config/index.ts';
import { type BytePath, joined, keyOf, readEntries } from './byte-path.ts';
import { inDirectory } from './held-directory.ts';
import { KnownDirectories } from './known-directories.ts';

/** A place at which git finds a repository. */
export interface GitEntry {
  /** The `.git` entry, or the bare repository itself. */
  readonly path: BytePath;
  readonly kind: 'directory' | 'file' | 'link' | 'bare';
}

interface SearchedDirectory {
  readonly directories: readonly BytePath[];
  readonly entries: readonly GitEntry[];
}

/** Directories between two pauses, in which other work gets its turn. */
const sliceLength = 400;
/** Most directories of a workspace that are searched. */
const maxDirectories = 200_000;

/** Finds the repositories below a directory. Each directory is read again only when it has changed. */
export class GitSearch {
  readonly #root: string;
  readonly #known = new KnownDirectories((path) => this.#list(path));
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

  /**
   * Searches all directories, those near the root first. Not for two calls at a time.
   *
   * @param opens directories that became unreadable since the last search without it get the rights of their owner back: git works in a
   *   directory that cannot be listed
   */
  async find(opens = false): Promise<readonly GitEntry[]> {
    this.#opens = opens;
    if (!opens) this.#closed.clear();
    const found: GitEntry[] = [];
    let level: readonly BytePath[] = [this.#root];
    let left = sliceLength;
    while (level.length > 0) {
      const next: BytePath[] = [];
      for (const path of level) {
        const directory = this.#known.reached < maxDirectories ? this.#known.read(path) : undefined;
        if (!directory) continue;
        found.push(...directory.entries);
        for (const each of directory.directories) next.push(each);
        left -= 1;
        if (left > 0) continue;
        left = sliceLength;
        await new Promise((resolve) => setImmediate(resolve));
      }
      level = next;
    }
    this.#known.finish();
    return found;
  }

  #namesIn(path: BytePath): ReturnType<typeof namesIn> {
    try {
      return namesIn(path);
    } catch (error) {
      const key = keyOf(path);
      if (!this.#opens) this.#closed.add(key);
      if (this.#closed.has(key)) throw error;
      inDirectory(path, () => undefined);
      return namesIn(path);
    }
  }

  #list(path: BytePath): SearchedDirectory {
    const names = this.#namesIn(path);
    const isBare = names.has('HEAD') && (names.has('objects') || names.has('commondir'));
    const git = names.get('.git');
    names.delete('.git');
    if (path === this.#root) names.delete(directoryName);
    const below = [...names.values()].filter((entry) => entry.isDirectory());
    return {
      directories: below.map(({ name }) => joined(path, name)),
      entries: [
        ...(git ? [{ path: joined(path, git.name), kind: kindOf(git) }] : []),
        ...(isBare ? [{ path, kind: 'bare' as const }] : []),
      ],
    };
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
