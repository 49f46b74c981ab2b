import { LineSplitter, StreamRedactor } from '../../lib/index.ts';
import type { Redactor } from './redactor.ts';

/** Limit of a line in bytes. A longer one is passed on in pieces. */
const longestLine = 65_536;

export interface PrintedLinesOptions {
  /** Replaced wherever they are, also where a line or a piece of it ends. */
  readonly secrets: readonly string[];
  /** Replaces texts that look like a secret. */
  readonly clean: Redactor;
  readonly onLine: (line: string) => void;
}

/** Makes lines of a program's output, without secrets and fit for a terminal. */
export class PrintedLines {
  readonly #redactor: StreamRedactor;
  readonly #splitter: LineSplitter;

  constructor({ secrets, clean, onLine }: PrintedLinesOptions) {
    this.#redactor = new StreamRedactor(secrets);
    this.#splitter = new LineSplitter({
      maxBytes: longestLine,
      longer: 'split',
      endsAtReturn: true,
      onLine: (line) => onLine(printable(clean(line.toString('utf8')))),
    });
  }

  add(chunk: Buffer): void {
    this.#splitter.add(this.#redactor.write(chunk));
  }

  /** Passes on the last line: the program has ended. */
  end(): void {
    this.#splitter.add(this.#redactor.end());
    this.#splitter.end();
  }
}

/** A text that can do nothing to a terminal: escape sequences are taken out, other control characters shown as `?`. */
export function printable(text: string): string {
  return (
    text
      // biome-ignore lint/suspicious/noControlCharactersInRegex: the pattern removes them
      .replace(/\u001b(?:\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)?|[@-Z\\-_])/g, '')
      .trimEnd()
      // biome-ignore lint/suspicious/noControlCharactersInRegex: the pattern replaces them
      .replace(/[\u0000-\u0008\u000a-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, '?')
  );
}

/** Last `bytes` of a program's output, from the beginning of a line on. */
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
