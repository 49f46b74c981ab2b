const lineFeed = 0x0a;
const carriageReturn = 0x0d;
const nul = 0x00;

export interface LineSplitterOptions {
  /** Limit of a line in bytes, without its end. */
  readonly maxBytes: number;
  /** Treatment of a longer line: only its beginning is passed on (`cut`), or pieces of this size are (`split`). */
  readonly longer: 'cut' | 'split';
  /** A carriage return ends a line as well, as programs write progress to a terminal. Default: only a line feed does. */
  readonly endsAtReturn?: boolean;
  /** A NUL ends a line, and a line feed belongs to it: for lists of file names. */
  readonly endsAtNul?: boolean;
  /** Called with each line, without its end. `isCut`: the line was longer, and `longer` is `cut`. */
  readonly onLine: (line: Buffer, isCut: boolean) => void;
}

/**
 * Cuts a stream of bytes into lines, however it is divided into chunks. Stores no more than `maxBytes` of an unfinished line, and
 * each byte costs the same however long its line is.
 */
export class LineSplitter {
  readonly #options: LineSplitterOptions;
  #pieces: Buffer[] = [];
  #stored = 0;
  #length = 0;
  #isAfterReturn = false;

  constructor(options: LineSplitterOptions) {
    this.#options = options;
  }

  /** Bytes of the unfinished line, those that were not stored included. */
  get unfinishedBytes(): number {
    return this.#length;
  }

  add(chunk: Buffer): void {
    // The second half of a line end that was divided between two chunks.
    let from = this.#isAfterReturn && chunk[0] === lineFeed ? 1 : 0;
    if (chunk.length > 0) this.#isAfterReturn = false;
    for (let end = this.#endAfter(chunk, from); end !== -1; end = this.#endAfter(chunk, from)) {
      this.#store(chunk.subarray(from, end));
      this.#finish();
      const isReturn = chunk[end] === carriageReturn;
      from = isReturn && chunk[end + 1] === lineFeed ? end + 2 : end + 1;
      this.#isAfterReturn = isReturn && end + 1 === chunk.length;
    }
    this.#store(chunk.subarray(from));
  }

  /** Passes on the last line, which need not have an end. */
  end(): void {
    if (this.#length > 0) this.#finish();
  }

  #endAfter(chunk: Buffer, from: number): number {
    const feed = chunk.indexOf(this.#options.endsAtNul ? nul : lineFeed, from);
    if (!this.#options.endsAtReturn) return feed;
    const part = feed === -1 ? chunk.subarray(from) : chunk.subarray(from, feed);
    const at = part.indexOf(carriageReturn);
    return at === -1 ? feed : from + at;
  }

  #store(bytes: Buffer): void {
    const { maxBytes, longer } = this.#options;
    const rest = longer === 'split' && this.#stored + bytes.length > maxBytes ? this.#passPieces(bytes) : bytes;
    const piece = rest.subarray(0, maxBytes - this.#stored);
    if (piece.length > 0) this.#pieces.push(piece);
    this.#stored += piece.length;
    this.#length += rest.length;
  }

  /** Passes on the part that is too long for one line; returns the rest. */
  #passPieces(bytes: Buffer): Buffer {
    const { maxBytes, onLine } = this.#options;
    let rest = Buffer.concat([...this.#pieces, bytes]);
    this.#reset();
    while (rest.length > maxBytes) {
      const at = beforeCharacter(rest, maxBytes);
      onLine(rest.subarray(0, at), false);
      rest = rest.subarray(at);
    }
    return rest;
  }

  #finish(): void {
    const line = this.#pieces.length === 1 ? this.#pieces[0] : undefined;
    const isCut = this.#length > this.#stored;
    const whole = line ?? Buffer.concat(this.#pieces);
    this.#reset();
    this.#options.onLine(whole, isCut);
  }

  #reset(): void {
    this.#pieces = [];
    this.#stored = 0;
    this.#length = 0;
  }
}

/** The longest length, at most `most`, that does not end inside a UTF-8 character; `most` for bytes that are not text. */
function beforeCharacter(bytes: Buffer, most: number): number {
  let at = most;
  while (at > 0 && most - at < 3 && ((bytes[at] ?? 0) & 0xc0) === 0x80) at -= 1;
  return at > 0 ? at : most;
}
