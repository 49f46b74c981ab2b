import { StringDecoder } from 'node:string_decoder';

/** A longer line is passed on in pieces. */
const longestLine = 65_536;

export interface LinesOptions {
  /** Takes the secrets out. */
  readonly clean: (text: string) => string;
  /** Characters at the end of an unfinished line that may be the beginning of a secret. */
  readonly holdBack: number;
  readonly onLine: (line: string) => void;
}

/** Makes lines of what a program prints, however it comes: a part of a line, or of a character, waits for its rest. */
export class Lines {
  readonly #options: LinesOptions;
  readonly #decoder = new StringDecoder('utf8');
  #rest = '';

  constructor(options: LinesOptions) {
    this.#options = options;
  }

  add(chunk: Buffer): void {
    this.#take(this.#decoder.write(chunk));
  }

  /** The program has ended: the last line is complete as it is. */
  end(): void {
    this.#take(this.#decoder.end());
    if (this.#rest !== '') this.#tell(this.#rest);
    this.#rest = '';
  }

  #take(text: string): void {
    // Progress is written over with a carriage return. One at the very end may be the first half of a line's end.
    const lines = `${this.#rest}${text}`.split(/\r\n|\n|\r(?!$)/);
    this.#rest = lines.pop() ?? '';
    for (const line of lines) this.#tell(line);
    const { holdBack, clean } = this.#options;
    if (this.#rest.length <= longestLine + holdBack) return;
    const safe = clean(this.#rest);
    const at = Math.max(0, safe.length - holdBack);
    this.#tell(safe.slice(0, at));
    this.#rest = safe.slice(at);
  }

  #tell(line: string): void {
    this.#options.onLine(printable(this.#options.clean(line)));
  }
}

/** A text that can do nothing to a terminal: escape sequences are taken out, other control characters shown as `?`. */
export function printable(text: string): string {
  return (
    text
      // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is taken out
      .replace(/\u001b(?:\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)?|[@-Z\\-_])/g, '')
      .trimEnd()
      // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is replaced
      .replace(/[\u0000-\u0008\u000a-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, '?')
  );
}

/** The last `bytes` of what a program printed, from the beginning of a line on. */
export class Tail {
  readonly #bytes: number;
  #chunks: Buffer[] = [];
  #size = 0;
  #isCut = false;

  constructor(bytes: number) {
    this.#bytes = bytes;
  }

  add(chunk: Buffer): void {
    this.#chunks.push(chunk);
    this.#size += chunk.length;
    if (this.#size > 2 * this.#bytes) this.#shorten();
  }

  text(): string {
    if (this.#size > this.#bytes) this.#shorten();
    const text = Buffer.concat(this.#chunks).toString('utf8');
    // The first line may begin in the middle of a secret, which no redactor would recognise.
    return this.#isCut ? text.slice(text.indexOf('\n') + 1 || text.length) : text;
  }

  #shorten(): void {
    const kept = Buffer.concat(this.#chunks).subarray(-this.#bytes);
    this.#chunks = [Buffer.from(kept)];
    this.#size = kept.length;
    this.#isCut = true;
  }
}
