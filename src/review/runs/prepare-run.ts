import type { Prepared } from '../../../machines/index.ts';
import { parseDiff, selectFiles } from '../anchors/index.ts';
import { GitError, type PreparedReview } from '../git/index.ts';
import type { ConfiguredRepository } from '../settings/index.ts';
import type { StoredItem } from '../store/index.ts';
import { baseRuleFiles, readBaseRules } from './base-rules.ts';
import { beginCheckRun } from './check-run.ts';
import { ReviewRunError } from './errors.ts';
import { saveNotes } from './notes.ts';
import { enqueueReview, judge, placeOf, type RepositoryState, scopeOfPush, sinceOf } from './queue.ts';
import { notesOf } from './review.ts';
import type { RunSession } from './session.ts';

type NotReviewed = Extract<Prepared, { readonly reason: unknown }>;
type Routed = ConfiguredRepository & { readonly workspacePath: string };
/** Pull request to fetch. */
interface Target {
  readonly item: StoredItem;
  readonly configured: Routed;
  readonly place: RepositoryState;
}

const unwanted = (code: string, message: string): NotReviewed => ({ outcome: 'unwanted', reason: { code, message } });
const superseded = (code: string, message: string): NotReviewed => ({
  outcome: 'superseded',
  reason: { code, message },
});

/** First step: reads the pull request again, fetches it and selects the files to review. */
export async function prepareRun(session: RunSession, signal: AbortSignal): Promise<Prepared> {
  const { context } = session;
  const found = await fetchHead(session, signal);
  if ('outcome' in found) return found;
  signal.throwIfAborted();
  const { item, configured, place, prepared } = found;
  const rules = await readBaseRules(prepared, context.settings().Review);
  // Applies the rules of the base commit. The automatic reviews were counted when the run was queued.
  const refused = judge(session.run.trigger, { ...item, automaticReviews: 0 }, place, rules.review);
  if (refused) return unwanted(refused, 'The rules of the repository exclude the pull request.');
  const diffFiles = parseDiff(prepared.diff);
  const selection = selectFiles(prepared.since ? parseDiff(prepared.since.diff) : diffFiles, {
    ignorePaths: rules.review.IgnorePaths,
    maxFiles: rules.review.MaxFiles,
    maxDiffBytes: rules.review.MaxDiffBytes,
    gitAttributes: rules.gitAttributes,
  });
  const { workspacePath } = configured;
  session.preparation = { item, workspacePath, prepared, diffFiles, selection, rules };
  const { scope, worktreePath, baseSha } = prepared;
  const sinceSha = scope === 'full' ? null : session.run.sinceSha;
  await session.update({ worktreePath, scope, sinceSha, baseSha });
  if (place.repository) await beginCheckRun(context, place.repository, session.run);
  if (selection.reviewed.length > 0) return { outcome: 'ready' };
  await saveNotes(context.store, session.run.runId, await notesOf(session, session.preparation, null));
  return { outcome: 'nothingToReview' };
}

/** Fetches the head. Reads the pull request again when the head moves during the fetch. */
async function fetchHead(
  session: RunSession,
  signal: AbortSignal,
): Promise<NotReviewed | (Target & { readonly prepared: PreparedReview })> {
  const { targetMoves, pullAgeMs } = session.context.times;
  for (let moves = 0; ; moves += 1) {
    const target = await readTarget(session, moves === 0 ? pullAgeMs : 0);
    if ('outcome' in target) return target;
    try {
      return { ...target, prepared: await fetchTarget(session, target, signal) };
    } catch (error) {
      if (!(error instanceof GitError) || error.code !== 'reviewTargetMoved') throw error;
      if (moves >= targetMoves) throw new ReviewRunError('reviewTargetMoved', error.message, true);
    }
  }
}

function fetchTarget(session: RunSession, { item, configured }: Target, signal: AbortSignal): Promise<PreparedReview> {
  const { git, source } = session.context;
  const { runId, number, headSha, sinceSha } = session.run;
  const { baseRef, baseSha } = item;
  const { instance, owner, name, workspacePath } = configured;
  const repository = { instance, owner, name };
  const token = () => source.tokens.read(repository);
  const heads = { headSha, baseRef, baseSha, sinceSha };
  return git.prepare({
    ...{ runId, repository, workspacePath, number, ...heads, wantedOfBase: baseRuleFiles, token, signal },
  });
}

/** Reads the pull request and checks that it is still eligible. @param maxAgeMs maximum age of the facts */
async function readTarget(session: RunSession, maxAgeMs: number): Promise<NotReviewed | Target> {
  const { context, run } = session;
  const { store, source, settings } = context;
  const place = await placeOf(context, run.repositoryKey);
  const { configured } = place;
  if (!configured) return unwanted('repositoryDisabled', 'The repository is no longer configured.');
  const facts = await source.readPull(configured, run.number, maxAgeMs);
  if (facts === 'gone') return unwanted('pullRequestGone', 'The pull request no longer exists.');
  const { item, changed } = await store.upsertItem(facts);
  const { itemId } = item;
  if (changed) await store.publish('item.changed', { itemId });
  const refused = judge(run.trigger, { ...item, automaticReviews: 0 }, place, settings().Review);
  if (refused) return unwanted(refused, 'The pull request is no longer eligible for a review.');
  const { workspacePath } = configured;
  if (workspacePath === undefined) return unwanted('repositoryNotRouted', 'The repository has no workspace route.');
  const notReviewed = await followHead(session, item);
  return notReviewed ?? { item, configured: { ...configured, workspacePath }, place };
}

/** Handles a newer head: a new run replaces an automatic run; a requested run continues with the newer head. */
async function followHead(session: RunSession, item: StoredItem): Promise<NotReviewed | undefined> {
  const { context, run } = session;
  const { OnPush } = context.settings().Review;
  const isAutomatic = run.trigger === 'auto';
  if (item.headSha === run.headSha) {
    if (!isAutomatic) return undefined;
    if (item.reviewedHeadSha === run.headSha) return superseded('alreadyReviewed', 'This head was reviewed meanwhile.');
    // An earlier head may have been reviewed while the run waited: start after it.
    const sinceSha = sinceOf(item, scopeOfPush[OnPush]);
    if (sinceSha !== run.sinceSha) await session.update({ sinceSha });
    return undefined;
  }
  if (isAutomatic) {
    await enqueueReview(context, item, { trigger: 'auto', scope: scopeOfPush[OnPush], focus: null });
    return superseded('newerHead', `The head has moved to ${item.headSha.slice(0, 7)}.`);
  }
  const { headSha, baseSha, itemId } = item;
  await session.update({ headSha, baseSha, sinceSha: sinceOf(item, run.scope) });
  await context.store.updateItem(itemId, { dispatchedHeadSha: headSha });
}
