import { parseDocument } from 'yaml';

/** A Markdown file with a head of YAML. */
export interface HeadedText {
  readonly head: Readonly<Record<string, unknown>>;
  readonly body: string;
}

/** Longest head, in characters. */
const maxHead = 4_096;
const fences = /^---[ \t]*\r?\n([\s\S]*?)(?:\r?\n)?---[ \t]*(?:\r?\n|$)/;

/** Longest heads of one listing, in characters altogether. */
const maxHeads = 65_536;

/** Reads the heads of many files within a bound: YAML is slow, and a repository must not hold up the server with it. */
export class HeadReader {
  #left = maxHeads;

  /** See `readHead`. */
  read(text: string): HeadedText | string {
    this.#left -= fences.exec(text)?.[1]?.length ?? 0;
    return this.#left < 0 ? 'it is beyond the limit of all heads in its directory' : readHead(text);
  }
}

/**
 * Separates the head of a file from its body. A file without a head has an empty one.
 *
 * @returns the problem with the head as a text
 */
export function readHead(text: string): HeadedText | string {
  const plain = text.replace(/^\uFEFF/, '');
  const [whole, yaml = ''] = fences.exec(plain) ?? [];
  if (whole === undefined) return { head: {}, body: plain.trim() };
  if (yaml.length > maxHead) return `its head is longer than ${maxHead} characters`;
  // Aliases could make a small head a huge one.
  const document = parseDocument(yaml, { logLevel: 'silent' });
  const [error] = document.errors;
  if (error) return `its head is not valid YAML: ${error.message.split('\n', 1)[0]}`;
  try {
    const head: unknown = document.toJS({ maxAliasCount: 0 });
    if (head !== null && (typeof head !== 'object' || Array.isArray(head))) return 'its head is not a list of fields';
    return { head: { ...head }, body: plain.slice(whole.length).trim() };
  } catch {
    return 'its head has aliases, which are not read';
  }
}
