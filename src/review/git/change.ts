import { GitError } from './error.ts';
import type { GitLimits } from './limits.ts';
import { parseListing } from './listing.ts';
import { checkObjectName } from './paths.ts';
import type { GitResult, GitRunner } from './runner.ts';
import type { Change } from './types.ts';

export interface ChangeContext {
  readonly git: GitRunner;
  readonly gitDir: string;
  readonly limits: GitLimits;
  readonly signal: AbortSignal | undefined;
}

/** Arguments by which no configuration or attribute can start a program or hide a change. */
const common = ['diff-tree', '-r', '--no-ext-diff', '--no-textconv', '--no-color', '--ignore-submodules=none'];
const listed = ['--raw', '--numstat', '-z', '--full-index'];
const patched = ['-p', '-U3', '--src-prefix=a/', '--dst-prefix=b/', '--submodule=short'];
/** Bytes of the excluded paths in the arguments of one command. */
const hiddenBytes = 512 * 1_024;

/**
 * Reads the difference between the trees of two commits. Ends git when it has printed enough.
 * @throws GitError `treeTooLarge` when the names alone are too many, `gitMemoryExceeded`
 */
export async function changeBetween(context: ChangeContext, from: string, to: string): Promise<Change> {
  try {
    // One process makes both listing and patch: git searches for renames once.
    const renames = ['-M', `-l${context.limits.renameLimit}`];
    return split(await compare(context, [...listed, ...patched, ...renames, from, to]), context.limits);
  } catch (error) {
    if (!(error instanceof GitError) || error.code !== 'gitMemoryExceeded') throw error;
    return await compareFrugally(context, from, to);
  }
}

/** Difference from an earlier commit; null when git cannot make it, for example because a force push has removed the commit. */
export async function earlierChange(context: ChangeContext, from: string, to: string): Promise<Change | null> {
  if (from === to) return { diff: '', files: [], isDiffCut: false };
  try {
    checkObjectName(from);
    return await changeBetween(context, from, to);
  } catch (error) {
    if (error instanceof GitError) return null;
    throw error;
  }
}

/**
 * Compares without the search for renames, for which git holds large files whole. It also holds binary ones that were added or
 * removed, only to say that they differ: such files are listed without a patch.
 */
async function compareFrugally(context: ChangeContext, from: string, to: string): Promise<Change> {
  const { limits } = context;
  const { files } = split(await compare(context, [...listed, '--no-renames', from, to]), limits);
  const hidden = files
    .filter(({ isBinary, isNameBroken, status }) => isBinary && !isNameBroken && status !== 'modified')
    .map(({ path }) => `:(exclude,literal)${path}`);
  if (Buffer.byteLength(hidden.join()) > hiddenBytes) throw tooManyFiles();
  const patch = await compare(context, [...listed, ...patched, '--no-renames', from, to, '--', ...hidden]);
  return { ...split(patch, limits), files };
}

function compare({ git, gitDir, limits, signal }: ChangeContext, args: readonly string[]): Promise<GitResult> {
  return git.run({
    gitDir,
    signal,
    args: [...common, ...args],
    hasPathspecMagic: args.includes('--'),
    maxBytes: limits.listingBytes + limits.diffBytes,
    mayCut: true,
  });
}

function split({ stdout, isCut }: GitResult, limits: GitLimits): Change {
  const { files, end } = parseListing(stdout);
  if (isCut && end === null) throw tooManyFiles();
  const patch = stdout.subarray(end ?? stdout.length);
  if (!isCut && patch.length <= limits.diffBytes) return { files, diff: patch.toString('utf8'), isDiffCut: false };
  return { files, diff: wholeFiles(patch.subarray(0, limits.diffBytes)), isDiffCut: true };
}

const tooManyFiles = (): GitError => new GitError('treeTooLarge', 'The change has too many files');

/** The patch up to the last file that began, which may be cut itself. */
function wholeFiles(patch: Buffer): string {
  const last = patch.lastIndexOf('\ndiff --git ');
  return last === -1 ? '' : patch.toString('utf8', 0, last + 1);
}
