import t from 'tap';
import { World } from '../runs/world.ts';

t.test('a review with warnings is published by itself all the same, and keeps them', async (t) => {
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
