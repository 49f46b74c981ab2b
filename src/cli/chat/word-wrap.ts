import stringWidth from 'fast-string-width';

type Style = (text: string) => string;

/** Writes styled text to a terminal, with line breaks between words. Holds back a word until it is complete. */
export class WordWrap {
  readonly #write: (text: string) => void;
  readonly #width: number;
  /** Columns written on the current line, including the gap before the held word. */
  #column = 0;
  /** Spaces before the next word of the same line. */
  #gap = '';
  #word: { readonly text: string; readonly style: Style }[] = [];
  /** Prefix of each line that this object adds. */
  #indent = '';

  constructor(write: (text: string) => void, width: number) {
    this.#write = write;
    this.#width = width;
  }

  /** Whether the current line is empty. */
  get isAtStart(): boolean {
    return this.#column === 0 && this.#gap === '' && this.#word.length === 0;
  }

  /** Adds text without line breaks. */
  add(text: string, style: Style): void {
    for (const [token] of text.matchAll(/ +|[^ ]+/g)) {
      if (token.startsWith(' ')) {
        this.#endWord();
        this.#gap += token;
      } else this.#word.push({ text: token, style });
    }
    if (widthOf(this.#word) > this.#width) this.#endWord();
  }

  /** Writes text that is never broken. */
  addWhole(text: string, style: Style): void {
    this.flush();
    this.#column += stringWidth(text);
    this.#write(style(text));
  }

  /** Sets the prefix of the lines into which the current line is broken. */
  indentBy(indent: string): void {
    this.#indent = indent;
  }

  endLine(): void {
    this.flush();
    this.#write('\n');
    this.#column = 0;
    this.#indent = '';
  }

  /** Writes the text that is held back. */
  flush(): void {
    this.#endWord();
    if (this.#gap !== '') this.#write(this.#gap);
    this.#column += this.#gap.length;
    this.#gap = '';
  }

  #endWord(): void {
    if (this.#word.length === 0) return;
    const width = widthOf(this.#word);
    const isFull = this.#column + this.#gap.length + width > this.#width;
    if (isFull && this.#column > 0 && this.#gap !== '') {
      this.#write(`\n${this.#indent}`);
      this.#column = stringWidth(this.#indent);
    } else {
      this.#write(this.#gap);
      this.#column += this.#gap.length;
    }
    this.#gap = '';
    for (const { text, style } of this.#word) this.#write(style(text));
    this.#column += width;
    this.#word = [];
  }
}

const widthOf = (word: readonly { readonly text: string }[]): number =>
  word.reduce((sum, { text }) => sum + stringWidth(text), 0);

/** Breaks text between words into lines of at most `width` columns. A longer word gets its own line. */
export function wrapWords(text: string, width: number, indent = ''): string[] {
  let wrapped = '';
  const wrap = new WordWrap((part) => {
    wrapped += part;
  }, width);
  wrap.indentBy(indent);
  wrap.add(text, (part) => part);
  wrap.flush();
  return wrapped.split('\n');
}
