import { changeBetween } from './change.ts';
import { inspectCheckout } from './checkout.ts';
import { cleanRoot, type Retention } from './clean.ts';
import { GitError } from './error.ts';
import { type FetchContext, fetchMissing, fetchTarget } from './fetch.ts';
import { openLayout } from './layout.ts';
import { defaultGitLimits, type GitLimits } from './limits.ts';
import { mergeBaseOf } from './merge-base.ts';
import { findRecord, readRecord, worktreeKey, writeRecord } from './metadata.ts';
import { checkBranchName, checkObjectName, insideRoot, keyOf } from './paths.ts';
import { readCommitted, readManyCommitted } from './read.ts';
import { type RemoteOptions, Remotes } from './remote.ts';
import { GitRunner } from './runner.ts';
import { whyFull } from './scope.ts';
import {
  discardStore,
  ensureStore,
  looksBroken,
  type ObjectStore,
  type StoreContext,
  storeFor,
  withStore,
} from './store.ts';
import { together } from './together.ts';
import { planTree, type TreePlan } from './tree.ts';
import type { Change, FullReason, PreparedReview, ReviewGit, ReviewTarget } from './types.ts';
import { addWorktree, checkClean, dropWorktree, fillWorktree, type WorktreePlace } from './worktree.ts';

export interface ReviewGitOptions extends RemoteOptions {
  /** Absolute; made if it is missing. The same path for backend and agent server. Nothing outside is ever changed. */
  readonly worktreeRoot: string;
  readonly retention: Retention;
  readonly limits?: Partial<GitLimits>;
  /** Where programs are looked for; our own `PATH` unless said. */
  readonly path?: string;
}

/** What a review needs of a target whose objects are all there. */
interface Examination {
  readonly baseSha: string;
  readonly mergeBaseSha: string;
  readonly fullReason: FullReason | null;
  readonly change: Change;
  readonly since: Change | null;
  readonly plan: TreePlan;
}

/**
 * Opens the worktree root.
 * @throws GitError `gitMissing`, `pathOutside`; TypeError for an endpoint that is not allowed
 */
export async function openReviewGit(options: ReviewGitOptions): Promise<ReviewGit> {
  const limits = { ...defaultGitLimits, ...options.limits };
  const remotes = new Remotes(options, limits);
  const layout = await openLayout(options.worktreeRoot);
  const git = new GitRunner({ path: options.path ?? process.env['PATH'] ?? '', emptyDirectory: layout.empty, limits });
  await checkVersion(git);
  const context: StoreContext = { layout, git, limits };
  const preparing = new Set<string>();
  return {
    async prepare(target) {
      preparing.add(target.runId);
      try {
        return await prepare(context, remotes, target);
      } finally {
        preparing.delete(target.runId);
      }
    },
    verifyClean: async (worktreePath) => await checkClean(context, keyOf(layout.root, worktreePath)),
    async release(runId, outcome) {
      const found = await findRecord(layout.root, runId);
      if (!found || found.record.state === 'released') return;
      await writeRecord(layout.root, found.key, { ...found.record, state: 'released', outcome, since: Date.now() });
    },
    clean: (now, isActive) =>
      cleanRoot(context, {
        now,
        retention: options.retention,
        isActive: (runId) => preparing.has(runId) || isActive(runId),
      }),
    close: () => git.close(),
  };
}

/** The oldest git with everything we use. */
const oldestGit = [2, 38] as const;

async function checkVersion(git: GitRunner): Promise<void> {
  const said = await git.text({ args: ['version'] });
  const [, major = '0', minor = '0'] = /(\d+)\.(\d+)/.exec(said) ?? [];
  const isOld = Number(major) < oldestGit[0] || (Number(major) === oldestGit[0] && Number(minor) < oldestGit[1]);
  if (isOld) throw new GitError('gitMissing', `git ${oldestGit.join('.')} or newer is needed; found ${said.trim()}`);
}

