import { ReviewError } from '../errors.ts';
import type { StoredDraft, StoredFinding, StoredItem, StoredRun } from '../store/index.ts';
import { endLeftCheckRuns } from './check-run.ts';
import type { Dispatcher } from './dispatcher.ts';
import type { IneligibleCode } from './eligibility.ts';
import { deleteNotes } from './notes.ts';
import { putWrite } from './outbox.ts';
import { resolveWrite } from './plan.ts';
import type { Publication } from './publication.ts';
import { enqueueReview, judge, placeOf } from './queue.ts';
import type { ReviewRuns, RunContext } from './types.ts';

type Actions = Pick<ReviewRuns, 'dispatch' | 'cancel' | 'publish' | 'discard' | 'resolveFinding' | 'traceUrl'>;

const refusals: Readonly<Partial<Record<IneligibleCode, readonly ['repositoryNotRouted' | 'invalidState', string]>>> = {
  repositoryDisabled: ['repositoryNotRouted', 'The repository is not configured.'],
  repositoryNotRouted: ['repositoryNotRouted', 'The repository has no workspace route.'],
  pullRequestNotOpen: ['invalidState', 'The pull request is not open.'],
};

/** Status of drafts that can be published or discarded. */
const publishable: ReadonlySet<StoredDraft['status']> = new Set(['draft', 'publishFailed']);

/** Actions that users request on the page or in a comment. */
export function userActions(context: RunContext, publication: Publication, dispatcher: Dispatcher): Actions {
  const { store, settings } = context;

  async function draftOf(draftId: string): Promise<StoredDraft> {
    const draft = await store.draft(draftId);
    if (!draft) throw new ReviewError('notFound', 'Unknown draft.', { draftId });
    return draft;
  }

  function mustBe(draft: StoredDraft, states: ReadonlySet<StoredDraft['status']>): void {
    const { draftId, status } = draft;
    if (!states.has(status)) throw new ReviewError('invalidState', `The draft is ${status}.`, { draftId, status });
  }

  /** Reason that blocks the publication of a draft; a user may override it. */
  async function obstacle({ blockedBy, itemId, headSha }: StoredDraft): Promise<StoredDraft['blockedBy']> {
    if (blockedBy) return blockedBy;
    const item = await store.item(itemId);
    if (!item || item.headSha === headSha) return null;
    return { code: 'headMoved', message: `The head has moved to ${item.headSha.slice(0, 7)}.` };
  }

  return {
    async dispatch(item: StoredItem, request) {
      const refused = judge(request.trigger, item, await placeOf(context, item.repositoryKey), settings().Review);
      if (refused) {
        const [code, message] = refusals[refused] ?? ['invalidState', 'The pull request is not eligible for a review.'];
        throw new ReviewError(code, message, { itemId: item.itemId, reason: refused });
      }
      return enqueueReview(context, item, request);
    },

    async traceUrl({ threadId, repositoryKey }) {
      const { configured } = await placeOf(context, repositoryKey);
      if (threadId === null || configured?.workspacePath === undefined) return undefined;
      return context.agent.traceUrl(configured.workspacePath, threadId);
    },

    async cancel(runId): Promise<StoredRun> {
      const run = await store.requestCancel(runId);
      if (!run) throw new ReviewError('notFound', 'Unknown review run.', { runId });
      dispatcher.checkCancellation(runId);
      if (run.state === 'cancelled') await deleteNotes(store, runId);
      await endLeftCheckRuns(context, run.itemId);
      await store.publish('run.changed', { runId, itemId: run.itemId, state: run.state });
      return run;
    },

    async publish(draftId, { override }) {
      const draft = await draftOf(draftId);
      // The process that began the publication may have ended before all writes were in the outbox.
      if (draft.status === 'publishing') return publication.begin(draft);
      mustBe(draft, publishable);
      if (!settings().GitHub.WritesEnabled)
        throw new ReviewError('githubWritesDisabled', 'Writes are disabled: set GitHub.WritesEnabled to publish.');
      const blockedBy = override ? null : await obstacle(draft);
      if (blockedBy)
        throw new ReviewError('draftBlocked', blockedBy.message, { draftId, blockedBy, isOverridable: true });
      await publication.begin(draft);
    },

    async discard(draftId) {
      mustBe(await draftOf(draftId), publishable);
      const discarded = await publication.change(draftId, { status: 'discarded' }, ({ status }) =>
        publishable.has(status),
      );
      mustBe(discarded, new Set(['discarded'] as const));
      await deleteNotes(store, discarded.runId);
    },

    async resolveFinding(findingId, resolution, note) {
      const finding = await store.finding(findingId);
      if (!finding) throw new ReviewError('notFound', 'Unknown finding.', { findingId });
      const { isPublished, isResolved, itemId, draftId } = finding;
      if (!isPublished || isResolved)
        throw new ReviewError('invalidState', 'Only a published, unresolved finding can be resolved.', {
          findingId,
        });
      const withNote = note === null ? {} : { resolutionNote: note };
      await store.updateFinding(findingId, { isResolved: true, resolution, ...withNote });
      await store.publish('draft.changed', { draftId, itemId, findingId });
      await resolveThread(context, finding);
    },
  };
}

/** Resolves the thread on the source, if writes are enabled. */
async function resolveThread(context: RunContext, finding: StoredFinding): Promise<void> {
  const { store, settings } = context;
  if (!settings().GitHub.WritesEnabled || finding.commentId === null) return;
  const item = await store.item(finding.itemId);
  const repository = item && (await store.repository(item.repositoryKey));
  if (!repository) return;
  const { number } = item;
  await putWrite(context, { repository, number }, resolveWrite(finding, number), null);
}
