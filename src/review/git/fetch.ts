import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { GitError } from './error.ts';
import type { GitLimits } from './limits.ts';
import { shortHash } from './paths.ts';
import { fetchFailure, type Remotes } from './remote.ts';
import { failureText, type GitRunner } from './runner.ts';
import { type ObjectStore, remoteName } from './store.ts';
import type { ReviewTarget } from './types.ts';

/** Names of our own refs. They hold no name of the remote, so none can collide. */
export const refs = {
  pull: (number: number): string => `refs/oratorio/pull/${number}/head`,
  base: (branch: string): string => `refs/oratorio/heads/${shortHash(branch)}`,
};

export interface FetchContext {
  readonly git: GitRunner;
  readonly store: ObjectStore;
  readonly remotes: Remotes;
  readonly limits: GitLimits;
}

/** Head and base in the store. */
export interface Tips {
  readonly head: string | null;
  readonly base: string | null;
}

const fetchArgs = [
  'fetch',
  '--quiet',
  '--no-tags',
  '--no-write-fetch-head',
  '--no-auto-maintenance',
  '--no-recurse-submodules',
];

/** Brings head and base into the store, unless they are there. @returns the base commit to compare with */
export async function fetchTarget(context: FetchContext, target: ReviewTarget): Promise<string> {
  const known = await tipsOf(context, target);
  if (known.head === target.headSha && known.base !== null && (await isCurrent(context, target, known.base))) {
    return known.base;
  }
  const token = await target.token();
  try {
    await fetchRefs(context, target, token, `refs/heads/${target.baseRef}`);
  } catch (error) {
    if (!isMissingRef(error, `refs/heads/${target.baseRef}`)) throw fetchFailure(error);
    // The branch is gone; the commit may still be available.
    await fetchRefs(context, target, token, target.baseSha).catch((other) => {
      throw fetchFailure(other);
    });
  }
  const { head, base } = await tipsOf(context, target);
  if (head !== target.headSha) {
    throw new GitError('reviewTargetMoved', `The head of #${target.number} is not ${target.headSha} any more`, {
      isRetryable: true,
      actualHead: head,
    });
  }
  if (base === null) throw new GitError('reviewTargetFetchFailed', 'The base was not fetched', { isRetryable: true });
  return base;
}

/** Whether the base named by the source is the fetched one, or older. */
async function isCurrent(context: FetchContext, { baseSha, signal }: ReviewTarget, base: string): Promise<boolean> {
  return base === baseSha || (await ancestry(context, baseSha, base, signal)) === 'ancestor';
}

/** Whether `older` is an ancestor of `newer`, or the same commit; `unknown` when one of them is missing. */
export async function ancestry(
  { git, store }: Pick<FetchContext, 'git' | 'store'>,
  older: string,
  newer: string,
  signal: AbortSignal | undefined,
): Promise<'ancestor' | 'other' | 'unknown'> {
  const args = ['merge-base', '--is-ancestor', older, newer];
  try {
    const { exitCode } = await git.run({ gitDir: store.gitDir, args, answers: [1], signal });
    return exitCode === 0 ? 'ancestor' : 'other';
  } catch (error) {
    if (/Not a valid (commit|object) name/.test(failureText(error))) return 'unknown';
    throw error;
  }
}

async function tipsOf({ store }: FetchContext, { number, baseRef }: ReviewTarget): Promise<Tips> {
  const [head, base] = await Promise.all([
    readRef(store.gitDir, refs.pull(number)),
    readRef(store.gitDir, refs.base(baseRef)),
  ]);
  return { head, base };
}

async function fetchRefs(
  { git, store, remotes, limits }: FetchContext,
  { number, baseRef, signal }: ReviewTarget,
  token: string | null,
  base: string,
): Promise<void> {
  const filter = store.isPartial ? ['--filter=blob:none'] : [];
  const wanted = [`+refs/pull/${number}/head:${refs.pull(number)}`, `+${base}:${refs.base(baseRef)}`];
  await git.run({
    gitDir: store.gitDir,
    args: [...fetchArgs, '--atomic', ...filter, '--', remoteName, ...wanted],
    network: remotes.access(store.url, token),
    timeoutMs: limits.fetchMs,
    memoryBytes: limits.fetchMemoryBytes,
    signal,
  });
}

const isMissingRef = (error: unknown, ref: string): boolean =>
  failureText(error).includes(`couldn't find remote ref ${ref}`);

/** Rounds of fetches: a missing tree shows its own missing trees only once it is present. */
const maxRounds = 64;

/** Fetches every object that the trees of `commits` name and a partial store lacks. No other command then needs the remote. */
export async function fetchMissing(
  context: FetchContext,
  { token, signal }: Pick<ReviewTarget, 'token' | 'signal'>,
  commits: readonly string[],
): Promise<void> {
  const { git, store, remotes, limits } = context;
  for (let round = 0; round < maxRounds; round += 1) {
    const missing = await missingObjects(context, commits, signal);
    if (missing.length === 0) return;
    try {
      await git.run({
        gitDir: store.gitDir,
        args: ['-c', 'fetch.negotiationAlgorithm=noop', ...fetchArgs, '--filter=blob:none', '--stdin', remoteName],
        stdin: `${missing.join('\n')}\n`,
        network: remotes.access(store.url, await token()),
        timeoutMs: limits.fetchMs,
        memoryBytes: limits.fetchMemoryBytes,
        signal,
      });
    } catch (error) {
      throw fetchFailure(error);
    }
  }
  throw new GitError('reviewTargetFetchFailed', 'The remote does not give all objects of the commits');
}

async function missingObjects(
  { git, store, limits }: FetchContext,
  commits: readonly string[],
  signal: AbortSignal | undefined,
): Promise<string[]> {
  const args = ['rev-list', '--objects', '--no-object-names', '--missing=print', '--no-walk=unsorted', '--stdin'];
  const listing = await git.text({
    gitDir: store.gitDir,
    args,
    stdin: `${commits.join('\n')}\n`,
    maxBytes: limits.listingBytes,
    signal,
  });
  return listing.split('\n').flatMap((line) => (line.startsWith('?') ? [line.slice(1)] : []));
}

/**
 * Returns the commit of a ref in one of our stores: from the ref's file, or else from `packed-refs` (git-pack-refs(1)). Starts no
 * process: stores are ours, and hold no other kind of ref.
 *
 * @returns null when there is no such ref
 */
export async function readRef(gitDir: string, name: string): Promise<string | null> {
  // Packing writes a ref to `packed-refs` before it removes the file: the file is read first.
  const loose = await readIfThere(join(gitDir, name));
  const sha = /^([0-9a-f]{40})\n?$/.exec(loose)?.[1];
  if (sha !== undefined) return sha;
  const line = (await readIfThere(join(gitDir, 'packed-refs'))).split('\n').find((entry) => entry.endsWith(` ${name}`));
  return /^[0-9a-f]{40}(?= )/.exec(line ?? '')?.[0] ?? null;
}

async function readIfThere(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return '';
    throw error;
  }
}
