/** The name most similar to a word: one letter may differ in a short word, two in a longer one. */
export function closestOf(word: string, names: readonly string[]): string | undefined {
  const [closest] = names
    .map((name) => ({ name, distance: distance(word, name) }))
    .sort((one, other) => one.distance - other.distance);
  return closest && closest.distance <= (word.length <= 3 ? 1 : 2) ? closest.name : undefined;
}

/** Levenshtein distance. */
function distance(one: string, other: string): number {
  let row = Array.from({ length: other.length + 1 }, (_, column) => column);
  for (const [index, letter] of [...one].entries()) {
    const next = [index + 1];
    for (const [column, match] of [...other].entries()) {
      const replaced = (row[column] ?? 0) + (letter === match ? 0 : 1);
      next.push(Math.min(replaced, (row[column + 1] ?? 0) + 1, (next[column] ?? 0) + 1));
    }
    row = next;
  }
  return row.at(-1) ?? 0;
}
