import type { BytePath } from './byte-path.ts';

/**
 * Runs git in the tree with this standard input, one character a byte.
 *
 * @param index file that git takes for its index
 * @returns git's output; undefined: git or a repository is missing, git refused, or it printed too much
 */
export type RunGit = (args: readonly string[], input: string, index?: string) => Promise<string | undefined>;

/** Paths among these that git ignores. */
export async function ignoredPaths(git: RunGit, paths: readonly BytePath[]): Promise<ReadonlySet<BytePath>> {
  const printed = await git(['check-ignore', '-z', '--stdin'], `${paths.join('\0')}\0`);
  return new Set((printed ?? '').split('\0').filter((each) => each !== ''));
}

/** Directories that git ignores as a whole; none when there is no repository. */
export async function ignoredDirectories(git: RunGit): Promise<readonly BytePath[]> {
  const args = ['ls-files', '-z', '--others', '--ignored', '--exclude-standard', '--directory'];
  const printed = (await git(args, '')) ?? '';
  return printed.split('\0').flatMap((each) => (each.endsWith('/') ? [each.slice(0, -1)] : []));
}
