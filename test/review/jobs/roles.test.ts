import fc from 'fast-check';
import t from 'tap';
import { isDue, Roles, type RolesOptions } from '../../../src/review/jobs/index.ts';
import type { StoredRepository } from '../../../src/review/store/index.ts';
import { quiet, sqliteSubject, wanted } from '../store/databases.ts';
import { settingsWith } from '../webhook/harness.ts';
import { forbidden, repositoryKey, scene } from './harness.ts';

const looked = (key: string, lastSyncAt: number | null, errorAt: number | null = null) => ({
  repositoryKey: key,
  lastSyncAt,
  lastSyncError: errorAt === null ? null : { code: 'forbidden', message: 'no', at: errorAt },
});

t.test('every repository is due once per interval, spread over the interval', (t) => {
  const intervalMs = 300_000;
  fc.assert(
    fc.property(fc.string({ minLength: 1 }), fc.integer({ min: 1e12, max: 2e12 }), (key, from) => {
      let last: number = from;
      let times = 0;
      for (let now = from; now < from + 10 * intervalMs; now += 1_000) {
        if (!isDue(looked(key, last), 0, now, intervalMs)) continue;
        last = now;
        times += 1;
      }
      return times >= 9 && times <= 11;
    }),
    { numRuns: 50 },
  );
  const keys = Array.from({ length: 1_000 }, (_, index) => `github:github.com/octo/r${index}`);
  const now = 1_800_000_000_000;
  const perSlice = new Array<number>(10).fill(0);
  for (const key of keys) {
    for (let slice = 0; slice < 10; slice += 1) {
      const at = now + slice * (intervalMs / 10);
      if (!isDue(looked(key, at), 0, at + intervalMs / 10, intervalMs)) continue;
      perSlice[slice] = (perSlice[slice] ?? 0) + 1;
    }
  }
  for (const count of perSlice) t.ok(count > 40 && count < 200, `${count} in a tenth of the interval`);
  t.end();
});

t.test(
  'a repository never synced is due; a failed one waits for the next interval; a clock set back stops no sync',
  (t) => {
    const now = 1_800_000_000_000;
    t.ok(isDue(looked('a', null), 0, now, 300_000));
    t.notOk(isDue(looked('a', null), now, now, 300_000), 'it is in the queue');
    t.notOk(isDue(looked('a', null, now), 0, now, 300_000));
    t.ok(isDue(looked('a', now + 86_400_000), 0, now, 300_000));
    t.end();
  },
);

t.test('one of two processes has each role, and the other takes it when the first stops', async (t) => {
  const subject = sqliteSubject(t);
  const store = await subject.open();
  await store.syncRepositories([wanted()]);
  const at = await store.now();
  const queued = (node: string) => {
    const jobs: string[] = [];
    const options: RolesOptions = {
      store: {
        ...store,
        // The moment of a repository within the interval may be this very one: it would be due twice.
        now: async () => at,
        enqueueJob: async (job) => {
          jobs.push(job.kind);
          await store.enqueueJob(job);
        },
      },
      ...{ settings: () => settingsWith(), node, logger: quiet, tick: () => {}, hasSource: () => true, tickMs: 5 },
    };
    return { roles: new Roles(options), jobs };
  };
  const [one, two] = [queued('one'), queued('two')];
  one.roles.start();
  while (one.jobs.length < 3) await new Promise((resolve) => setTimeout(resolve, 5));
  two.roles.start();
  await new Promise((resolve) => setTimeout(resolve, 50));
  t.same(one.jobs.toSorted(), ['cleanup', 'reconcile', 'sync']);
  t.same(two.jobs, []);
  await one.roles.stop();
  while (two.jobs.length < 3) await new Promise((resolve) => setTimeout(resolve, 5));
  await two.roles.stop();
  const { jobs } = await store.backlog();
  t.equal(jobs.get('sync')?.waiting, 1, 'the same work is in the queue once');
});

t.test('without credentials no job that needs the source is queued', async (t) => {
  const subject = sqliteSubject(t);
  const store = await subject.open();
  await store.syncRepositories([wanted()]);
  const options = { settings: () => settingsWith(), node: 'one', logger: quiet, tick: () => {}, tickMs: 5 };
  const roles = new Roles({ ...options, store, hasSource: () => false });
  roles.start();
  while ((await store.backlog()).jobs.get('cleanup') === undefined) await new Promise((next) => setTimeout(next, 5));
  await roles.stop();
  t.same([...(await store.backlog()).jobs.keys()], ['cleanup']);
});

t.test('a repository that always fails does not delay other syncs', async (t) => {
  const names = ['bad', 'hello', 'three', 'four', 'five'];
  const world = await scene(t, {
    Repositories: names.map((name) => `octo/${name}`),
  });
  await world.store.syncRepositories(names.map((name) => wanted(name)));
  const bad: StoredRepository['repositoryKey'] = 'github:github.com/octo/bad';
  world.forge.syncFailures.set(bad, forbidden());
  const options = { settings: () => world.settings, node: 'one', logger: quiet, tick: () => {}, tickMs: 5 };
  // The moment of a repository within the interval may be this very one: it would be due twice.
  const at = await world.store.now();
  const roles = new Roles({ ...options, store: { ...world.store, now: async () => at }, hasSource: () => true });
  roles.start();
  while (new Set(world.forge.synced).size < names.length) await new Promise((resolve) => setTimeout(resolve, 5));
  await roles.stop();
  await world.idle();
  t.equal(world.forge.synced.length, names.length, 'each once');
  t.ok(world.forge.synced.includes(repositoryKey));
});
