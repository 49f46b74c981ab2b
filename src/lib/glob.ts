/**
 * Patterns of names and paths: `*`, `?`, `[a-z]`, `[!a]`, `**`, `{a,b}`, `\` before a character that stands for itself. They are
 * matched without regular expressions, because patterns come from models, repositories and settings: none takes exponential time.
 */

/** True for a path that a pattern matches. Paths have `/` and are relative to where the pattern applies. */
export type PathTest = (path: string) => boolean;

/** Limit of the alternatives that the braces of one pattern expand to. */
const maxAlternatives = 256;

/** One character of a pattern. `star` is any text without `/`, `globstar` any text. */
type Token =
  | { readonly kind: 'char'; readonly char: string }
  | { readonly kind: 'any' | 'star' | 'globstar' }
  | { readonly kind: 'class'; readonly isNegated: boolean; readonly ranges: readonly (readonly [string, string])[] };

/** One part of a path's pattern; `anyDepth` is any number of directories. */
type Segment = 'anyDepth' | readonly Token[];

/**
 * Returns a test of whole paths against one pattern without braces. A part `**` is any number of directories, at the end one or
 * more names: `a/**` matches everything in `a`, not `a`.
 */
export function pathTest(pattern: string): PathTest {
  const segments: Segment[] = pattern.split('/').map((part) => (part === '**' ? 'anyDepth' : tokensOf(part)));
  if (segments.at(-1) === 'anyDepth' && segments.length > 1) segments.push([{ kind: 'star' }]);
  return (path) => matches(segments, path.split('/'), segmentRules);
}

/**
 * Returns a test of names that are not paths, such as those of branches: `*` is any text without `/`, `**` any text, `?` one character
 * but `/`. All other characters stand for themselves, and `..` has no meaning.
 */
export function nameTest(pattern: string): (name: string) => boolean {
  const tokens = (pattern.match(/\*+|./gsu) ?? []).map((text): Token => {
    if (text === '?') return { kind: 'any' };
    if (!text.startsWith('*')) return { kind: 'char', char: text };
    return { kind: text === '*' ? 'star' : 'globstar' };
  });
  return (name) => matchesText(tokens, name);
}

/**
 * Expands braces: `a{b,c}` is `ab` and `ac`, also within each other. Braces without a comma, and one without its other half, stand
 * for themselves.
 *
 * @returns undefined for more than 256 alternatives, which would take up memory
 */
export function expandBraces(pattern: string): readonly string[] | undefined {
  // Each pair has an alternative more: this also bounds the depth of `expand`.
  return countPairs(pattern) < maxAlternatives ? expand(pattern) : undefined;
}

/** How many pairs of braces contain a comma of their own. */
function countPairs(pattern: string): number {
  let pairs = 0;
  /** For each open brace: whether it has had a comma. */
  const open: boolean[] = [];
  for (let at = 0; at < pattern.length; at += 1) {
    const char = pattern[at];
    if (char === '\\') at += 1;
    else if (char === '{') open.push(false);
    else if (char === ',' && open.length > 0) open[open.length - 1] = true;
    else if (char === '}' && open.pop()) pairs += 1;
  }
  return pairs;
}

function expand(pattern: string): readonly string[] | undefined {
  let expanded: readonly string[] = [''];
  let rest = pattern;
  for (let brace = firstBrace(rest); brace; brace = firstBrace(rest)) {
    const options: string[] = [];
    for (const option of brace.options) {
      const inner = expand(option);
      if (!inner || expanded.length * (options.length + inner.length) > maxAlternatives) return undefined;
      options.push(...inner);
    }
    const { before } = brace;
    expanded = expanded.flatMap((start) => options.map((option) => start + before + option));
    rest = brace.after;
  }
  return expanded.map((start) => start + rest);
}

interface Brace {
  readonly before: string;
  readonly options: readonly string[];
  readonly after: string;
}

/** The first pair of braces that contains a comma of its own. */
function firstBrace(pattern: string): Brace | undefined {
  /** Positions of braces that are open, each with the commas seen in it. */
  const open: { readonly at: number; readonly commas: number[] }[] = [];
  let found: { readonly from: number; readonly to: number; readonly commas: readonly number[] } | undefined;
  for (let at = 0; at < pattern.length; at += 1) {
    const char = pattern[at];
    if (char === '\\') at += 1;
    else if (char === '{') open.push({ at, commas: [] });
    else if (char === ',') open.at(-1)?.commas.push(at);
    else if (char === '}') {
      const last = open.pop();
      // The outermost pair counts: it is the one that begins first.
      if (last && last.commas.length > 0 && (!found || last.at < found.from))
        found = { from: last.at, to: at, commas: last.commas };
      if (found && open.length === 0) break;
    }
  }
  if (!found) return undefined;
  const edges = [found.from, ...found.commas, found.to];
  const options = edges.slice(1).map((edge, index) => pattern.slice((edges[index] ?? 0) + 1, edge));
  return { before: pattern.slice(0, found.from), options, after: pattern.slice(found.to + 1) };
}

