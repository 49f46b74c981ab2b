import { GitError } from './error.ts';
import type { GitLimits } from './limits.ts';
import { splitAtNul } from './listing.ts';
import type { GitRunner } from './runner.ts';
import type { OmittedFile } from './types.ts';

/** One file of a commit. */
export interface TreeEntry {
  readonly mode: string;
  readonly type: string;
  readonly sha: string;
  /** Zero for submodules. */
  readonly bytes: number;
  readonly path: Buffer;
}

export interface TreeContext {
  readonly git: GitRunner;
  readonly gitDir: string;
  readonly limits: GitLimits;
  readonly signal: AbortSignal | undefined;
}

/** Files of a commit that must stay out of its worktree. */
export interface TreePlan {
  readonly omitted: readonly OmittedFile[];
  /** The paths of `omitted` as bytes, each with a NUL at its end. */
  readonly omittedPaths: Buffer;
}

/** Checks every file of a commit before any is written. @throws GitError `treeTooLarge` */
export async function planTree(context: TreeContext, sha: string): Promise<TreePlan> {
  const { limits } = context;
  const entries = await listTree(context, sha);
  const omitted: OmittedFile[] = [];
  const paths: Buffer[] = [];
  let bytes = 0;
  for (const entry of entries) {
    const reason = reasonToOmit(entry, limits);
    if (reason === null) {
      bytes += entry.bytes;
    } else {
      omitted.push({ path: entry.path.toString('utf8'), reason });
      paths.push(entry.path, Buffer.of(0));
    }
  }
  if (entries.length > limits.treeFiles || bytes > limits.treeBytes) throw tooLarge(limits);
  return { omitted, omittedPaths: Buffer.concat(paths) };
}

function reasonToOmit({ path, bytes }: TreeEntry, limits: GitLimits): OmittedFile['reason'] | null {
  if (bytes > limits.worktreeFileBytes) return 'tooLarge';
  if (path.length > limits.pathBytes) return 'nameTooLong';
  let start = 0;
  for (let at = path.indexOf(0x2f); ; at = path.indexOf(0x2f, start)) {
    const end = at === -1 ? path.length : at;
    if (end - start > limits.nameBytes) return 'nameTooLong';
    if (at === -1) return null;
    start = at + 1;
  }
}

/** Lists the files of a tree, up to the limit: a tree whose parts name each other has more files than any listing. */
async function listTree({ git, gitDir, limits, signal }: TreeContext, sha: string): Promise<TreeEntry[]> {
  const { stdout, isCut } = await git.run({
    gitDir,
    args: ['ls-tree', '-r', '-l', '-z', '--full-tree', sha],
    maxBytes: limits.listingBytes,
    mayCut: true,
    signal,
  });
  if (isCut) throw tooLarge(limits);
  return parseTree(stdout);
}

/** Reads the output of `ls-tree -l -z`: `mode type name size<TAB>path`. */
export function parseTree(listing: Buffer): TreeEntry[] {
  return splitAtNul(listing).map((line) => {
    const tab = line.indexOf(0x09);
    const [mode = '', type = '', sha = '', size = ''] = line.toString('latin1', 0, tab).split(/ +/);
    return { mode, type, sha, bytes: size === '-' ? 0 : Number(size), path: line.subarray(tab + 1) };
  });
}

function tooLarge({ treeFiles, treeBytes }: GitLimits): GitError {
  return new GitError('treeTooLarge', `The commit has more than ${treeFiles} files or ${treeBytes} bytes`);
}
