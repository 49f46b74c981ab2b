/**
 * Colours that foreign text cannot imitate. The palette of `Output` writes marks with a random key instead of escape
 * sequences; only `Painter` turns these marks into colours, and makes every other control character visible.
 */
import { randomBytes } from 'node:crypto';
import { createColors } from 'picocolors';
import { VisibleStream } from '../lib/index.ts';

export type Palette = ReturnType<typeof createColors>;

const key = randomBytes(12).toString('hex');
const markOf = (codes: string): string => `{${key}:${codes}}`;
/** Every second part of a split is the codes of a mark (ECMA-48 SGR). */
const marks = new RegExp(`\\{${key}:([0-9;]*)\\}`);

// biome-ignore lint/suspicious/noControlCharactersInRegex: matches the escape sequences of a colour
const sequence = /^\u001b\[([0-9;]+)m(.*)\u001b\[([0-9;]+)m$/;

type Formatter = Palette['red'];

/** Turns a colour into marks. After a colour that ends inside of it, this colour begins again. */
function marked(format: Formatter): Formatter {
  const [, open = '', , close = ''] = sequence.exec(format('x')) ?? [];
  const [begin, end] = [markOf(open), markOf(close)];
  return (text) => begin + String(text).replaceAll(end, end + begin) + end;
}

/** Colours as marks, for text that a `Painter` shows; without colours plain text. */
export function markedPalette(hasColour: boolean): Palette {
  const colours = createColors(hasColour);
  if (!hasColour) return colours;
  const { isColorSupported, ...formatters } = colours;
  const entries = Object.entries(formatters).map(([name, format]) => [name, marked(format)]);
  return { ...colours, ...Object.fromEntries(entries) };
}

/** Makes text that was composed with marks and foreign parts safe for one terminal. Text may come in pieces. */
export class Painter {
  readonly #hasColour: boolean;
  readonly #foreign = new VisibleStream();

  constructor({ hasColour }: { readonly hasColour: boolean }) {
    this.#hasColour = hasColour;
  }

  paint(text: string): string {
    return text
      .split(marks)
      .map((part, index) => (index % 2 === 0 ? this.#foreign.write(part) : this.#mark(part)))
      .join('');
  }

  #mark(codes: string): string {
    const rest = this.#foreign.end();
    return this.#hasColour ? `${rest}\u001b[${codes}m` : rest;
  }
}

/** Text without its marks. */
export const unmarked = (text: string): string =>
  text
    .split(marks)
    .filter((_, index) => index % 2 === 0)
    .join('');