async function prepare(context: StoreContext, remotes: Remotes, target: ReviewTarget): Promise<PreparedReview> {
  const { layout, git, limits } = context;
  checkTarget(target);
  const url = remotes.url(target.repository);
  const borrowed = await inspectCheckout(target.workspacePath, git);
  const store = storeFor(layout, target.repository, url, borrowed);
  const place = { key: worktreeKey(target.repository, target.number, target.runId), storeKey: store.key };
  const fetching: FetchContext = { git, store, remotes, limits };
  await dropEarlier(context, place, target);
  const found = await withStore(context, store.key, target.signal, async () => {
    await ensureStore(context, store, borrowed);
    const examined = await examine(fetching, target).catch(async (error: unknown) => {
      if (!looksBroken(error)) throw error;
      await discardStore(context, store);
      await ensureStore(context, store, borrowed);
      return await examine(fetching, target);
    });
    await noteWorktree(context, place, target);
    await addWorktree(context, place, target.headSha);
    return examined;
  });
  await fillWorktree(context, place, target.headSha, found.plan, target.signal);
  return present(context, store, place, target, found);
}

function checkTarget({ headSha, baseSha, sinceSha, baseRef, number }: ReviewTarget): void {
  for (const sha of [headSha, baseSha, sinceSha]) if (sha !== null) checkObjectName(sha);
  checkBranchName(baseRef);
  if (!Number.isSafeInteger(number) || number < 1) throw new TypeError('A pull request has a positive number');
}

async function examine(context: FetchContext, target: ReviewTarget): Promise<Examination> {
  const { git, store, limits } = context;
  const { headSha, sinceSha, number, signal } = target;
  const baseSha = await fetchTarget(context, target);
  const mergeBaseSha = await mergeBaseOf(context, baseSha, headSha, signal);
  if (mergeBaseSha === null) {
    throw new GitError('mergeBaseMissing', `The head of #${number} has no commit in common with its base`);
  }
  const fullReason = await whyFull(context, { sinceSha, headSha, baseSha, mergeBaseSha, signal });
  const earlier = fullReason === null ? sinceSha : null;
  const commits = [headSha, baseSha, mergeBaseSha, ...(earlier ? [earlier] : [])];
  if (store.isPartial) await fetchMissing(context, target, commits);
  const reading = { git, gitDir: store.gitDir, limits, signal };
  // First: a tree that is too large for a listing would be too large for the memory of a diff.
  const plan = await planTree(reading, headSha);
  const [change, since] = await together([
    changeBetween(reading, mergeBaseSha, headSha),
    earlier ? changeBetween(reading, earlier, headSha) : null,
  ]);
  return { baseSha, mergeBaseSha, fullReason, change, since, plan };
}

/** What an earlier attempt of the run has left is removed, wherever its objects are. */
async function dropEarlier(context: StoreContext, { key, storeKey }: WorktreePlace, target: ReviewTarget) {
  const earlier = readRecord(context.layout.root, key);
  if (earlier.kind === 'missing') return;
  if (earlier.kind === 'ok' && earlier.value.runId !== target.runId) {
    throw new GitError('pathOutside', 'The worktree belongs to another run');
  }
  const place = { key, storeKey: earlier.kind === 'ok' ? earlier.value.store : storeKey };
  await withStore(context, place.storeKey, target.signal, () => dropWorktree(context, place));
}

async function noteWorktree(
  { layout }: StoreContext,
  { key, storeKey }: WorktreePlace,
  { runId, number, headSha }: ReviewTarget,
): Promise<void> {
  const record = { version: 1, runId, number, store: storeKey, headSha, state: 'active', since: Date.now() } as const;
  await writeRecord(layout.root, key, record);
}

function present(
  { layout, git, limits }: StoreContext,
  { gitDir }: ObjectStore,
  { key }: WorktreePlace,
  { headSha }: ReviewTarget,
  { baseSha, mergeBaseSha, fullReason, change, since, plan }: Examination,
): PreparedReview {
  const reading = { git, gitDir, limits, signal: undefined };
  return {
    ...change,
    worktreePath: insideRoot(layout.root, key),
    headSha,
    baseSha,
    mergeBaseSha,
    scope: fullReason === null ? 'incremental' : 'full',
    fullReason,
    since,
    omitted: plan.omitted,
    baseFiles: (path) => readCommitted(reading, baseSha, path),
    readHead: (path) => readCommitted(reading, headSha, path),
    readHeadFiles: (paths) => readManyCommitted(reading, headSha, paths),
  };
}
