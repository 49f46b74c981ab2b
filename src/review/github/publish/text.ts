import { longestGitHubText } from '../limits.ts';

/** Text with its marker, within GitHub's limit. The marker is never cut off. */
export function marked(text: string, marker: string): string {
  const plain = text.includes(marker) ? text.replaceAll(marker, '').trimEnd() : text;
  const end = plain === '' ? marker : `\n\n${marker}`;
  return cut(plain, longestGitHubText - end.length) + end;
}

/** Cuts a text to `most` code units, never through the middle of a character. */
export function cut(text: string, most: number): string {
  if (text.length <= most) return text;
  const end = /[\uD800-\uDBFF]/.test(text[most - 2] ?? '') ? most - 2 : most - 1;
  return `${text.slice(0, end)}…`;
}
