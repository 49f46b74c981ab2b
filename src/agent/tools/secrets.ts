import { redact } from '../../supervise/index.ts';

/** Shorter ones are words that occur by chance: to look for them inside of other text would do harm. */
const minLength = 8;

/** Those that can be looked for inside of other text. */
const findable = (secrets: readonly string[]): readonly string[] => secrets.filter(({ length }) => length >= minLength);

/** Whether `text`, which is about to leave this process, holds one of `secrets`, as it is or as it is spelt in a URL. */
export function revealsSecret(text: string, secrets: readonly string[]): boolean {
  return [text, decoded(text)].some((spelling) => redact(spelling, findable(secrets)) !== spelling);
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    // Not an encoded text: its own spelling is all there is to look at.
    return text;
  }
}

/** A stream of text in which secrets are replaced, also those that arrive in pieces. */
export class MaskedText {
  readonly #secrets: readonly string[];
  #held = '';

  constructor(secrets: readonly string[]) {
    this.#secrets = findable(secrets);
  }

  /** Takes the next piece and gives back what can be shown of all so far: an end that may be the beginning of a secret waits. */
  push(text: string): string {
    if (this.#secrets.length === 0) return text;
    const masked = redact(this.#held + text, this.#secrets);
    const waiting = Math.max(...this.#secrets.map((secret) => beginningAtEnd(masked, secret)));
    this.#held = masked.slice(masked.length - waiting);
    return masked.slice(0, masked.length - waiting);
  }

  /** The rest: the stream is over. */
  end(): string {
    const rest = this.#held;
    this.#held = '';
    return rest;
  }
}

/** How many characters at the end of `text` are a beginning of `secret`, but not all of it. */
function beginningAtEnd(text: string, secret: string): number {
  for (let length = Math.min(text.length, secret.length - 1); length > 0; length--) {
    if (text.endsWith(secret.slice(0, length))) return length;
  }
  return 0;
}
