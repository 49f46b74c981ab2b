import type { ReviewScope } from '../../protocol/index.ts';
import { type BackendSettings, type ConfiguredRepository, configuredRepositories } from '../settings/index.ts';
import type { StoredItem, StoredRepository, StoredRun } from '../store/index.ts';
import { endLeftCheckRuns } from './check-run.ts';
import { type IneligibleCode, whyIneligible } from './eligibility.ts';
import type { ReviewWish, RunContext } from './types.ts';

/** A repository as the database and the settings have it. */
export interface Place {
  readonly repository: StoredRepository | undefined;
  readonly configured: ConfiguredRepository | undefined;
}

export async function placeOf({ store, settings }: RunContext, repositoryKey: string): Promise<Place> {
  const configured = configuredRepositories(settings()).find((each) => each.repositoryKey === repositoryKey);
  return { repository: await store.repository(repositoryKey), configured };
}

/** Whether an item may be reviewed. @returns why not, or null */
export function judge(
  trigger: ReviewWish['trigger'],
  item: StoredItem,
  { repository, configured }: Place,
  review: BackendSettings['Review'],
): IneligibleCode | null {
  return whyIneligible(trigger, {
    item,
    review,
    isEnabled: repository?.isEnabled === true && configured !== undefined,
    hasWorkspaceRoute: configured?.workspacePath !== undefined,
  });
}

/** Where a review goes on from, when it is to look only at what is new. */
export const sinceOf = (item: StoredItem, scope: ReviewScope): string | null =>
  scope === 'incremental' && item.reviewedHeadSha !== item.headSha ? item.reviewedHeadSha : null;

/** What a push leads to. `never` and `onRequest` are decided before. */
export const scopeOfPush: Readonly<Record<BackendSettings['Review']['OnPush'], ReviewScope>> = {
  never: 'full',
  incremental: 'incremental',
  full: 'full',
  onRequest: 'full',
};

/** Puts a review of the item's head into the queue, and counts those that nobody asked for. */
export async function enqueueReview(
  context: RunContext,
  item: StoredItem,
  { trigger, scope, focus, deliveryId }: ReviewWish,
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
