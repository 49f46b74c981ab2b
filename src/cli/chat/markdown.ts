import type { Palette } from '../paint.ts';
import { tableLines, tableRow } from './markdown-table.ts';
import { WordWrap } from './word-wrap.ts';

type Style = (text: string) => string;

const plain: Style = (text) => text;
/** Beginnings of a line that more text may turn into the mark of a block. */
const undecided = /^ {0,12}(?:#{0,6}|[-*+]|>|`{1,2}|\d{1,3}[.)]?)$/;
const fence = /^ {0,3}```/;
const closingFence = /^ {0,3}```\s*$/;
/** Matches a line that is a closing fence, or may become one with more text. */
const mayClose = /^ {0,3}`{0,2}$|^ {0,3}```\s*$/;
const heading = /^ {0,3}#{1,6} /;
const bullet = /^( {0,12})[-*+] /;
const number = /^ {0,12}\d{1,3}[.)] /;
const quote = /^ {0,3}> ?/;
/** Longest mark: at most this much of a line is held back. */
const longestMark = 16;
/** Limits of a table that is held back; the rest is shown as text. */
const maxRows = 500;
const maxRowChars = 10_000;

/** Options of `MarkdownStream`. */
export interface MarkdownOptions {
  readonly write: (text: string) => void;
  readonly colors: Pick<Palette, 'bold' | 'cyan' | 'dim'>;
  /** Columns of the terminal. */
  readonly width: number;
}

/**
 * Shows Markdown on a terminal while it arrives: headings, lists, quotes, code, tables and bold text, broken between words. Written
 * text is never rewritten: a word is held back until it is complete, and a table until its last row.
 */
export class MarkdownStream {
  readonly #options: MarkdownOptions;
  readonly #wrap: WordWrap;
  /** Beginning of a line whose block is not decided yet; undefined within a line. */
  #start: string | undefined = '';
  #table: string[] = [];
  #isFenced = false;
  #isCode = false;
  #isBold = false;
  /** An asterisk that may be half of the mark of bold text. */
  #hasStar = false;
  #block: Style = plain;
  /** Whether the line above is empty, so that a second empty line is left out. */
  #isBelowEmpty = false;

  constructor(options: MarkdownOptions) {
    this.#options = options;
    this.#wrap = new WordWrap(options.write, options.width);
  }

  push(text: string): void {
    for (const [index, line] of text.split('\n').entries()) {
      if (index > 0) this.#endLine();
      this.#inLine(line);
    }
  }

  /** Writes the text that is held back. */
  end(): void {
    const start = this.#start ?? '';
    if (this.#isFenced && closingFence.test(start)) {
      this.#isFenced = false;
      this.#start = '';
    } else if (this.#isRow(start)) this.#addRow(start);
    else if (start !== '') this.#begin(start);
    this.#endTable();
    this.#endStar();
    this.#wrap.flush();
  }

  /** Ends the current line, so that other text can follow. */
  interrupt(): void {
    this.end();
    if (!this.#wrap.isAtStart) this.#wrap.endLine();
    if (this.#start === undefined) this.#start = '';
    this.#isBelowEmpty = false;
  }

  #endLine(): void {
    const start = this.#start;
    if (start !== undefined && (this.#isFenced ? closingFence : fence).test(start)) this.#isFenced = !this.#isFenced;
    else if (start !== undefined && this.#isRow(start)) this.#addRow(start);
    else {
      if (start !== undefined) this.#begin(start);
      this.#endStar();
      const isEmpty = this.#wrap.isAtStart && !this.#isFenced;
      if (!isEmpty || !this.#isBelowEmpty) this.#wrap.endLine();
      this.#isBelowEmpty = isEmpty;
    }
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
    const isOpen = this.#isFenced
      ? mayClose.test(start)
      : fence.test(start) || (undecided.test(start) && start.length <= longestMark);
    if (isOpen || this.#isRow(start)) this.#start = start;
    else this.#begin(start);
  }

  #isRow(start: string): boolean {
    return !this.#isFenced && tableRow.test(start) && this.#table.length < maxRows && start.length <= maxRowChars;
  }

  #addRow(row: string): void {
    this.#table.push(row);
    this.#start = '';
  }

  #endTable(): void {
    const { width, colors } = this.#options;
    for (const line of tableLines(this.#table, width, colors.dim)) {
      this.#wrap.addWhole(line, plain);
      this.#wrap.endLine();
    }
    this.#table = [];
  }

  /** The block of a line is decided by its beginning. */
  #begin(start: string): void {
    this.#start = undefined;
    this.#endTable();
    const { bold, dim } = this.#options.colors;
    if (this.#isFenced) {
      this.#inline(start);
      return;
    }
    const [mark] = heading.exec(start) ?? quote.exec(start) ?? bullet.exec(start) ?? number.exec(start) ?? [''];
    if (heading.test(start)) this.#block = bold;
    else if (quote.test(start)) {
      this.#block = dim;
      this.#wrap.addWhole('│ ', dim);
      this.#wrap.indentBy(dim('│ '));
    } else if (mark !== '') {
      this.#wrap.addWhole(mark.replace(/[-*+]/, '•'), plain);
      this.#wrap.indentBy(' '.repeat(mark.length));
    }
    this.#inline(start.slice(mark.length));
  }

  #inline(text: string): void {
    if (this.#isFenced) {
      this.#wrap.addWhole(text, this.#options.colors.cyan);
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

  #endStar(): void {
    if (this.#hasStar) this.#styled('*');
    this.#hasStar = false;
  }

  #styled(text: string): void {
    const { bold, cyan } = this.#options.colors;
    this.#wrap.add(text, this.#isCode ? cyan : this.#isBold ? bold : this.#block);
  }
}
