import { ReviewError } from '../errors.ts';
import type { StoredDraft, StoredFinding, StoredItem, StoredRun } from '../store/index.ts';
import { endLeftCheckRuns } from './check-run.ts';
import type { Dispatcher } from './dispatcher.ts';
import type { IneligibleCode } from './eligibility.ts';
import { forgetNotes } from './notes.ts';
import { putWrite } from './outbox.ts';
import { resolveWrite } from './plan.ts';
import type { Publication } from './publication.ts';
import { enqueueReview, judge, placeOf } from './queue.ts';
import type { ReviewRuns, RunContext } from './types.ts';

type Actions = Pick<ReviewRuns, 'dispatch' | 'cancel' | 'publish' | 'discard' | 'resolveFinding' | 'traceUrl'>;

const refusals: Readonly<Partial<Record<IneligibleCode, readonly ['repositoryNotRouted' | 'invalidState', string]>>> = {
  repositoryDisabled: ['repositoryNotRouted', 'The repository is not configured.'],
  repositoryNotRouted: ['repositoryNotRouted', 'No workspace route leads to the repository.'],
  pullRequestNotOpen: ['invalidState', 'Only an open pull request is reviewed.'],
};

/** What may be published, and again. */
const publishable: ReadonlySet<StoredDraft['status']> = new Set(['draft', 'publishFailed']);

/** What people ask for, on the page or in a comment. */
export function peopleActions(context: RunContext, publication: Publication, dispatcher: Dispatcher): Actions {
  const { store, settings } = context;

  async function draftOf(draftId: string): Promise<StoredDraft> {
    const draft = await store.draft(draftId);
    if (!draft) throw new ReviewError('notFound', 'There is no such draft.', { draftId });
    return draft;
  }

  function mustBe(draft: StoredDraft, states: ReadonlySet<StoredDraft['status']>): void {
    const { draftId, status } = draft;
    if (!states.has(status)) throw new ReviewError('invalidState', `The draft is ${status}.`, { draftId, status });
  }

  /** Why a draft waits; a person may decide otherwise. */
  async function obstacle({ blockedBy, itemId, headSha }: StoredDraft): Promise<StoredDraft['blockedBy']> {
    if (blockedBy) return blockedBy;
    const item = await store.item(itemId);
    if (!item || item.headSha === headSha) return null;
    return { code: 'headMoved', message: `The head is ${item.headSha.slice(0, 7)} now.` };
  }

  return {
    async dispatch(item: StoredItem, wish) {
      const refused = judge(wish.trigger, item, await placeOf(context, item.repositoryKey), settings().Review);
      if (refused) {
        const [code, message] = refusals[refused] ?? ['invalidState', 'It is not reviewed by itself.'];
        throw new ReviewError(code, message, { itemId: item.itemId, reason: refused });
      }
      return enqueueReview(context, item, wish);
    },

    async traceUrl({ threadId, repositoryKey }) {
      const { configured } = await placeOf(context, repositoryKey);
      if (threadId === null || configured?.workspacePath === undefined) return undefined;
      return context.agent.traceUrl(configured.workspacePath, threadId);
    },

    async cancel(runId): Promise<StoredRun> {
      const run = await store.requestCancel(runId);
      if (!run) throw new ReviewError('notFound', 'There is no such run.', { runId });
      dispatcher.poke(runId);
      if (run.state === 'cancelled') await forgetNotes(store, runId);
      await endLeftCheckRuns(context, run.itemId);
      await store.publish('run.changed', { runId, itemId: run.itemId, state: run.state });
      return run;
    },

    async publish(draftId, { override }) {
      const draft = await draftOf(draftId);
      // Whoever began it may have ended before all of it was in the outbox.
      if (draft.status === 'publishing') return publication.begin(draft);
      mustBe(draft, publishable);
      if (!settings().GitHub.WritesEnabled)
        throw new ReviewError('githubWritesDisabled', 'GitHub.WritesEnabled is off.');
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
      await forgetNotes(store, discarded.runId);
    },

    async resolveFinding(findingId, resolution, note) {
      const finding = await store.finding(findingId);
      if (!finding) throw new ReviewError('notFound', 'There is no such finding.', { findingId });
      const { isPublished, isResolved, itemId, draftId } = finding;
      if (!isPublished || isResolved)
        throw new ReviewError('invalidState', 'Only a finding that is published and open can be resolved.', {
          findingId,
        });
      const said = note === null ? {} : { resolutionNote: note };
      await store.updateFinding(findingId, { isResolved: true, resolution, ...said });
      await store.publish('draft.changed', { draftId, itemId, findingId });
      await resolveThread(context, finding);
    },
  };
}

/** Where writes are allowed the thread on the forge is resolved, too. */
async function resolveThread(context: RunContext, finding: StoredFinding): Promise<void> {
  const { store, settings } = context;
  if (!settings().GitHub.WritesEnabled || finding.commentId === null) return;
  const item = await store.item(finding.itemId);
  const repository = item && (await store.repository(item.repositoryKey));
  if (!repository) return;
  const { number } = item;
  await putWrite(context, { repository, number }, resolveWrite(finding, number), null);
}
