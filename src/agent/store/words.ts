/** FTS5 query for texts that contain each of these words or prefixes; null without a word. */
export function matchOf(text: string): string | null {
  const words = text.match(/[\p{L}\p{N}]+/gu) ?? [];
  return words.length === 0 ? null : words.map((word) => `"${word}"*`).join(' ');
}

/** Words as the index divides and folds them: it leaves out diacritics, and other marks, such as vowel signs, end a word. */
const wordsOf = (text: string): readonly string[] =>
  text
    .normalize('NFD')
    .replace(/[\u0300-\u036f]/g, '')
    .normalize('NFC')
    .toLowerCase()
    .replaceAll('ς', 'σ')
    .match(/[\p{L}\p{N}]+/gu) ?? [];

/** Matches a text in the same way as the index. @param match query from `matchOf` */
export function hasWords(text: string, match: string): boolean {
  const words = wordsOf(text);
  return wordsOf(match).every((wanted) => words.some((word) => word.startsWith(wanted)));
}
