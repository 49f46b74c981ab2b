import t from 'tap';
import { facts, onBoth, repositoryKey, wanted, wishFor, withItem } from '../databases.ts';

onBoth(t, 'a sync updates the repositories from the configuration', async (t, subject) => {
  const store = await subject.open();
  await store.syncRepositories([wanted('a', true), wanted('b')]);
  const [a, b] = await store.repositories();
  t.match(a, { name: 'a', isEnabled: true, autoReview: true, baselineAt: Number, etag: null });
  t.match(b, { name: 'b', isEnabled: true, autoReview: false, baselineAt: null });

  await store.updateRepository(wanted('a').repositoryKey, {
    etag: 'W/"1"',
    lastSyncError: { code: 'rateLimited', message: 'wait', at: 7 },
  });
  await store.syncRepositories([wanted('a', true)]);
  t.strictSame(
    await store.repository(wanted('a').repositoryKey),
    { ...a, etag: 'W/"1"', lastSyncError: { code: 'rateLimited', message: 'wait', at: 7 } },
    'what is known of it stays, and so does its baseline',
  );
  t.match(await store.repository(wanted('b').repositoryKey), { isEnabled: false }, 'one that left is disabled');
  await store.syncRepositories([]);
  t.strictSame(
    (await store.repositories()).map(({ isEnabled }) => isEnabled),
    [false, false],
  );
  await t.rejects(store.updateRepository('github:github.com/octo/none', { etag: null }), { code: 'notFound' });
  t.equal(await store.repository('github:github.com/octo/none'), undefined);
});

onBoth(t, 'an item is inserted, then updated by newer facts only', async (t, subject) => {
  const { store, item } = await withItem(subject);
  t.strictSame(item, {
    ...facts(1),
    itemId: item.itemId,
    dispatchedHeadSha: null,
    reviewedHeadSha: null,
    reviewedBaseSha: null,
    automaticReviews: 0,
    isPaused: false,
    summaryCommentId: null,
    deliveryId: null,
  });
  t.strictSame(await store.upsertItem(facts(1)), { item, changed: false, headChanged: false });
  const later = facts(1).updatedAt + 1;
  const titled = await store.upsertItem(facts(1, { title: 'Better', labels: ['bug'], updatedAt: later }));
  t.match(titled, { changed: true, headChanged: false, item: { itemId: item.itemId, title: 'Better' } });
  const pushed = await store.upsertItem(facts(1, { headSha: 'head-2', updatedAt: later + 1 }));
  t.match(pushed, { changed: true, headChanged: true, item: { headSha: 'head-2' } });
  const late = await store.upsertItem(facts(1, { title: 'Old', updatedAt: later }));
  t.strictSame(late, { item: pushed.item, changed: false, headChanged: false }, 'what is older changes nothing');
  t.strictSame(await store.itemByNumber(repositoryKey, 1), pushed.item);
  t.strictSame(await store.item(item.itemId), pushed.item);
  await store.updateItem(item.itemId, { isPaused: true, automaticReviews: 3, reviewedHeadSha: 'head-2' });
  t.match(await store.item(item.itemId), { isPaused: true, automaticReviews: 3, title: pushed.item.title });
  t.equal(await store.item('none'), undefined);
  await t.rejects(store.updateItem('none', { isPaused: true }), { code: 'notFound' });
  await t.rejects(store.upsertItem({ ...facts(1), repositoryKey: 'github:github.com/octo/none' }), {
    code: 'notFound',
  });
});

onBoth(t, 'any text can be stored', async (t, subject) => {
  const { store } = await withItem(subject);
  const texts = { title: 'a\0b \ud800', description: 'ünïcödé 🎉\r\n"\'\\', labels: ['\0', '%'] };
  const first = await store.upsertItem(facts(2, texts));
  t.match(first.item, { title: 'a\ufffdb \ufffd', description: texts.description, labels: ['\0', '%'] });
  t.equal((await store.upsertItem(facts(2, texts))).changed, false, 'and is the same the next time');
});

onBoth(t, 'concurrent inserts of one item create it once', async (t, subject) => {
  const { store } = await withItem(subject);
  const other = await subject.open('two');
  const all = await Promise.all(
    Array.from({ length: 20 }, (_, n) => (n % 2 === 0 ? store : other).upsertItem(facts(5, { headSha: `h${n % 3}` }))),
  );
  t.equal(new Set(all.map(({ item }) => item.itemId)).size, 1);
  t.equal(all.filter(({ headChanged }) => headChanged).length >= 1, true);
});

