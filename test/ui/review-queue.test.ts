/** The queue of the review backend: access, states of reviews, and actions on them. */
import type { Page } from 'playwright-core';
import { findingOf, type ReviewBackend, reviewToken } from './review-backend.ts';
import { reviewStage } from './review-scene.ts';
import { axe, overflowsAt, smallTargets } from './scene.ts';
import { shows } from './shows.ts';
import { untilToast } from './toast.ts';

const scene = await reviewStage();

const row = (page: Page, name: string) => page.locator('.vrow', { hasText: name });

/** One pull request of each kind. */
async function fill({ pull, run, draft }: ReviewBackend): Promise<string> {
  await run(await pull(1, { title: 'Sell gift cards' }), 'reviewing');
  await run(await pull(2, { title: 'Sort by price' }), 'failed', {
    error: { code: 'agentUnavailable', message: 'The agent server cannot be reached.' },
  });
  await draft(await pull(3, { title: 'Vouchers', author: 'grace' }), { findings: [findingOf(), findingOf()] });
  await run(await pull(4, { title: 'Typos' }), 'backingOff', {
    attempt: 2,
    error: { code: 'agentUnavailable', message: 'The agent server does not answer.' },
  });
  await pull(5, { title: 'Not looked at', isDraft: true });
  await pull(6, { title: 'Merged long ago', state: 'merged' });
  return '/queue';
}

scene(
  'a queue with a pull request of each kind',
  { prepare: fill },
  {
    'each pull request shows its state, reason and draft': async (t, { page }) => {
      await row(page, 'Sell gift cards').getByText('Reviewing').waitFor();
      t.match(page.url(), /\/review#\/queue$/, 'the token is gone from the address');
      await shows(
        t,
        'match',
        () => row(page, 'Sort by price').textContent(),
        /Failed.*The agent server cannot be reached\./,
      );
      await shows(t, 'match', () => row(page, 'Vouchers').textContent(), /To decide.*grace.*2 findings/);
      await shows(t, 'match', () => row(page, 'Typos').textContent(), /Retrying.*does not answer\. Attempt 2 of 3/);
      await shows(t, 'match', () => row(page, 'Not looked at').textContent(), /Not reviewed.*draft/);
      t.equal(await row(page, 'Merged long ago').count(), 0, 'a merged pull request is hidden');
      t.same(await axe(page), []);
      t.same(await smallTargets(page), []);
      await shows(t, 'match', () => page.title(), 'Queue · Reviews · Oratorio');
    },
    'the queue fits a phone and has no findings of axe in light and dark': async (t, { page }) => {
      await row(page, 'Sort by price').waitFor();
      t.equal(await overflowsAt(page, 360), false);
      t.same(await axe(page), []);
      t.same(await smallTargets(page), []);
      await row(page, 'Sort by price').getByText('Failed').waitFor();
    },
    'filter, search and closed pull requests can be chosen and are in the address': async (t, { page }) => {
      await page.setViewportSize({ width: 1280, height: 800 });
      await row(page, 'Typos').waitFor();
      await page.getByRole('button', { name: 'Failed 1' }).click();
      await row(page, 'Typos').waitFor({ state: 'detached' });
      t.match(page.url(), 'show=failed');
      await page.reload();
      await row(page, 'Sort by price').waitFor();
      await shows(t, 'equal', () => page.locator('.vrow').count(), 1, 'a reload restores the filter');
      await page.getByRole('button', { name: 'Failed 1' }).click();
      await page.getByRole('button', { name: 'Closed too' }).click();
      await row(page, 'Merged long ago').waitFor();
      await page.keyboard.press('/');
      await page.keyboard.type('grace');
      await row(page, 'Typos').waitFor({ state: 'detached' });
      await shows(t, 'equal', () => page.locator('.vrow').count(), 1, 'authors are searched too');
      await page.keyboard.type('nobody');
      await page.getByRole('button', { name: 'Show all pull requests' }).click();
      await row(page, 'Typos').waitFor();
    },
    'a new state of a run appears without a reload': async (_t, { page, backend }) => {
      await row(page, 'Not looked at').waitFor();
      const item = await backend.store.itemByNumber('github:github.com/octo/bookshop', 5);
      if (!item) throw new Error('the item is gone');
      await backend.run(item, 'preparing');
      await row(page, 'Not looked at').getByText('Preparing').waitFor();
      await backend.pull(7, { title: 'Just opened' });
      await row(page, 'Just opened').waitFor();
    },
    'a failed review can be retried by its button': async (t, { page, backend }) => {
      await row(page, 'Sort by price').getByRole('button', { name: 'Try again' }).click();
      await row(page, 'Sort by price').getByText('Waiting').waitFor();
      t.match(backend.calls.at(-1), { act: 'dispatch', given: { number: 2 } });
    },
    'the palette finds pull requests': async (t, { page }) => {
      await row(page, 'Vouchers').waitFor();
      await page.keyboard.press('Control+k');
      await page.keyboard.type('vouch');
      await page.getByRole('option', { name: /Vouchers.*octo\/bookshop#3/ }).click();
      await page.getByRole('heading', { name: 'Vouchers' }).waitFor();
      t.match(page.url(), /#\/queue\/[\w-]+/);
    },
  },
);

scene(
  'a review can be selected, retried, cancelled, synced and opened by keyboard',
  { prepare: fill },
  async (t, { page, backend }) => {
    await row(page, 'Sort by price').waitFor();
    await page.keyboard.press('j');
    await page.keyboard.press('j');
    await page.locator('.vrow[aria-selected=true]', { hasText: 'Sort by price' }).waitFor();
    await page.keyboard.press('r');
    await row(page, 'Sort by price').getByText('Waiting').waitFor();
    t.match(backend.calls.at(-1), { act: 'dispatch', given: { number: 2, scope: 'full' } });
    await page.keyboard.press('x');
    await row(page, 'Sort by price').getByText('Cancelled').waitFor();
    const synced = untilToast(page, 'Syncing all repositories.');
    await page.keyboard.press('s');
    await synced;
    t.match(backend.calls.at(-1), { act: 'sync', given: { repositoryKey: undefined } });
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Sort by price' }).waitFor();
    await page.keyboard.press('u');
    await row(page, 'Sort by price').waitFor();
  },
);

scene('without open pull requests the watched repositories are shown', {}, async (t, { page }) => {
  await page.getByRole('heading', { name: 'No open pull request' }).waitFor();
  await page.getByText('The repository is watched.').waitFor();
  t.same(await axe(page), []);
});

scene('without repositories the setting that adds one is shown', { repositories: [] }, async (t, { page }) => {
  await page.getByRole('heading', { name: 'No repository is set up yet' }).waitFor();
  await shows(t, 'match', () => page.locator('main code').last().textContent(), '"Repositories": ["owner/name"]');
  t.same(await axe(page), []);
});

scene(
  'without a token the page shows its location and no data',
  { isUnauthenticated: true, prepare: fill },
  async (t, { page }) => {
    await page.getByRole('heading', { name: 'This page needs a token' }).waitFor();
    await page.getByText('/service.token"').waitFor();
    t.notMatch(await page.locator('body').textContent(), 'Sort by price');
    t.same(await axe(page), []);
    await page.getByLabel('Token', { exact: true }).fill(reviewToken);
    await page.getByRole('button', { name: 'Enter' }).click();
    await row(page, 'Sort by price').waitFor();
  },
);

scene('a wrong token is refused', { token: 'wrong', prepare: fill }, async (_t, { page }) => {
  await page.getByRole('heading', { name: 'This page needs a token' }).waitFor();
});
