import { Lexer, type MarkedOptions, type Token, Tokenizer } from 'marked';

/** Longest emphasis. */
const emphasisChars = 1_000;

/** Quotes and lists nested more deeply than a person writes: parsing them overflows the stack. */
const tooDeep = /^(?:[ \t]*(?:>|(?:[-*+]|\d{1,9}[.)])[ \t])){40}/m;

/**
 * Markdown without link definitions: one at the end of an answer would change the text shown at its beginning. They are
 * shown unchanged.
 */
class PlainTokenizer extends Tokenizer {
  override def(): undefined {
    return undefined;
  }

  override reflink(): undefined {
    return undefined;
  }

  /** Limits the search for the end of an emphasis: without a limit, a text of marks takes quadratic time. */
  override emStrong(src: string, maskedSrc: string, prevChar?: string) {
    const masked = maskedSrc.slice(maskedSrc.length - src.length, maskedSrc.length - src.length + emphasisChars);
    return super.emStrong(src.slice(0, emphasisChars), masked, prevChar);
  }
}

const options: MarkedOptions = { gfm: true, breaks: false, silent: true, tokenizer: new PlainTokenizer() };

/** Characters of one text that are read as Markdown; the rest is shown unchanged. A longer answer is not prose. */
export const maxMarkdownChars = 200_000;

function lex(text: string): readonly Token[] {
  if (tooDeep.test(text)) return [asWritten(text)];
  try {
    return new Lexer(options).lex(text);
  } catch (error) {
    // The pattern does not find every deep nesting.
    if (error instanceof RangeError) return [asWritten(text)];
    throw error;
  }
}

/** Text that is not parsed: it is drawn unchanged. */
const asWritten = (raw: string): Token => ({ type: 'html', raw, text: raw, block: true, pre: false });

/** Characters that `GrowingMarkdown.read` reads at a time: some milliseconds of work. */
const sliceChars = 8_192;

/** First half of a character whose other half is in the next piece. */
const halfCharacter = /[\ud800-\udbff]$/;

/**
 * The blocks of a text that grows. A block that can no longer change is settled: it is not read again, and stays the same
 * object. The blocks of a text do not depend on its pieces.
 */
export class GrowingMarkdown {
  readonly #settled: Token[] = [];
  /** Appended text that is not in `#tail` yet. */
  #unread = '';
  #tail = '';
  #tailBlocks: readonly Token[] = [];
  #endsWithReturn = false;
  #chars = 0;

  /** Appends a piece. Cheap: nothing is read before `read` or `blocks`. */
  append(piece: string): void {
    this.#chars += piece.length;
    const text = this.#endsWithReturn && piece.startsWith('\n') ? piece.slice(1) : piece;
    if (piece !== '') this.#endsWithReturn = piece.endsWith('\r');
    this.#unread += text.replace(/\r\n|\r/g, '\n');
  }

  get chars(): number {
    return this.#chars;
  }

  /** Everything that was appended is in the blocks. */
  get isRead(): boolean {
    return this.#unread.replace(halfCharacter, '') === '';
  }

  /** The blocks of the text so far, of which one slice more is read. */
  read(): readonly Token[] {
    // A block longer than a slice is read again with each: slices that double keep that in bounds.
    const size = Math.max(sliceChars, this.#tail.length);
    if (this.#unread !== '') {
      const piece = this.#unread.slice(0, size).replace(halfCharacter, '');
      this.#tail += piece;
      this.#unread = this.#unread.slice(piece.length);
      this.#tailBlocks = lex(this.#tail);
      this.#settle();
    }
    return [...this.#settled, ...this.#tailBlocks];
  }

  /** All blocks of the text so far. */
  blocks(): readonly Token[] {
    while (!this.isRead) this.read();
    return this.read();
  }

  /** A block is settled when two blocks follow it, and the text between them is broken by an empty line. */
  #settle(): void {
    const blocks = this.#tailBlocks;
    const solid = blocks.flatMap((block, index) => (block.type === 'space' ? [] : [index]));
    const from = solid.at(-2);
    if (from === undefined || from === 0) return;
    const before = blocks.slice(0, from);
    const raw = before.map((block) => block.raw).join('');
    if (!raw.endsWith('\n\n') || !this.#tail.startsWith(raw)) return;
    this.#settled.push(...before);
    this.#tail = this.#tail.slice(raw.length);
    this.#tailBlocks = blocks.slice(from);
  }
}

/** The blocks of a whole text. */
export function blocksOf(text: string): readonly Token[] {
  const markdown = new GrowingMarkdown();
  markdown.append(text);
  return markdown.blocks();
}
