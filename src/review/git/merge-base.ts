import type { FetchContext } from './fetch.ts';

/** Latest common ancestor of two commits; null when they have none. */
export async function mergeBaseOf(
  { git, store }: Pick<FetchContext, 'git' | 'store'>,
  one: string,
  other: string,
  signal: AbortSignal | undefined,
): Promise<string | null> {
  const args = ['merge-base', one, other];
  const { exitCode, stdout } = await git.run({ gitDir: store.gitDir, args, answers: [1], signal });
  return exitCode === 1 ? null : stdout.toString('utf8').trim();
}
