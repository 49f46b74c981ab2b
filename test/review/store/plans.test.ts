/** Query plans: no query of a delivery, job or review scans a whole table. */
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import t, { type Test } from 'tap';
import type { NewDelivery, ReviewStore } from '../../../src/review/store/index.ts';
import { facts, many, repositoryKey, sqliteSubject, wanted, wishFor } from './databases.ts';

const minute = 60_000;

const delivery = (deliveryId: string): NewDelivery => ({
  ...{ deliveryId, event: 'pull_request', action: 'opened', repositoryKey, number: 7, sender: 'alice' },
  ...{ outcome: 'queued', reason: null, tookMs: 1 },
  job: { kind: 'delivery', key: 'k', payload: {}, dedupe: 'k' },
  command: {
    ...{ commentId: 1, repositoryKey, number: 7, actor: 'alice', verb: 'review', focus: null },
    ...{ status: 'queued', errorCode: null },
  },
});

interface Plans {
  /** Prepares the rows that `store` is then asked for. */
  readonly before: ReviewStore;
  /** Has run nothing yet. */
  readonly store: ReviewStore;
  /** Query plans of the statements that `work` runs for the first time, one line per step. */
  readonly of: (work: () => Promise<unknown>) => Promise<string[]>;
}

async function scene(t: Test): Promise<Plans> {
  const { prepare } = DatabaseSync.prototype;
  const prepared = t.capture(DatabaseSync.prototype, 'prepare', prepare);
  const subject = sqliteSubject(t);
  const before = await subject.open();
  const store = await subject.open('two');
  if (!('directory' in subject.where)) throw new Error('These plans are those of SQLite');
  const sqlite = new DatabaseSync(join(subject.where.directory, 'backend.db'), { readOnly: true });
  t.teardown(() => sqlite.close());
  const explained = (statement: string) =>
    prepare
      .call(sqlite, `EXPLAIN QUERY PLAN ${statement}`)
      .all()
      .map(({ detail }) => String(detail));
  return {
    ...{ before, store },
    async of(work) {
      prepared();
      await work();
      return prepared().flatMap(({ args: [statement] }) => explained(statement));
    },
  };
}

/** Steps that read all of a table. An index that only has the rows that are looked for may be read from end to end. */
const wholeReads = (plan: readonly string[]) =>
  plan.filter(
    (step) => /^SCAN (?!picked\b)/.test(step) && !/ USING (COVERING )?INDEX runs(ByAge|OncePerPhase)/.test(step),
  );

t.test('frequent queries use an index', async (t) => {
  const { before, store, of } = await scene(t);
  await before.syncRepositories([wanted()]);
  const { item } = await before.upsertItem(facts(7));
  const { itemId } = item;
  await before.enqueueRun(wishFor(item));
  await before.enqueueJob({ kind: 'sync', key: 's', payload: {} });
  const [job] = await before.claimJobs('one', ['sync'], 1, minute);
  const claim = await before.claimRun('one', minute, many);
  if (!job || !claim) throw new Error('There is nothing to work on');
  const { lease, run } = claim;
  const write = { kind: 'reply', dedupeKey: 'w', repositoryKey, runId: run.runId, request: {} } as const;
  const hot: Readonly<Record<string, () => Promise<unknown>>> = {
    takeDelivery: () => store.takeDelivery(delivery('a')),
    'takeDelivery of a command that is known': () => store.takeDelivery(delivery('b')),
    settleDeliveries: () => store.settleDeliveries(repositoryKey, 7, 'processed', null),
    setDeliveryOutcome: () => store.setDeliveryOutcome('a', 'processed', null),
    enqueueJob: () => store.enqueueJob({ kind: 'sync', key: 's', payload: {} }),
    claimJobs: () => store.claimJobs('one', ['delivery', 'command'], 16, minute),
    renewJob: () => store.renewJob(job, minute),
    completeJob: () => Promise.all([store.completeJob(job), store.completeJob({ ...job, jobId: 99 })]),
    failJob: () => store.failJob(job, 'no', 0),
    enqueueRun: () => store.enqueueRun(wishFor(item, { headSha: 'newer' })),
    claimRun: () => store.claimRun('one', minute, many),
    'claimRun with an affinity': () => store.claimRun('one', minute, many, [repositoryKey]),
    renewRun: () => store.renewRun(run.runId, lease, minute),
    updateRun: () => store.updateRun(run.runId, lease, { state: 'reviewing' }),
    releaseRun: () => store.releaseRun(run.runId, lease, null),
    requestCancel: () => store.requestCancel(run.runId),
    upsertItem: () => store.upsertItem(facts(8)),
    itemActivity: () => store.itemActivity([itemId]),
    openFindings: () => store.openFindings(itemId),
    putWrite: () => store.putWrite(write, (writeId) => ({ kind: 'write', key: 'w', payload: { writeId } })),
    publish: () => store.publish('run.changed', {}),
    events: () => store.events(0, 100),
  };
  for (const [name, work] of Object.entries(hot)) {
    const plan = await of(work);
    t.strictSame(wholeReads(plan), [], `${name}: ${plan.join('; ')}`);
  }
});

t.test('the next job and run are read from an index, without sorting', async (t) => {
  const { store, of } = await scene(t);
  const jobs = await of(() => store.claimJobs('one', ['delivery'], 16, minute));
  t.ok(
    jobs.some((step) => step.startsWith('SEARCH jobs USING INDEX jobsDue')),
    jobs.join('; '),
  );
  t.notOk(
    jobs.some((step) => /TEMP B-TREE/.test(step)),
    'no query sorts',
  );
  t.ok(jobs.some((step) => /^SEARCH earlier USING (COVERING )?INDEX jobsByKey/.test(step)));
  const runs = await of(() => store.claimRun('one', minute, many));
  t.ok(
    runs.some((step) => /^SCAN runs USING INDEX runsByAge/.test(step)),
    runs.join('; '),
  );
  t.ok(runs.some((step) => /^SEARCH live USING (COVERING )?INDEX runsAtWork/.test(step)));
  t.notOk(
    runs.some((step) => /TEMP B-TREE/.test(step)),
    'the first row read is the oldest',
  );
  const settled = await of(() => store.settleDeliveries(repositoryKey, 7, 'processed', null));
  t.ok(
    settled.some((step) => /^SEARCH deliveries USING (COVERING )?INDEX deliveriesQueued/.test(step)),
    settled.join('; '),
  );
});
