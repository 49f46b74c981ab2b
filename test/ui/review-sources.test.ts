/** Deliveries, sources and settings on the page of the review backend. */
import type { Delivery } from '../../src/protocol/index.ts';
import { type ReviewBackend, repositoryKey } from './review-backend.ts';
import { reviewStage } from './review-scene.ts';
import { axe, overflowsAt, smallTargets } from './scene.ts';
import { shows } from './shows.ts';

const scene = await reviewStage();

const deliver = (
  { store }: ReviewBackend,
  deliveryId: string,
  outcome: Delivery['outcome'],
  reason: string | null = null,
) =>
  store.takeDelivery({
    ...{ deliveryId, outcome, reason, event: 'pull_request', action: 'opened', repositoryKey, number: 7 },
    ...{ sender: 'ada', tookMs: 1, job: null, command: null },
  });

async function withDeliveries(backend: ReviewBackend): Promise<string> {
  await deliver(backend, 'd1', 'processed');
  await deliver(backend, 'd2', 'ignored', 'repositoryNotConfigured');
  await deliver(backend, 'd3', 'rejected', 'githubCommentCommandActorUnauthorized');
  await deliver(backend, 'd1', 'processed');
  return '/deliveries';
}

scene(
  'each delivery shows its outcome, reason and number of attempts',
  { prepare: withDeliveries },
  async (t, { page, backend }) => {
    const row = (text: string) => page.locator('tbody tr', { hasText: text });
    await row('Processed').waitFor();
    await shows(
      t,
      'match',
      () => row('Processed').textContent(),
      /pull_request\.opened.*octo\/bookshop#7.*ada.*1 ms.*1 time/,
    );
    await shows(t, 'match', () => row('Ignored').textContent(), 'repository is not configured');
    t.same(await axe(page), []);
    await page.getByRole('button', { name: 'Rejected' }).click();
    await row('Ignored').waitFor({ state: 'detached' });
    await row('author may not write to the repository').waitFor();
    t.match(page.url(), 'outcome=rejected');
    await page.getByRole('button', { name: 'Failed' }).click();
    await page.getByRole('heading', { name: 'No delivery with this outcome' }).waitFor();
    await deliver(backend, 'd4', 'failed', 'theDiskIsFull');
    await backend.emit('delivery.received', {});
    await row('the disk is full').waitFor();
    t.equal(await overflowsAt(page, 360), false);
    t.same(await axe(page), []);
    t.same(await smallTargets(page), []);
  },
);

scene(
  'older deliveries are loaded on demand, each once',
  {
    at: '/deliveries',
    prepare: async (backend) => {
      for (let number = 0; number < 130; number += 1)
        await deliver(backend, `d${number}`, 'ignored', `reason-${number}`);
    },
  },
  async (t, { page }) => {
    await page.getByRole('button', { name: 'Older deliveries' }).click();
    await page.getByText('reason-0', { exact: true }).waitFor();
    await shows(t, 'equal', () => page.locator('tbody tr').count(), 130);
    await shows(t, 'equal', () => page.getByRole('button', { name: 'Older deliveries' }).count(), 0);
  },
);

scene('without deliveries the page explains the setup of the webhook', { at: '/deliveries' }, async (t, { page }) => {
  await page.getByRole('heading', { name: 'Nothing was delivered yet' }).waitFor();
  await shows(t, 'match', () => page.locator('main').textContent(), '/api/v1/sources/github/webhook');
  t.same(await axe(page), []);
});

scene(
  'sources show the last sync and settings without secrets, and can be synced',
  {
    at: '/sources',
    prepare: async ({ store }) => {
      await store.enqueueJob({ kind: 'write', key: 'write:octo/bookshop#7', payload: {} });
      const [job] = await store.claimJobs('test', ['write'], 1, 60_000);
      if (job) await store.failJob(job, 'GitHub answered 404.', 'dead');
      await store.updateRepository(repositoryKey, {
        lastSyncAt: Date.now() - 60_000,
        lastSyncError: { code: 'appNotInstalled', message: 'The App is not installed there.', at: Date.now() },
      });
    },
  },
  async (t, { page, backend }) => {
    await page.getByRole('rowheader', { name: 'octo/bookshop' }).waitFor();
    const text = async () => (await page.locator('main').textContent()) ?? '';
    await shows(t, 'match', () => text(), '/srv/work/bookshop');
    await shows(t, 'match', () => text(), 'The App is not installed there.');
    await shows(t, 'match', () => text(), /Version1\.2\.3/);
    await shows(t, 'match', () => text(), /StorageSQLite/);
    await shows(
      t,
      'match',
      () => text(),
      'From the command line: Server.Port (--port)',
      'regression: a setting names its source',
    );
    await shows(t, 'match', () => text(), 'From the environment: Review.MaxFindings (Oratorio__Review__MaxFindings)');
    await shows(t, 'match', () => page.getByRole('region', { name: 'Given up' }).textContent(), 'GitHub answered 404.');
    await page.locator('.json').getByText('GitHub', { exact: true }).waitFor();
    t.notMatch(await text(), 'hush-hush-hush');
    t.notMatch(await page.content(), 'hush-hush-hush', 'a secret is not even sent');
    t.same(await axe(page), []);
    await page.getByRole('button', { name: 'Sync octo/bookshop now' }).click();
    await page.getByRole('region', { name: 'Last syncs' }).getByText('2 changes').waitFor();
    t.match(backend.calls.at(-1), { act: 'sync', given: { repositoryKey } });
    t.equal(await overflowsAt(page, 360), false);
    t.same(await axe(page), []);
    t.same(await smallTargets(page), []);
  },
);

scene(
  'without repositories the setting that adds one is shown',
  { at: '/sources', repositories: [] },
  async (t, { page }) => {
    await page.getByRole('heading', { name: 'No repository is set up yet' }).waitFor();
    t.same(await axe(page), []);
  },
);
