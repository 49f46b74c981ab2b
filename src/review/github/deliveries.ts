import * as v from 'valibot';
import { type Backoff, exponentialBackoffMs, jitters } from '../../lib/index.ts';
import { type DeliveryAnswer, DeliveryList } from './answers.ts';
import { type GitHubClient, parseAnswer } from './client.ts';
import { SourceError } from './errors.ts';
import type { GitHubLimits } from './limits.ts';

/** A delivery that GitHub could not hand over, and has not handed over since then. */
export interface FailedDelivery {
  /** Id of the attempt; larger than a double holds. */
  readonly id: string;
  /** Id of the delivery: the same with every attempt. */
  readonly guid: string;
  readonly event: string;
  readonly action: string | null;
  readonly deliveredAt: number;
  readonly statusCode: number;
}

/** State of the reconciler between two polls; JSON, stored as a fact. */
export const ReconcileState = v.object({
  /** Everything before this time is settled, in milliseconds. */
  settledUntil: v.number(),
  /** Requested redeliveries, by guid. */
  attempts: v.record(v.string(), v.object({ count: v.number(), nextAt: v.number() })),
});
export type ReconcileState = v.InferOutput<typeof ReconcileState>;
export const newReconcileState: ReconcileState = { settledUntil: 0, attempts: {} };

export interface ReconcileResult {
  readonly state: ReconcileState;
  readonly redelivered: readonly FailedDelivery[];
  /** Number of deliveries that wait for their next attempt, or for room in the next poll. */
  readonly waiting: number;
  /** Deliveries given up in this poll: too many attempts, or GitHub no longer knows them. */
  readonly lost: readonly FailedDelivery[];
}

/** Newest first. @throws SourceError */
export async function listFailedDeliveries(
  client: GitHubClient,
  since: number,
  limits: GitHubLimits,
): Promise<FailedDelivery[]> {
  const settled = new Set<string>();
  const failed = new Map<string, FailedDelivery>();
  const pages = client.pages('GET /app/hook/deliveries', { per_page: limits.pageSize });
  for await (const { data } of pages) {
    const deliveries = parseAnswer(DeliveryList, data, 'deliveries');
    for (const delivery of deliveries) sort(delivery, since, settled, failed);
    if (deliveries.some(({ delivered_at }) => Date.parse(delivered_at) < since)) break;
  }
  return [...failed.values()];
}

/** Sorts an attempt into settled or failed. One attempt that arrived settles its delivery. */
function sort(
  delivery: DeliveryAnswer,
  since: number,
  settled: Set<string>,
  failed: Map<string, FailedDelivery>,
): void {
  const { id, guid, event, action, delivered_at, status_code } = delivery;
  const deliveredAt = Date.parse(delivered_at);
  if (status_code >= 200 && status_code < 300) {
    settled.add(guid);
    failed.delete(guid);
  } else if (deliveredAt >= since && !settled.has(guid) && !failed.has(guid)) {
    failed.set(guid, { id, guid, event, action: action ?? null, deliveredAt, statusCode: status_code });
  }
}

/** GitHub needs some time to attempt a delivery again; each attempt follows after a longer pause. */
const redelivery: Backoff = { firstMs: 60_000, jitter: jitters.none };

/**
 * Polls once for missed deliveries: asks GitHub to send them again, a few at a time, each a few times with growing
 * pauses. GitHub never does that automatically.
 * @param now - milliseconds
 * @throws SourceError; then `state` still holds
 */
export async function reconcileDeliveries(
  client: GitHubClient,
  state: ReconcileState,
  now: number,
  limits: GitHubLimits,
): Promise<ReconcileResult> {
  const since = Math.max(state.settledUntil, now - limits.deliveryAgeMs);
  const failed = (await listFailedDeliveries(client, since, limits)).reverse();
  const attempts: ReconcileState['attempts'] = {};
  const redelivered: FailedDelivery[] = [];
  const lost: FailedDelivery[] = [];
  let waiting = 0;
  // Recorded as beyond the last attempt, so that the delivery is reported once.
  const giveUp = (delivery: FailedDelivery) => {
    attempts[delivery.guid] = { count: limits.redeliveryAttempts + 1, nextAt: 0 };
    lost.push(delivery);
  };
  for (const delivery of failed) {
    const before = state.attempts[delivery.guid] ?? { count: 0, nextAt: 0 };
    attempts[delivery.guid] = before;
    if (before.count > limits.redeliveryAttempts) continue;
    if (before.count === limits.redeliveryAttempts) giveUp(delivery);
    else if (before.nextAt > now || redelivered.length >= limits.redeliveries) waiting += 1;
    else if (await redeliver(client, delivery.id)) {
      attempts[delivery.guid] = {
        count: before.count + 1,
        nextAt: now + exponentialBackoffMs(before.count, redelivery, 0),
      };
      redelivered.push(delivery);
    } else giveUp(delivery);
  }
  return { state: { settledUntil: settledUntil(failed, now), attempts }, redelivered, waiting, lost };
}

/** GitHub's clock and ours differ, and a delivery is listed only when its attempt has ended. */
const overlapMs = 10 * 60_000;
const settledUntil = ([oldest]: readonly FailedDelivery[], now: number): number =>
  Math.min(oldest?.deliveredAt ?? Number.POSITIVE_INFINITY, now - overlapMs);

/** @returns false: GitHub no longer knows the delivery @throws SourceError */
export async function redeliver(client: GitHubClient, id: string): Promise<boolean> {
  try {
    await client.write('POST /app/hook/deliveries/{delivery_id}/attempts', { delivery_id: id });
    return true;
  } catch (error) {
    if (error instanceof SourceError && (error.code === 'notFound' || error.code === 'rejected')) return false;
    throw error;
  }
}
