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
