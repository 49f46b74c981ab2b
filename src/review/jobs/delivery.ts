import * as v from 'valibot';
import { ReviewError } from '../errors.ts';
import { enabledRepository, freshItem } from './items.ts';
import { parsedPayload } from './payload.ts';
import type { JobContext, JobKind, Outcome } from './types.ts';

/** Payload from the intake (`webhook/decide.ts`). */
const Payload = v.object({
  repositoryKey: v.string(),
  number: v.nullable(v.number()),
  reason: v.string(),
  deliveryId: v.optional(v.string()),
  /** Present for a requested re-run of a check run. */
  headSha: v.optional(v.string()),
  externalId: v.nullish(v.string()),
});
type Payload = v.InferOutput<typeof Payload>;

const processed: Outcome = { outcome: 'processed', reason: null };

/** Handles a changed pull request or a re-requested check run: reads the pull request again and queues due reviews. */
export const delivery: JobKind = {
  async work(job, context) {
    const payload = v.parse(Payload, job.payload);
    await settle(payload, context, await outcomeOf(payload, context));
  },
  async giveUp(job, context, { code }) {
    const payload = parsedPayload(Payload, job);
    if (payload) await settle(payload, context, { outcome: 'failed', reason: code });
  },
};

async function outcomeOf(payload: Payload, context: JobContext): Promise<Outcome> {
  const repository = await enabledRepository(context, payload.repositoryKey);
  if (!repository) return { outcome: 'failed', reason: 'repositoryNotConfigured' };
  const number = payload.number ?? (await numberOfRun(payload, context));
  if (number === undefined) return { outcome: 'failed', reason: 'checkRunUnknown' };
  const item = await freshItem(context, repository, number, payload.deliveryId);
  context.tickSoon();
  if (!item || payload.headSha === undefined) return processed;
  try {
    await context.runs.dispatch(item, {
      trigger: 'checkRerequest',
      scope: 'full',
      focus: null,
      deliveryId: payload.deliveryId,
    });
    return processed;
  } catch (error) {
    if (!(error instanceof ReviewError)) throw error;
    return { outcome: 'failed', reason: error.code };
  }
}

/** Number from the run named by the check run, because the source sends no number for a pull request from a fork. */
async function numberOfRun({ externalId }: Payload, { store }: JobContext): Promise<number | undefined> {
  return externalId ? (await store.run(externalId))?.number : undefined;
}

async function settle({ repositoryKey, number, deliveryId }: Payload, { outcomes }: JobContext, outcome: Outcome) {
  if (deliveryId !== undefined) await outcomes.delivery(deliveryId, outcome);
  if (number !== null) await outcomes.pull(repositoryKey, number, outcome);
}
