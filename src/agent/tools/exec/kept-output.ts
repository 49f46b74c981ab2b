import { stripVTControlCharacters } from 'node:util';

/** Keeps the beginning and the end of a text of any length, in bounded memory. */
export class KeptOutput {
  readonly #headMax: number;
  readonly #tailMax: number;
  #head = '';
  #tail = '';
  #length = 0;

  /** @param max characters kept altogether */
  constructor(max: number) {
    this.#headMax = Math.floor(max / 2);
    this.#tailMax = max - this.#headMax;
  }

  push(text: string): void {
    this.#length += text.length;
    const room = this.#headMax - this.#head.length;
    this.#head += text.slice(0, room);
    const rest = text.slice(room);
    this.#tail =
      this.#tail.length + rest.length > 2 * this.#tailMax
        ? (this.#tail + rest).slice(-this.#tailMax)
        : this.#tail + rest;
  }

  /** Text of both ends; between them, a note on the missing part and how to get it. Empty without output. */
  read(): string {
    const tail = this.#tail.slice(-this.#tailMax);
    const missing = this.#length - this.#head.length - tail.length;
    if (missing === 0) return readable(this.#head + tail);
    const notice = `[… ${missing} of ${this.#length} characters are left out here. Run it again with less output (grep, head, tail, a quieter option), or write it to a file in the workspace and read that in parts.]`;
    return `${readable(this.#head)}\n${notice}\n${readable(tail)}`;
  }
}

/** Control characters without a meaning in text. Tabs, line ends and what moves a cursor are dealt with elsewhere. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const controls = /[\0-\x08\x0b\x0c\x0e-\x1f\x7f]/g;

/** Without colours and cursor movements; of a line that was written over again and again, the last version; what cannot be shown as U+FFFD. */
export function readable(text: string): string {
  return stripVTControlCharacters(text)
    .replaceAll('\r\n', '\n')
    .split('\n')
    .map((line) => line.slice(line.replace(/\r+$/, '').lastIndexOf('\r') + 1).replace(/\r+$/, ''))
    .join('\n')
    .replace(controls, '\uFFFD')
    .toWellFormed();
}
