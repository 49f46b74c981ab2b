/** One pull request on the page of the review backend: its draft, decisions, and concurrent changes. */
import type { Page } from 'playwright-core';
import { createActor, fromPromise } from 'xstate';
import { type Prepared, type ReviewRunKey, reviewRunMachine } from '../../machines/index.ts';
import type { FindingHunk } from '../../src/protocol/index.ts';
import { findingOf, type ReviewBackend, repositoryKey } from './review-backend.ts';
import { type ReviewScene, reviewStage } from './review-scene.ts';
import { axe, overflowsAt, smallTargets } from './scene.ts';
import { shows } from './shows.ts';
import { untilToast } from './toast.ts';

const scene = await reviewStage();

const hostile = '<img src=x onerror=alert(1)> **not** @everyone';

/** A pull request with a draft of three findings, opened. */
async function withDraft({ pull, draft }: ReviewBackend): Promise<string> {
  const item = await pull(1, { title: 'Vouchers', labels: ['shop'] });
  await draft(item, {
    warnings: ['2 findings did not anchor and are told in the summary.'],
    findings: [
      findingOf({ findingId: 'minor', severity: 'minor', title: 'A name that says less', kind: 'comment', line: 7 }),
      findingOf({ findingId: 'critical', severity: 'critical', body: hostile, warnings: ['Its line has moved.'] }),
      findingOf({ findingId: 'note', severity: 'note', title: 'No test', placement: 'summary', path: 'README.md' }),
    ].map((finding) => (finding.findingId === 'critical' ? finding : withoutSuggestion(finding))),
  });
  return `/queue/${item.itemId}`;
}

function withoutSuggestion(finding: ReturnType<typeof findingOf>) {
  const { newText: _, startLine: __, ...rest } = finding;
  return { ...rest, kind: 'comment' as const };
}

const finding = (page: Page, title: string) => page.getByRole('article', { name: title });
/** Answers the question that comes before anything is written to the source. */
const confirmed = (page: Page, action: string) =>
  page
    .getByRole('dialog', { name: `${action}?` })
    .getByRole('button', { name: action })
    .click();
const voucher = 'The voucher is applied twice';
const storedFinding = async ({ backend }: ReviewScene, findingId: string) => {
  const found = await backend.store.finding(findingId);
  if (!found) throw new Error(`there is no finding ${findingId}`);
  return found;
};

scene(
  'a draft of three findings',
  { prepare: withDraft },
  {
    'findings are listed by severity with their suggestions, and their text is never markup': async (t, { page }) => {
      const worst = finding(page, voucher);
      await worst.waitFor();
      await shows(t, 'same', () => page.getByRole('article').locator('h3').allTextContents(), [
        voucher,
        'A name that says less',
        'No test',
      ]);
      await shows(t, 'match', () => worst.textContent(), hostile, 'markup of a model is shown as text');
      t.equal(await page.locator('.draft img').count(), 0);
      await shows(t, 'match', () => worst.textContent(), 'src/shop/cart.ts:41–42');
      await shows(t, 'match', () => worst.textContent(), 'Its line has moved.');
      const change = page.getByRole('region', { name: 'Suggestion in src/shop/cart.ts' });
      await shows(t, 'match', () => change.locator('.removed').textContent(), /42.*return total - voucher - voucher;/);
      await shows(t, 'match', () => change.locator('.added').textContent(), 'return total - voucher;');
      await shows(t, 'equal', () => change.locator('.kept').count(), 1);
      await shows(t, 'match', () => page.locator('.draft').textContent(), '2 findings did not anchor');
      await page.getByText('1 finding left out').click();
      await page.getByText('published before and still open').waitFor();
      await page.getByText('1 file not reviewed').click();
      await page.getByText('package-lock.json').waitFor();
      await shows(t, 'match', () => page.getByRole('complementary').textContent(), /octo\/bookshop.*ada.*shop/);
      await page.getByText('Trace of the agent').click();
      await page.getByRole('link', { name: 'Open it in the Dashboard' }).waitFor();
      await shows(
        t,
        'equal',
        () => page.getByRole('link', { name: 'Vouchers' }).getAttribute('href'),
        'https://github.com/octo/bookshop/pull/1',
      );
      t.same(await axe(page), []);
      t.same(await smallTargets(page), []);
      await shows(t, 'match', () => page.title(), 'Vouchers');
    },
    'on a phone': async (t, { page }) => {
      await finding(page, voucher).waitFor();
      t.equal(await overflowsAt(page, 360), false);
      t.same(await axe(page), []);
      t.same(await smallTargets(page), []);
    },
  },
);

