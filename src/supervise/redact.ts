/** Stands where a secret stood. */
export const redacted = '[redacted]';

/** Replaces every occurrence of `secrets` in `text`, in plain, URL and JSON spelling. */
export function redact(text: string, secrets: readonly string[]): string {
  return spellingsOf(secrets).reduce((rest, secret) => rest.replaceAll(secret, () => redacted), text);
}

/** Every spelling of `secrets`, longest first: no remainder of one that contains another stays behind. */
function spellingsOf(secrets: readonly string[]): string[] {
  const spellings = new Set(
    secrets
      .filter((secret) => secret !== '')
      .flatMap((secret) => [secret, urlSpelling(secret), JSON.stringify(secret).slice(1, -1)]),
  );
  return [...spellings].sort((a, b) => b.length - a.length);
}

/** A held beginning of a secret that is at least this long is not written when the stream ends. */
const tellingLength = 8;

/**
 * Replaces secrets in a stream of bytes, also one that is split over chunks. Holds back only what may be the beginning of
 * a secret; every other byte passes unchanged and at once.
 */
export class StreamRedactor {
  readonly #spellings: readonly string[];
  readonly #longest: number;
  #held = '';

  constructor(secrets: readonly string[]) {
    // One character for each byte: a chunk may end inside a character.
    this.#spellings = spellingsOf(secrets).map((secret) => Buffer.from(secret).toString('latin1'));
    this.#longest = Math.max(0, ...this.#spellings.map((secret) => secret.length));
  }

  /** The bytes that may be written after `chunk` has arrived. */
  write(chunk: Uint8Array): Buffer {
    const text = this.#held + Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength).toString('latin1');
    let out = '';
    let from = 0;
    for (;;) {
      const match = this.#nextSecret(text, from);
      const held = this.#heldFrom(text, from);
      if (match === undefined || held <= match.at) {
        this.#held = text.slice(held);
        return Buffer.from(out + text.slice(from, held), 'latin1');
      }
      out += text.slice(from, match.at) + redacted;
      from = match.end;
    }
  }

  /** The bytes left at the end of the stream. */
  end(): Buffer {
    const rest = this.#held.length >= tellingLength ? redacted : this.#held;
    this.#held = '';
    return Buffer.from(rest, 'latin1');
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

function urlSpelling(secret: string): string {
  try {
    return encodeURIComponent(secret);
  } catch {
    // A lone surrogate has no spelling in a URL.
    return secret;
  }
}
