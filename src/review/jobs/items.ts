import type { StoredItem, StoredRepository } from '../store/index.ts';
import type { JobContext } from './types.ts';

type Context = Pick<JobContext, 'store' | 'source' | 'runs'>;

/** The repository, when it is one that this backend looks after. */
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
  if (changed) await tell(context, item);
  await leaveEnded(context, item);
  return item;
}

/** Nobody reviews what nobody can merge any more: what waits is taken out of the queue. What is under way comes to its end. */
export async function leaveEnded({ store, runs }: Pick<Context, 'store' | 'runs'>, item: StoredItem): Promise<void> {
  if (item.state === 'open') return;
  const waiting = (await store.itemGlances([item.itemId])).get(item.itemId)?.waitingRunId;
  if (waiting !== null && waiting !== undefined) await runs.cancel(waiting);
}

async function closeGone(context: Context, repositoryKey: string, number: number): Promise<void> {
  const known = await context.store.itemByNumber(repositoryKey, number);
  if (known?.state !== 'open') return;
  await context.store.updateItem(known.itemId, { state: 'closed' });
  await tell(context, known);
  await leaveEnded(context, { ...known, state: 'closed' });
}

const tell = ({ store }: Pick<Context, 'store'>, { itemId, repositoryKey, number }: StoredItem): Promise<void> =>
  store.publish('item.changed', { itemId, repositoryKey, number });
