import type { Drafted } from '../../../machines/index.ts';
import type { ReviewTrigger } from '../../protocol/index.ts';
import { type BackendSettings, instanceOf, projectKey } from '../settings/index.ts';
import type { StoredDraft, StoredItem } from '../store/index.ts';
import { compose } from './compose.ts';
import { earlierFindings, saveSubmitted } from './earlier.ts';
import { ReviewRunError } from './errors.ts';
import { saveHunks } from './hunks.ts';
import { type ReviewNotes, readNotes } from './notes.ts';
import { placeOf } from './queue.ts';
import { secretsOf } from './secrets.ts';
import type { RunSession } from './session.ts';

/** Third step: turns the submission of the agent into a draft, once. */
export async function draft(session: RunSession): Promise<Drafted> {
  const { store, settings } = session.context;
  const { runId, trigger, repositoryKey } = session.run;
  const saved = (await store.draftOfRun(runId)) ?? (await makeDraft(session));
  const mayPublish = saved.status === 'draft' && saved.blockedBy === null;
  return { mustPublish: mayPublish && publishesAutomatically(settings(), trigger, repositoryKey) };
}

async function makeDraft(session: RunSession): Promise<StoredDraft> {
  const { store } = session.context;
  const { runId, itemId, headSha } = session.run;
  const notes = await readNotes(store, session.run);
  if (!notes) throw new ReviewRunError('draftMissing', 'The submission of the agent is missing from the store.');
  // Always the same for a run, so that a second attempt replaces the draft of the first.
  const draftId = `draft-${runId}`;
  const { summary, findings, dropped, warnings, blockedBy } = await composeDraft(session, notes, draftId);
  // Facts are written without a check of the lease, so renew it first. They precede the draft, because a stored draft is not made again.
  await session.renew();
  await saveHunks(store, runId, notes, findings, secretsOf(session.context));
  await saveSubmitted(store, runId, findings);
  const { reviewedFiles, totalFiles, skippedFiles } = notes;
  const made = await store.putDraft(session.lease, {
    ...{ draftId, runId, itemId, headSha, status: 'draft', summary, findings },
    ...{ reviewedFiles, totalFiles, skippedFiles, warnings, dropped },
    blockedBy: blockedBy ?? (await obstacle(session)),
  });
  await store.publish('draft.changed', { draftId, itemId });
  return made;
}

async function composeDraft({ context, run }: RunSession, notes: ReviewNotes, draftId: string) {
  const { store } = context;
  const { itemId } = run;
  const earlier = await earlierFindings(store, itemId, context.times.earlierDrafts);
  return compose(notes, { itemId, draftId, ...earlier, secrets: secretsOf(context) });
}

/**
 * Blocks an automatic review of a pull request that was merged or closed during the review, and of an outdated head, because the newer
 * head gets its own review.
 */
async function obstacle(session: RunSession): Promise<StoredDraft['blockedBy']> {
  const { trigger, repositoryKey, headSha } = session.run;
  if (trigger !== 'auto' || !publishesAutomatically(session.context.settings(), trigger, repositoryKey)) return null;
  const item = await presentItem(session);
  if (!item) return null;
  if (item.state !== 'open') return { code: 'notOpen', message: `The pull request is ${item.state}.` };
  if (item.headSha === headSha) return null;
  return { code: 'headMoved', message: `The head has moved to ${item.headSha.slice(0, 7)}.` };
}

/** Reads the pull request again. A source that is away does not stop the draft: the stored facts decide then. */
async function presentItem({ context, run }: RunSession): Promise<Pick<StoredItem, 'state' | 'headSha'> | undefined> {
  const { store, source, logger, times } = context;
  const { itemId, repositoryKey, number, runId } = run;
  const { configured } = await placeOf(context, repositoryKey);
  try {
    const facts = configured && (await source.readPull(configured, number, times.pullAgeMs));
    if (facts === 'gone') return { state: 'closed', headSha: run.headSha };
    if (facts) {
      const { changed } = await store.upsertItem(facts);
      if (changed) await store.publish('item.changed', { itemId });
    }
  } catch (error) {
    logger.warn('could not read a pull request again; using its stored state', { runId, error });
  }
  return store.item(itemId);
}

type Permits = (settings: BackendSettings, repositoryKey: string) => boolean;

const automatic: Permits = ({ Automation, GitHub }, repositoryKey) => {
  const { AutoReviewPublishEnabled, AutoReviewPublishRepositories: names } = Automation;
  const instance = instanceOf(GitHub.Endpoint);
  const isListed = names.length === 0 || names.some((name) => projectKey(instance, name) === repositoryKey);
  return AutoReviewPublishEnabled && isListed;
};
/** A user who requests a review on the source expects the result there. */
const always: Permits = () => true;
/** A user who requests a review on the page reads the draft there and decides. */
const never: Permits = () => false;

const byTrigger: Readonly<Record<ReviewTrigger, Permits>> = {
  auto: automatic,
  mention: always,
  checkRerequest: always,
  manual: never,
};

/** Whether the draft of a run with this trigger is published without confirmation by a user. */
export const publishesAutomatically = (
  settings: BackendSettings,
  trigger: ReviewTrigger,
  repositoryKey: string,
): boolean => settings.GitHub.WritesEnabled && byTrigger[trigger](settings, repositoryKey);
