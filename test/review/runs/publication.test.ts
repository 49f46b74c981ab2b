import t from 'tap';
import { World } from './world.ts';

t.test('regression: Auto Review publishes a draft with warnings and retains them', async (t) => {
  const world = await World.create(t);
  const { review } = world.agent;
  world.agent.review = async (...given) => ({ ...(await review(...given)), warnings: ['"A" has no line of its own.'] });
  await world.runs.tick();
  world.runs.start();
  await world.until(() => world.forge.of('review').length === 1);
  await world.until(async () => (await world.store.drafts({ status: 'published', limit: 1 })).rows.length === 1);
  const { rows } = await world.store.drafts({ limit: 1 });
  t.match(rows, [{ status: 'published', blockedBy: null, warnings: ['"A" has no line of its own.'] }]);
});

t.test('regression: publishing again completes a draft whose writes were not saved', async (t) => {
  const world = await World.create(t);
  world.runs.start();
  const runId = await world.dispatch('manual');
  await world.ended(runId);
  const { draftId = '' } = (await world.store.draftOfRun(runId)) ?? {};
  await world.subject.sql(`UPDATE "drafts" SET "status" = 'publishing'`);
  await world.runs.publish(draftId, { override: false });
  await world.runs.publish(draftId, { override: false });
  await world.send();
  t.match(await world.store.draft(draftId), { status: 'published' });
  t.equal(world.forge.of('review').length, 1);
});
