import * as v from 'valibot';
import type { StoredWrite } from '../store/index.ts';
import { type Failure, failureOf } from './failure.ts';
import { readable } from './payload.ts';
import type { JobContext, JobKind } from './types.ts';

const Payload = v.object({
  writeId: v.string(),
  /** Somebody wants one that failed to be sent again. */
  retry: v.optional(v.boolean(), false),
});

/** One write of the outbox: sent, and whoever waits for it is told. */
export const write: JobKind = {
  async work(job, context) {
    const { writeId, retry } = v.parse(Payload, job.payload);
    const found = await context.store.write(writeId);
    if (!found) return;
    const isDue = found.status === 'pending' || (retry && found.status === 'failed');
    // Sent or given up before, and whoever waits may not have been told.
    if (!isDue) return context.runs.settleWrite(found);
    if (!context.settings().GitHub.WritesEnabled) return keep(context, found, { status: 'failed', ...disabled });
    // Kept before: whoever goes on after a crash in the middle must know that it may have been sent.
    await context.store.updateWrite(writeId, { status: 'pending', attempts: found.attempts + 1 });
    try {
      const response = await context.source.send(found);
      await keep(context, found, { status: 'sent', response, lastError: null });
    } catch (error) {
      const failure = failureOf(error);
      await keep(context, found, { status: 'pending', lastError: lastErrorOf(failure, error) });
      throw error;
    }
  },
  async giveUp(job, context, failure) {
    const payload = readable(Payload, job);
    const found = payload && (await context.store.write(payload.writeId));
    if (!found || found.status === 'sent') return;
    const lastError = found.lastError ?? lastErrorOf(failure, undefined);
    await context.store.updateWrite(found.writeId, { status: 'failed', lastError });
    await told(context, found.writeId);
  },
};

const disabled = {
  lastError: { code: 'githubWritesDisabled', message: 'GitHub.WritesEnabled is off.' },
} as const;

function lastErrorOf({ code, message }: Failure, error: unknown): NonNullable<StoredWrite['lastError']> {
  const { status } = (error ?? {}) as { readonly status?: unknown };
  return { code, message, ...(typeof status === 'number' && { status }) };
}

async function keep(
  context: JobContext,
  { writeId }: StoredWrite,
  change: Partial<Pick<StoredWrite, 'status' | 'response' | 'lastError'>>,
): Promise<void> {
  await context.store.updateWrite(writeId, change);
  if (change.status === 'pending') await tell(context, writeId, 'pending');
  else await told(context, writeId);
}

async function told(context: JobContext, writeId: string): Promise<void> {
  const now = await context.store.write(writeId);
  if (!now) return;
  await context.runs.settleWrite(now);
  await tell(context, writeId, now.status);
}

const tell = ({ store }: JobContext, writeId: string, status: StoredWrite['status']): Promise<void> =>
  store.publish('write.changed', { writeId, status });
