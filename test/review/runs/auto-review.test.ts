import t from 'tap';
import { facts } from '../store/databases.ts';
import { World } from './world.ts';

const open = 450;

t.test('regression: Auto Review queues every new open head among hundreds, newest first', async (t) => {
  const world = await World.create(t, { AgentServer: { GlobalMaxActiveRuns: 1 } });
  const { store } = world;
  await store.updateItem((await world.item()).itemId, { dispatchedHeadSha: 'head-1' });
  // The oldest are known, as after months of work: they must not hide the new ones.
  for (let number = 2; number <= open; number += 1) {
    const { item } = await store.upsertItem(facts(number, { state: number % 9 === 0 ? 'closed' : 'open' }));
    if (number <= 250) await store.updateItem(item.itemId, { dispatchedHeadSha: item.headSha });
  }
  const due = Array.from({ length: open - 250 }, (_, at) => open - at).filter((number) => number % 9 !== 0);
  t.equal(await world.runs.tick(), due.length);
  const { rows } = await store.runs({ limit: 1_000 });
  t.same(rows.map(({ number }) => number).reverse(), due);
  t.equal(await world.runs.tick(), 0, 'once for each head');
});

t.test('an automatic review run links to the delivery that reported its head', async (t) => {
  const world = await World.create(t);
  const { headSha, updatedAt } = facts(1);
  await world.store.upsertItem(facts(1, { headSha: `${headSha}-new`, updatedAt: updatedAt + 1 }), 'delivery-1');
  t.equal(await world.runs.tick(), 1);
  const { rows } = await world.store.runs({ limit: 1 });
  t.match(rows, [{ trigger: 'auto', deliveryId: 'delivery-1' }]);
});
