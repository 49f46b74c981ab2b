import { closeSync, openSync, readSync } from 'node:fs';

const chunkBytes = 262_144;

/** Reads lines and counted bytes of a file, one after the other, in the memory of one of them. */
export class SequentialFile {
  readonly #fd: number;
  readonly #maxLine: number;
  #buffer = Buffer.alloc(0);
  #isEnded = false;

  /** @param maxLine longest line, in bytes @throws the system's error */
  constructor(file: string, maxLine: number) {
    this.#fd = openSync(file, 'r');
    this.#maxLine = maxLine;
  }

  /** Next line without its end; undefined at the end of the file. @throws Error for a line that is too long or cut off */
  line(): string | undefined {
    for (let from = 0; ; ) {
      const end = this.#buffer.indexOf(0x0a, from);
      if (end !== -1) {
        const line = this.#buffer.toString('utf8', 0, end);
        this.#buffer = this.#buffer.subarray(end + 1);
        return line;
      }
      from = this.#buffer.length;
      if (from > this.#maxLine) throw new Error('a line of the file is too long. Send the file again');
      if (this.#fill()) continue;
      if (from > 0) throw new Error('the file is cut off. Send it again');
      return undefined;
    }
  }

  /** Next bytes. @throws Error when the file ends before */
  take(length: number): Buffer {
    while (this.#buffer.length < length) if (!this.#fill()) throw new Error('the file is cut off. Send it again');
    const bytes = Buffer.from(this.#buffer.subarray(0, length));
    this.#buffer = this.#buffer.subarray(length);
    return bytes;
  }

  close(): void {
    closeSync(this.#fd);
  }

  #fill(): boolean {
    if (this.#isEnded) return false;
    const more = Buffer.allocUnsafe(chunkBytes);
    const read = readSync(this.#fd, more, 0, more.length, null);
    this.#isEnded = read === 0;
    this.#buffer = Buffer.concat([this.#buffer, more.subarray(0, read)]);
    return read > 0;
  }
}
