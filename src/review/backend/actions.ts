import { randomUUID } from 'node:crypto';
import type { SyncJob } from '../../protocol/index.ts';
import type { ReviewActions } from '../api/index.ts';
import type { ReviewRuns } from '../runs/index.ts';
import type { ReviewStore } from '../store/index.ts';

/** Implements the actions of the API with the runs and the queue. */
export function createActions(store: ReviewStore, runs: ReviewRuns): ReviewActions {
  return {
    dispatch: (item, request) => runs.dispatch(item, { trigger: 'manual', ...request }),
    cancel: (runId) => runs.cancel(runId),
    publish: (draftId, options) => runs.publish(draftId, options),
    traceUrl: (run) => runs.traceUrl(run),
    discard: (draftId) => runs.discard(draftId),
    resolveFinding: (findingId, resolution, note) => runs.resolveFinding(findingId, resolution, note),

    async sync(repositoryKey) {
      const rows = await store.syncJobs(recentSyncs);
      const queued = rows.find(
        (row) => row.status === 'queued' && row.trigger === 'manual' && row.repositoryKey === repositoryKey,
      );
      // A queued job covers the second request, because it has not read anything yet.
      if (queued) return queued;
      const jobId = randomUUID();
      const about = repositoryKey === undefined ? {} : { repositoryKey };
      const counts = { repositories: 0, changedItems: 0, apiCalls: 0, notModified: 0 };
      const row: Omit<SyncJob, 'createdAt' | 'finishedAt'> = {
        ...{ jobId, trigger: 'manual', status: 'queued' },
        ...about,
        ...counts,
      };
      await store.putSyncJob(row);
      await store.enqueueJob({
        kind: 'sync',
        key: repositoryKey ?? 'sync:all',
        payload: { trigger: 'manual', syncJobId: jobId, ...about },
      });
      await store.publish('sync.changed', { jobId, status: 'queued' });
      return { ...row, createdAt: new Date(await store.now()).toISOString() };
    },

    async retryWrite({ writeId, repositoryKey }) {
      // The job first, because every pending write must have one.
      await store.enqueueJob({
        kind: 'write',
        key: `write:${repositoryKey}:retry:${writeId}`,
        payload: { writeId, retry: true },
        dedupe: `retry:${writeId}`,
      });
      await store.updateWrite(writeId, { status: 'pending' });
      await store.publish('write.changed', { writeId, status: 'pending' });
    },
  };
}

const recentSyncs = 50;
