import type { StoredItem, StoredRepository } from '../store/index.ts';
import type { JobContext } from './types.ts';

type Context = Pick<JobContext, 'store' | 'source' | 'runs'>;

/** @returns the repository, or undefined if it is not enabled */
export async function enabledRepository({ store }: Pick<Context, 'store'>, repositoryKey: string) {
  const repository = await store.repository(repositoryKey);
  return repository?.isEnabled === true ? repository : undefined;
}

/** Reads a pull request from the source and saves it. @returns undefined when it is gone @throws SourceError */
export async function freshItem(
  context: Context,
  repository: StoredRepository,
  number: number,
  deliveryId?: string,
): Promise<StoredItem | undefined> {
  const { store, source } = context;
  const facts = await source.readPull(repository, number);
  if (facts === 'gone') {
    await closeGone(context, repository.repositoryKey, number);
    return undefined;
  }
  const { item, changed } = await store.upsertItem(facts, deliveryId);
  if (changed) await publishChange(context, item);
  await cancelWaitingRun(context, item);
  return item;
}

/** Cancels the waiting run of a closed or merged pull request. An active run continues. */
export async function cancelWaitingRun(
  { store, runs }: Pick<Context, 'store' | 'runs'>,
  item: StoredItem,
): Promise<void> {
  if (item.state === 'open') return;
  const waiting = (await store.itemActivity([item.itemId])).get(item.itemId)?.waitingRunId;
  if (waiting !== null && waiting !== undefined) await runs.cancel(waiting);
}

async function closeGone(context: Context, repositoryKey: string, number: number): Promise<void> {
  const known = await context.store.itemByNumber(repositoryKey, number);
  if (known?.state !== 'open') return;
  await context.store.updateItem(known.itemId, { state: 'closed' });
  await publishChange(context, known);
  await cancelWaitingRun(context, { ...known, state: 'closed' });
}

const publishChange = (
  { store }: Pick<Context, 'store'>,
  { itemId, repositoryKey, number }: StoredItem,
): Promise<void> => store.publish('item.changed', { itemId, repositoryKey, number });