onBoth(t, 'items are listed newest first, by page, and can be searched', async (t, subject) => {
  const store = await subject.open();
  await store.syncRepositories([wanted(), wanted('other')]);
  for (let number = 1; number <= 7; number += 1)
    await store.upsertItem(facts(number, { updatedAt: 10 + (number % 3) }));
  const other = wanted('other').repositoryKey;
  await store.upsertItem(facts(1, { repositoryKey: other, title: 'ÄRGER 100%', author: 'Bob', state: 'closed' }));

  const seen: number[] = [];
  for (let cursor: string | undefined, pages = 0; pages < 9; pages += 1) {
    const page = await store.items({ repositoryKey, limit: 2, ...(cursor !== undefined && { cursor }) });
    seen.push(...page.rows.map(({ number }) => number));
    cursor = page.next;
    if (cursor === undefined) break;
  }
  t.strictSame(seen, [5, 2, 7, 4, 1, 6, 3]);
  const numbers = async (q: string) => (await store.items({ q, limit: 10 })).rows.map(({ number }) => number);
  t.strictSame(await numbers('ärger bob'), [1], 'in any case, all words');
  t.strictSame(await numbers('100%'), [1]);
  t.strictSame(await numbers('_____'), [], 'nothing is a wildcard');
  t.strictSame(await numbers('#7'), [7]);
  t.strictSame(await numbers('alice nobody'), []);
  t.equal((await store.items({ state: 'closed', limit: 10 })).rows.length, 1);
  t.strictSame(await store.openItemCounts(), new Map([[repositoryKey, 7]]));
  for (const cursor of ['', 'x', '💥', 'WzFd', Buffer.from('[1,"2"]').toString('base64url')])
    await t.rejects(store.items({ limit: 2, cursor }), { code: 'invalidCursor' }, `cursor ${cursor}`);
});

onBoth(t, 'Auto Review is due for new heads only', async (t, subject) => {
  const store = await subject.open();
  await store.syncRepositories([wanted()]);
  const known = await store.upsertItem(facts(1));
  t.strictSame(await store.dueForAutoReview(10), [], 'it is off');
  await store.syncRepositories([wanted('hello', true)]);
  t.strictSame(await store.dueForAutoReview(10), [], 'what was there is the baseline');
  const [repository] = await store.repositories();
  const baselineAt = repository?.baselineAt ?? Number.NaN;
  await store.upsertItem(facts(2, { updatedAt: baselineAt - 2_000 }));
  t.strictSame(await store.dueForAutoReview(10), [], 'also what is found later and is older');

  // A forge reports whole seconds.
  const second = Math.floor(baselineAt / 1_000) * 1_000;
  await store.upsertItem(facts(3, { updatedAt: second }));
  await store.upsertItem(facts(1, { headSha: 'head-1b', updatedAt: second + 2_000 }));
  await store.upsertItem(facts(4, { updatedAt: second + 1_000, state: 'closed' }));
  const due = await store.dueForAutoReview(10);
  t.strictSame(
    due.map(({ number }) => number),
    [1, 3],
  );
  const [first] = await store.dueForAutoReview(1);
  t.equal(first?.number, 1);
  if (!first) return;
  t.strictSame(
    (await store.dueForAutoReview(5, first)).map(({ number }) => number),
    [3],
    'page by page',
  );
  await store.enqueueRun(wishFor(first));
  t.match(await store.item(known.item.itemId), { dispatchedHeadSha: 'head-1b' });
  t.equal((await store.dueForAutoReview(10)).length, 1, 'what was dispatched is not due');
  await store.syncRepositories([wanted('hello', false)]);
  t.strictSame(await store.dueForAutoReview(10), []);
  t.match(await store.repositories(), [{ baselineAt: null }]);
});

onBoth(t, 'an item links its last change to the delivery that reported it', async (t, subject) => {
  const { store } = await withItem(subject);
  const later = facts(1).updatedAt;
  const change = async (own: Parameters<typeof facts>[1], deliveryId?: string) =>
    (await store.upsertItem(facts(1, own), deliveryId)).item.deliveryId;
  t.equal(await change({ headSha: 'head-2', updatedAt: later + 1 }, 'd-1'), 'd-1');
  t.equal(await change({ headSha: 'head-2', updatedAt: later + 1 }, 'd-2'), 'd-1', 'no change');
  t.equal(await change({ headSha: 'head-2', title: 'New', updatedAt: later + 2 }), 'd-1', 'a sync found a title');
  t.equal(await change({ headSha: 'head-2', isDraft: true, updatedAt: later + 3 }, 'd-3'), 'd-3');
  t.equal(await change({ headSha: 'head-3', updatedAt: later + 4 }), null, 'a sync found a head');
  const { item } = await store.upsertItem(facts(9), 'd-9');
  t.equal(item.deliveryId, 'd-9');
});
