import { closeSync, constants, existsSync, fstatSync, lstatSync, openSync } from 'node:fs';
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
  readonly #words: LossWords;
  readonly #held = new Map<string, { readonly pin: PinnedDirectory; uses: number }>();
  #fd: number | undefined;

  /** @param path canonical @throws the system's error */
  constructor(path: string, words: LossWords = ofWorkspace) {
    this.path = path;
    this.#words = words;
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
      return code === 'ENOENT' || code === 'ENOTDIR'
        ? { kind: 'gone', message: this.#words.gone(this.path) }
        : undefined;
    }
    return { kind: 'replaced', message: this.#words.replaced(this.path) };
  }

  /** Pins another directory while a turn works in it, such as that of a fork. @returns ends the work */
  hold(path: string): () => void {
    if (path === this.path) return () => {};
    try {
      const held = this.#held.get(path) ?? { pin: new PinnedDirectory(path, ofConversation), uses: 0 };
      this.#held.set(path, held);
      held.uses += 1;
      return () => {
        held.uses -= 1;
        if (held.uses > 0) return;
        this.#held.delete(path);
        held.pin.close();
      };
    } catch {
      // Nothing has the path by now: `lossOf` reports that.
      return () => {};
    }
  }

  /** Loss of this directory, or of another one in which work is done. Undefined: both paths lead to their directories. */
  lossOf(path: string): DirectoryLoss | undefined {
    const { loss } = this;
    if (loss || path === this.path) return loss;
    const held = this.#held.get(path);
    if (held) return held.pin.loss;
    return existsSync(path) ? undefined : { kind: 'gone', message: ofConversation.gone(path) };
  }

  close(): void {
    for (const { pin } of this.#held.values()) pin.close();
    this.#held.clear();
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

interface LossWords {
  gone(path: string): string;
  replaced(path: string): string;
}

const ofWorkspace: LossWords = {
  gone: (path) =>
    `${path} was moved or deleted while its agent server runs; nothing was changed. Move it back, or start it in its new place: oratorio up`,
  replaced: (path) =>
    `${path} was replaced by another directory while its agent server runs; nothing was changed. Restart the server in its terminal, or with: oratorio restart ${shellWord(path)}`,
};

const ofConversation: LossWords = {
  gone: (path) =>
    `The directory ${path} of this conversation was moved or deleted. Move it back, or start another conversation.`,
  replaced: (path) =>
    `The directory ${path} of this conversation was replaced by another directory during a turn; nothing was changed there. Put the first one back, or send the next message to work in the new one.`,
};
