/** The last bytes of a text, in whole characters. Costs the same for any amount of added text. */
export class OutputEnd {
  readonly #maxBytes: number;
  #pieces: string[] = [];
  #bytes = 0;
  /** Whether the start of the text was dropped. */
  isCut = false;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  add(text: string): void {
    this.#pieces.push(text);
    this.#bytes += Buffer.byteLength(text);
    // Cut seldom: each cut copies all of it.
    if (this.#bytes > 2 * this.#maxBytes) this.#cut();
  }

  get text(): string {
    if (this.#bytes > this.#maxBytes) this.#cut();
    return this.#pieces.join('');
  }

  #cut(): void {
    const all = Buffer.from(this.#pieces.join(''));
    let from = Math.max(0, all.length - this.#maxBytes);
    // Bytes 10xxxxxx continue a character.
    while (from < all.length && ((all[from] ?? 0) & 0xc0) === 0x80) from += 1;
    this.isCut ||= from > 0;
    const text = all.toString('utf8', from);
    this.#pieces = [text];
    this.#bytes = Buffer.byteLength(text);
  }
}
