import { statSync } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { olderLog } from './log-tail.ts';

const block = 256 * 1024;
const tickMs = 500;

/**
 * Cuts a log that has outgrown `maxBytes`: its newest `maxBytes` go to `<file>.1`, the file is emptied in place. The
 * writer keeps its descriptor and must append; what it writes between copy and cut is lost, as with every copy-truncate.
 * Resolves to whether it cut. When the copy fails (full disk), the file is emptied all the same.
 */
export async function capLog(file: string, maxBytes: number): Promise<boolean> {
  const size = statSync(file, { throwIfNoEntry: false })?.size ?? 0;
  if (size <= maxBytes) return false;
  const log = await open(file, 'r+');
  try {
    await keepNewest(log, size - maxBytes, maxBytes, olderLog(file)).catch(() => {});
    await log.truncate(0);
  } finally {
    await log.close();
  }
  return true;
}

/** Copies from `at` to the end, which a busy writer moves on: twice `maxBytes` is enough. */
async function keepNewest(log: FileHandle, at: number, maxBytes: number, target: string): Promise<void> {
  const copy = await open(target, 'w', 0o600);
  try {
    const buffer = Buffer.allocUnsafe(block);
    for (let copied = 0; copied < 2 * maxBytes; ) {
      const { bytesRead } = await log.read(buffer, 0, block, at + copied);
      if (bytesRead === 0) return;
      await copy.writeFile(buffer.subarray(0, bytesRead));
      copied += bytesRead;
    }
  } finally {
    await copy.close();
  }
}

/** Keeps any number of log files below their sizes, by one timer that exists only while there are files and never keeps the process alive. */
export class LogKeeper {
  readonly #limits = new Map<string, { maxBytes: number; holders: number }>();
  readonly #everyMs: number;
  #timer: NodeJS.Timeout | undefined;
  #busy = false;

  constructor(everyMs: number = tickMs) {
    this.#everyMs = everyMs;
  }

  /** Watches over `files` until the returned function is called. */
  add(files: readonly string[], maxBytes: number): () => void {
    for (const file of files) {
      this.#limits.set(file, { maxBytes, holders: (this.#limits.get(file)?.holders ?? 0) + 1 });
    }
    this.#timer ??= setInterval(() => void this.#tick(), this.#everyMs).unref();
    let held = true;
    return () => {
      if (held) for (const file of files) this.#release(file);
      held = false;
    };
  }

  #release(file: string): void {
    const limit = this.#limits.get(file);
    if (limit && --limit.holders === 0) this.#limits.delete(file);
    if (this.#limits.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  async #tick(): Promise<void> {
    if (this.#busy) return;
    this.#busy = true;
    // A log that cannot be cut now (deleted, no permission) must not stop the care for the others; the next tick tries again.
    for (const [file, { maxBytes }] of this.#limits) await capLog(file, maxBytes).catch(() => false);
    this.#busy = false;
  }
}

/** The one keeper of all managed processes' logs. */
export const logKeeper = new LogKeeper();
