const lineFeed = 10;

/** Cuts a stream of bytes into lines. Costs the same for every byte, however long the line is that it belongs to. */
export class Lines {
  readonly #maxBytes: number;
  #parts: Buffer[] = [];
  #bytes = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** @returns the lines that are complete now, line feeds included; undefined when one is longer than allowed */
  push(chunk: Buffer): Buffer[] | undefined {
    const lines: Buffer[] = [];
    let from = 0;
    for (let end = chunk.indexOf(lineFeed); end >= 0; end = chunk.indexOf(lineFeed, from)) {
      lines.push(this.#line(chunk.subarray(from, end + 1)));
      from = end + 1;
    }
    const rest = chunk.subarray(from);
    this.#parts.push(rest);
    this.#bytes += rest.length;
    return this.#bytes > this.#maxBytes ? undefined : lines;
  }

  #line(end: Buffer): Buffer {
    const line = this.#parts.length === 0 ? end : Buffer.concat([...this.#parts, end]);
    this.#parts = [];
    this.#bytes = 0;
    return line;
  }
}
