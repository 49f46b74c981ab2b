import { isRecord, type Json } from './json.ts';

/** A piece of a model's text. */
export interface Spoken {
  readonly type: 'text' | 'thinking';
  readonly text: string;
}

const keys: readonly (readonly [string, Spoken['type']])[] = [
  ['content', 'text'],
  ['reasoning_content', 'thinking'],
  ['reasoning', 'thinking'],
];

/** Upstreams that put something new into every chunk are not learnt from for ever. */
const mostTries = 16;

/**
 * Reads the chunks of a stream that differ from the one before in their text alone, as nearly all do, without parsing
 * them: parsing is most of a chunk's cost. A chunk becomes the template only if it holds a text and nothing else, so another
 * with the same letters before and after its text holds nothing else either.
 */
export class TextTemplate {
  #before = '';
  #after = '';
  #type: Spoken['type'] = 'text';
  #text = '';
  #tries = 0;

  /** Text of the payload that `endOf` found last. */
  get spoken(): Spoken {
    return { type: this.#type, text: this.#text };
  }

  /**
   * Where the payload that begins at `at` of `text` ends, if it is like the one learnt from; else -1. A text with a quotation
   * mark or an escape in it is left to a parser.
   */
  endOf(text: string, at: number): number {
    if (this.#after === '' || !text.startsWith(this.#before, at)) return -1;
    const begin = at + this.#before.length;
    const end = text.indexOf('"', begin);
    if (end === -1 || !text.startsWith(this.#after, end)) return -1;
    const said = text.slice(begin, end);
    if (said.includes('\\')) return -1;
    this.#text = said;
    this.#tries = 0;
    return end + this.#after.length;
  }

  /** Learns from `data`, which was parsed to `value`. */
  learn(data: string, value: unknown): void {
    if (this.#tries >= mostTries) return;
    this.#tries += 1;
    const [key, type, text] = onlyText(value) ?? [];
    if (key === undefined || type === undefined || text === undefined) return;
    const mark = `"${key}":"`;
    const begin = data.indexOf(mark) + mark.length;
    // An escape in the text, spaces around the colon, or the same key somewhere else: not worth a second look.
    if (!data.startsWith(`${text}"`, begin) || data.indexOf(mark, begin) !== -1 || begin < mark.length) return;
    this.#type = type;
    this.#before = data.slice(0, begin);
    // Begins with the quotation mark that ends the text.
    this.#after = data.slice(begin + text.length);
  }
}

/** The key, kind and text of a chunk that has nothing else to say. */
function onlyText(value: unknown): readonly [string, Spoken['type'], string] | undefined {
  if (!isRecord(value) || value['error'] || value['usage'] || !Array.isArray(value['choices'])) return undefined;
  const [choice, ...others]: unknown[] = value['choices'];
  if (others.length > 0) return undefined;
  if (!isRecord(choice) || choice['finish_reason'] || choice['error'] || !isRecord(choice['delta'])) return undefined;
  return onlyTextOf(choice['delta']);
}

function onlyTextOf(delta: Json): readonly [string, Spoken['type'], string] | undefined {
  const said = Object.entries(delta).filter(([key, value]) => key !== 'role' && value !== null && value !== '');
  const [[key, text] = []] = said;
  const known = said.length === 1 && keys.find(([name]) => name === key);
  return known && typeof text === 'string' ? [...known, text] : undefined;
}
