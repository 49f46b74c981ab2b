import { lstatSync } from 'node:fs';
import { type BytePath, keyOf } from './byte-path.ts';

/** A directory that changed this shortly before it was read may change again within the same tick of the file system's clock. */
export const tickMs = 30;

interface KnownDirectory<T> {
  readonly ctimeMs: number;
  readonly inode: number;
  readonly readAt: number;
  readonly content: T;
}

/** Content of directories, each read again only when it has changed. A walk forgets directories that it does not reach. */
export class KnownDirectories<T> {
  readonly #list: (path: BytePath) => T;
  #known = new Map<string, KnownDirectory<T>>();
  #reached = new Map<string, KnownDirectory<T>>();

  /** @param list reads one directory. May throw */
  constructor(list: (path: BytePath) => T) {
    this.#list = list;
  }

  /** Directories of the last walk. */
  get size(): number {
    return this.#known.size;
  }

  /** Directories that the present walk has reached. */
  get reached(): number {
    return this.#reached.size;
  }

  /** Content of a directory; undefined: not a directory, gone, or not readable. */
  read(path: BytePath): T | undefined {
    try {
      const readAt = Date.now();
      const stats = lstatSync(path, { throwIfNoEntry: false });
      if (!stats?.isDirectory()) return undefined;
      const { ctimeMs, ino: inode } = stats;
      const key = keyOf(path);
      const known = this.#known.get(key);
      const isSame = known?.ctimeMs === ctimeMs && known.inode === inode && ctimeMs < known.readAt - tickMs;
      const found = isSame ? known : { ctimeMs, inode, readAt, content: this.#list(path) };
      this.#reached.set(key, found);
      return found.content;
    } catch {
      return undefined;
    }
  }

  /** Ends a walk. */
  finish(): void {
    this.#known = this.#reached;
    this.#reached = new Map();
  }
}
