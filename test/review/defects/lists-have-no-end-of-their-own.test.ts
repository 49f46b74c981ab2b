import t from 'tap';
import { storedRepository, world } from '../github/harness.ts';

t.test('more than a thousand open pull requests are all found, page by page', async (t) => {
  const all = await world(t);
  const { forge, repo, source, store } = all;
  for (let number = 100; number < 1_250; number += 1)
    forge.addPull(repo, { number, updatedAt: 1_700_000_000_000 + number * 1_000 });
  await source.syncRepository(await storedRepository(all));
  t.equal((await store.openItemCounts()).get('github:github.com/acme/shop'), 1_151);
});
