/**
 * Scores the match of `query` in `text`: its letters in order, with others between them. Higher is better: letters that follow each
 * other and beginnings of words count more, and so do short texts. Null: it does not fit.
 */
export function fit(query: string, text: string): number | null {
  const wanted = query.toLowerCase().replaceAll(' ', '');
  const given = text.toLowerCase();
  let score = 0;
  let at = -1;
  for (const letter of wanted) {
    const next = given.indexOf(letter, at + 1);
    if (next < 0) return null;
    if (next === at + 1) score += 3;
    if (next === 0 || /[^\p{L}\p{N}]/u.test(given.charAt(next - 1))) score += 5;
    at = next;
  }
  return score - given.length / 50;
}

/** Rank of a match by parts of words or by letters with others between them. */
export const scattered = 3;

/**
 * Ranks the match of `query` in a title, the best first: 0 the whole title, 1 whole words, 2 beginnings of words, else `scattered`.
 */
export function rankOf(query: string, title: string): number {
  const wanted = wordsOf(query);
  const given = wordsOf(title);
  if (wanted.length === 0) return scattered;
  if (wanted.join(' ') === given.join(' ')) return 0;
  if (wanted.every((word) => given.includes(word))) return 1;
  return wanted.every((word) => given.some((each) => each.startsWith(word))) ? 2 : scattered;
}

const wordsOf = (text: string): readonly string[] => text.toLowerCase().match(/[\p{L}\p{M}\p{N}]+/gu) ?? [];
