import type { PathTest } from '../../lib/index.ts';
import { gitPatternTest } from './git-patterns.ts';
import { quotedLength, unquotePath } from './quoted-path.ts';

/** A .gitattributes of the base commit. */
export interface AttributesFile {
  /** '' for the root, else a path such as `packages/a`. */
  readonly directory: string;
  readonly text: string;
}

/** Kind of a path by the repository's attributes; undefined: not stated. */
export interface StatedKind {
  readonly generated: boolean | undefined;
  readonly vendored: boolean | undefined;
}

interface Rule {
  readonly directory: string;
  readonly test: PathTest;
  readonly generated: boolean | undefined;
  readonly vendored: boolean | undefined;
}

/**
 * Reads `linguist-generated` and `linguist-vendored` (gitattributes(5); github-linguist, docs/overrides.md): set, or unset with
 * `-` or `=false`. The last line that matches a path holds, and a file deeper in the tree holds before those above it.
 */
export function statedKinds(files: readonly AttributesFile[]): (path: string) => StatedKind {
  const depth = ({ directory }: AttributesFile) => (directory === '' ? 0 : directory.split('/').length);
  const rules = [...files].sort((a, b) => depth(a) - depth(b)).flatMap(rulesOf);
  return (path) => {
    const found = rules.filter(({ directory, test }) => isBelow(path, directory) && test(within(path, directory)));
    return {
      generated: found.findLast(({ generated }) => generated !== undefined)?.generated,
      vendored: found.findLast(({ vendored }) => vendored !== undefined)?.vendored,
    };
  };
}

const isBelow = (path: string, directory: string): boolean => directory === '' || path.startsWith(`${directory}/`);
const within = (path: string, directory: string): string =>
  directory === '' ? path : path.slice(directory.length + 1);

function rulesOf({ directory, text }: AttributesFile): Rule[] {
  return text.split(/\r?\n/).flatMap((line) => {
    const trimmed = line.trim();
    if (trimmed === '' || trimmed.startsWith('#')) return [];
    const length = trimmed.startsWith('"') ? quotedLength(trimmed) : trimmed.search(/\s|$/);
    const pattern = unquotePath(trimmed.slice(0, length));
    const words = trimmed.slice(length).trim().split(/\s+/);
    const generated = stated(words, 'linguist-generated');
    const vendored = stated(words, 'linguist-vendored');
    // Unlike in a .gitignore, a pattern for a directory means nothing here, and none can be taken back.
    const isPattern = !pattern.endsWith('/') && !pattern.startsWith('!');
    const isStated = generated !== undefined || vendored !== undefined;
    return isPattern && isStated ? [{ directory, test: gitPatternTest(pattern), generated, vendored }] : [];
  });
}

function stated(words: readonly string[], name: string): boolean | undefined {
  const word = words.findLast((each) => each.replace(/^[-!]/, '').split('=')[0] === name);
  if (word === undefined || word.startsWith('!')) return undefined;
  return !word.startsWith('-') && !/=(?:false|0)$/.test(word);
}
