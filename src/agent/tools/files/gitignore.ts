import { type PathTest, pathTest } from '../../../lib/index.ts';

interface Rule {
  readonly test: PathTest;
  readonly isNegated: boolean;
  readonly directoriesOnly: boolean;
  /** Matched against the name alone, at any depth. */
  readonly byName: boolean;
}

/** The rules of one `.gitignore` (gitignore(5)). Paths are relative to its directory, with `/`. */
export class IgnoreRules {
  readonly #rules: readonly Rule[];

  constructor(text: string) {
    this.#rules = text.split(/\r?\n/).flatMap((line) => ruleOf(line) ?? []);
  }

  /** The word of the last rule that has one; undefined: none has. */
  isIgnored(path: string, isDirectory: boolean): boolean | undefined {
    const name = path.slice(path.lastIndexOf('/') + 1);
    const rule = this.#rules.findLast(
      ({ test, directoriesOnly, byName }) => (isDirectory || !directoriesOnly) && test(byName ? name : path),
    );
    return rule && !rule.isNegated;
  }
}

function ruleOf(line: string): Rule | undefined {
  // Spaces at the end count only behind a backslash.
  let pattern = line.replace(/(?<=^|[^ \t\\]|\\[ \t])[ \t]+$/, '');
  if (pattern === '' || pattern.startsWith('#')) return undefined;
  const isNegated = pattern.startsWith('!');
  if (isNegated) pattern = pattern.slice(1);
  const directoriesOnly = pattern.endsWith('/');
  if (directoriesOnly) pattern = pattern.slice(0, -1);
  const byName = !pattern.includes('/');
  const test = pathTest(pattern.replace(/^\//, ''));
  return pattern === '' ? undefined : { test, isNegated, directoriesOnly, byName };
}
