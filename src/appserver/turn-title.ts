import { withoutCredentials } from '../inspect/index.ts';
import { visible } from '../lib/index.ts';
import type { InputPart } from '../protocol/index.ts';

/** Longest title of a turn, in characters. */
const longest = 60;
/** Text up to here is read: a prompt may be a whole file. */
const scanned = 1_000;

/**
 * Title of a turn in the inspector: the first words of its prompt on one line, without control and invisible characters, and
 * without credentials. Empty for a prompt without text.
 *
 * @param clean removes the secrets of the configuration
 */
export function turnTitle(input: readonly InputPart[], clean: (text: string) => string): string {
  const prompt = input.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join(' ');
  const safe = withoutCredentials(clean(prompt.slice(0, scanned))) ?? '';
  const line = visible(safe.replace(/\s+/g, ' '), { multiline: false, strict: true, spell: () => '' }).trim();
  const characters = [...line];
  if (characters.length <= longest) return line;
  const start = characters.slice(0, longest - 1).join('');
  return `${start.includes(' ') ? start.slice(0, start.lastIndexOf(' ')) : start}…`;
}
