import { deepStrictEqual, ok, rejects } from 'node:assert';
import fc from 'fast-check';
import t from 'tap';
import {
  type Lease,
  LeaseLostError,
  type ReviewStore,
  type RunLimits,
  type StoredItem,
} from '../../../../src/review/store/index.ts';
import { facts, onBoth, runsOn, type Subject, wanted, wishFor } from '../databases.ts';

const hour = 3_600_000;
const pulls = [
  ['a', 1],
  ['a', 2],
  ['b', 1],
] as const;

interface ModelRun {
  readonly runId: string;
  readonly item: StoredItem;
  readonly headSha: string;
  readonly focus: string | null;
  phase: 'waiting' | 'active' | 'ended';
  state: string;
  isDue: boolean;
  isCancelled: boolean;
  /** Lease that was not released; `isLive` until it expires. */
  lease: Lease | undefined;
  isLive: boolean;
}

interface World {
  readonly store: ReviewStore;
  readonly subject: Subject;
  readonly items: readonly StoredItem[];
  /** In the order in which they were made. */
  readonly runs: ModelRun[];
  readonly leases: { readonly run: ModelRun; readonly lease: Lease }[];
}
type Step = (world: World) => Promise<void>;

const isOf = (run: ModelRun, item: StoredItem) => run.item.itemId === item.itemId;
const endAs = (run: ModelRun, state: string) =>
  Object.assign(run, { phase: 'ended', state, lease: undefined, isLive: false });

const enqueue = fc
  .record({ item: fc.nat(), headSha: fc.constantFrom('x', 'y', 'z'), focus: fc.constantFrom(null, 'locks') })
  .map(
    ({ item: index, headSha, focus }): Step =>
      async ({ store, items, runs }) => {
        const item = items[index % items.length];
        if (!item) return;
        const present = runs.filter((run) => isOf(run, item) && run.phase !== 'ended');
        const same = present.find((run) => run.headSha === headSha && run.focus === focus && !run.isCancelled);
        const { run, isNew } = await store.enqueueRun(wishFor(item, { headSha, focus }));
        deepStrictEqual(isNew, same === undefined);
        if (same) return deepStrictEqual(run.runId, same.runId);
        for (const each of present) {
          if (each.phase === 'waiting' || (!each.lease && each.state !== 'publishing')) endAs(each, 'superseded');
        }
        const made = { runId: run.runId, item, headSha, focus, phase: 'waiting', state: 'queued' } as const;
        runs.push({ ...made, isDue: true, isCancelled: false, lease: undefined, isLive: false });
      },
  );

function claimable({ runs }: World, limits: RunLimits): ModelRun | undefined {
  const live = runs.filter(({ isLive }) => isLive);
  if (live.length >= limits.global || live.length >= limits.perSource) return undefined;
  return runs.find((run) => {
    const ofItem = runs.some((other) => isOf(other, run.item) && other.phase === 'active');
    const ofRepository = live.filter(({ item }) => item.repositoryKey === run.item.repositoryKey);
    const mayBegin = run.phase === 'active' ? !run.isLive : run.phase === 'waiting' && !ofItem;
    return mayBegin && run.isDue && ofRepository.length < limits.perRepository;
  });
}

const claim = fc
  .record({
    global: fc.integer({ min: 0, max: 4 }),
    perRepository: fc.integer({ min: 1, max: 3 }),
    perSource: fc.integer({ min: 1, max: 4 }),
  })
  .map(
    (limits): Step =>
      async (world) => {
        const expected = claimable(world, limits);
        const claimed = await world.store.claimRun('one', hour, limits);
        deepStrictEqual(claimed?.run.runId, expected?.runId);
        if (!claimed || !expected) return;
        deepStrictEqual(claimed.run.state, expected.state);
        Object.assign(expected, { phase: 'active', lease: claimed.lease, isLive: true, isDue: true });
        world.leases.push({ run: expected, lease: claimed.lease });
      },
  );

const states = ['reviewing', 'publishing', 'done', 'failed', 'cancelled'] as const;
const use = fc.tuple(fc.nat(), fc.constantFrom('renew', 'release', 'release later', ...states)).map(
  ([index, how]): Step =>
    async ({ store, runs, leases }) => {
      const one = leases[index % Math.max(leases.length, 1)];
      if (!one) return;
      const { run, lease } = one;
      const work = () => {
        if (how === 'renew') return store.renewRun(run.runId, lease, hour);
        if (how === 'release') return store.releaseRun(run.runId, lease, null);
        if (how === 'release later') return store.releaseRun(run.runId, lease, Date.now() + hour);
        return store.updateRun(run.runId, lease, { state: how });
      };
      if (run.lease !== lease) return rejects(work, LeaseLostError);
      await work();
      if (how === 'renew') run.isLive = true;
      else if (how === 'release' || how === 'release later') {
        Object.assign(run, { lease: undefined, isLive: false, isDue: how === 'release' });
        const waits = runs.some((other) => isOf(other, run.item) && other.phase === 'waiting');
        if (waits && run.state !== 'publishing') endAs(run, 'superseded');
      } else if (how === 'reviewing' || how === 'publishing') run.state = how;
      else endAs(run, how);
    },
);

const cancel = fc.nat().map(
  (index): Step =>
    async ({ store, runs }) => {
      const run = runs[index % Math.max(runs.length, 1)];
      if (!run) return;
      const found = await store.requestCancel(run.runId);
      if (run.phase !== 'ended') run.isCancelled = true;
      const isIdle = run.phase === 'active' && !run.lease && run.state !== 'publishing';
      if (run.phase === 'waiting' || isIdle) endAs(run, 'cancelled');
      deepStrictEqual([found?.state, found?.isCancelRequested], [run.state, run.isCancelled]);
    },
);

const passTime = fc.constant<Step>(async ({ subject, runs }) => {
  await subject.sql('UPDATE "runs" SET "leaseUntil" = 0, "nextAttemptAt" = NULL');
  for (const run of runs) Object.assign(run, { isLive: false, isDue: true });
});

const steps = fc.array(
  fc.oneof(
    { weight: 4, arbitrary: enqueue },
    { weight: 4, arbitrary: claim },
    { weight: 4, arbitrary: use },
    { weight: 1, arbitrary: cancel },
    { weight: 1, arbitrary: passTime },
  ),
  { minLength: 10, maxLength: 50 },
);

onBoth(t, 'after any operations the runs equal their model', async (t, subject) => {
  const store = await subject.open();
  await store.syncRepositories([wanted('a'), wanted('b')]);
  const items: StoredItem[] = [];
  for (const [name, number] of pulls) {
    const { item } = await store.upsertItem(facts(number, { repositoryKey: wanted(name).repositoryKey }));
    items.push(item);
  }
  await fc.assert(
    fc.asyncProperty(steps, async (all) => {
      await subject.sql('DELETE FROM "runs"');
      const world: World = { store, subject, items, runs: [], leases: [] };
      for (const step of all) await step(world);
      const { rows } = await store.runs({ limit: 1_000 });
      deepStrictEqual(
        rows.toReversed().map(({ runId, state, isCancelRequested }) => [runId, state, isCancelRequested]),
        world.runs.map(({ runId, state, isCancelled }) => [runId, state, isCancelled]),
      );
      const phases = await subject.sql('SELECT "itemId", "phase" FROM "runs" WHERE "phase" IS NOT NULL');
      const seen = phases.map(({ itemId, phase }) => `${itemId} ${phase}`);
      ok(new Set(seen).size === seen.length, 'at most one of each phase per item');
    }),
    { numRuns: runsOn(subject) },
  );
  t.pass('they are');
});
