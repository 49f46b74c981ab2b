/**
 * Repairs text with a surrogate that lacks its partner. JavaScript and `JSON.stringify` accept such text; strict readers of JSON
 * (model services, programs in Rust, Go and Python) refuse the whole document that holds it.
 */

/** Stands for a character that cannot be passed on. */
const replacement = '\\ufffd';

/** One escape of a JSON text: a pair of surrogates, a lone one, or any other. */
const escapes = /\\(?:u[dD][89abAB][\da-fA-F]{2}\\u[dD][c-fC-F][\da-fA-F]{2}|u[\da-fA-F]{4}|.)/gs;
const loneEscape = /^\\u[dD][89a-fA-F]..$/;

/**
 * JSON text without lone surrogates, written out or escaped; each becomes U+FFFD. Text that is not JSON is repaired, too. Well-formed
 * text is returned unchanged.
 */
export function wellFormedJson(text: string): string {
  const json = text.toWellFormed();
  // Most texts have no such escape at all, and one search is cheaper than two.
  if (!json.includes('\\u') || !/\\u[dD]/.test(json)) return json;
  return json.replace(escapes, (found) => (loneEscape.test(found) ? replacement : found));
}

/** JSON text for services that refuse NUL besides lone surrogates: each NUL becomes U+FFFD, too. */
export function strictJson(text: string): string {
  if (!text.includes('\\u')) return text.toWellFormed();
  const json = wellFormedJson(text);
  if (!json.includes('\\u0000')) return json;
  return json.replace(escapes, (found) => (found === '\\u0000' ? replacement : found));
}

/** A JSON value whose texts are well-formed; the value itself when they are already. */
export function wellFormed<T>(value: T): T {
  const isWellFormed = (text: string) => text.isWellFormed();
  return hasOnly(value, isWellFormed) ? value : (JSON.parse(wellFormedJson(JSON.stringify(value))) as T);
}

/** A JSON value as `strictJson` writes it; the value itself when it is so already. */
export function strictValue<T>(value: T): T {
  const isStrict = (text: string) => text.isWellFormed() && !text.includes('\0');
  return hasOnly(value, isStrict) ? value : (JSON.parse(strictJson(JSON.stringify(value))) as T);
}

function hasOnly(value: unknown, isRight: (text: string) => boolean): boolean {
  if (typeof value === 'string') return isRight(value);
  if (typeof value !== 'object' || value === null) return true;
  return Object.entries(value).every(([key, inner]) => isRight(key) && hasOnly(inner, isRight));
}

/** Makes text well-formed that comes in pieces: a pair may be divided between two of them. */
export class WellFormedStream {
  #half = '';

  /** The text that is complete so far; a half pair at its end waits for its partner. */
  write(piece: string): string {
    if (this.#half === '' && piece.isWellFormed()) return piece;
    const text = this.#half + piece;
    this.#half = /[\ud800-\udbff]$/.exec(text)?.[0] ?? '';
    return text.slice(0, text.length - this.#half.length).toWellFormed();
  }

  /** The rest: U+FFFD for a half whose partner never came. */
  end(): string {
    const rest = this.#half.toWellFormed();
    this.#half = '';
    return rest;
  }
}