function tokensOf(part: string): readonly Token[] {
  const chars = [...part];
  const tokens: Token[] = [];
  for (let at = 0; at < chars.length; at += 1) {
    const char = chars[at] ?? '';
    if (char === '*') {
      if (tokens.at(-1)?.kind !== 'star') tokens.push({ kind: 'star' });
    } else if (char === '?') tokens.push({ kind: 'any' });
    else if (char === '[') {
      const found = classAt(chars, at);
      tokens.push(found?.token ?? { kind: 'char', char });
      at = found?.end ?? at;
    } else if (char === '\\' && at + 1 < chars.length) {
      at += 1;
      tokens.push({ kind: 'char', char: chars[at] ?? '' });
    } else tokens.push({ kind: 'char', char });
  }
  return tokens;
}

/** The class of characters that begins at `start`; undefined for a bracket that is never closed. */
function classAt(chars: readonly string[], start: number): { readonly token: Token; readonly end: number } | undefined {
  const isNegated = chars[start + 1] === '!' || chars[start + 1] === '^';
  const from = start + (isNegated ? 2 : 1);
  // A bracket that comes first belongs to the class.
  const end = chars.indexOf(']', from + 1);
  if (end === -1) return undefined;
  const ranges: [string, string][] = [];
  for (let at = from; at < end; at += 1) {
    const low = chars[at] ?? '';
    const isRange = chars[at + 1] === '-' && at + 2 < end;
    ranges.push([low, (isRange ? chars[at + 2] : low) ?? low]);
    if (isRange) at += 2;
  }
  return { token: { kind: 'class', isNegated, ranges }, end };
}

/** Rules by which a sequence of patterns matches a sequence of items. */
interface Rules<P, T> {
  /** For a pattern that stands for any number of items: whether it takes this one as well. Undefined for all other patterns. */
  readonly repeats: (pattern: P) => ((item: T) => boolean) | undefined;
  /** True for an item that a pattern of one item matches. */
  readonly matchesOne: (pattern: P, item: T) => boolean;
  /** True for a pattern that takes every item: earlier patterns need not be tried again. */
  readonly takesAll: (pattern: P) => boolean;
}

const always = (): boolean => true;
const isNoSlash = (char: string): boolean => char !== '/';

const segmentRules: Rules<Segment, string> = {
  repeats: (segment) => (segment === 'anyDepth' ? always : undefined),
  matchesOne: (segment, name) => segment !== 'anyDepth' && matchesText(segment, name),
  takesAll: (segment) => segment === 'anyDepth',
};

const textRules: Rules<Token, string> = {
  repeats: ({ kind }) => (kind === 'star' ? isNoSlash : kind === 'globstar' ? always : undefined),
  matchesOne: matchesChar,
  takesAll: ({ kind }) => kind === 'globstar',
};

const surrogate = /[\ud800-\udfff]/;

function matchesText(tokens: readonly Token[], text: string): boolean {
  return matches(tokens, surrogate.test(text) ? [...text] : text, textRules);
}

/** A repeating pattern at which matching resumes after a failure: it then takes the item as well. */
interface Retry<T> {
  readonly pattern: number;
  item: number;
  readonly takes: (item: T) => boolean;
}

/**
 * Matches greedily. After a failure the last repeating pattern takes one item more; when it cannot, the last one that takes every
 * item does. Earlier ones need not be tried: the shortest match before them leaves the most to those behind.
 */
function matches<P, T>(patterns: readonly P[], items: ArrayLike<T>, rules: Rules<P, T>): boolean {
  let [pattern, item] = [0, 0];
  let last: Retry<T> | undefined;
  let lastOfAll: Retry<T> | undefined;
  while (item < items.length) {
    const wanted = patterns[pattern];
    const takes = wanted === undefined ? undefined : rules.repeats(wanted);
    if (wanted !== undefined && takes) {
      pattern += 1;
      last = { pattern, item, takes };
      if (rules.takesAll(wanted)) lastOfAll = last;
    } else if (wanted !== undefined && rules.matchesOne(wanted, items[item] as T)) {
      pattern += 1;
      item += 1;
    } else {
      const retry = last?.takes(items[last.item] as T) ? last : lastOfAll;
      if (!retry) return false;
      retry.item += 1;
      last = retry;
      ({ pattern, item } = retry);
    }
  }
  return patterns.slice(pattern).every((each) => rules.repeats(each) !== undefined);
}

function matchesChar(token: Token, char: string): boolean {
  if (token.kind === 'char') return token.char === char;
  if (char === '/') return false;
  if (token.kind !== 'class') return true;
  return token.ranges.some(([low, high]) => char >= low && char <= high) !== token.isNegated;
}
