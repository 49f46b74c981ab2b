/** Limit of the end of standard error that is stored. */
const stderrBytes = 64 * 1_024;
/** Limit of a message in characters. */
const messageLength = 500;

/** Both outputs of a program: the beginning of standard output, the end of standard error. */
export class BoundedOutput {
  readonly #maxBytes: number;
  readonly #onFull: () => void;
  readonly #chunks: Buffer[] = [];
  #size = 0;
  #isCut = false;
  #errors = Buffer.alloc(0);

  /** @param onFull called once, when standard output has exceeded `maxBytes` */
  constructor(maxBytes: number, onFull: () => void) {
    this.#maxBytes = maxBytes;
    this.#onFull = onFull;
  }

  /** True when standard output was longer than `maxBytes`. */
  get isCut(): boolean {
    return this.#isCut;
  }

  add(chunk: Buffer): void {
    if (this.#isCut) return;
    const piece = chunk.subarray(0, this.#maxBytes - this.#size);
    this.#chunks.push(piece);
    this.#size += piece.length;
    if (piece.length === chunk.length) return;
    this.#isCut = true;
    this.#onFull();
  }

  addError(chunk: Buffer): void {
    this.#errors = Buffer.concat([this.#errors, chunk]).subarray(-stderrBytes);
  }

  bytes(): Buffer {
    return Buffer.concat(this.#chunks, this.#size);
  }

  errors(): string {
    return this.#errors.toString('utf8');
  }
}

/**
 * Makes git's standard error fit for a message: without lines of the remote (`remote: …`), progress, control characters and
 * secrets. Bounded.
 */
export function cleanText(text: string, secrets: readonly string[] = []): string {
  const lines = text
    .split(/[\r\n]+/)
    .filter((line) => line !== '' && !/^(?:remote:|hint:|warning:|trace:)/.test(line))
    // biome-ignore lint/suspicious/noControlCharactersInRegex: the pattern removes these characters
    .map((line) => line.replace(/[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u202a-\u202e\u2066-\u2069]/g, '?'));
  let cleaned = lines.slice(-6).join(' ');
  for (const secret of secrets) if (secret !== '') cleaned = cleaned.replaceAll(secret, '***');
  return cleaned.length > messageLength ? `${cleaned.slice(0, messageLength)}…` : cleaned;
}
