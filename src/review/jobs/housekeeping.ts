import * as v from 'valibot';
import { newReconcileState, ReconcileState } from '../github/index.ts';
import { limits } from './limits.ts';
import type { JobContext, JobKind } from './types.ts';

const day = 24 * 3_600_000;

/** Deletes rows whose retention time is over. */
export const cleanup: JobKind = {
  async work(_, { store, settings, logger }) {
    const { DeliveryRetentionDays, RunRetentionDays } = settings().Storage;
    const now = await store.now();
    const rows = await store.prune({
      deliveries: now - DeliveryRetentionDays * day,
      events: now - limits.eventsMs,
      runs: now - RunRetentionDays * day,
    });
    if (rows > 0) logger.info('deleted old rows', { rows });
  },
};

const factName = 'github.reconcile';

/** Requests the redelivery of missed deliveries from the source. Stores the requests as a fact. */
export const reconcile: JobKind = {
  async work(_, context) {
    const { store, source, logger } = context;
    const { state, redelivered, waiting, lost } = await source.reconcile(await stateOf(context), await store.now());
    await store.setFact(factName, JSON.stringify(state));
    if (redelivered.length > 0)
      logger.info('requested missed deliveries again', { redelivered: redelivered.length, waiting });
    if (lost.length > 0)
      logger.warn('deliveries are lost; the next sync of their repositories finds the changes', {
        lost: lost.map(({ guid, event }) => `${event} ${guid}`),
      });
  },
};

async function stateOf({ store, logger }: Pick<JobContext, 'store' | 'logger'>): Promise<ReconcileState> {
  const stored = await store.fact(factName);
  if (stored === undefined) return newReconcileState;
  try {
    return v.parse(ReconcileState, JSON.parse(stored));
  } catch (error) {
    logger.warn('could not read the state of missed deliveries; starting with an empty one', { error });
    return newReconcileState;
  }
}
