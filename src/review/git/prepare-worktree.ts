import { changeBetween, earlierChange } from './change.ts';
import { type Borrowed, inspectCheckout } from './checkout.ts';
import { GitError } from './error.ts';
import { type FetchContext, fetchMissing, fetchTarget } from './fetch.ts';
import { mergeBaseOf } from './merge-base.ts';
import { dropRecord, readRecord, worktreeKey, writeRecord } from './metadata.ts';
import { checkBranchName, checkObjectName, insideRoot } from './paths.ts';
import { committedReader, readManyCommitted } from './read.ts';
import type { Remotes } from './remote.ts';
import { whyFull } from './scope.ts';
import {
  discardGeneration,
  ensureStore,
  looksBroken,
  type ObjectStore,
  type StoreContext,
  storeFor,
  withStore,
} from './store.ts';
import { together } from './together.ts';
import { planTree, type TreePlan } from './tree.ts';
import type { Change, FullReason, PreparedReview, ReviewTarget } from './types.ts';
import { addWorktree, dropWorktree, fillWorktree, type WorktreePlace } from './worktree.ts';

/** One call of `prepare`. */
interface Preparation {
  readonly context: StoreContext;
  readonly fetching: FetchContext;
  readonly target: ReviewTarget;
  readonly borrowed: Borrowed;
  readonly store: ObjectStore;
  readonly place: WorktreePlace;
}

/** Relation of head and base, once all their objects are present. */
interface Survey {
  readonly baseSha: string;
  readonly mergeBaseSha: string;
  readonly fullReason: FullReason | null;
  readonly plan: TreePlan;
}

/** Facts read from the commits once head and base are known. */
interface Findings {
  readonly change: Change;
  readonly since: Change | null;
  /** Texts of the wanted files that can be read, by path. */
  readonly baseTexts: ReadonlyMap<string, string | null>;
}

/** See `ReviewGit.prepare`. A store that has lost objects is made again, once. */
export async function prepareWorktree(
  context: StoreContext,
  remotes: Remotes,
  target: ReviewTarget,
): Promise<PreparedReview> {
  checkTarget(target);
  const { git, layout, limits } = context;
  const url = remotes.url(target.repository);
  const borrowed = await inspectCheckout(target.workspacePath, git);
  const store = storeFor(layout, target.repository, url, borrowed);
  const place = { key: worktreeKey(target.repository, target.number, target.runId), storeKey: store.key };
  const preparation = { context, fetching: { git, store, remotes, limits }, target, borrowed, store, place };
  try {
    return await attempt(preparation);
  } catch (error) {
    if (!looksBroken(error)) throw error;
    return await attempt(preparation);
  }
}

function checkTarget({ headSha, baseSha, sinceSha, baseRef, number }: ReviewTarget): void {
  for (const sha of [headSha, baseSha, sinceSha]) if (sha !== null) checkObjectName(sha);
  checkBranchName(baseRef);
  if (!Number.isSafeInteger(number) || number < 1) throw new TypeError('A pull request has a positive number');
}

/** Holds the store only while it changes: other runs continue while the content of a commit is compared and written. */
async function attempt(preparation: Preparation): Promise<PreparedReview> {
  const { context, store, target, place, borrowed } = preparation;
  await dropEarlier(preparation);
  const { generation, survey } = await withStore(context, store.key, target.signal, async () => {
    const generation = await ensureStore(context, store, borrowed);
    const preparing = together([surveyTarget(preparation.fetching, target), noteWorktree(preparation)]);
    const [survey] = await preparing.catch(async (error: unknown) => {
      await dropRecord(context.layout.root, place.key);
      if (looksBroken(error)) await discardGeneration(context, store, generation);
      throw error;
    });
    await addWorktree(context, place, target.headSha);
    return { generation, survey };
  });
  try {
    return await finish(preparation, survey);
  } catch (error) {
    if (looksBroken(error)) {
      await withStore(context, store.key, target.signal, () => discardGeneration(context, store, generation));
    }
    throw error;
  }
}

