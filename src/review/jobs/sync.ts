import * as v from 'valibot';
import type { SyncJob } from '../../protocol/index.ts';
import { SourceError } from '../github/index.ts';
import type { Job, StoredRepository } from '../store/index.ts';
import { parsedPayload } from './payload.ts';
import type { JobContext, JobKind, Outcome } from './types.ts';

/** Payload from the intake, the scheduler or the API. */
const Payload = v.object({
  trigger: v.picklist(['schedule', 'webhook', 'manual', 'startup']),
  /** One repository; absent: those of `owner`, or all. */
  repositoryKey: v.optional(v.string()),
  owner: v.optional(v.string()),
  /** Row shown to users. Absent: the job creates one, for a scheduled sync only if something has changed. */
  syncJobId: v.optional(v.string()),
  deliveryId: v.optional(v.string()),
  reason: v.optional(v.string()),
});
type Payload = v.InferOutput<typeof Payload>;

interface Totals {
  changedItems: number;
  apiCalls: number;
  notModified: number;
  failed: SourceError[];
}

/**
 * Syncs repositories with the source. A failure concerns its repository only and is saved there; a failed scheduled sync is not retried
 * before the next interval.
 */
export const sync: JobKind = {
  async work(job, context, signal) {
    const payload = v.parse(Payload, job.payload);
    if (payload.owner !== undefined) context.source.clearInstallations();
    const repositories = await wanted(payload, context);
    const syncJobId = rowIdOf(payload, job);
    const about = { jobId: syncJobId, trigger: payload.trigger, repositories: repositories.length };
    const row = { ...about, ...(payload.repositoryKey !== undefined && { repositoryKey: payload.repositoryKey }) };
    const isListed = payload.trigger !== 'schedule';
    if (isListed) await saveRow(context, { ...row, ...none, status: 'running' });
    const totals = await syncAll(context, repositories, signal);
    const [first] = totals.failed;
    const { failed: _, ...counts } = totals;
    // Scheduled syncs without changes would fill the list.
    if (isListed || totals.changedItems > 0)
      await saveRow(context, {
        ...row,
        ...counts,
        status: first ? 'failed' : 'succeeded',
        ...(first && { error: { code: first.code, message: first.message } }),
      });
    if (totals.changedItems > 0) context.tickSoon();
    if (first?.isRetryable === true && isListed && repositories.length === 1) throw first;
    await settle(payload, context, first ? { outcome: 'failed', reason: first.code } : processed);
  },
  async giveUp(job, context, { code, message }) {
    const payload = parsedPayload(Payload, job);
    if (!payload) return;
    await settle(payload, context, { outcome: 'failed', reason: code });
    if (payload.trigger === 'schedule') return;
    const { trigger, repositoryKey } = payload;
    const repositories = (await wanted(payload, context)).length;
    await saveRow(context, {
      ...{ jobId: rowIdOf(payload, job), trigger, repositories, status: 'failed', error: { code, message } },
      ...(repositoryKey !== undefined && { repositoryKey }),
      ...none,
    });
  },
};

/** The row of a job is the same for all its attempts, so that the last one closes it. */
const rowIdOf = ({ syncJobId }: Payload, { jobId }: Job): string => syncJobId ?? `sync-${jobId}`;

const none = { changedItems: 0, apiCalls: 0, notModified: 0 } as const;
const processed: Outcome = { outcome: 'processed', reason: null };

async function settle({ deliveryId }: Payload, { outcomes }: JobContext, outcome: Outcome): Promise<void> {
  if (deliveryId !== undefined) await outcomes.delivery(deliveryId, outcome);
}

async function wanted({ repositoryKey, owner }: Payload, { store }: JobContext): Promise<readonly StoredRepository[]> {
  const enabled = (await store.repositories()).filter(({ isEnabled }) => isEnabled);
  if (repositoryKey !== undefined) return enabled.filter((each) => each.repositoryKey === repositoryKey);
  if (owner !== undefined) return enabled.filter((each) => each.owner.toLowerCase() === owner.toLowerCase());
  return enabled;
}

async function syncAll(context: JobContext, repositories: readonly StoredRepository[], signal: AbortSignal) {
  const totals: Totals = { changedItems: 0, apiCalls: 0, notModified: 0, failed: [] };
  for await (const outcome of context.source.syncAll(repositories)) {
    signal.throwIfAborted();
    if ('result' in outcome) {
      totals.changedItems += outcome.result.changed;
      totals.apiCalls += outcome.result.apiCalls;
      totals.notModified += outcome.result.notModified;
    } else if (outcome.error instanceof SourceError) totals.failed.push(outcome.error);
    else throw outcome.error;
    await context.store.publish('source.changed', { repositoryKey: outcome.repository.repositoryKey });
  }
  return totals;
}

async function saveRow({ store }: JobContext, row: Omit<SyncJob, 'createdAt' | 'finishedAt'>): Promise<void> {
  await store.putSyncJob(row);
  await store.publish('sync.changed', { jobId: row.jobId, status: row.status });
}
