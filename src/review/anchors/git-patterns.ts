/**
 * Patterns of paths as gitignore(5) and gitattributes(5) define them: without a slash a name in any directory, with one a path from
 * the root. Braces are expanded as well, because settings have them.
 */
import { expandBraces, type PathTest, pathTest } from '../../lib/index.ts';

/** Returns a test that is true for each path that the pattern matches, and for all paths below it. */
export function gitPatternTest(pattern: string): PathTest {
  const trimmed = pattern.trim();
  const tests = (expandBraces(trimmed) ?? [trimmed]).flatMap(testsOf);
  return (path) => tests.some((test) => test(path));
}

/** Returns a test that is true for ignored paths: the last pattern that matches decides, and `!` takes a path out again. */
export function ignoreTest(patterns: readonly string[]): PathTest {
  const rules = patterns.map((pattern) => {
    const isNegated = pattern.startsWith('!');
    return { test: gitPatternTest(isNegated ? pattern.slice(1) : pattern), isNegated };
  });
  return (path) => rules.findLast(({ test }) => test(path))?.isNegated === false;
}

function testsOf(pattern: string): readonly PathTest[] {
  const plain = pattern.replace(/^\.\//, '').replace(/\/$/, '');
  const anchored = plain.replace(/^\//, '');
  if (anchored === '') return [];
  const path = plain.includes('/') ? anchored : `**/${anchored}`;
  const below = pathTest(`${path}/**`);
  // A slash at the end means a directory: a file of that name is not matched.
  return pattern.endsWith('/') ? [below] : [pathTest(path), below];
}
