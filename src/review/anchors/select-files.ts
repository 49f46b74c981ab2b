import type { PathTest } from '../../lib/index.ts';
import type { DiffFile } from './diff-types.ts';
import { generatedName, isMinified, lockfiles, saysGenerated, showsGenerated, vendored } from './file-kinds.ts';
import { type AttributesFile, type StatedKind, statedKinds } from './git-attributes.ts';
import { ignoreTest } from './git-patterns.ts';

export const skipReasons = [
  'generated',
  'lockfile',
  'vendored',
  'binary',
  'submodule',
  'ignored',
  'tooLarge',
  'tooMany',
] as const;
export type SkipReason = (typeof skipReasons)[number];

export interface SelectionRules {
  /** Globs of the settings and of the base commit's own rules, as in a .gitignore: later ones hold, `!` takes back. */
  readonly ignorePaths: readonly string[];
  readonly maxFiles: number;
  /** Bytes of the diff of all files together. */
  readonly maxDiffBytes: number;
  /** The .gitattributes of the base commit; never of the head, which could excuse itself. */
  readonly gitAttributes?: readonly AttributesFile[];
  /** Text of a file of the base commit, where it is known: its first lines may say that it is generated. */
  readonly readBase?: (path: string) => string | null;
}

export interface Selection {
  readonly reviewed: readonly DiffFile[];
  /** In the order of the diff. */
  readonly skipped: readonly { readonly path: string; readonly reason: SkipReason }[];
}

interface Candidate {
  readonly file: DiffFile;
  readonly index: number;
  readonly bytes: number;
}
interface Skipped {
  readonly file: DiffFile;
  readonly index: number;
  readonly reason: SkipReason;
}

/**
 * The files of a change that are worth a reviewer's time, within the budget: the smallest changes first go in, so that one
 * huge file does not crowd out all others. Each skipped file is named with its reason: reviewed and skipped together are all.
 */
export function selectFiles(files: readonly DiffFile[], rules: SelectionRules): Selection {
  const isIgnored = ignoreTest(rules.ignorePaths);
  const kindOf = statedKinds(rules.gitAttributes ?? []);
  const skipped: Skipped[] = [];
  const candidates: Candidate[] = [];
  for (const [index, file] of files.entries()) {
    const reason = reasonOf(file, isIgnored, kindOf(file.path), rules.readBase);
    if (reason) skipped.push({ file, index, reason });
    else candidates.push({ file, index, bytes: bytesOf(file) });
  }
  const { taken, left } = withinBudget(candidates, rules);
  const inOrder = (a: { index: number }, b: { index: number }) => a.index - b.index;
  return {
    reviewed: taken.sort(inOrder).map(({ file }) => file),
    skipped: [...skipped, ...left].sort(inOrder).map(({ file, reason }) => ({ path: file.path, reason })),
  };
}

function withinBudget(candidates: readonly Candidate[], { maxFiles, maxDiffBytes }: SelectionRules) {
  const taken: Candidate[] = [];
  const left: Skipped[] = [];
  let bytes = 0;
  for (const candidate of [...candidates].sort((a, b) => a.bytes - b.bytes || a.index - b.index)) {
    if (taken.length >= maxFiles) left.push({ ...candidate, reason: 'tooMany' });
    else if (bytes + candidate.bytes > maxDiffBytes) left.push({ ...candidate, reason: 'tooLarge' });
    else {
      bytes += candidate.bytes;
      taken.push(candidate);
    }
  }
  return { taken, left };
}

/** Attributes of the repository take precedence over guesses from the name and the text. */
function reasonOf(
  file: DiffFile,
  isIgnored: PathTest,
  stated: StatedKind,
  readBase: SelectionRules['readBase'],
): SkipReason | undefined {
  if (isIgnored(file.path)) return 'ignored';
  if (file.isSubmodule) return 'submodule';
  if (file.isBinary) return 'binary';
  if (stated.generated ?? false) return 'generated';
  if (stated.vendored ?? vendored.test(file.path)) return 'vendored';
  if (stated.generated === false) return undefined;
  if (lockfiles.has(file.path.split('/').at(-1)?.toLowerCase() ?? '')) return 'lockfile';
  return isGenerated(file, readBase) ? 'generated' : undefined;
}

function isGenerated(file: DiffFile, readBase: SelectionRules['readBase']): boolean {
  if (generatedName.test(file.path) || showsGenerated(file) || isMinified(file)) return true;
  const base = file.status === 'added' ? null : (readBase?.(file.oldPath ?? file.path) ?? null);
  return base !== null && saysGenerated(base);
}

/** Bytes of a file's diff as git printed it, with the mark in front and the line end. */
const bytesOf = ({ hunks }: DiffFile): number =>
  hunks.reduce((sum, { lines }) => sum + lines.reduce((all, { text }) => all + Buffer.byteLength(text) + 2, 0), 0);
