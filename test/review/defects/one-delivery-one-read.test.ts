import t from 'tap';
import { WebhookIntake } from '../../../src/review/webhook/index.ts';
import { facts, scene } from '../jobs/harness.ts';
import { quiet } from '../store/databases.ts';
import { deliverTo } from '../webhook/harness.ts';

const payload = (name: string) => ({
  action: 'synchronize',
  repository: { full_name: name, html_url: `https://github.com/${name}` },
  pull_request: { number: 7 },
  number: 7,
});

t.test('a delivery about one pull request reads that one, and looks through no repository', async (t) => {
  const world = await scene(t);
  world.forge.pulls.set(8, facts(8));
  const intake = new WebhookIntake({ settings: () => world.settings, store: world.store, logger: quiet });
  t.teardown(() => intake.close());
  t.match(await deliverTo(intake, { event: 'pull_request', body: payload('octo/hello') }), { status: 202 });
  await world.idle();
  t.equal(world.forge.reads, 1);
  t.same(world.forge.synced, []);
  t.same(
    (await world.store.items({ limit: 10 })).rows.map(({ number }) => number),
    [7],
  );
});

t.test('a delivery about a repository that is not configured asks the forge for nothing', async (t) => {
  const world = await scene(t);
  const intake = new WebhookIntake({ settings: () => world.settings, store: world.store, logger: quiet });
  t.teardown(() => intake.close());
  t.match(await deliverTo(intake, { event: 'pull_request', body: payload('octo/stranger') }), {
    status: 202,
    body: { status: 'ignored', reason: 'repositoryNotConfigured' },
  });
  await world.idle();
  t.equal(world.forge.reads, 0);
  t.same(world.forge.synced, []);
});
