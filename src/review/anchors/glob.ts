/**
 * Patterns of paths as gitignore(5) and gitattributes(5) have them: `*`, `?`, `[a-z]`, `**`; without a slash a name in any
 * directory, with one a path from the root. Matched without regular expressions: no pattern, however many stars it has, takes
 * longer than its length times that of the path. `{a,b}` is taken as well, as settings have it.
 */
export type PathTest = (path: string) => boolean;

/** Of `{a,b}`, all pieces of a pattern together: more would be a way to take up memory. */
const maxAlternatives = 256;

/** Whether `path` is what the pattern means, or lies below it. */
export function globTest(pattern: string): PathTest {
  const tests = alternativesOf(pattern.trim()).map(oneTest);
  return (path) => tests.some((test) => test(path));
}

/**
 * The word of the last pattern that matches, as in a .gitignore: `!pattern` takes a path out again.
 */
export function ignoreTest(patterns: readonly string[]): PathTest {
  const rules = patterns.map((pattern) => {
    const isNegated = pattern.startsWith('!');
    return { test: globTest(isNegated ? pattern.slice(1) : pattern), isNegated };
  });
  return (path) => rules.findLast(({ test }) => test(path))?.isNegated === false;
}

function oneTest(pattern: string): PathTest {
  const plain = pattern.replace(/^\.\//, '').replace(/\/$/, '');
  const anchored = plain.replace(/^\//, '');
  if (anchored === '') return () => false;
  const isName = !plain.includes('/');
  const segments = [...(isName ? ['**'] : []), ...anchored.split('/')];
  const below = segments.at(-1) === '**' ? [...segments.slice(0, -1), '*', '**'] : [...segments, '**'];
  // A directory is meant when the pattern ends with a slash: the file itself is not.
  const isDirectory = pattern.endsWith('/');
  const inside = isDirectory ? [...segments, '*', '**'] : below;
  return (path) => matchesAll(inside, path.split('/'), '**', matchesName);
}

/** `a{b,c}` is `ab` and `ac`, one brace after the other; what would be too many pieces is left as it is. */
function alternativesOf(pattern: string): string[] {
  let all = [''];
  for (const piece of pattern.split(/(\{[^{}]*\})/)) {
    const options = piece.startsWith('{') && piece.includes(',') ? piece.slice(1, -1).split(',') : [piece];
    const next = options.length * all.length <= maxAlternatives ? options : [piece];
    all = all.flatMap((start) => next.map((option) => start + option));
  }
  return all;
}

/** Matches greedily and returns to the last star only: an earlier one could take nothing better. */
function matchesAll<T>(
  patterns: readonly string[],
  items: ArrayLike<T>,
  star: string,
  matches: (pattern: string, item: T) => boolean,
): boolean {
  let [pattern, item, after, taken] = [0, 0, -1, 0];
  while (item < items.length) {
    const wanted = patterns[pattern];
    if (wanted === star) {
      pattern += 1;
      after = pattern;
      taken = item;
    } else if (wanted !== undefined && matches(wanted, items[item] as T)) {
      pattern += 1;
      item += 1;
    } else if (after >= 0) {
      taken += 1;
      item = taken;
      pattern = after;
    } else return false;
  }
  return patterns.slice(pattern).every((each) => each === star);
}

const matchesName = (pattern: string, name: string): boolean =>
  matchesAll(tokensOf(pattern), [...name], '*', matchesChar);

/** One character each, a class in its brackets, or a character behind its backslash. */
const tokensOf = (pattern: string): string[] => pattern.match(/\\.|\[[!^]?\]?[^\]]*\]|./gsu) ?? [];

function matchesChar(token: string, char: string): boolean {
  if (token === '?') return true;
  if (token.length > 1 && token.startsWith('\\')) return token.slice(1) === char;
  if (token.length < 3 || !token.startsWith('[')) return token === char;
  const isNegated = /^\[[!^]/.test(token);
  const inside = token.slice(isNegated ? 2 : 1, -1);
  const ranges = inside.match(/.-.|./gsu) ?? [];
  return ranges.some((range) => char >= (range[0] ?? '') && char <= (range.at(-1) ?? '')) !== isNegated;
}
