const longestSizeLine = 1_024;

/** Decodes a body with `Transfer-Encoding: chunked` (RFC 9112, section 7.1) as it arrives, cut anywhere. Trailers are not read. */
export class ChunkDecoder {
  #line = '';
  /** Bytes of the present chunk that are still to come; null between two chunks. */
  #left: number | null = null;
  #isOver = false;

  /** The last chunk has been read. */
  get isOver(): boolean {
    return this.#isOver;
  }

  /**
   * Calls `onData` with each piece of the body. The pieces are views of `bytes`.
   *
   * @throws Error for bytes that are not a chunk
   */
  push(bytes: Buffer, onData: (piece: Buffer) => void): void {
    for (let at = 0; at < bytes.length && !this.#isOver; ) {
      if (this.#left === null) at = this.#readSize(bytes, at);
      else if (this.#left > 0) {
        const end = Math.min(bytes.length, at + this.#left);
        onData(bytes.subarray(at, end));
        this.#left -= end - at;
        at = end;
      } else at = this.#readEnd(bytes, at);
    }
  }

  /** @returns where the data begins */
  #readSize(bytes: Buffer, at: number): number {
    const end = bytes.indexOf(10, at);
    this.#line += bytes.toString('latin1', at, end < 0 ? bytes.length : end);
    if (this.#line.length > longestSizeLine) throw new Error('the size of a chunk is too long');
    if (end < 0) return bytes.length;
    const size = /^([0-9a-f]{1,8})[ \t]*(?:;.*)?\r$/i.exec(this.#line)?.[1];
    if (size === undefined) throw new Error('the answer is not in chunks');
    this.#line = '';
    this.#left = Number.parseInt(size, 16);
    this.#isOver = this.#left === 0;
    return end + 1;
  }

  /** The line end behind the data. */
  #readEnd(bytes: Buffer, at: number): number {
    const expected = this.#line === '' ? 13 : 10;
    if (bytes[at] !== expected) throw new Error('a chunk is longer than its size');
    this.#line = expected === 13 ? '\r' : '';
    if (expected === 10) this.#left = null;
    return at + 1;
  }
}
