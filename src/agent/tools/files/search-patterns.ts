import { expandBraces, type PathTest, pathTest } from '../../../lib/index.ts';

/** The pattern is invalid. The message completes "the pattern …". */
export class GlobError extends Error {
  override readonly name = 'GlobError';
}

/**
 * Returns a test of paths for patterns as models write them: several with `;` between them; one without `/` means the name of a
 * file at any depth, others the path from where the search begins.
 *
 * @throws GlobError
 */
export function searchTest(patterns: string): PathTest {
  const tests = patterns
    .split(';')
    .map((pattern) => pattern.trim())
    .filter((pattern) => pattern !== '')
    .flatMap((pattern) => alternativesOf(pattern).map(oneTest));
  if (tests.length === 0) throw new GlobError('is empty');
  return (path) => tests.some((test) => test(path));
}

function alternativesOf(pattern: string): readonly string[] {
  const alternatives = expandBraces(pattern);
  if (!alternatives) throw new GlobError('has too many alternatives in braces');
  return alternatives;
}

function oneTest(pattern: string): PathTest {
  const anchored = pattern.replace(/^(\.?\/)+/, '');
  if (anchored.split('/').includes('..')) throw new GlobError("must not contain '..'; give the directory as path");
  const test = pathTest(anchored.endsWith('/') ? `${anchored}**` : anchored);
  return anchored.includes('/') || anchored !== pattern ? test : (path) => test(path.slice(path.lastIndexOf('/') + 1));
}
