/** Longest event that is waited for, in characters: a longer one passes as it is, and its reader judges it. */
const maxEventChars = 4 * 1_048_576;

/**
 * Removes events of unknown types from an event stream: services announce new ones at any time, and a library that does not know
 * a type fails. Whole events are passed on as they came.
 */
export class EventFilter {
  readonly #known: ReadonlySet<string>;
  readonly #decoder = new TextDecoder();
  readonly #encoder = new TextEncoder();
  #pending = '';

  /** @param known types that pass; events without a type pass too */
  constructor(known: ReadonlySet<string>) {
    this.#known = known;
  }

  /** Takes in a piece of the stream. @returns the whole events in it, which may be none */
  push(chunk: Uint8Array): Uint8Array {
    this.#pending += this.#decoder.decode(chunk, { stream: true });
    let passed = '';
    let from = 0;
    for (const { index, 0: blank } of this.#pending.matchAll(/\r?\n\r?\n|\r\r/g)) {
      const event = this.#pending.slice(from, index + blank.length);
      from = index + blank.length;
      if (this.#passes(event)) passed += event;
    }
    this.#pending = this.#pending.slice(from);
    if (this.#pending.length > maxEventChars) passed += this.end();
    return this.#encoder.encode(passed);
  }

  /** Returns the rest of the stream, which has no end. */
  end(): string {
    const rest = this.#pending;
    this.#pending = '';
    return this.#passes(rest) ? rest : '';
  }

  #passes(event: string): boolean {
    const type = /^event: ?(.*)$/m.exec(event)?.[1]?.trim();
    return type === undefined || this.#known.has(type);
  }
}