const cartHunk: FindingHunk = {
  path: 'src/shop/cart.ts',
  ...{ oldStart: 39, newStart: 40 },
  lines: [
    { kind: 'context', oldLine: 39, newLine: 40, text: 'export function total(lines: Line[], voucher: number) {' },
    { kind: 'added', newLine: 41, text: '  const total = sum(lines);' },
    { kind: 'removed', oldLine: 40, text: '  return sum(lines);' },
    { kind: 'added', newLine: 42, text: `  return total - voucher - voucher; // ${'long '.repeat(40)}` },
    { kind: 'context', oldLine: 41, newLine: 43, text: '}' },
  ],
};
async function withHunk({ pull, draft }: ReviewBackend): Promise<string> {
  const item = await pull(1, { title: 'Vouchers' });
  const other = withoutSuggestion(findingOf({ findingId: 'other', severity: 'minor', title: 'Not in the diff' }));
  const same = withoutSuggestion(findingOf({ findingId: 'same', severity: 'note', title: 'Two names', startLine: 41 }));
  await draft(item, {
    findings: [findingOf({ findingId: 'cart' }), other, same],
    hunks: { cart: cartHunk, same: cartHunk },
  });
  return `/queue/${item.itemId}`;
}

scene('a finding shows the diff around it with its own lines marked', { prepare: withHunk }, async (t, here) => {
  const { page } = here;
  const diff = finding(page, voucher).getByRole('region', { name: 'Diff of src/shop/cart.ts' });
  await diff.waitFor();
  await diff.locator('.code-keyword').first().waitFor();
  const rows = diff.getByRole('row');
  await shows(t, 'equal', () => rows.count(), 1 + 5, 'a heading for screen readers, and the lines');
  const cells = await rows.evaluateAll((all) => all.map((row) => [...row.children].map((cell) => cell.textContent)));
  t.match(cells.slice(1), [
    ['39', '40', /^\s*$/, /^export function total/],
    ['', '41', /▸\+added, the finding is about it/, /const total/],
    ['40', '', /−removed$/, /return sum/],
    ['', '42', /▸\+added, the finding is about it/, /return total/],
    ['41', '43', /^\s*$/, '}'],
  ]);
  await finding(page, voucher).getByRole('region', { name: 'Suggestion in src/shop/cart.ts' }).waitFor();
  t.equal(await finding(page, 'Two names').locator('.change').count(), 0, 'what it quotes is in the diff already');
  t.equal(await finding(page, 'Not in the diff').locator('.hunk').count(), 0);
  await shows(
    t,
    'match',
    () => finding(page, 'Not in the diff').locator('.change').textContent(),
    'return total',
    'what it quotes',
  );
  await page.getByText('Trace of the agent').click();
  const trace = page.getByRole('link', { name: 'Open it in the Dashboard' });
  await shows(t, 'match', () => trace.getAttribute('href'), '#token=of-it&at=%2Fsessions%2Fthread_review_1');
  await shows(t, 'match', () => trace.getAttribute('rel'), 'noreferrer');
  t.same(await axe(page), []);
  t.same(await smallTargets(page), []);
  t.equal(await overflowsAt(page, 360), false, 'on a phone only the diff scrolls sideways');
  t.same(await axe(page), []);
});

scene(
  'regression: publishing some of the findings offers the summary for editing, and publishes the edited summary',
  { prepare: withDraft },
  async (t, { page, backend }) => {
    await page.getByRole('button', { name: 'Publish 3 findings' }).click();
    const question = page.getByRole('dialog');
    await question.getByText('cannot be taken back here').waitFor();
    t.equal(await question.getByRole('textbox').count(), 0, 'no summary to edit while all findings are published');
    await page.getByRole('button', { name: 'Not yet' }).click();
    await finding(page, 'No test').getByRole('button', { name: 'Skip' }).click();
    await page.getByRole('button', { name: 'Publish 2 findings' }).click();
    const summary = question.getByRole('textbox', { name: 'The summary was written with 1 finding that is left out:' });
    t.same(await axe(page), []);
    await summary.fill('Two findings.');
    await confirmed(page, 'Publish 2 findings');
    await page.locator('.draft-head').getByText('Published').waitFor();
    await page.locator('.summary').getByText('Two findings.').waitFor();
    t.match(backend.calls.at(-1), { act: 'publish', given: { override: false } });
  },
);

