import type { ReviewScope } from '../../protocol/index.ts';
import { type BackendSettings, type ConfiguredRepository, configuredRepositories } from '../settings/index.ts';
import type { StoredItem, StoredRepository, StoredRun } from '../store/index.ts';
import { endLeftCheckRuns } from './check-run.ts';
import { type IneligibleCode, whyIneligible } from './eligibility.ts';
import type { ReviewRequest, RunContext } from './types.ts';

/** A repository with its stored state and its settings. */
export interface RepositoryState {
  readonly repository: StoredRepository | undefined;
  readonly configured: ConfiguredRepository | undefined;
}

export async function placeOf({ store, settings }: RunContext, repositoryKey: string): Promise<RepositoryState> {
  const configured = configuredRepositories(settings()).find((each) => each.repositoryKey === repositoryKey);
  return { repository: await store.repository(repositoryKey), configured };
}

/** Returns the reason that an item must not be reviewed, or null for an eligible item. */
export function judge(
  trigger: ReviewRequest['trigger'],
  item: StoredItem,
  { repository, configured }: RepositoryState,
  review: BackendSettings['Review'],
): IneligibleCode | null {
  return whyIneligible(trigger, {
    item,
    review,
    isEnabled: repository?.isEnabled === true && configured !== undefined,
    hasWorkspaceRoute: configured?.workspacePath !== undefined,
  });
}

/** Head after which an incremental review starts; null for a full review. */
export const sinceOf = (item: StoredItem, scope: ReviewScope): string | null =>
  scope === 'incremental' && item.reviewedHeadSha !== item.headSha ? item.reviewedHeadSha : null;

/** Scope of a review after a push. `whyIneligible` has handled `never` and `onRequest` before. */
export const scopeOfPush: Readonly<Record<BackendSettings['Review']['OnPush'], ReviewScope>> = {
  never: 'full',
  incremental: 'incremental',
  full: 'full',
  onRequest: 'full',
};

/** Queues a review of the item's head, and counts consecutive automatic reviews. */
export async function enqueueReview(
  context: RunContext,
  item: StoredItem,
  { trigger, scope, focus, deliveryId }: ReviewRequest,
): Promise<{ readonly run: StoredRun; readonly isNew: boolean }> {
  const { store } = context;
  const { itemId, repositoryKey, number, headSha, baseSha } = item;
  const sinceSha = sinceOf(item, scope);
  const queued = await store.enqueueRun({
    ...{ itemId, repositoryKey, number, trigger, focus, headSha, baseSha, sinceSha },
    scope: sinceSha === null ? 'full' : scope,
    deliveryId: trigger === 'auto' ? item.deliveryId : (deliveryId ?? null),
  });
  if (!queued.isNew) return queued;
  await store.updateItem(itemId, { automaticReviews: trigger === 'auto' ? item.automaticReviews + 1 : 0 });
  await endLeftCheckRuns(context, itemId);
  await store.publish('run.changed', { runId: queued.run.runId, itemId, state: queued.run.state });
  await store.publish('item.changed', { itemId });
  return queued;
}
