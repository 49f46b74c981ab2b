/**
 * Uses a store until it is killed, and prints one line after each step. Its argument is JSON: `{where, owner, mode}`. `intake`:
 * accepts deliveries, prints the id of each accepted one. `work`: claims jobs and completes them; prints `begin` and `done` with
 * the number in the payload, and ends without jobs. `hold`: leases a job and a run for `leaseMs`, prints `holds`, tries to end
 * both when its input has a line, and prints the result.
 */
import { once } from 'node:events';
import { writeSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { createLogger } from '../../../src/log/index.ts';
import { openReviewStore, type ReviewStore } from '../../../src/review/store/index.ts';

export interface WorkerOrder {
  readonly where: { readonly connectionString: string } | { readonly directory: string };
  readonly owner: string;
  readonly mode: 'intake' | 'work' | 'hold';
  readonly leaseMs?: number;
}

/** A pipe whose reader is slow may ask to be tried again. */
function say(line: string): void {
  const bytes = Buffer.from(`${line}\n`);
  for (let at = 0; at < bytes.length; ) {
    try {
      at += writeSync(1, bytes, at);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') throw error;
    }
  }
}

async function intake(store: ReviewStore, owner: string): Promise<never> {
  for (let number = 0; ; number += 10) {
    await Promise.all(
      Array.from({ length: 10 }, async (_, index) => {
        const deliveryId = `${owner} ${number + index}`;
        const job = { kind: 'delivery', key: deliveryId, payload: { deliveryId } } as const;
        const rest = { action: null, repositoryKey: null, number: null, sender: null, reason: null, command: null };
        await store.takeDelivery({ ...rest, deliveryId, event: 'push', outcome: 'queued', tookMs: 1, job });
        say(deliveryId);
      }),
    );
  }
}

async function work(store: ReviewStore, owner: string): Promise<void> {
  for (;;) {
    const jobs = await store.claimJobs(owner, ['delivery'], 5, 3_600_000);
    if (jobs.length === 0) return;
    await Promise.all(
      jobs.map(async (job) => {
        say(`begin ${job.payload['number']}`);
        if (await store.completeJob(job)) say(`done ${job.payload['number']}`);
      }),
    );
  }
}

async function hold(store: ReviewStore, owner: string, leaseMs: number): Promise<void> {
  const [job] = await store.claimJobs(owner, ['delivery'], 1, leaseMs);
  const claim = await store.claimRun(owner, leaseMs, { global: 9, perRepository: 9, perSource: 9 });
  if (!job || !claim) throw new Error('There is nothing to take');
  const input = createInterface({ input: process.stdin });
  const command = once(input, 'line');
  say('holds');
  await command;
  input.close();
  say(`job ${await store.completeJob(job)}`);
  const end = await store.updateRun(claim.run.runId, claim.lease, { state: 'done' }).catch((error: Error) => error);
  say(`run ${end instanceof Error ? end.name : end.state}`);
}

const { where, owner, mode, leaseMs = 3_600_000 } = JSON.parse(process.argv[2] ?? '') as WorkerOrder;
const store = await openReviewStore({ ...where, owner, logger: createLogger({ name: 'worker', level: 'warn' }) });
await { intake, work, hold }[mode](store, owner, leaseMs);
await store.close();
