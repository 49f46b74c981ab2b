import { lstat, readdir } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { runGit } from '../../git/index.ts';

/** An attempt of a race that is about to be deleted. */
interface EndedAttempt {
  readonly directory: string;
  /** ISO 8601; undefined: the race was killed, or is of an earlier version. */
  readonly endedAt: string | undefined;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly signal: AbortSignal;
}

/** Work in the directory of an attempt that its deletion would lose, in words; undefined without any. */
export async function userWork({ directory, endedAt, env, signal }: EndedAttempt): Promise<string | undefined> {
  const commit = await unreachableCommit(directory, env, signal);
  if (commit !== undefined) return `commit ${commit} is on no branch`;
  const end = Date.parse(endedAt ?? '');
  const path = Number.isNaN(end) ? undefined : await changedAfter(directory, end);
  return path === undefined ? undefined : `${relative(directory, path) || '.'} changed after the attempt had ended`;
}

/** Short name of the commit of `HEAD` when no branch, tag or remote branch leads to it. */
async function unreachableCommit(
  directory: string,
  env: EndedAttempt['env'],
  signal: AbortSignal,
): Promise<string | undefined> {
  let printed = '';
  const args = ['rev-list', '--max-count=1', '--abbrev-commit', 'HEAD', '--not', '--branches', '--tags', '--remotes'];
  const run = { args, cwd: directory, workspacePath: directory, env, signal };
  const stdout = (chunk: Buffer) => {
    printed += chunk.toString('utf8');
  };
  // Without a repository, or without a directory, there is no commit.
  const ended = await runGit({ ...run, stdout }).catch(() => undefined);
  return ended?.exitCode === 0 && printed !== '' ? printed.trim() : undefined;
}

/** First file or directory that changed after `end`, in milliseconds since the epoch; git's own files do not count. */
async function changedAfter(path: string, end: number): Promise<string | undefined> {
  const stats = await lstat(path).catch(() => undefined);
  if (!stats) return undefined;
  if (stats.ctimeMs > end) return path;
  if (!stats.isDirectory()) return undefined;
  for (const name of await readdir(path)) {
    const found = name === '.git' ? undefined : await changedAfter(join(path, name), end);
    if (found !== undefined) return found;
  }
  return undefined;
}
