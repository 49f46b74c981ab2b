import { stripVTControlCharacters } from 'node:util';

/** Takes in a text whole. */
export interface WholeText {
  write(text: string): void;
  close(): void;
  /** The file with the whole text; undefined: not saved. */
  readonly kept: { readonly path: string; readonly isCut: boolean } | undefined;
}

/** Keeps the beginning and the end of a text of any length in bounded memory, and all of a long one in a file. */
export class KeptOutput {
  readonly #headMax: number;
  readonly #tailMax: number;
  #head = '';
  #tail = '';
  #length = 0;
  readonly #whole: WholeText | undefined;
  #isWhole = true;

  /**
   * @param max total number of retained characters
   * @param whole takes in all of a text that is longer
   */
  constructor(max: number, whole?: WholeText) {
    this.#headMax = Math.floor(max / 2);
    this.#tailMax = max - this.#headMax;
    this.#whole = whole;
  }

  push(text: string): void {
    this.#length += text.length;
    if (!this.#isWhole) {
      this.#whole?.write(text);
    } else if (this.#length > this.#headMax + this.#tailMax) {
      this.#isWhole = false;
      this.#whole?.write(this.#head + this.#tail + text);
    }
    const room = this.#headMax - this.#head.length;
    this.#head += text.slice(0, room);
    const rest = text.slice(room);
    this.#tail =
      this.#tail.length + rest.length > 2 * this.#tailMax
        ? (this.#tail + rest).slice(-this.#tailMax)
        : this.#tail + rest;
  }

  /** Counts characters that were lost. */
  skip(characters: number): void {
    this.#length += characters;
  }

  close(): void {
    this.#whole?.close();
  }

  /** Text of both ends; between them, a note on the missing part and how to get it. Empty without output. */
  read(): string {
    const tail = this.#tail.slice(-this.#tailMax);
    const missing = this.#length - this.#head.length - tail.length;
    if (missing === 0) return readable(this.#head + tail);
    const notice = `[… ${missing} of ${this.#length} characters are left out here. ${this.#howToGet()}]`;
    return `${readable(this.#head)}\n${notice}\n${readable(tail)}`;
  }

  #howToGet(): string {
    const kept = this.#whole?.kept;
    if (!kept) {
      return 'Run it again with less output (grep, head, tail, a quieter option), or write it to a file in the workspace and read that in parts.';
    }
    const amount = kept.isCut ? 'The first 32 MiB of the output are' : 'The whole output is';
    return `${amount} in ${kept.path}: read it in parts with ReadFile (offset, limit), or search it with GrepFiles.`;
  }
}

/** Control characters without a meaning in text. Tabs, line ends and cursor movements are handled elsewhere. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: the expression looks for them
const controls = /[\0-\x08\x0b\x0c\x0e-\x1f\x7f]/g;

/** Removes colours and cursor movements, shows only the last version of an overwritten line, and other controls as U+FFFD. */
export function readable(text: string): string {
  return stripVTControlCharacters(text)
    .replaceAll('\r\n', '\n')
    .split('\n')
    .map((line) => line.slice(line.replace(/(?<!\r)\r+$/, '').lastIndexOf('\r') + 1).replace(/(?<!\r)\r+$/, ''))
    .join('\n')
    .replace(controls, '\uFFFD')
    .toWellFormed();
}
