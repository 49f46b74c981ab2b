import { closeSync, existsSync, fstatSync, ftruncateSync, readSync, watch } from 'node:fs';
import { basename, dirname } from 'node:path';
import { StringDecoder } from 'node:string_decoder';
import { setTimeout as sleep } from 'node:timers/promises';
import { maxOutputFileBytes } from '../output-files.ts';
import { maxRawBytes } from './keeper-script.ts';

/** Settings of an `OutputFollower`. */
export interface FollowedOutput {
  readonly path: string;
  /** Descriptor of the file, which the follower closes. */
  readonly fd: number;
  readonly onText: (text: string) => void;
  /** Called when bytes of the output are skipped. */
  readonly onSkip: (bytes: number) => void;
  /** Called before the beginning of the file is removed. */
  readonly onCut: () => void;
}

/** Read without a pause; then the rest of the server gets its turn. */
const burstBytes = 1_048_576;
const pauseMs = 5;
/** Where the system reports no change. */
const pollMs = 100;
/** Bytes of the end that are read of an output that cannot be read in time. */
const endBytes = 1_048_576;

/** Listeners by name, for each watched directory. A watcher stays: to remove one takes the kernel longer than to run a command. */
const watched = new Map<string, Map<string, () => void>>();

/** Calls back when a file changes, where the system reports it. @returns ends that */
export function onChange(path: string, listener: () => void): () => void {
  const [directory, name] = [dirname(path), basename(path)];
  const listeners = watched.get(directory) ?? watchDirectory(directory);
  listeners.set(name, listener);
  return () => listeners.delete(name);
}

function watchDirectory(directory: string): Map<string, () => void> {
  const listeners = new Map<string, () => void>();
  try {
    const watcher = watch(directory, { persistent: false }, (_, name) => {
      // The directory itself has gone: another one of this name needs a watcher of its own.
      if (name === basename(directory) && !existsSync(directory)) stop();
      if (name === null) for (const each of listeners.values()) each();
      else listeners.get(name)?.();
    });
    const stop = (): void => {
      watcher.close();
      watched.delete(directory);
    };
    watcher.on('error', stop);
    watched.set(directory, listeners);
  } catch {
    // Timers do it.
  }
  return listeners;
}

const buffer = Buffer.allocUnsafe(65_536);

/**
 * Follows the raw output of a command in a file that the command appends to, and decodes it as UTF-8. Bounds the file: output that was read
 * is removed, and after the part that is stored whole, output is skipped that comes faster than it is read.
 */
export class OutputFollower {
  readonly #file: FollowedOutput;
  readonly #timer: NodeJS.Timeout;
  readonly #unwatch: () => void;
  #decoder = new StringDecoder('utf8');
  #position = 0;
  /** Bytes that were read, or skipped. */
  #passed = 0;
  #pause: NodeJS.Timeout | undefined;
  #isEnding = false;
  #isClosed = false;

  constructor(file: FollowedOutput) {
    this.#file = file;
    this.#timer = setInterval(() => this.#read(), pollMs).unref();
    this.#unwatch = onChange(file.path, () => this.#read());
    this.#read();
  }

  /** Reads the rest of a command that has ended. */
  async end(): Promise<void> {
    if (this.#isClosed) return;
    this.#isEnding = true;
    clearTimeout(this.#pause);
    this.#pause = undefined;
    this.#skip();
    while (!this.#readBurst()) {
      await sleep(pauseMs);
      this.#skip();
    }
    const rest = this.#decoder.end();
    if (rest !== '') this.#file.onText(rest);
    this.close();
  }

  /** Follows no longer. */
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    clearInterval(this.#timer);
    clearTimeout(this.#pause);
    this.#unwatch();
    closeSync(this.#file.fd);
  }

  #read(): void {
    if (this.#isClosed || this.#isEnding || this.#pause !== undefined) return;
    if (this.#readBurst()) {
      if (this.#position >= maxRawBytes) this.#cut();
      return;
    }
    this.#skip();
    this.#pause = setTimeout(() => {
      this.#pause = undefined;
      this.#read();
    }, pauseMs);
  }

  /** @returns false: there may be more */
  #readBurst(): boolean {
    for (let burst = 0; burst < burstBytes; ) {
      const count = readSync(this.#file.fd, buffer, 0, buffer.length, this.#position);
      // A keeper that found no agent server may have emptied the file.
      if (count === 0 && fstatSync(this.#file.fd).size < this.#position) this.#position = 0;
      else if (count === 0) return true;
      this.#position += count;
      this.#passed += count;
      burst += count;
      this.#file.onText(this.#decoder.write(buffer.subarray(0, count)));
    }
    return false;
  }

  get #waiting(): number {
    return fstatSync(this.#file.fd).size - this.#position;
  }

  /** Gives up output that comes too fast, unless it is of the part that is stored whole. Its end so far is read first. */
  #skip(): void {
    if (this.#passed < maxOutputFileBytes || this.#waiting <= maxRawBytes / 2) return;
    if (!this.#isEnding) this.#file.onCut();
    this.#pass(this.#waiting - endBytes);
    if (this.#isEnding) return;
    this.#readBurst();
    const skipped = this.#waiting;
    this.#empty();
    if (skipped > 0) this.#pass(skipped);
    this.#position = 0;
  }

  #pass(skipped: number): void {
    this.#decoder = new StringDecoder('utf8');
    this.#passed += skipped;
    this.#position += skipped;
    this.#file.onSkip(skipped);
  }

  /** Removes output that was read. */
  #cut(): void {
    this.#file.onCut();
    if (!this.#readBurst()) return;
    this.#empty();
    this.#position = 0;
  }

  /** Empties the file. The command appends, so its next output is at the beginning. Output since the last read is lost. */
  #empty(): void {
    ftruncateSync(this.#file.fd, 0);
  }
}
