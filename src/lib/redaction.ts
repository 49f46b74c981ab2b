/** Replaces secrets in texts and streams: which texts count as secrets, and how each may be spelled, is decided here only. */

/** Stands where a secret stood. */
export const redacted = '[redacted]';

/**
 * Characters of the shortest secret that is replaced. A shorter text is part of ordinary words, and replacing it would reveal
 * it.
 */
export const shortestSecret = 4;

/** The limit for a value that only its place marks as a possible secret: words such as `true` must stay readable. */
export const shortestUncertainSecret = 6;

/** The limit for a part of a secret: one of its lines, or a stretch of its base64. */
const shortestPart = 10;

/** A secret's beginning of this length is not written at the end of a stream. */
const revealingLength = 8;

/** Replaces every spelling of `secrets` in `text`; see `spellingsOf`. */
export function redact(text: string, secrets: readonly string[]): string {
  return redactorFor(secrets)(text);
}

/**
 * Makes a function that replaces every spelling of `secrets` in a text. Half a secret at the end of a text is not
 * recognised: pass whole texts, or use `StreamRedactor`.
 */
export function redactorFor(secrets: readonly string[]): (text: string) => string {
  const given = [...secrets];
  let spellings: readonly string[] | undefined;
  let known: RegExp | undefined;
  return (text) => {
    if (text === '') return text;
    spellings ??= spellingsOf(given);
    // Most texts have none, and an expression of a private key's hundreds of spellings takes long to compile.
    if (!spellings.some((spelling) => text.includes(spelling))) return text;
    known ??= new RegExp(spellings.map(escaped).join('|'), 'g');
    return text.replace(known, redacted);
  };
}

/**
 * Every spelling of `secrets`: plain, in a URL, in JSON, in a composition (`$$`), in base64 at any offset of the
 * encoded text, and each line of a secret with several.
 *
 * @returns the longest first: no remainder of one that contains another stays behind
 */
export function spellingsOf(secrets: readonly string[]): string[] {
  const spellings = new Set(secrets.flatMap(partsOf).flatMap(encodingsOf));
  return [...spellings].sort((a, b) => b.length - a.length);
}

function partsOf(secret: string): string[] {
  const whole = secret.trim();
  if (whole.length < shortestSecret) return [];
  const lines = whole.split(/\r?\n/).map((line) => line.trim());
  // Compose reads `$NAME` within a value as a variable, and prints the rest.
  const parts = lines.length === 1 ? whole.split('$') : lines;
  return [secret, whole, ...parts.filter((part) => part.length >= shortestPart)];
}

function encodingsOf(text: string): string[] {
  const inUrl = encodeURIComponent(text.toWellFormed());
  return [
    text,
    inUrl,
    inUrl.replace(/%[0-9A-F]{2}/g, (code) => code.toLowerCase()),
    inUrl.replaceAll('%20', '+'),
    JSON.stringify(text).slice(1, -1),
    text.replaceAll('$', '$$$$'),
    ...base64Of(text),
  ];
}

/**
 * The three forms of a text in base64, which makes four characters of three bytes, each without the characters at its ends
 * that depend on the neighbours.
 */
function base64Of(text: string): string[] {
  const bytes = Buffer.from(text);
  return [0, 1, 2].flatMap((before) => {
    const encoded = Buffer.concat([Buffer.alloc(before), bytes])
      .toString('base64')
      .replace(/(?<!=)=+$/, '');
    const isPartial = (before + bytes.length) % 3 !== 0;
    const own = encoded.slice(Math.ceil((before * 8) / 6), isPartial ? -1 : undefined);
    return own.length < shortestPart ? [] : [own, own.replaceAll('+', '-').replaceAll('/', '_')];
  });
}

const escaped = (text: string): string => text.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&');

/**
 * Replaces secrets in a stream of bytes, also one that is split over chunks. Holds back only a possible beginning of
 * a secret; every other byte passes unchanged and at once.
 */
export class StreamRedactor {
  readonly #redactor: PieceRedactor;

  constructor(secrets: readonly string[]) {
    // One character for each byte: a chunk may end inside a character.
    this.#redactor = new PieceRedactor(spellingsOf(secrets).map((secret) => Buffer.from(secret).toString('latin1')));
  }

  /** The bytes that may be written after `chunk` has arrived. */
  write(chunk: Uint8Array): Buffer {
    const text = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength).toString('latin1');
    return Buffer.from(this.#redactor.push(text), 'latin1');
  }

  /** The bytes left at the end of the stream. */
  end(): Buffer {
    return Buffer.from(this.#redactor.end(), 'latin1');
  }
}

/** A `StreamRedactor` for pieces of text that end between two characters. */
export class TextStreamRedactor {
  readonly #redactor: PieceRedactor;

  constructor(secrets: readonly string[]) {
    this.#redactor = new PieceRedactor(spellingsOf(secrets).map((secret) => secret.toWellFormed()));
  }

  /** Text that can be shown of all pieces so far. */
  push(piece: string): string {
    return this.#redactor.push(piece.toWellFormed());
  }

  /** Text was lost here: takes out the beginning of a secret before, and as many characters after it as may be the end of one. */
  skip(): void {
    this.#redactor.skip();
  }

  /** The rest: the stream is over. */
  end(): string {
    return this.#redactor.end();
  }
}

/** Replaces spellings in pieces of text, also one that is split over pieces. */
class PieceRedactor {
  readonly #spellings: readonly string[];
  readonly #longest: number;
  #held = '';
  /** Characters to take out. */
  #lost = 0;

  /** @param spellings the longest first */
  constructor(spellings: readonly string[]) {
    this.#spellings = spellings;
    this.#longest = Math.max(0, ...spellings.map((secret) => secret.length));
  }

  skip(): void {
    this.#held = '';
    this.#lost = this.#longest;
  }

  push(piece: string): string {
    const shown = this.#shown(piece);
    const lost = Math.min(this.#lost, shown.length);
    this.#lost -= lost;
    return shown.slice(lost);
  }

  #shown(piece: string): string {
    const text = this.#held + piece;
    let out = '';
    let from = 0;
    for (;;) {
      const match = this.#nextSecret(text, from);
      const held = this.#heldFrom(text, from);
      if (match === undefined || held <= match.at) {
        this.#held = text.slice(held);
        return out + text.slice(from, held);
      }
      out += text.slice(from, match.at) + redacted;
      from = match.end;
    }
  }

  end(): string {
    const rest = this.#held.length >= revealingLength ? redacted : this.#held;
    this.#held = '';
    return rest.slice(this.#lost);
  }

  /** The leftmost secret from `from` on; of several that begin there, the longest. */
  #nextSecret(text: string, from: number): { readonly at: number; readonly end: number } | undefined {
    let found: { at: number; end: number } | undefined;
    for (const secret of this.#spellings) {
      const at = text.indexOf(secret, from);
      if (at >= 0 && (found === undefined || at < found.at)) found = { at, end: at + secret.length };
    }
    return found;
  }

  /** Start of the rest of `text` that may begin a secret; the length of `text` without such a rest. */
  #heldFrom(text: string, from: number): number {
    for (let at = Math.max(from, text.length - this.#longest + 1); at < text.length; at++) {
      const rest = text.slice(at);
      if (this.#spellings.some((secret) => secret.length > rest.length && secret.startsWith(rest))) return at;
    }
    return text.length;
  }
}
