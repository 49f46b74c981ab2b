import t from 'tap';
import type { StoredItem } from '../../../src/review/store/index.ts';
import { rateLimits } from '../forge/index.ts';
import { storedRepository, timeLimits, world } from './harness.ts';

const id = { owner: 'acme', name: 'shop', repositoryKey: 'github:github.com/acme/shop' };

t.test('a pull request is read with all that decides about its review', async (t) => {
  const { forge, repo, source } = await world(t);
  const own = {
    labels: ['bug'],
    isDraft: true,
    isFork: true,
    author: 'robot[bot]',
    body: 'Why',
    authorAssociation: 'NONE',
  };
  const pull = forge.addPull(repo, { number: 8, ...own, updatedAt: 1_700_000_000_000 });
  t.strictSame(await source.readPull(id, 8), {
    repositoryKey: id.repositoryKey,
    number: 8,
    title: 'Change 8',
    description: 'Why',
    author: 'robot[bot]',
    authorAssociation: 'NONE',
    isBot: true,
    state: 'open',
    isDraft: true,
    isFork: true,
    labels: ['bug'],
    baseRef: 'main',
    baseSha: pull.baseSha,
    headRef: 'change',
    headSha: pull.headSha,
    url: `${forge.url}/acme/shop/pull/8`,
    updatedAt: 1_700_000_000_000,
  });
  forge.touch(repo, 8, { state: 'closed', isMerged: true });
  t.match(await source.readPull(id, 8), { state: 'merged' });
  t.equal(await source.readPull(id, 404), 'gone');
});

t.test('a user with write access is a collaborator', async (t) => {
  const { repo, source } = await world(t);
  for (const level of ['admin', 'write', 'read', 'none'] as const) repo.collaborators.set(level, level);
  const asked = ['admin', 'write', 'read', 'none', 'stranger'].map((login) => source.isCollaborator(id, login));
  t.strictSame(await Promise.all(asked), [true, true, false, false, false]);
});

t.test('the first sync takes all that is open, and of the rest the newest', async (t) => {
  const all = await world(t);
  const { forge, repo, source, store } = all;
  for (let number = 100; number < 500; number += 1) {
    const isOpen = number % 2 === 0;
    forge.addPull(repo, { number, state: isOpen ? 'open' : 'closed', updatedAt: 1_700_000_000_000 + number * 1_000 });
  }
  const result = await source.syncRepository(await storedRepository(all));
  t.strictSame(result, { changed: 251, apiCalls: 4, notModified: 0 });
  t.equal((await store.openItemCounts()).get(id.repositoryKey), 201);
  t.match(await storedRepository(all), {
    installationId: repo.installationId,
    lastSyncError: null,
    lastSyncAt: Number,
  });
});

t.test('an unchanged repository costs one call, and changes are reported', async (t) => {
  const all = await world(t);
  const { forge, repo, source, pull } = all;
  t.match(await source.syncRepository(await storedRepository(all)), { changed: 1, apiCalls: 1 });
  const before = source.requests;
  t.strictSame(await source.syncRepository(await storedRepository(all)), { changed: 0, apiCalls: 1, notModified: 1 });
  t.equal(source.requests - before, 1);
  await forge.push(repo, pull.number, { headSha: 'e'.repeat(40) });
  t.strictSame(await source.syncRepository(await storedRepository(all)), { changed: 1, apiCalls: 1, notModified: 0 });
  t.match(await all.store.itemByNumber(id.repositoryKey, 7), { headSha: 'e'.repeat(40) });
});

t.test('changes on many pages are followed back to the last seen one', async (t) => {
  const all = await world(t);
  const { forge, repo, source } = all;
  for (let number = 100; number < 600; number += 1) forge.addPull(repo, { number, updatedAt: 1_700_000_000_000 });
  await source.syncRepository(await storedRepository(all));
  for (let number = 100; number < 350; number += 1) forge.touch(repo, number, { title: 'New' });
  t.match(await source.syncRepository(await storedRepository(all)), { changed: 250, apiCalls: 3 });
});

t.test('after a failure in the middle everything is synced again', async (t) => {
  const all = await world(t, { retries: 0 });
  const { forge, repo, source } = all;
  for (let number = 100; number < 350; number += 1) forge.addPull(repo, { number });
  let pages = 0;
  const isThird = (_: string, path: string) => path.endsWith('/pulls') && ++pages === 3;
  forge.faults.add({ kind: 'cutBody', matches: isThird });
  await t.rejects(source.syncRepository(await storedRepository(all)), { code: 'connectionFailed' });
  t.match(await storedRepository(all), { etag: null, syncedUntil: null, lastSyncError: { code: 'connectionFailed' } });
  await source.syncRepository(await storedRepository(all));
  t.equal((await all.store.openItemCounts()).get(id.repositoryKey), 251);
  t.match(await storedRepository(all), { etag: String, lastSyncError: null });
});

