import { Pump } from '../../lib/index.ts';
import { type Job, type ReviewStore, retryLevel } from '../store/index.ts';
import { DeliveryPublisher } from '../webhook/index.ts';
import { command } from './command.ts';
import { delivery } from './delivery.ts';
import { cleanup, reconcile } from './housekeeping.ts';
import { type JobResult, Lane } from './lane.ts';
import { lanes, limits } from './limits.ts';
import { sync } from './sync.ts';
import type { JobContext, JobKind, JobWorkerOptions, Outcome, Outcomes } from './types.ts';
import { write } from './write.ts';

const kinds: Readonly<Record<Job['kind'], JobKind>> = { delivery, command, sync, write, cleanup, reconcile };

export interface JobWorker {
  start(): void;
  /** Waits for running jobs up to `stopMs`, then returns them to the queue. */
  stop(): Promise<void>;
  /** Starts a scan for due automatic reviews; returns at once. */
  tickSoon(): void;
  /** Number of jobs ended in this process, by kind and result. */
  readonly ended: () => ReadonlyMap<Job['kind'], ReadonlyMap<JobResult, number>>;
  /** Number of jobs running in this process. */
  readonly running: () => number;
  /** Reason why no jobs of some kinds are executed at present; undefined while work continues. */
  readonly problem: () => string | undefined;
}

/** Creates the worker that executes the queued jobs. */
export function createJobWorker(
  options: JobWorkerOptions & { readonly leaseMs?: number; readonly renewMs?: number },
): JobWorker {
  const { store, runs, logger, node, leaseMs, renewMs } = options;
  const ended = new Map<Job['kind'], Map<JobResult, number>>();
  let isStopped = false;
  const ticks = new Pump(async () => {
    if (isStopped) return;
    await runs
      .tick()
      .catch((error: unknown) => logger[retryLevel(error)]('could not scan for due reviews; retrying', { error }));
  });
  const tickSoon = () => void ticks.request();
  const deliveries = new DeliveryPublisher(store, logger);
  const outcomes = new DeliveryOutcomes(store, deliveries);
  const context: JobContext = { ...options, outcomes, tickSoon };
  const all = lanes.map(
    (lane) =>
      new Lane({
        ...lane,
        store,
        owner: node,
        logger,
        work: (job, signal) => kinds[job.kind].work(job, context, signal),
        giveUp: async (job, failure) => kinds[job.kind].giveUp?.(job, context, failure),
        onEnd: (kind, result) => count(ended, kind, result),
        ...(leaseMs !== undefined && { leaseMs }),
        ...(renewMs !== undefined && { renewMs }),
      }),
  );
  let unsubscribe: (() => void) | undefined;
  return {
    start() {
      unsubscribe ??= store.onWake((what) => {
        if (what === 'jobs') for (const lane of all) lane.wake();
      });
      for (const lane of all) lane.wake();
    },
    async stop() {
      unsubscribe?.();
      unsubscribe = undefined;
      await Promise.all(all.map((lane) => lane.stop(limits.stopMs)));
      isStopped = true;
      await ticks.idle();
      await deliveries.close();
    },
    tickSoon,
    ended: () => ended,
    problem() {
      const still = all.find(({ idleMs }) => unsubscribe !== undefined && idleMs > limits.stalledMs);
      return still && `No job was claimed for ${Math.round(still.idleMs / 1_000)} s: ${still.kinds.join(', ')}.`;
    },
    running: () => all.reduce((sum, lane) => sum + lane.running, 0),
  };
}

function count(counts: Map<Job['kind'], Map<JobResult, number>>, kind: Job['kind'], result: JobResult): void {
  const ofKind = counts.get(kind) ?? new Map<JobResult, number>();
  ofKind.set(result, (ofKind.get(result) ?? 0) + 1);
  counts.set(kind, ofKind);
}

type DeliveryStore = Pick<ReviewStore, 'settleDeliveries' | 'setDeliveryOutcome'>;

/**
 * Saves and publishes the outcomes of deliveries. Many deliveries of one pull request can share one job, which knows only the first:
 * `pull` settles all queued ones.
 */
export class DeliveryOutcomes implements Outcomes {
  readonly #store: DeliveryStore;
  readonly #deliveries: Pick<DeliveryPublisher, 'add'>;

  constructor(store: DeliveryStore, deliveries: Pick<DeliveryPublisher, 'add'>) {
    this.#store = store;
    this.#deliveries = deliveries;
  }

  async delivery(deliveryId: string, { outcome, reason }: Outcome): Promise<void> {
    await this.#store.setDeliveryOutcome(deliveryId, outcome, reason);
    this.#deliveries.add({ deliveryId, outcome });
  }

  async pull(repositoryKey: string, number: number, { outcome, reason }: Outcome): Promise<void> {
    const settled = await this.#store.settleDeliveries(repositoryKey, number, outcome, reason);
    for (const deliveryId of settled) this.#deliveries.add({ deliveryId, outcome });
  }
}
