import { isRecord, type Json } from '../upstream/json.ts';

/** Rules of one wire for its event streams. */
export interface EventRules {
  /** Types that pass, where the library fails at others; absent: all. */
  readonly known?: ReadonlySet<string>;
  /** Types of events that carry a piece of a text. */
  readonly pieces: ReadonlySet<string>;
  /** Finds the text in the data of such an event, and the whole that it is a piece of; undefined: the event stays unchanged. */
  pieceIn(data: Json): { readonly of: string; readonly text: string } | undefined;
  /** Data of an event with another text. */
  withText(data: Json, text: string): Json;
}

/** Pieces of one text that came in a row. */
interface Run {
  readonly of: string;
  readonly type: string;
  readonly first: string;
  readonly data: Json;
  readonly texts: string[];
}

/** Longest event that is waited for, in characters: a longer event passes unchanged, and its reader judges it. */
const maxEventChars = 4 * 1_048_576;

/**
 * Prepares an event stream for a library. Events of unknown types are removed: services announce new ones at any time. Pieces of
 * one text that arrive together become one event, as a library validates each event with a schema; nothing waits for a later piece.
 * Everything else passes as it came.
 */
export class EventFilter {
  readonly #rules: EventRules;
  readonly #decoder = new TextDecoder();
  readonly #encoder = new TextEncoder();
  #pending = '';

  constructor(rules: EventRules) {
    this.#rules = rules;
  }

  /** Takes in a piece of the stream. @returns the whole events in it, which may be none */
  push(chunk: Uint8Array): Uint8Array {
    this.#pending += this.#decoder.decode(chunk, { stream: true });
    const events = new Joined(this.#rules);
    const next = this.#pending.includes('\r') ? endOfAny : endOfPlain;
    let from = 0;
    for (let end = next(this.#pending, from); end > 0; end = next(this.#pending, from)) {
      const event = this.#pending.slice(from, end);
      const type = typeOf(event);
      if (this.#passes(type)) events.add(event, type);
      from = end;
    }
    this.#pending = this.#pending.slice(from);
    const rest = this.#pending.length > maxEventChars ? this.end() : '';
    return this.#encoder.encode(events.end() + rest);
  }

  /** Returns the rest of the stream, which has no end. */
  end(): string {
    const rest = this.#pending;
    this.#pending = '';
    return this.#passes(typeOf(rest)) ? rest : '';
  }

  #passes(type: string | undefined): boolean {
    return type === undefined || this.#rules.known === undefined || this.#rules.known.has(type);
  }
}

/** Events of one piece of the stream, joined where they may be. */
class Joined {
  readonly #rules: EventRules;
  #text = '';
  #run: Run | undefined;

  constructor(rules: EventRules) {
    this.#rules = rules;
  }

  add(event: string, type: string | undefined): void {
    const data = type !== undefined && this.#rules.pieces.has(type) ? dataOf(event) : undefined;
    const piece = data && this.#rules.pieceIn(data);
    if (!data || !piece || type === undefined) {
      this.#flush();
      this.#text += event;
      return;
    }
    if (this.#run?.of === piece.of && this.#run.type === type) {
      this.#run.texts.push(piece.text);
      return;
    }
    this.#flush();
    this.#run = { of: piece.of, type, first: event, data, texts: [piece.text] };
  }

  end(): string {
    this.#flush();
    return this.#text;
  }

  #flush(): void {
    const run = this.#run;
    if (!run) return;
    this.#run = undefined;
    const { type, first, data, texts } = run;
    if (texts.length === 1) {
      this.#text += first;
      return;
    }
    this.#text += `event: ${type}\ndata: ${JSON.stringify(this.#rules.withText(data, texts.join('')))}\n\n`;
  }
}

/** Place after the next event; 0: no event is complete. */
function endOfPlain(text: string, from: number): number {
  const at = text.indexOf('\n\n', from);
  return at < 0 ? 0 : at + 2;
}

/** Place after the next event of a stream with carriage returns; 0: no event is complete. */
function endOfAny(text: string, from: number): number {
  const blank = /\r?\n\r?\n|\r\r/g;
  blank.lastIndex = from;
  const found = blank.exec(text);
  return found ? found.index + found[0].length : 0;
}

/** Value of the first line with the type. */
function typeOf(event: string): string | undefined {
  const at = event.startsWith('event:') ? 0 : event.indexOf('\nevent:') + 1;
  if (at === 0 && !event.startsWith('event:')) return undefined;
  const end = event.indexOf('\n', at);
  return event.slice(at + 'event:'.length, end < 0 ? undefined : end).trim();
}

/** Data of an event that has one line of it. */
function dataOf(event: string): Json | undefined {
  const at = event.indexOf('\ndata:');
  if (at < 0 || event.includes('\ndata:', at + 1)) return undefined;
  const end = event.indexOf('\n', at + 1);
  try {
    const data: unknown = JSON.parse(event.slice(at + '\ndata:'.length, end < 0 ? undefined : end));
    return isRecord(data) ? data : undefined;
  } catch {
    // The library reports the problem.
    return undefined;
  }
}
