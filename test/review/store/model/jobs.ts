import { deepStrictEqual, ok } from 'node:assert';
import fc from 'fast-check';
import t from 'tap';
import type { Job, ReviewStore } from '../../../../src/review/store/index.ts';
import { onBoth, runsOn, type Subject } from '../databases.ts';

const hour = 3_600_000;
const kinds = ['delivery', 'sync'] as const;

interface ModelJob {
  readonly number: number;
  readonly kind: Job['kind'];
  readonly key: string;
  readonly dedupe: string | undefined;
  isDue: boolean;
  lease: Job | undefined;
  again: boolean;
  attempt: number;
}

/** The queue as a list: the simplest model of the database's duties. */
class Model {
  jobs: ModelJob[] = [];
  dead = 0;
  #made = 0;

  enqueue(kind: Job['kind'], key: string, dedupe: string | undefined, isDue: boolean): void {
    const same = this.jobs.find((job) => dedupe !== undefined && job.kind === kind && job.dedupe === dedupe);
    if (!same) {
      this.#made += 1;
      this.jobs.push({ number: this.#made, kind, key, dedupe, isDue, lease: undefined, again: false, attempt: 0 });
    } else if (same.lease) same.again = true;
    else same.isDue ||= isDue;
  }

  /** First of their keys, due, and of the kinds that are asked for. */
  claimable(wanted: readonly Job['kind'][]): ModelJob[] {
    return this.jobs.filter(
      (job) => job.isDue && wanted.includes(job.kind) && this.jobs.find(({ key }) => key === job.key) === job,
    );
  }

  take(job: ModelJob, lease: Job): void {
    Object.assign(job, { lease, isDue: false, again: false, attempt: job.attempt + 1 });
  }

  holding(lease: Job): ModelJob | undefined {
    return this.jobs.find((job) => job.lease?.jobId === lease.jobId && job.lease.lease.token === lease.lease.token);
  }

  complete(job: ModelJob): void {
    if (job.again) Object.assign(job, { lease: undefined, isDue: true, again: false, attempt: 0 });
    else this.#remove(job);
  }

  fail(job: ModelJob, isDue: boolean): void {
    Object.assign(job, { lease: undefined, isDue, again: false });
  }

  bury(job: ModelJob): void {
    this.#remove(job);
    this.dead += 1;
    if (job.again) this.enqueue(job.kind, job.key, job.dedupe, true);
  }

  /** All that waited for its time, and all whose lease ran out. */
  passTime(): void {
    for (const job of this.jobs) job.isDue = true;
  }

  #remove(job: ModelJob): void {
    this.jobs = this.jobs.filter((each) => each !== job);
  }
}

interface World {
  readonly store: ReviewStore;
  readonly subject: Subject;
  readonly model: Model;
  /** Every lease that was ever given: also the ones that were lost. */
  readonly leases: Job[];
}
type Step = (world: World) => Promise<void>;

const someKind = fc.constantFrom(...kinds);
const enqueue = fc
  .record({
    kind: someKind,
    key: fc.constantFrom('a', 'b', 'c'),
    dedupe: fc.option(fc.constantFrom('x', 'y'), { nil: undefined }),
    isDue: fc.boolean(),
  })
  .map(
    ({ kind, key, dedupe, isDue }): Step =>
      async ({ store, model }) => {
        await store.enqueueJob({
          kind,
          key,
          payload: {},
          ...(dedupe !== undefined && { dedupe }),
          ...(!isDue && { delayMs: hour }),
        });
        model.enqueue(kind, key, dedupe, isDue);
      },
  );

const claim = fc
  .tuple(fc.subarray([...kinds], { minLength: 1 }), fc.integer({ min: 1, max: 4 }), fc.constantFrom('one', 'two'))
  .map(
    ([wanted, limit, owner]): Step =>
      async ({ store, model, leases }) => {
        const claimable = model.claimable(wanted);
        const taken = await store.claimJobs(owner, wanted, limit, hour);
        deepStrictEqual(taken.length, Math.min(limit, claimable.length));
        for (const job of taken) {
          // A job of a key is known by its key: only the first can be taken.
          const own = claimable.find(({ key }) => key === job.key);
          ok(own, 'only what may be taken is taken');
          model.take(own, job);
          deepStrictEqual([job.kind, job.attempt, job.lease.owner], [own.kind, own.attempt, owner]);
          leases.push(job);
        }
      },
  );

/** Ends a lease that was given at some time, in some way. */
const end = fc.tuple(fc.nat(), fc.constantFrom('complete', 'fail now', 'fail later', 'bury', 'renew')).map(
  ([index, how]): Step =>
    async ({ store, model, leases }) => {
      const lease = leases[index % Math.max(leases.length, 1)];
      if (!lease) return;
      const job = model.holding(lease);
      const isHeld = job !== undefined;
      if (how === 'renew') {
        deepStrictEqual((await store.renewJob(lease, hour)) !== undefined, isHeld);
        if (job) job.isDue = false;
      } else if (how === 'complete') {
        deepStrictEqual(await store.completeJob(lease), isHeld);
        if (job) model.complete(job);
      } else if (how === 'bury') {
        deepStrictEqual(await store.failJob(lease, 'no', 'dead'), isHeld);
        if (job) model.bury(job);
      } else {
        deepStrictEqual(await store.failJob(lease, 'no', how === 'fail now' ? 0 : hour), isHeld);
        if (job) model.fail(job, how === 'fail now');
      }
    },
);

const passTime = fc.constant<Step>(async ({ subject, model }) => {
  await subject.sql('UPDATE "jobs" SET "dueAt" = 1');
  model.passTime();
});

const steps = fc.array(
  fc.oneof(
    { weight: 4, arbitrary: enqueue },
    { weight: 3, arbitrary: claim },
    { weight: 4, arbitrary: end },
    { weight: 1, arbitrary: passTime },
  ),
  { maxLength: 40 },
);

onBoth(t, 'after any operations the queue equals its model', async (t, subject) => {
  const store = await subject.open();
  await fc.assert(
    fc.asyncProperty(steps, async (all) => {
      for (const table of ['jobs', 'deadJobs']) await subject.sql(`DELETE FROM "${table}"`);
      const world: World = { store, subject, model: new Model(), leases: [] };
      for (const step of all) await step(world);
      const rows = await subject.sql('SELECT "key", "kind", "again" FROM "jobs" ORDER BY "jobId"');
      deepStrictEqual(
        rows.map(({ key, kind, again }) => [key, kind, Number(again) === 1]),
        world.model.jobs.map(({ key, kind, again }) => [key, kind, again]),
      );
      deepStrictEqual((await store.deadJobs(100)).length, world.model.dead);
    }),
    { numRuns: runsOn(subject) },
  );
  t.pass('it does');
});