scene('only accepted findings are published, with their edits', { prepare: withDraft }, async (t, here) => {
  const { page, backend } = here;
  await finding(page, 'No test').getByRole('button', { name: 'Skip' }).click();
  await page.getByRole('button', { name: 'Publish 2 findings' }).waitFor();
  await shows(
    t,
    'equal',
    () => finding(page, 'No test').getByRole('button', { name: 'Skip' }).getAttribute('aria-pressed'),
    'true',
  );

  await finding(page, voucher).getByRole('button', { name: 'Edit' }).click();
  const form = page.getByRole('form', { name: `Edit “${voucher}”` });
  await form.getByLabel('Severity').selectOption('major');
  await form.getByLabel('Text', { exact: true }).fill('Take it off once.');
  await form.getByLabel('Suggested lines').fill('return total - once(voucher);\n');
  t.same(await axe(page), []);
  await form.getByRole('button', { name: 'Save' }).click();
  await form.waitFor({ state: 'detached' });
  await finding(page, voucher).getByText('Take it off once.').waitFor();
  await finding(page, voucher).getByText('return total - once(voucher);').waitFor();
  t.match(await storedFinding(here, 'critical'), { severity: 'major', body: 'Take it off once.', title: voucher });

  await page.getByRole('button', { name: 'Edit summary' }).click();
  await page.getByLabel('Summary').last().fill('Two things to look at.');
  await page.getByRole('button', { name: 'Save' }).click();
  await page.locator('.summary').getByText('Two things to look at.').waitFor();

  await page.getByRole('button', { name: 'Publish 2 findings' }).click();
  await confirmed(page, 'Publish 2 findings');
  await page.locator('.draft-head').getByText('Published').waitFor();
  t.match(backend.calls.at(-1), { act: 'publish', given: { override: false } });
  t.equal((await storedFinding(here, 'note')).isPublished, false);
  await shows(
    t,
    'equal',
    () => page.getByRole('button', { name: 'Edit', exact: true }).count(),
    0,
    'it is not changed any more',
  );

  await finding(page, voucher).getByRole('button', { name: 'Resolve…' }).click();
  await page.getByLabel('Note (may be empty)').fill('on purpose');
  t.same(await axe(page), []);
  await page.getByRole('button', { name: 'Dismiss' }).click();
  await finding(page, voucher).getByText('resolved: dismissed – on purpose').waitFor();
});

scene(
  'findings can be selected, skipped, accepted, edited and published by keyboard',
  { prepare: withDraft },
  async (t, here) => {
    const { page, backend } = here;
    await finding(page, voucher).waitFor();
    await page.keyboard.press('j');
    await page.keyboard.press('j');
    await page.waitForURL(/finding=minor/);
    t.match(page.url(), 'finding=minor', 'the address names the finding');
    await page.keyboard.press('s');
    await page.getByRole('button', { name: 'Publish 2 findings' }).waitFor();
    await page.keyboard.press('a');
    await page.getByRole('button', { name: 'Publish 3 findings' }).waitFor();
    await page.keyboard.press('e');
    await page.getByRole('form', { name: 'Edit “A name that says less”' }).waitFor();
    await page.getByRole('button', { name: 'Stop editing' }).click();
    await page.keyboard.press('p');
    await page.getByRole('dialog', { name: 'Publish 3 findings?' }).getByText('cannot be taken back').waitFor();
    t.notOk(
      backend.calls.some(({ act }) => act === 'publish'),
      'regression: p alone publishes nothing',
    );
    await page.getByRole('button', { name: 'Not yet' }).click();
    await page.keyboard.press('p');
    await confirmed(page, 'Publish 3 findings');
    await page.locator('.draft-head').getByText('Published').waitFor();
    t.match(backend.calls.at(-1), { act: 'publish' });
  },
);

