import { type FSWatcher, statSync, watch } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { olderLog } from './log-tail.ts';

const block = 256 * 1024;
const tickMs = 500;
const sweepIntervalMs = 60_000;

/**
 * Cuts a log that has outgrown `maxBytes`: its newest `maxBytes` go to `<file>.1`, the file is emptied in place. The
 * writer keeps its descriptor and must append; text that it writes between copy and cut is lost, as with every copy-truncate.
 * Resolves to whether it cut. When the copy fails (full disk), the file is still emptied.
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

interface Limit {
  readonly maxBytes: number;
  holders: number;
}

interface Directory {
  readonly files: Set<string>;
  /** Absent where the system watches nothing (no watches left): the files are checked in every tick. */
  watcher: FSWatcher | undefined;
}

/**
 * Keeps log files below their sizes. Watches their directories, checks a file at most once per tick while it changes, and
 * does nothing while no log changes: polling took a Hub with a hundred idle servers a fifth of its time. Checks all files
 * every `sweepMs` too, since a watch ends without notice when its directory is replaced. Never keeps the process alive.
 */
export class LogKeeper {
  readonly #limits = new Map<string, Limit>();
  readonly #directories = new Map<string, Directory>();
  readonly #changed = new Set<string>();
  readonly #everyMs: number;
  readonly #sweepMs: number;
  #timer: NodeJS.Timeout | undefined;
  #sweep: NodeJS.Timeout | undefined;
  #busy = false;

  constructor(everyMs: number = tickMs, sweepMs: number = sweepIntervalMs) {
    this.#everyMs = everyMs;
    this.#sweepMs = sweepMs;
  }

  /** Keeps `files` below `maxBytes` until the returned function is called. */
  add(files: readonly string[], maxBytes: number): () => void {
    for (const file of files) {
      this.#limits.set(file, { maxBytes, holders: (this.#limits.get(file)?.holders ?? 0) + 1 });
      this.#directoryOf(file).files.add(file);
      this.#mark(file);
    }
    this.#sweep ??= setInterval(() => this.#markAll(this.#limits.keys()), this.#sweepMs).unref();
    let held = true;
    return () => {
      if (held) for (const file of files) this.#release(file);
      held = false;
    };
  }

  #directoryOf(file: string): Directory {
    const path = dirname(file);
    const known = this.#directories.get(path);
    if (known) return known;
    const directory: Directory = { files: new Set(), watcher: undefined };
    this.#directories.set(path, directory);
    try {
      directory.watcher = watch(path, { persistent: false }, (_event, name) => {
        if (name === null) this.#markAll(directory.files);
        else this.#mark(join(path, name));
      });
      directory.watcher.on('error', () => {
        directory.watcher?.close();
        directory.watcher = undefined;
        this.#markAll(directory.files);
      });
    } catch {
      // The files of this directory are polled.
    }
    return directory;
  }

  #mark(file: string): void {
    if (!this.#limits.has(file)) return;
    this.#changed.add(file);
    this.#timer ??= setInterval(() => void this.#tick(), this.#everyMs).unref();
  }

  #markAll(files: Iterable<string>): void {
    for (const file of files) this.#mark(file);
  }

  #release(file: string): void {
    const limit = this.#limits.get(file);
    if (!limit || --limit.holders > 0) return;
    this.#limits.delete(file);
    this.#changed.delete(file);
    const directory = this.#directories.get(dirname(file));
    directory?.files.delete(file);
    if (directory?.files.size === 0) {
      directory.watcher?.close();
      this.#directories.delete(dirname(file));
    }
    if (this.#limits.size > 0) return;
    clearInterval(this.#timer);
    clearInterval(this.#sweep);
    this.#timer = undefined;
    this.#sweep = undefined;
  }

  async #tick(): Promise<void> {
    if (this.#busy) return;
    this.#busy = true;
    const files = [...this.#changed];
    this.#changed.clear();
    for (const file of files) {
      const limit = this.#limits.get(file);
      // A log that cannot be cut now (deleted, no permission) must not end the care for the others; the next change tries again.
      if (limit) await capLog(file, limit.maxBytes).catch(() => false);
      if (this.#limits.has(file) && !this.#directories.get(dirname(file))?.watcher) this.#changed.add(file);
    }
    this.#busy = false;
    if (this.#changed.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }
}

/** The one keeper of all managed processes' logs. */
export const logKeeper = new LogKeeper();
