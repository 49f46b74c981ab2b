import { closeSync, constants, fstatSync, lstatSync, openSync } from 'node:fs';
import { shellWord } from './shell.ts';

const { O_RDONLY, O_DIRECTORY = 0, O_NOFOLLOW = 0 } = constants;

/** A directory that a process opened, and that its path no longer leads to. */
export interface DirectoryLoss {
  /** `gone`: nothing has its name. `replaced`: another directory has its name. */
  readonly kind: 'gone' | 'replaced';
  /** Sentences for people and models, with the next step. */
  readonly message: string;
}

/** Identity of the directory that a server opened as its workspace. An open descriptor keeps the system from reusing its inode. */
export class PinnedDirectory {
  readonly path: string;
  readonly #identity: string;
  #fd: number | undefined;

  /** @param path canonical @throws the system's error */
  constructor(path: string) {
    this.path = path;
    this.#fd = opened(path);
    this.#identity = identityOf(this.#fd === undefined ? lstatSync(path) : fstatSync(this.#fd));
  }

  /** Undefined: the path still leads to this directory. */
  get loss(): DirectoryLoss | undefined {
    try {
      if (identityOf(lstatSync(this.path)) === this.#identity) return undefined;
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      // A directory above may be unreadable for a moment.
      return code === 'ENOENT' || code === 'ENOTDIR' ? { kind: 'gone', message: goneWords(this.path) } : undefined;
    }
    return { kind: 'replaced', message: replacedWords(this.path) };
  }

  close(): void {
    if (this.#fd !== undefined) closeSync(this.#fd);
    this.#fd = undefined;
  }
}

/** Undefined on Windows, which opens no directories, and for a directory that may be entered but not listed. */
function opened(path: string): number | undefined {
  try {
    return openSync(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  } catch {
    return undefined;
  }
}

const identityOf = ({ dev, ino }: { readonly dev: number; readonly ino: number }): string => `${dev}:${ino}`;

const goneWords = (path: string): string =>
  `${path} was moved or deleted while its agent server runs; nothing was changed. Move it back, or start it in its new place: oratorio up`;

const replacedWords = (path: string): string =>
  `${path} was replaced by another directory while its agent server runs; nothing was changed. Restart the server in its terminal, or with: oratorio restart ${shellWord(path)}`;
