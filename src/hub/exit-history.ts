import { join } from 'node:path';
import * as v from 'valibot';
import { AtomicFile, readUntrustedJson } from '../lib/index.ts';
import type { Logger } from '../log/index.ts';
import { maxExits, ServerExit } from '../protocol/index.ts';

const StoredExits = v.object({ version: v.literal(1), exits: v.array(ServerExit) });

/**
 * Last ends of a workspace's agent servers, oldest first, in `exits.json` (0600) beside its logs. Outlives the Hub. The next end replaces
 * an unusable file.
 */
export class ExitHistory {
  readonly #file: AtomicFile;
  readonly #logger: Logger;
  #exits: readonly ServerExit[] | undefined;
  #writing: Promise<void> = Promise.resolve();

  constructor(logDirectory: string, logger: Logger) {
    // A kill leaves the file complete, and a power cut also ends every process.
    this.#file = new AtomicFile(join(logDirectory, 'exits.json'), { isFlushed: false });
    this.#logger = logger;
  }

  get all(): readonly ServerExit[] {
    this.#exits ??= this.#read();
    return this.#exits;
  }

  add(exit: ServerExit): void {
    this.#exits = [...this.all, exit].slice(-maxExits);
    this.#writing = this.#file
      .write(`${JSON.stringify({ version: 1, exits: this.#exits })}\n`)
      .catch((error: unknown) => this.#logger.warn('could not save the end of an agent server', { error }));
  }

  /** Resolves when every end is on disk, or could not be written. */
  flush(): Promise<void> {
    return this.#writing;
  }

  #read(): readonly ServerExit[] {
    const read = readUntrustedJson(this.#file.path, StoredExits);
    if (read.kind === 'ok') return read.value.exits.slice(-maxExits);
    if (read.kind === 'invalid')
      this.#logger.warn('the ends of a workspace cannot be read', { file: this.#file.path, problem: read.problem });
    return [];
  }
}
