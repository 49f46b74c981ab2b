import type { Palette } from '../paint.ts';

type Style = (text: string) => string;

const plain: Style = (text) => text;
/** Beginnings of a line that more text may turn into the mark of a block. */
const undecided = /^ {0,12}(?:#{0,6}|[-*+]|>|`{1,2}|\d{1,3}[.)]?)$/;
const fence = /^ {0,3}```/;
const heading = /^ {0,3}#{1,6} /;
const bullet = /^( {0,12})[-*+] /;
const quote = /^ {0,3}> ?/;
/** Longest mark: at most this much of a line is held back. */
const longestMark = 16;

/**
 * Shows Markdown on a terminal while it arrives: headings, lists, quotes, code and bold text. Written text is never rewritten,
 * so no line is held back; other text passes unchanged.
 */
export class MarkdownStream {
  readonly #write: (text: string) => void;
  readonly #colors: Pick<Palette, 'bold' | 'cyan' | 'dim'>;
  /** Beginning of a line whose block is not decided yet; undefined within a line. */
  #start: string | undefined = '';
  #isFenced = false;
  #isCode = false;
  #isBold = false;
  /** An asterisk that may be half of the mark of bold text. */
  #hasStar = false;
  #block: Style = plain;

  constructor(write: (text: string) => void, colors: Pick<Palette, 'bold' | 'cyan' | 'dim'>) {
    this.#write = write;
    this.#colors = colors;
  }

  push(text: string): void {
    for (const [index, line] of text.split('\n').entries()) {
      if (index > 0) this.#endLine();
      this.#inLine(line);
    }
  }

  /** Writes the text that is held back. */
  end(): void {
    if (this.#start !== undefined && this.#start !== '') this.#begin(this.#start);
    if (this.#hasStar) this.#styled('*');
    this.#hasStar = false;
  }

  #endLine(): void {
    const start = this.#start;
    if (start !== undefined && fence.test(start)) this.#toggleFence(start);
    else this.end();
    this.#write('\n');
    this.#start = '';
    this.#isCode = false;
    this.#isBold = false;
    this.#block = plain;
  }

  #inLine(text: string): void {
    if (text === '') return;
    if (this.#start === undefined) {
      this.#inline(text);
      return;
    }
    const start = this.#start + text;
    // The language of a fence belongs to its mark.
    const isOpen = fence.test(start) || (!this.#isFenced && undecided.test(start) && start.length <= longestMark);
    const mayClose = this.#isFenced && /^ {0,3}`{0,2}$/.test(start);
    if (isOpen || mayClose) this.#start = start;
    else this.#begin(start);
  }

  #toggleFence(start: string): void {
    this.#isFenced = !this.#isFenced;
    this.#write(this.#colors.dim(start));
  }

  /** The block of a line is decided by its beginning. */
  #begin(start: string): void {
    this.#start = undefined;
    const { bold, dim } = this.#colors;
    if (this.#isFenced) {
      this.#inline(start);
      return;
    }
    const [mark] = heading.exec(start) ?? quote.exec(start) ?? bullet.exec(start) ?? [''];
    if (heading.test(start)) this.#block = bold;
    else if (quote.test(start)) {
      this.#block = dim;
      this.#write(dim('│ '));
    } else if (bullet.test(start)) this.#write(mark.replace(/[-*+]/, '•'));
    this.#inline(start.slice(mark.length));
  }

  #inline(text: string): void {
    if (this.#isFenced) {
      this.#styled(text);
      return;
    }
    let run = '';
    const flush = () => {
      this.#styled(run);
      run = '';
    };
    for (const character of text) {
      if (this.#hasStar && character !== '*') run += '*';
      const isMark = this.#hasStar && character === '*' && !this.#isCode;
      this.#hasStar = false;
      if (isMark) {
        flush();
        this.#isBold = !this.#isBold;
      } else if (character === '`') {
        flush();
        this.#isCode = !this.#isCode;
      } else if (character === '*' && !this.#isCode) this.#hasStar = true;
      else run += character;
    }
    flush();
  }

  #styled(text: string): void {
    if (text === '') return;
    const { bold, cyan } = this.#colors;
    const style = this.#isFenced || this.#isCode ? cyan : this.#isBold ? bold : this.#block;
    this.#write(style(text));
  }
}
