import * as v from 'valibot';
import { newReconcileState, ReconcileState } from '../github/index.ts';
import { limits } from './limits.ts';
import type { JobContext, JobKind } from './types.ts';

const day = 24 * 3_600_000;

/** Deletes what has been kept long enough. */
export const cleanup: JobKind = {
  async work(_, { store, settings, logger }) {
    const { DeliveryRetentionDays, RunRetentionDays } = settings().Storage;
    const now = await store.now();
    const rows = await store.prune({
      deliveries: now - DeliveryRetentionDays * day,
      events: now - limits.eventsMs,
      runs: now - RunRetentionDays * day,
    });
    if (rows > 0) logger.info('what is old was deleted', { rows });
  },
};

const factName = 'github.reconcile';

/** Asks the forge for deliveries that were missed. What was asked for already is remembered in the database. */
export const reconcile: JobKind = {
  async work(_, context) {
    const { store, source, logger } = context;
    const { state, redelivered, waiting, lost } = await source.reconcile(await stateOf(context), await store.now());
    await store.setFact(factName, JSON.stringify(state));
    if (redelivered.length > 0)
      logger.info('deliveries that were missed were asked for again', { redelivered: redelivered.length, waiting });
    if (lost.length > 0)
      logger.warn('deliveries are lost; the next look at their repositories makes up for them', {
        lost: lost.map(({ guid, event }) => `${event} ${guid}`),
      });
  },
};

async function stateOf({ store, logger }: Pick<JobContext, 'store' | 'logger'>): Promise<ReconcileState> {
  const kept = await store.fact(factName);
  if (kept === undefined) return newReconcileState;
  try {
    return v.parse(ReconcileState, JSON.parse(kept));
  } catch (error) {
    logger.warn('what was known of missed deliveries cannot be read; it is begun anew', { error });
    return newReconcileState;
  }
}
