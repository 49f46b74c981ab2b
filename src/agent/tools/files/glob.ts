/**
 * Patterns of file names: `*`, `?`, `[a-z]`, `[!a]`, `{a,b}`, `**`, `\` before a character that means itself. Matched without
 * regular expressions: no pattern, however many stars it has, takes longer than its length times that of the path.
 */

/** A path, with `/`, relative to where the pattern belongs. */
export type PathTest = (path: string) => boolean;

type Token =
  | { readonly kind: 'char'; readonly char: string }
  | { readonly kind: 'any' }
  | { readonly kind: 'star' }
  | { readonly kind: 'class'; readonly isNegated: boolean; readonly ranges: readonly (readonly [string, string])[] };

type Segment = 'anyDepth' | readonly Token[];

/** Of `{a,b}`, all pieces of a pattern together. */
const maxAlternatives = 256;

/** The pattern is no pattern. The message completes "the pattern …". */
export class GlobError extends Error {
  override readonly name = 'GlobError';
}

/**
 * A test of what models write: several patterns with `;` between them; one without `/` means the name of a file at any depth,
 * others the path from where the search begins.
 *
 * @throws GlobError
 */
export function globTest(patterns: string): PathTest {
  const tests = patterns
    .split(';')
    .map((pattern) => pattern.trim())
    .filter((pattern) => pattern !== '')
    .flatMap((pattern) => alternativesOf(pattern).map(oneTest));
  if (tests.length === 0) throw new GlobError('is empty');
  return (path) => tests.some((test) => test(path));
}

function oneTest(pattern: string): PathTest {
  const anchored = pattern.replace(/^(\.?\/)+/, '');
  if (anchored.split('/').includes('..')) throw new GlobError("must not contain '..'; give the directory as path");
  const matcher = pathMatcher(anchored.endsWith('/') ? `${anchored}**` : anchored);
  return anchored.includes('/') || anchored !== pattern
    ? matcher
    : (path) => matcher(path.slice(path.lastIndexOf('/') + 1));
}

/** A test of whole paths against one pattern without `{}`. */
export function pathMatcher(pattern: string): PathTest {
  const segments: readonly Segment[] = pattern.split('/').map((part) => (part === '**' ? 'anyDepth' : tokensOf(part)));
  return (path) => matchesSegments(segments, path.split('/'));
}

/** `a{b,c}` is `ab` and `ac`. A brace without its other half means itself. */
function alternativesOf(pattern: string): string[] {
  const brace = firstBrace(pattern);
  if (!brace) return [pattern];
  const { before, options, after } = brace;
  const all = options.flatMap((option) => alternativesOf(before + option + after));
  if (all.length > maxAlternatives) throw new GlobError('has too many alternatives in braces');
  return all;
}

function firstBrace(pattern: string): { before: string; options: string[]; after: string } | undefined {
  let open = -1;
  let depth = 0;
  const commas: number[] = [];
  for (let at = 0; at < pattern.length; at += 1) {
    const char = pattern[at];
    if (char === '\\') at += 1;
    else if (char === '{') {
      if (depth === 0) open = at;
      depth += 1;
    } else if (char === ',' && depth === 1) commas.push(at);
    else if (char === '}' && depth > 0) {
      depth -= 1;
      if (depth > 0) continue;
      const edges = [open, ...commas, at];
      const options = edges.slice(1).map((edge, index) => pattern.slice((edges[index] ?? 0) + 1, edge));
      return { before: pattern.slice(0, open), options, after: pattern.slice(at + 1) };
    }
  }
  return undefined;
}

function tokensOf(part: string): readonly Token[] {
  const tokens: Token[] = [];
  for (let at = 0; at < part.length; at += 1) {
    const char = part[at] ?? '';
    if (char === '*') {
      if (tokens.at(-1)?.kind !== 'star') tokens.push({ kind: 'star' });
    } else if (char === '?') tokens.push({ kind: 'any' });
    else if (char === '[') {
      const found = classAt(part, at);
      tokens.push(found?.token ?? { kind: 'char', char });
      at = found?.end ?? at;
    } else if (char === '\\' && at + 1 < part.length) {
      at += 1;
      tokens.push({ kind: 'char', char: part[at] ?? '' });
    } else tokens.push({ kind: 'char', char });
  }
  return tokens;
}

/** `[a-z_]` at `start`; undefined when the bracket is never closed. */
function classAt(part: string, start: number): { token: Token; end: number } | undefined {
  const isNegated = part[start + 1] === '!' || part[start + 1] === '^';
  const from = start + (isNegated ? 2 : 1);
  // A bracket that comes first belongs to the class.
  const end = part.indexOf(']', from + 1);
  if (end === -1) return undefined;
  const ranges: [string, string][] = [];
  for (let at = from; at < end; at += 1) {
    const low = part[at] ?? '';
    const isRange = part[at + 1] === '-' && at + 2 < end;
    ranges.push([low, (isRange ? part[at + 2] : low) ?? low]);
    if (isRange) at += 2;
  }
  return { token: { kind: 'class', isNegated, ranges }, end };
}

/** Matches greedily and returns to the last star only: that is enough, an earlier one could take nothing better. */
function matchesWith<P, T>(
  patterns: readonly P[],
  items: ArrayLike<T>,
  isStar: (pattern: P) => boolean,
  matches: (pattern: P, item: T) => boolean,
): boolean {
  let pattern = 0;
  let item = 0;
  let star = -1;
  let taken = 0;
  while (item < items.length) {
    const wanted = patterns[pattern];
    if (wanted !== undefined && isStar(wanted)) {
      star = pattern;
      taken = item;
      pattern += 1;
    } else if (wanted !== undefined && matches(wanted, items[item] as T)) {
      pattern += 1;
      item += 1;
    } else if (star >= 0) {
      taken += 1;
      pattern = star + 1;
      item = taken;
    } else return false;
  }
  return patterns.slice(pattern).every(isStar);
}

function matchesSegments(segments: readonly Segment[], names: readonly string[]): boolean {
  // `a/**` means what is in `a`, not `a`.
  if (segments.at(-1) === 'anyDepth' && segments.length > 1) {
    return matchesSegments([...segments.slice(0, -1), 'anyDepth', starOnly], names);
  }
  return matchesWith(
    segments,
    names,
    (segment) => segment === 'anyDepth',
    (segment, name) => segment !== 'anyDepth' && matchesName(segment, name),
  );
}

const starOnly: readonly Token[] = [{ kind: 'star' }];

function matchesName(tokens: readonly Token[], name: string): boolean {
  return matchesWith(tokens, name, (token) => token.kind === 'star', matchesChar);
}

function matchesChar(token: Token, char: string): boolean {
  if (token.kind === 'char') return token.char === char;
  if (token.kind !== 'class') return true;
  return token.ranges.some(([low, high]) => char >= low && char <= high) !== token.isNegated;
}
