/** Longest piece of what was typed that a message repeats, in code points. */
const longest = 80;

/**
 * What was typed, fit for a terminal and a log: in quotes, cut, everything invisible as its code point, and without the
 * places where secrets are (before an `@`, after `?` or `#`).
 */
export function quoted(text: string): string {
  const at = text.lastIndexOf('@');
  const open = at < 0 ? text : `…${text.slice(at)}`;
  const points = Array.from(open.slice(0, 4 * longest).replace(/[?#].*$/su, '…'), visible);
  return `“${points.slice(0, longest).join('')}${points.length > longest ? '…' : ''}”`;
}

function visible(point: string): string {
  return /[\p{C}\p{Z}\p{Default_Ignorable_Code_Point}]/u.test(point) && point !== ' ' ? codePoint(point) : point;
}

/** `U+200B`, the way Unicode names a character. */
export function codePoint(point: string): string {
  return `U+${(point.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}`;
}
