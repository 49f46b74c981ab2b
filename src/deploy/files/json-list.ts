import { setMember } from '../../config/index.ts';

/** Stands in the place of a value while it is looked for; random, so that no document has it. */
const placeholder = 'b8a1f7d0-oratorio-5c39e2';

/**
 * Adds an element to the end of a list inside of a JSON document, and leaves every other character as it is. A list that is
 * not there is made.
 *
 * @param source valid JSON whose top is an object
 * @param path keys from the top to the list
 */
export function appendElement(source: string, path: readonly string[], element: unknown): string {
  const { start, end } = spanOf(source, path) ?? { start: 0, end: 0 };
  const list = source.slice(start, end);
  const before = list.slice(0, -1).trimEnd();
  if (!before.startsWith('[') || before === '[') return setMember(source, path, [element]);
  // A new line of a list gets the line end and indentation of the first one.
  const line = /^\[\s*?(\r?\n[ \t]*)\S/.exec(list)?.[1] ?? '';
  const text =
    line === ''
      ? ` ${JSON.stringify(element)}`
      : line + JSON.stringify(element, null, line.includes('\t') ? '\t' : '  ').replaceAll('\n', line);
  return `${source.slice(0, start)}${before},${text}${list.slice(before.length)}${source.slice(end)}`;
}

/** Finds the value of a member in the text; undefined when it is missing. */
function spanOf(source: string, path: readonly string[]): { start: number; end: number } | undefined {
  const mark = JSON.stringify(placeholder);
  const replaced = setMember(source, path, placeholder);
  const start = replaced.indexOf(mark);
  const tail = replaced.slice(start + mark.length);
  const end = source.length - tail.length;
  const isThere = end > start && source.startsWith(replaced.slice(0, start)) && source.endsWith(tail);
  return isThere ? { start, end } : undefined;
}
