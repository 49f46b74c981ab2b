/**
 * Whole outputs of commands whose results leave something out: one file each, below the user's own state, where no repository can
 * put a link. Masked before they come here. File tools may read them although they refuse the rest of Oratorio's state.
 */
import { randomBytes } from 'node:crypto';
import { closeSync, constants, mkdirSync, openSync, rmSync, statSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { namesIn, ThreadDirectories } from './thread-directories.ts';

/** Longest whole output, in bytes. */
export const maxOutputFileBytes = 32 * 1024 * 1024;
/** Most bytes of all outputs of a thread; the oldest are removed first. */
const maxThreadBytes = 8 * maxOutputFileBytes;

/** Whole outputs of the commands of all threads. */
export class OutputFiles extends ThreadDirectories {
  /** Begins the whole output of one command. @returns undefined for a thread without a directory of its own */
  begin(threadId: string): OutputFile | undefined {
    const directory = this.of(threadId);
    return directory === undefined ? undefined : new OutputFile(directory);
  }
}

/**
 * Whole output of one command. The file comes with the first write. A disk that takes no more ends it: then there is no whole
 * output, and the command continues.
 */
export class OutputFile {
  readonly #directory: string;
  #path: string | undefined;
  #fd: number | undefined;
  #bytes = 0;
  #hasFailed = false;
  #isCut = false;

  /** @param directory of the thread */
  constructor(directory: string) {
    this.#directory = directory;
  }

  /** Appends text, as far as there is room. */
  write(text: string): void {
    if (this.#hasFailed || this.#isCut) return;
    const all = Buffer.from(text);
    const bytes = all.subarray(0, maxOutputFileBytes - this.#bytes);
    this.#isCut = bytes.length < all.length;
    try {
      this.#fd ??= this.#create();
      for (let at = 0; at < bytes.length; ) at += writeSync(this.#fd, bytes, at);
      this.#bytes += bytes.length;
    } catch {
      // Without the file the model has both ends of the output, as before.
      this.#hasFailed = true;
      this.close();
      if (this.#path !== undefined) rmSync(this.#path, { force: true });
    }
  }

  close(): void {
    if (this.#fd !== undefined) closeSync(this.#fd);
    this.#fd = undefined;
  }

  /** The file, and whether it lacks the end of the output. Undefined: not saved. */
  get kept(): { readonly path: string; readonly isCut: boolean } | undefined {
    return this.#path === undefined || this.#hasFailed ? undefined : { path: this.#path, isCut: this.#isCut };
  }

  #create(): number {
    mkdirSync(this.#directory, { recursive: true, mode: 0o700 });
    makeRoom(this.#directory);
    this.#path = join(this.#directory, `exec-${randomBytes(4).toString('hex')}.txt`);
    return openSync(
      this.#path,
      constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW,
      0o600,
    );
  }
}

/** Removes the oldest files until one more of full length has room. */
function makeRoom(directory: string): void {
  const files = namesIn(directory)
    .map((name) => {
      const path = join(directory, name);
      const { size, mtimeMs } = statSync(path);
      return { path, size, mtimeMs };
    })
    .toSorted((a, b) => b.mtimeMs - a.mtimeMs);
  let bytes = maxOutputFileBytes;
  for (const { path, size } of files) {
    bytes += size;
    if (bytes > maxThreadBytes) rmSync(path, { force: true });
  }
}
