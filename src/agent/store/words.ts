/** FTS5 query for texts that contain each of these words or prefixes; null without a word. */
export function matchOf(text: string): string | null {
  const words = text.match(/[\p{L}\p{N}]+/gu) ?? [];
  return words.length === 0 ? null : words.map((word) => `"${word}"*`).join(' ');
}

const wordsOf = (text: string): readonly string[] =>
  text
    .normalize('NFD')
    .replace(/\p{M}/gu, '')
    .toLowerCase()
    .match(/[\p{L}\p{N}]+/gu) ?? [];

/** Matches a text in the same way as the index. @param match query from `matchOf` */
export function hasWords(text: string, match: string): boolean {
  const words = wordsOf(text);
  return wordsOf(match).every((wanted) => words.some((word) => word.startsWith(wanted)));
}
