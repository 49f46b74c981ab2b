import { dirname, join, resolve } from 'node:path';
import type { ReadText } from '../tools/index.ts';

const branchWords = /^ref: refs\/heads\/([\w./+-]{1,200})\s*$/;
const worktreeWords = /^gitdir: (\S[^\n]{0,1000})\s*$/;
/** Longest file of git that is read, in bytes. */
const maxBytes = 4_096;

/** Branch that is checked out in a workspace; undefined outside of git, and without one. Runs no program: a repository configures git. */
export async function gitBranch(read: ReadText, workspacePath: string): Promise<string | undefined> {
  const head =
    (await read.inWorkspace(join('.git', 'HEAD'), workspacePath, maxBytes)) ??
    (await headOfWorktree(read, workspacePath));
  return branchWords.exec(head?.text ?? '')?.[1];
}

/** Reads the HEAD of a worktree, whose `.git` is a file that names the directory of its HEAD. */
async function headOfWorktree(read: ReadText, workspacePath: string) {
  const file = await read.inWorkspace('.git', workspacePath, maxBytes);
  const [, directory] = worktreeWords.exec(file?.text ?? '') ?? [];
  if (directory === undefined) return undefined;
  const place = resolve(workspacePath, directory);
  // Only where git itself puts it: the file could name any other.
  return dirname(place).endsWith(join('.git', 'worktrees')) ? read.ofUser(join(place, 'HEAD'), maxBytes) : undefined;
}