async function surveyTarget(context: FetchContext, target: ReviewTarget): Promise<Survey> {
  const { git, store, limits } = context;
  const { headSha, sinceSha, number, signal } = target;
  const reading = { git, gitDir: store.gitDir, limits, signal };
  const baseSha = await fetchTarget(context, target);
  const [mergeBaseSha, early] = await together([
    mergeBaseOf(context, baseSha, headSha, signal),
    store.isPartial ? null : planTree(reading, headSha),
  ]);
  if (mergeBaseSha === null) {
    throw new GitError('mergeBaseMissing', `The head of #${number} has no commit in common with its base`);
  }
  const fullReason = await whyFull(context, { sinceSha, headSha, baseSha, mergeBaseSha, signal });
  if (early) return { baseSha, mergeBaseSha, fullReason, plan: early };
  const earlier = fullReason === null && sinceSha !== null ? [sinceSha] : [];
  await fetchMissing(context, target, [headSha, baseSha, mergeBaseSha, ...earlier]);
  return { baseSha, mergeBaseSha, fullReason, plan: await planTree(reading, headSha) };
}

/** Compares the commits and writes the files at the same time. The plan has shown that the head is not too large for either. */
async function finish({ context, store, target, place }: Preparation, survey: Survey): Promise<PreparedReview> {
  const { git, limits } = context;
  const { headSha, sinceSha, signal } = target;
  const { mergeBaseSha, fullReason, plan } = survey;
  const reading = { git, gitDir: store.gitDir, limits, signal };
  const earlier = fullReason === null ? sinceSha : null;
  const [change, since, , baseTexts] = await together([
    changeBetween(reading, mergeBaseSha, headSha),
    earlier === null ? null : changeBetween(reading, earlier, headSha),
    fillWorktree(context, place, headSha, plan, signal),
    readAhead(committedReader(reading, survey.baseSha), target.wantedOfBase ?? []),
  ]);
  return present({ context, store, target, place }, survey, { change, since, baseTexts });
}

/** Reads files ahead; their errors reach the later reader. */
async function readAhead(
  read: (path: string) => Promise<string | null>,
  paths: readonly string[],
): Promise<ReadonlyMap<string, string | null>> {
  const texts = new Map<string, string | null>();
  await together(
    paths.map(async (path) => {
      try {
        texts.set(path, await read(path));
      } catch (error) {
        if (!(error instanceof GitError) || error.code !== 'fileTooLarge') throw error;
      }
    }),
  );
  return texts;
}

/** Removes leftovers of an earlier attempt of the run, wherever its objects are. */
async function dropEarlier({ context, place, target }: Preparation): Promise<void> {
  const { key, storeKey } = place;
  const earlier = readRecord(context.layout.root, key);
  if (earlier.kind === 'missing') return;
  if (earlier.kind === 'ok' && earlier.value.runId !== target.runId) {
    throw new GitError('pathOutside', 'The worktree belongs to another run');
  }
  const left = { key, storeKey: earlier.kind === 'ok' ? earlier.value.store : storeKey };
  await withStore(context, left.storeKey, target.signal, () => dropWorktree(context, left));
}

async function noteWorktree({ context, place, target }: Preparation): Promise<void> {
  const { runId, number, headSha } = target;
  const known = { version: 1, runId, number, store: place.storeKey, headSha } as const;
  await writeRecord(context.layout.root, place.key, { ...known, state: 'active', since: Date.now() });
}

function present(
  { context, store, target, place }: Pick<Preparation, 'context' | 'store' | 'target' | 'place'>,
  { baseSha, mergeBaseSha, fullReason, plan }: Survey,
  { change, since, baseTexts }: Findings,
): PreparedReview {
  const { git, layout, limits } = context;
  const { headSha, sinceSha } = target;
  const reading = { git, gitDir: store.gitDir, limits, signal: undefined };
  const readBase = committedReader(reading, baseSha);
  return {
    ...change,
    worktreePath: insideRoot(layout.root, place.key),
    headSha,
    baseSha,
    mergeBaseSha,
    scope: fullReason === null ? 'incremental' : 'full',
    fullReason,
    since,
    omitted: plan.omitted,
    baseFiles: async (path) => {
      const known = baseTexts.get(path);
      return known === undefined ? await readBase(path) : known;
    },
    changeSince: (sha) => (sha === sinceSha && since ? Promise.resolve(since) : earlierChange(reading, sha, headSha)),
    readHead: committedReader(reading, headSha),
    readHeadFiles: async (paths) => {
      const files = await readManyCommitted(reading, headSha, paths);
      return new Map([...files].map(([path, bytes]) => [path, bytes?.toString('utf8') ?? null]));
    },
    readHeadBytes: (paths) => readManyCommitted(reading, headSha, paths),
  };
}
