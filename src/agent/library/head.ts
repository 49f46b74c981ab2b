import { parseDocument } from 'yaml';

/** A Markdown file with a head of YAML. */
export interface HeadedText {
  readonly head: Readonly<Record<string, unknown>>;
  readonly body: string;
}

/** Longest head, in characters. */
const maxHead = 16_384;
const fences = /^---[ \t]*\r?\n([\s\S]*?)(?:\r?\n)?---[ \t]*(?:\r?\n|$)/;

/**
 * Separates the head of a file from its body. A file without a head has an empty one.
 *
 * @returns what is wrong with the head, as a text
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