t.test('failed reads are retried automatically', async (t) => {
  const { forge, source } = await world(t);
  const { reach: onHeld } = timeLimits(t);
  const matches = (_: string, path: string) => path.endsWith('/pulls/7');
  for (const kind of ['cutBefore', 'hang', 'cutBody'] as const) {
    forge.faults.add({ kind, matches, onHeld });
    t.match(await source.readPull(id, 7), { number: 7 }, kind);
  }
  forge.faults.add({ kind: 'status', status: 502, times: 2, matches });
  t.match(await source.readPull(id, 7), { number: 7 });
  forge.faults.add({ kind: 'hang', times: 9, matches, onHeld });
  await t.rejects(source.readPull(id, 7), { code: 'timedOut', isRetryable: true });
});

t.test('a request without an answer times out', async (t) => {
  const { forge, another } = await world(t);
  // Every request hangs: however long each takes, the limit ends it.
  forge.faults.add({ kind: 'hang', times: Number.POSITIVE_INFINITY });
  await t.rejects(another({}, { requestTimeoutMs: 200, retries: 0 }).readPull(id, 7), {
    code: 'timedOut',
    message: /within 200 ms/,
  });
});

t.test('an answer that is not GitHub’s is refused', async (t) => {
  const { forge, source } = await world(t, { retries: 0, answerBytes: 4_000 });
  forge.faults.add({ kind: 'nonsense', matches: (_, path) => path.endsWith('/pulls/7') });
  await t.rejects(source.readPull(id, 7), { code: 'invalidAnswer' });
  await t.rejects(source.readPull(id, 7), { code: 'invalidAnswer', message: /larger than 4000 bytes/ });
});

t.test('a list that continues at another host is not followed there', async (t) => {
  const all = await world(t, { retries: 0 });
  let asked = 0;
  const headers = { link: '<http://127.0.0.1:1/stolen>; rel="next"' };
  all.forge.faults.add({
    kind: 'status',
    status: 200,
    headers,
    matches: (_, path) => path.endsWith('/pulls') && ++asked === 1,
  });
  await t.rejects(all.source.syncRepository(await storedRepository(all)), { code: 'invalidAnswer' });
});

t.test('one repository that fails does not stop the others', async (t) => {
  const all = await world(t, { retries: 0, concurrentSyncs: 2 });
  const { forge, source } = all;
  const names = ['shop', 'gone', 'broken', 'fine'];
  forge.addPull(forge.addRepository('acme', 'broken'), { number: 1 });
  forge.addPull(forge.addRepository('acme', 'fine'), { number: 1 });
  forge.faults.add({ kind: 'status', status: 500, times: 99, matches: (_, path) => path.includes('/broken/') });
  const repositories = [];
  for (const name of names) repositories.push(await storedRepository(all, name));
  const outcomes = new Map<string, string>();
  for await (const outcome of source.syncAll(repositories)) {
    const isError = 'error' in outcome && outcome.error instanceof Error && 'code' in outcome.error;
    outcomes.set(outcome.repository.name, isError ? String(Reflect.get(outcome.error as object, 'code')) : 'synced');
  }
  t.strictSame([...outcomes].sort(), [
    ['broken', 'sourceUnavailable'],
    ['fine', 'synced'],
    ['gone', 'notFound'],
    ['shop', 'synced'],
  ]);
  t.match(await storedRepository(all, 'broken'), { lastSyncError: { code: 'sourceUnavailable' } });
});

t.test('an owner whose rate is used up is left alone, others are not', async (t) => {
  const all = await world(t, { retries: 0, concurrentSyncs: 1 });
  const { forge, source } = all;
  forge.addPull(forge.addRepository('other', 'thing'), { number: 1 });
  const limit = rateLimits.primary(Math.ceil(Date.now() / 1_000) + 3_600);
  forge.faults.add({ ...limit, times: 99, matches: (_, path) => path.includes('/acme/') && path.endsWith('/pulls') });
  forge.addRepository('acme', 'second');
  const repositories = [
    await storedRepository(all),
    await storedRepository(all, 'second'),
    await storedRepository(all, 'thing', 'other'),
  ];
  const outcomes = [];
  for await (const outcome of source.syncAll(repositories)) outcomes.push('error' in outcome ? 'failed' : 'synced');
  t.strictSame(outcomes, ['failed', 'failed', 'synced']);
  t.equal(forge.count('GET', /acme\/second\/pulls$/), 0);
});

t.test('listeners are notified of each change', async (t) => {
  const all = await world(t);
  const { forge, repo, pull, another } = all;
  const reported: (readonly [number, boolean])[] = [];
  const source = another({}, {}, async (item: StoredItem, headChanged) => {
    reported.push([item.number, headChanged]);
  });
  await source.syncRepository(await storedRepository(all));
  forge.touch(repo, pull.number, { title: 'Better' });
  await source.syncRepository(await storedRepository(all));
  await forge.push(repo, pull.number, { headSha: 'f'.repeat(40) });
  await source.syncRepository(await storedRepository(all));
  t.match(reported.slice(1), [
    [7, false],
    [7, true],
  ]);
});

t.test('regression: a sync finds more than a thousand open pull requests, page by page', async (t) => {
  const all = await world(t);
  const { forge, repo, source, store } = all;
  for (let number = 100; number < 1_250; number += 1)
    forge.addPull(repo, { number, updatedAt: 1_700_000_000_000 + number * 1_000 });
  await source.syncRepository(await storedRepository(all));
  t.equal((await store.openItemCounts()).get('github:github.com/acme/shop'), 1_151);
});
