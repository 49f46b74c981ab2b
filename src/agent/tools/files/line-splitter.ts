const lineFeed = 0x0a;

/** Cuts a stream of bytes into lines. A longer line is cut at `maxBytes`. */
export class LineSplitter {
  readonly #maxBytes: number;
  #pieces: Buffer[] = [];
  #kept = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** @param onLine called with every line that ends in `chunk`; `isCut`: the line was longer */
  add(chunk: Buffer, onLine: (line: string, isCut: boolean) => void): void {
    let from = 0;
    for (let end = chunk.indexOf(lineFeed); end !== -1; end = chunk.indexOf(lineFeed, from)) {
      this.#keep(chunk.subarray(from, end));
      const isCut = this.#kept > this.#maxBytes;
      const line = Buffer.concat(this.#pieces).toString('utf8');
      this.#pieces = [];
      this.#kept = 0;
      from = end + 1;
      onLine(line, isCut);
    }
    this.#keep(chunk.subarray(from));
  }

  #keep(piece: Buffer): void {
    const room = this.#maxBytes - this.#kept;
    if (room > 0 && piece.length > 0) this.#pieces.push(piece.subarray(0, room));
    this.#kept += piece.length;
  }
}
