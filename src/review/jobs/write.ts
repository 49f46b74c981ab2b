import * as v from 'valibot';
import { type ReviewFence, SourceError } from '../github/index.ts';
import type { StoredWrite } from '../store/index.ts';
import { type JobFailure, jobFailureOf } from './failure.ts';
import { limits } from './limits.ts';
import { parsedPayload } from './payload.ts';
import type { JobContext, JobKind } from './types.ts';

const Payload = v.object({
  writeId: v.string(),
  /** Sends a write that failed again. */
  retry: v.optional(v.boolean(), false),
  /** Searches for duplicates of a write that was sent: the index of the check in `duplicateChecksMs`. */
  duplicateCheck: v.optional(v.number()),
});

/** Sends one write of the outbox and reports the result. */
export const write: JobKind = {
  async work(job, context) {
    const { writeId, retry, duplicateCheck } = v.parse(Payload, job.payload);
    const found = await context.store.write(writeId);
    if (!found) return;
    if (duplicateCheck !== undefined) return checkDuplicates(context, found, duplicateCheck);
    const isDue = found.status === 'pending' || (retry && found.status === 'failed');
    // Sent or failed before, but its result may not have been applied.
    if (!isDue) return context.runs.settleWrite(found);
    if (!context.settings().GitHub.WritesEnabled) return saveResult(context, found, { status: 'failed', ...disabled });
    // Saved first: after a crash the next attempt must know that it may have been sent.
    await context.store.updateWrite(writeId, { status: 'pending', attempts: found.attempts + 1 });
    try {
      const response = await context.source.send(found, fenceOf(context, found));
      if (found.attempts > 0) await scheduleDuplicateCheck(context, writeId, 0);
      await saveResult(context, found, { status: 'sent', response, lastError: null });
    } catch (error) {
      const failure = jobFailureOf(error);
      await saveResult(context, found, { status: 'pending', lastError: lastErrorOf(failure, error) });
      throw error;
    }
  },
  async giveUp(job, context, failure) {
    const payload = parsedPayload(Payload, job);
    const found = payload && (await context.store.write(payload.writeId));
    if (!found || found.status === 'sent') return;
    const lastError = found.lastError ?? lastErrorOf(failure, undefined);
    await context.store.updateWrite(found.writeId, { status: 'failed', lastError });
    await applyResult(context, found.writeId);
  },
};

const Fence = v.object({ reviewId: v.number() });

/** Until a write is sent, its response holds the pending review that it may submit. */
function fenceOf({ store }: JobContext, { writeId, attempts }: StoredWrite): ReviewFence {
  return {
    async load() {
      const parsed = v.safeParse(Fence, (await store.write(writeId))?.response);
      return parsed.success ? parsed.output.reviewId : null;
    },
    async save(reviewId) {
      const now = await store.write(writeId);
      if (now?.attempts !== attempts + 1)
        throw new SourceError('sourceUnavailable', `Another process sends write ${writeId}`);
      await store.updateWrite(writeId, { response: { reviewId } });
    },
  };
}

/** A request that was given up may take effect after its repetition: the source is checked for duplicates later. */
async function scheduleDuplicateCheck({ store }: JobContext, writeId: string, check: number): Promise<void> {
  const delayMs = limits.duplicateChecksMs[check];
  if (delayMs === undefined) return;
  // A separate key: jobs of one key run in order, and later writes must not wait for the check.
  const key = `duplicates:${writeId}:${check}`;
  await store.enqueueJob({ kind: 'write', key, dedupe: key, payload: { writeId, duplicateCheck: check }, delayMs });
}

async function checkDuplicates(context: JobContext, found: StoredWrite, check: number): Promise<void> {
  if (found.status !== 'sent' || !context.settings().GitHub.WritesEnabled) return;
  const removed = await context.source.removeDuplicates(found);
  if (removed > 0) context.logger.warn('removed duplicates of a write', { writeId: found.writeId, removed });
  await scheduleDuplicateCheck(context, found.writeId, check + 1);
}

const disabled = {
  lastError: { code: 'githubWritesDisabled', message: 'Writes are disabled: set GitHub.WritesEnabled to publish.' },
} as const;

function lastErrorOf({ code, message }: JobFailure, error: unknown): NonNullable<StoredWrite['lastError']> {
  const { status } = (error ?? {}) as { readonly status?: unknown };
  return { code, message, ...(typeof status === 'number' && { status }) };
}

async function saveResult(
  context: JobContext,
  { writeId }: StoredWrite,
  change: Partial<Pick<StoredWrite, 'status' | 'response' | 'lastError'>>,
): Promise<void> {
  await context.store.updateWrite(writeId, change);
  if (change.status === 'pending') await publishStatus(context, writeId, 'pending');
  else await applyResult(context, writeId);
}

async function applyResult(context: JobContext, writeId: string): Promise<void> {
  const now = await context.store.write(writeId);
  if (!now) return;
  await context.runs.settleWrite(now);
  await publishStatus(context, writeId, now.status);
}

const publishStatus = ({ store }: JobContext, writeId: string, status: StoredWrite['status']): Promise<void> =>
  store.publish('write.changed', { writeId, status });
