import { statSync } from 'node:fs';
import { join } from 'node:path';
import { stablePackageRoot } from '../lib/index.ts';

/** A new file may belong to an installation that is not complete yet. */
const settleMs = 3_000;

/** The program of this build; undefined when sources run, which no upgrade replaces. */
function ownProgram(): string | undefined {
  return import.meta.url.endsWith('.ts') ? undefined : join(stablePackageRoot(), 'dist', 'appserver', 'program.cjs');
}

/** Program of this process on disk, compared with its state when the process began. */
export class ProgramFile {
  readonly #path: string | undefined;
  readonly #identity: string | undefined;

  constructor(path = ownProgram()) {
    this.#path = path;
    this.#identity = this.#look()?.identity;
  }

  /** Whether another program is installed in its place, and has been for a moment. */
  isReplaced(): boolean {
    if (this.#identity === undefined) return false;
    const found = this.#look();
    return found !== undefined && found.identity !== this.#identity && Date.now() - found.changedAt >= settleMs;
  }

  #look(): { readonly identity: string; readonly changedAt: number } | undefined {
    if (this.#path === undefined) return undefined;
    try {
      const { dev, ino, size, mtimeMs, ctimeMs } = statSync(this.#path);
      return { identity: [dev, ino, size, mtimeMs].join(' '), changedAt: ctimeMs };
    } catch {
      // The file is being replaced, or is gone: a restart would find no program.
      return undefined;
    }
  }
}