scene(
  'a draft that others change',
  { prepare: withDraft },
  {
    'a summary that another user has changed is overwritten after a confirmation only': async (
      t,
      { page, backend },
    ) => {
      await page.getByRole('button', { name: 'Edit summary' }).click();
      await page.getByLabel('Summary').last().fill('Mine.');
      const { rows } = await backend.store.drafts({ limit: 1 });
      const [draft] = rows;
      if (!draft) throw new Error('there is no draft');
      await backend.store.updateDraft(draft.draftId, draft.version, { summary: 'Theirs.' });
      await page.getByRole('button', { name: 'Save' }).click();
      const form = page.getByRole('form', { name: 'Edit the summary' });
      await form.getByRole('alert').getByText('The draft has changed meanwhile').waitFor();
      await form.getByRole('alert').getByText('Theirs.').waitFor();
      await shows(t, 'equal', () => form.getByLabel('Summary').inputValue(), 'Mine.', 'the typed text stays');
      t.equal((await backend.store.draft(draft.draftId))?.summary, 'Theirs.');
      t.same(await axe(page), []);
      await form.getByRole('button', { name: 'Save mine' }).click();
      await form.waitFor({ state: 'detached' });
      await page.locator('.summary').getByText('Mine.').waitFor();
      t.equal((await backend.store.draft(draft.draftId))?.summary, 'Mine.');
    },
    'a finding that another user has changed shows a warning': async (_t, here) => {
      const { page, backend } = here;
      await finding(page, voucher).getByRole('button', { name: 'Edit' }).click();
      const form = page.getByRole('form', { name: `Edit “${voucher}”` });
      await form.getByLabel('Text', { exact: true }).fill('Mine.');
      const { draftId, itemId } = await storedFinding(here, 'critical');
      await backend.store.updateFinding('critical', { body: 'Theirs.' });
      await backend.emit('draft.changed', { draftId, itemId });
      await form.getByText('Another user has changed this finding.').waitFor();
      await form.getByRole('button', { name: 'Save all the same' }).click();
      await finding(page, voucher).getByText('Mine.').waitFor();
    },
    'a draft is discarded after a confirmation only': async (t, { page, backend }) => {
      await page.getByRole('button', { name: 'Discard…' }).click();
      await page.keyboard.press('Escape');
      t.same(backend.calls, []);
      await page.getByRole('button', { name: 'Discard…' }).click();
      await page.getByRole('button', { name: 'Discard it' }).click();
      await page.locator('.draft-head').getByText('Discarded').waitFor();
    },
  },
);

scene(
  'a blocked draft shows the reason, and is published after a confirmation only',
  {
    prepare: async ({ pull, draft }) => {
      const item = await pull(1);
      const message = 'The text seems to contain a GitHub token.';
      await draft(item, { blockedBy: { code: 'draftContainsSecret', message } });
      await pull(1, { headSha: 'f'.repeat(40), updatedAt: Date.now() });
      return `/queue/${item.itemId}`;
    },
  },
  async (t, { page, backend }) => {
    await page.locator('.banner', { hasText: 'a GitHub token' }).waitFor();
    await page.locator('.banner', { hasText: 'There are newer commits' }).waitFor();
    await page.getByRole('button', { name: 'Publish 1 finding' }).click();
    await confirmed(page, 'Publish 1 finding');
    const dialog = page.getByRole('dialog', { name: 'This draft cannot be published unchanged' });
    await dialog.getByText('a GitHub token').waitFor();
    t.same(await axe(page), []);
    await page.keyboard.press('Escape');
    t.same(
      backend.calls.map(({ given }) => given),
      [{ override: false }],
    );
    await page.getByRole('button', { name: 'Publish 1 finding' }).click();
    await confirmed(page, 'Publish 1 finding');
    await dialog.getByRole('button', { name: 'Publish all the same' }).click();
    await page.locator('.draft-head').getByText('Published').waitFor();
    t.match(backend.calls.at(-1), { given: { override: true } });
  },
);

scene(
  'a draft with a secret of the server cannot be published in spite of the block',
  {
    prepare: async ({ pull, draft }) => {
      const item = await pull(1);
      await draft(item, { blockedBy: { code: 'leak', message: 'In the summary: a secret of this server.' } });
      return `/queue/${item.itemId}`;
    },
  },
  async (t, { page }) => {
    const refused = untilToast(page, 'a secret of this server');
    await page.getByRole('button', { name: 'Publish 1 finding' }).click();
    await confirmed(page, 'Publish 1 finding');
    await refused;
    await shows(t, 'equal', () => page.getByRole('dialog').count(), 0);
  },
);

