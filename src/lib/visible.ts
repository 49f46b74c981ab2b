/**
 * Makes characters visible that could act on a terminal or hide from its reader: control characters (escape sequences begin
 * with one), bidirectional marks (Trojan Source, CVE-2021-42574), invisible characters, line separators, lone surrogates.
 */

/** A character that no terminal shows and that a script or an emoji needs after the right character. */
const joiner = '\\u200c\\u200d';
const mark = '\\u034f\\u17b4\\u17b5\\u180b-\\u180d\\u180f\\ufe00-\\ufe0f\\u{e0100}-\\u{e01ef}';
/** A visible letter, mark or symbol outside ASCII: a joiner or an invisible mark may follow it. */
const base = '(?!\\p{Default_Ignorable_Code_Point})[\\p{L}\\p{M}\\p{S}](?<![\\0-\\x7f])';

/** Every character that may have to be replaced. One class, because most places of a text hold none. */
const candidate =
  '[\\p{Cc}\\p{Cs}\\p{Noncharacter_Code_Point}\\p{Default_Ignorable_Code_Point}\\u2028\\u2029\\ufff9-\\ufffb]';

/**
 * The characters to replace. Every exception looks behind only and at characters that stay, so that the result is the same
 * for text that has been made visible before and for text that comes in pieces (`VisibleStream`). It looks behind a
 * character of its kind only: to look behind every character takes three times as long.
 */
const hidden = new RegExp(
  `(?=${candidate})(?:${[
    '[\\p{Cc}\\p{Cs}\\p{Noncharacter_Code_Point}\\u2028\\u2029\\ufff9-\\ufffb]',
    `(?=[${joiner}])(?<!${base}[${mark}]?)[${joiner}]`,
    `(?=[${mark}])(?<!${base}|[0-9#*])[${mark}]`,
    '(?=[\\u{e0020}-\\u{e007f}])(?<!\\u{1f3f4}[\\u{e0020}-\\u{e007e}]{0,6})[\\u{e0020}-\\u{e007f}]',
    `(?![${joiner}${mark}\\u{e0020}-\\u{e007f}])\\p{Default_Ignorable_Code_Point}`,
  ].join('|')})`,
  'gu',
);

/**
 * Like `hidden`, without exceptions: joiners, private and unassigned code points, letters and symbols with an empty glyph, and the
 * marks of a stack that would cover the lines around it.
 */
const hiddenStrictly =
  /[\p{C}\p{Default_Ignorable_Code_Point}\p{Zl}\p{Zp}\u2800\u{13441}\u{13442}\u{16fe4}\u{1d159}]|(?<=\p{M}{4})\p{M}/gu;

const suspicious = /[^\x20-\x7e\n\t]/;
const suspiciousInLine = /[^\x20-\x7e]/;

export interface VisibleOptions {
  /** Line feeds and tabs stay. Default: true. */
  readonly multiline?: boolean;
  /** Replaces every character that has no glyph of its own, also those that emoji and scripts need. Default: false. */
  readonly strict?: boolean;
  /** The replacement of a character. Default: `␛`, `\x9b` or `<U+202E>`. */
  readonly spell?: (codePoint: number) => string;
}

/** `U+202E`. */
export const codePointName = (codePoint: number): string =>
  `U+${codePoint.toString(16).toUpperCase().padStart(4, '0')}`;

function spelled(codePoint: number): string {
  if (codePoint < 0x20) return String.fromCharCode(0x2400 + codePoint);
  if (codePoint === 0x7f) return '\u2421';
  if (codePoint < 0xa0) return `\\x${codePoint.toString(16)}`;
  return `<${codePointName(codePoint)}>`;
}

/**
 * Text that is safe to show: it moves no cursor, turns no text around and hides nothing. Ordinary Unicode stays unchanged:
 * combining marks, right-to-left letters, emoji. Idempotent. Use `VisibleStream` for text that comes in pieces.
 */
export function visible(text: string, options: VisibleOptions = {}): string {
  const { multiline = true, strict = false, spell = spelled } = options;
  if (!(multiline ? suspicious : suspiciousInLine).test(text)) return text;
  return text.replace(strict ? hiddenStrictly : hidden, (found) =>
    multiline && (found === '\n' || found === '\t') ? found : spell(found.codePointAt(0) ?? 0),
  );
}

/** Longest text that decides about the character after it: a flag and its tags, in code units. */
const contextLength = 16;

const endsInHighSurrogate = (text: string): boolean => /[\ud800-\udbff]$/.test(text);

/** `visible` for text that comes in pieces: a surrogate pair or an emoji may be divided between two. */
export class VisibleStream {
  #context = '';
  #pending = '';

  /** The visible form of the text that can be decided so far. */
  write(chunk: string): string {
    const text = this.#pending + chunk;
    const isDivided = endsInHighSurrogate(text);
    this.#pending = isDivided ? text.slice(-1) : '';
    return this.#show(isDivided ? text.slice(0, -1) : text);
  }

  /** The rest: half a pair whose other half never came. */
  end(): string {
    const rest = this.#show(this.#pending);
    this.#pending = '';
    this.#context = '';
    return rest;
  }

  #show(text: string): string {
    const shown = visible(this.#context + text).slice(visible(this.#context).length);
    this.#context = (this.#context + text).slice(-contextLength).replace(/^[\udc00-\udfff]/, '');
    return shown;
  }
}
