/** Texts of the repositories, written indented in the code that lists them. */

/** Takes off the indentation of the first line; begins after the first line break. Backslashes stay unchanged. */
export function text(parts: TemplateStringsArray): string {
  const lines = (parts.raw[0] ?? '').split('\n').slice(1);
  const width = /^ */.exec(lines[0] ?? '')?.[0].length ?? 0;
  return lines
    .map((line) => line.slice(Math.min(width, line.length - line.trimStart().length)))
    .join('\n')
    .trimEnd()
    .concat('\n');
}

/** Text with a tab for every four blanks of indentation. */
export const tabbed = (parts: TemplateStringsArray): string => tabs(text(parts));

export const tabs = (content: string): string =>
  content.replace(/^(?: {4})+/gm, (blanks) => '\t'.repeat(blanks.length / 4));

export const crlf = (content: string): string => content.replaceAll('\n', '\r\n');
