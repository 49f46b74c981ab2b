import { closeSync, mkdirSync, openSync, rmdirSync, unlinkSync } from 'node:fs';
import { isWithin } from '../paths.ts';
import { between, statOf } from './wall-plan.ts';

interface Standing {
  readonly isDirectory: boolean;
  readonly identity: string;
  users: number;
}

const identityOf = (path: string): string => {
  const found = statOf(path);
  return found ? `${found.dev}:${found.ino}` : '';
};

/**
 * Empty files and directories that stand for missing names while a sandbox is open: bubblewrap can close only a name that exists. The last
 * sandbox that needs one removes it, if it is still empty. A kill leaves them; git ignores every one of them.
 */
export class Placeholders {
  readonly #standing = new Map<string, Standing>();

  /**
   * Makes a placeholder, and missing directories above it.
   *
   * @param top nothing is made outside of it
   * @returns paths that were made for this call or an earlier one; undefined: it cannot be made
   */
  stand(top: string, path: string, isDirectory: boolean): readonly string[] | undefined {
    if (!isWithin(top, path) || path === top) return undefined;
    const missing = [...between(top, path), path].filter((each) => this.#standing.has(each) || !statOf(each));
    const made: string[] = [];
    try {
      for (const each of missing) {
        this.#make(each, each !== path || isDirectory);
        made.push(each);
      }
      return made;
    } catch {
      this.release(made);
      return undefined;
    }
  }

  /** Gives up placeholders of `stand`. */
  release(paths: readonly string[]): void {
    for (const path of [...paths].reverse()) {
      const known = this.#standing.get(path);
      if (!known) continue;
      known.users -= 1;
      if (known.users > 0) continue;
      this.#standing.delete(path);
      remove(path, known);
    }
  }

  /** Whether a placeholder stands for this name. */
  has(path: string): boolean {
    return this.#standing.has(path);
  }

  #make(path: string, isDirectory: boolean): void {
    const known = this.#standing.get(path);
    if (known && known.identity === identityOf(path)) {
      known.users += 1;
      return;
    }
    if (isDirectory) mkdirSync(path);
    else closeSync(openSync(path, 'wx', 0o644));
    this.#standing.set(path, { isDirectory, identity: identityOf(path), users: 1 });
  }
}

function remove(path: string, { isDirectory, identity }: Standing): void {
  const found = statOf(path);
  if (!found || identity !== identityOf(path)) return;
  try {
    if (isDirectory) rmdirSync(path);
    else if (found.size === 0) unlinkSync(path);
  } catch {
    // The directory is in use by now.
  }
}
