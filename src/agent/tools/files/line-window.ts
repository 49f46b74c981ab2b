import { cutLine } from '../text.ts';
import { limits } from './settings.ts';

/** Range of the wanted lines of a text, and its limits. */
export interface WindowOptions {
  /** Number of the first line, from 1. */
  readonly offset: number;
  readonly limit: number;
  readonly maxBytes: number;
  readonly maxLineChars: number;
}

/** Result. Lines are those between line feeds; a text that ends in one has no empty line after it. */
export interface LineWindow {
  readonly lines: readonly string[];
  /** Lines of the whole text. */
  readonly total: number;
  /** Lines that are shown without their ends. */
  readonly cutLines: number;
  readonly hasInvalidBytes: boolean;
}

/**
 * Cuts a window out of a text that comes in pieces, and counts its lines. Holds no more of the text than the window: a line
 * without end costs nothing.
 */
export class LineReader {
  readonly #options: WindowOptions;
  readonly #lines: string[] = [];
  #bytes = 0;
  #isFull = false;
  #finished = 0;
  #cutLines = 0;
  #hasInvalidBytes = false;
  /** Text of the current line so far. */
  #kept = '';
  #length = 0;
  #endsInReturn = false;

  constructor(options: WindowOptions) {
    this.#options = options;
  }

  add(text: string): void {
    this.#hasInvalidBytes ||= text.includes('\uFFFD');
    let from = 0;
    for (let end = text.indexOf('\n'); end !== -1; end = text.indexOf('\n', from)) {
      this.#extend(text, from, end);
      this.#endLine();
      from = end + 1;
    }
    this.#extend(text, from, text.length);
  }

  finish(): LineWindow {
    if (this.#length > 0) this.#endLine();
    return {
      lines: this.#lines,
      total: this.#finished,
      cutLines: this.#cutLines,
      hasInvalidBytes: this.#hasInvalidBytes,
    };
  }

  get #isWanted(): boolean {
    return !this.#isFull && this.#finished + 1 >= this.#options.offset && this.#lines.length < this.#options.limit;
  }

  #extend(text: string, from: number, to: number): void {
    if (from === to) return;
    const room = this.#options.maxLineChars + 1 - this.#kept.length;
    if (room > 0 && this.#isWanted) this.#kept += text.slice(from, Math.min(to, from + room));
    this.#length += to - from;
    this.#endsInReturn = text[to - 1] === '\r';
  }

  #endLine(): void {
    if (this.#isWanted) this.#keepLine();
    this.#finished += 1;
    this.#kept = '';
    this.#length = 0;
    this.#endsInReturn = false;
  }

  #keepLine(): void {
    const { maxLineChars, maxBytes } = this.#options;
    const length = this.#length - (this.#endsInReturn ? 1 : 0);
    const line = cutLine(this.#kept, maxLineChars, length);
    const bytes = Buffer.byteLength(line) + 1;
    if (this.#lines.length > 0 && this.#bytes + bytes > maxBytes) {
      this.#isFull = true;
      return;
    }
    this.#bytes += bytes;
    this.#lines.push(line);
    if (length > maxLineChars) this.#cutLines += 1;
  }
}

/** Note for the model about hidden lines, and how to read them; undefined when it sees everything. */
export function windowNotice(
  { lines, total, cutLines, hasInvalidBytes }: LineWindow,
  offset: number,
): string | undefined {
  const last = offset + lines.length - 1;
  const notices = [
    (offset > 1 || last < total) && `Showing lines ${offset}-${last} of ${total}.`,
    last < total && `Use offset=${last + 1} to continue.`,
    cutLines > 0 && `${cutLines === 1 ? 'A line is' : `${cutLines} lines are`} cut at ${limits.lineChars} characters.`,
    hasInvalidBytes && 'Some bytes are not valid text and are shown as \uFFFD.',
  ].filter((notice) => notice !== false);
  return notices.length === 0 ? undefined : `[${notices.join(' ')}]`;
}