scene(
  'a review can be requested again with a focus, paused and cancelled',
  { prepare: withDraft },
  async (t, { page, backend }) => {
    await page.getByRole('button', { name: 'Review again…' }).click();
    await page.getByLabel('The new part since the last review').click();
    await page.getByLabel('Look at (may be empty)').fill('rounding');
    t.same(await axe(page), []);
    await page.getByRole('button', { name: 'Review', exact: true }).click();
    await page.getByText('Asked to look at: rounding').waitFor();
    t.match(backend.calls.at(-1), { act: 'dispatch', given: { scope: 'incremental', focus: 'rounding' } });
    await page.getByRole('button', { name: 'Cancel' }).click();
    await page.locator('.pull-runs').getByText('Cancelled').waitFor();
    await page.getByRole('button', { name: 'Pause' }).click();
    await page.getByRole('button', { name: 'Resume' }).waitFor();
  },
);

scene('a failed write can be sent again', { prepare: withDraft }, async (t, { page, backend }) => {
  await finding(page, voucher).waitFor();
  const [draft] = (await backend.store.drafts({ limit: 1 })).rows;
  if (!draft) throw new Error('there is no draft');
  const write = await backend.store.putWrite({
    ...{
      kind: 'review',
      dedupeKey: 'k',
      repositoryKey: 'github:github.com/octo/bookshop',
      runId: draft.runId,
      request: {},
    },
  });
  const lastError = { code: 'sourceRejected', message: 'GitHub answered 422.', status: 422 };
  await backend.store.updateWrite(write.writeId, { status: 'failed', attempts: 1, lastError });
  await backend.store.updateDraft(draft.draftId, draft.version, { status: 'publishFailed' });
  await backend.emit('draft.changed', { draftId: draft.draftId, itemId: draft.itemId });
  const failed = page.getByRole('region', { name: 'Writes that failed' });
  await failed.getByText('GitHub answered 422.').waitFor();
  t.same(await axe(page), []);
  const sentAgain = untilToast(page, 'It is sent again.');
  await failed.getByRole('button', { name: 'Send again' }).click();
  await sentAgain;
  t.match(await backend.store.write(write.writeId), { status: 'pending' });
});

scene(
  'the draft appears without a reload when the review is done',
  {
    prepare: async ({ pull }) => `/queue/${(await pull(1, { title: 'Vouchers' })).itemId}`,
  },
  async (_t, { page, backend }) => {
    await page.getByRole('heading', { name: 'No review yet' }).waitFor();
    const item = await backend.store.itemByNumber('github:github.com/octo/bookshop', 1);
    if (!item) throw new Error('the item is gone');
    await backend.draft(item);
    await finding(page, voucher).waitFor();
  },
);

scene(
  'an active review links to its statechart',
  { prepare: async ({ pull }) => `/queue/${(await pull(1)).itemId}` },
  async (t, { page, backend }) => {
    const item = await backend.store.itemByNumber(repositoryKey, 1);
    if (!item) throw new Error('the item is gone');
    const { runId } = await backend.run(item, 'preparing');
    const prepare = fromPromise<Prepared, ReviewRunKey>(() => new Promise(() => {}));
    const machine = reviewRunMachine.provide({ actors: { prepare } });
    const input = { runId, resumeAt: 'preparing', attempt: 1, maxAttempts: 3, isCancelRequested: false } as const;
    const actor = createActor(machine, { input, inspect: (event) => backend.inspect(event, 'octo/bookshop#1') });
    actor.start();
    t.teardown(() => actor.stop());
    await page.getByRole('link', { name: 'Its statechart' }).click();
    await page
      .getByRole('treeitem', { name: /bookshop#1/ })
      .getByText('preparing')
      .waitFor();
    t.match(page.url(), `#/actors/review-run%3A${runId}`);
  },
);

scene('an unknown pull request shows a message', { at: '/queue/none' }, async (t, { page }) => {
  await page.locator('.banner').getByText('Unknown item.').waitFor();
  t.same(await axe(page), []);
});
