/** Takes the pictures of the review backend: its real API and page over a database as after a morning's work. */
import { fileURLToPath } from 'node:url';
import type { FindingHunk } from '../src/protocol/index.ts';
import type { Teardown } from '../test/e2e/harness.ts';
import { findingOf, repositoryKey, reviewToken, startReviewBackend } from '../test/ui/review-backend.ts';
import type { Picture } from './camera.ts';

const rounding = {
  findingId: 'rounding',
  severity: 'critical',
  title: 'A voucher of the whole price leaves a cent to be paid',
  body: 'The tax is rounded before the voucher is taken off, so an order of three books at 9,99 € is not paid in full by a voucher of 29,97 €.\n\nRound once, at the end.',
  path: 'src/shop/invoice.ts',
  startLine: 41,
  line: 43,
  oldText: 'const tax = round(net * rate);\nconst total = net + tax;\nreturn total - voucher;\n',
  newText: 'const total = net * (1 + rate);\nreturn round(total - voucher);\n',
} as const;
const roundingHunk: FindingHunk = {
  path: rounding.path,
  ...{ oldStart: 38, newStart: 38 },
  lines: [
    { kind: 'context', oldLine: 38, newLine: 38, text: '/** Amount that is still to be paid. */' },
    { kind: 'removed', oldLine: 39, text: 'export function due(net: number, rate: number): number {' },
    { kind: 'added', newLine: 39, text: 'export function due(net: number, rate: number, voucher: number): number {' },
    { kind: 'context', oldLine: 40, newLine: 40, text: '  assertPositive(net);' },
    { kind: 'context', oldLine: 41, newLine: 41, text: '  const tax = round(net * rate);' },
    { kind: 'removed', oldLine: 42, text: '  return net + tax;' },
    { kind: 'added', newLine: 42, text: '  const total = net + tax;' },
    { kind: 'added', newLine: 43, text: '  return total - voucher;' },
    { kind: 'context', oldLine: 43, newLine: 44, text: '}' },
  ],
};
const negative = {
  severity: 'major',
  title: 'A voucher that is worth more than the order makes the total negative',
  body: 'Nothing keeps `total - voucher` from falling below zero; the payment provider refuses such an order.',
  path: 'src/shop/cart.ts',
  startLine: 88,
  line: 88,
  oldText: 'order.due = total - voucher.amount;\n',
  newText: 'order.due = Math.max(0, total - voucher.amount);\n',
} as const;
const untested = {
  severity: 'minor',
  kind: 'comment',
  status: 'skipped',
  title: 'The case of an expired voucher has no test',
  body: '`redeem` refuses it, but nothing would notice if it did not.',
  path: 'test/shop/voucher.test.ts',
  line: 12,
  oldText: "t.test('a voucher is redeemed once', async (t) => {\n",
} as const;

const built = fileURLToPath(new URL('../dist/ui', import.meta.url));

/** A backend with pull requests in every state. */
export async function furnishReviews(t: Teardown, pageDirectory = built) {
  const backend = await startReviewBackend(pageDirectory);
  t.teardown(() => backend.close());
  const { run, draft, store } = backend;
  let minutes = 0;
  // Each was changed some time before the one above it.
  const pull: typeof backend.pull = (number, change) => {
    minutes += 11;
    return backend.pull(number, { ...change, updatedAt: Date.now() - minutes * 60_000 });
  };
  await run(
    await pull(218, { title: 'Sell gift cards', author: 'grace', headSha: 'a41f09'.padEnd(40, '0') }),
    'reviewing',
  );
  await run(await pull(216, { title: 'Sort the shelf by price', author: 'linus' }), 'failed', {
    error: { code: 'agentUnavailable', message: 'The agent server cannot be used: it is stopped.' },
  });
  const vouchers = await pull(214, {
    title: 'Vouchers',
    labels: ['shop', 'payments'],
    headRef: 'vouchers',
    headSha: '7c3d21'.padEnd(40, '0'),
  });
  const { newText: _, startLine: __, ...withoutText } = findingOf(untested);
  await draft(vouchers, {
    summary:
      'Adds vouchers to the cart and to invoices. The redemption itself is sound; the remaining amount is not always right.',
    reviewedFiles: 9,
    totalFiles: 10,
    findings: [findingOf(rounding), findingOf(negative), withoutText],
    hunks: { [rounding.findingId]: roundingHunk },
  });
  await run(await pull(213, { title: 'Newer payment library', author: 'dependabot' }), 'backingOff', { attempt: 2 });
  await run(await pull(209, { title: 'Search by ISBN', author: 'barbara' }), 'publishing');
  await draft(await pull(207, { title: 'Typos in the imprint', author: 'ken' }), { findings: [], status: 'published' });
  await pull(205, { title: 'Try another cover size', author: 'linus', isDraft: true });
  for (const [deliveryId, outcome, reason] of [
    ['5b0d0f2e', 'processed', null],
    ['5b0d0f3a', 'ignored', 'actionIgnored'],
    ['5b0d0f41', 'rejected', 'githubCommentCommandActorUnauthorized'],
    ['5b0d0f5c', 'queued', null],
  ] as const) {
    await store.takeDelivery({
      ...{ deliveryId, outcome, reason, event: 'pull_request', action: 'synchronize', repositoryKey, number: 214 },
      ...{ sender: 'ada', tookMs: 3, job: null, command: null },
    });
  }
  await store.updateRepository(repositoryKey, { lastSyncAt: Date.now() - 40_000 });
  return {
    itemId: vouchers.itemId,
    address: (at: string) => `${backend.origin}/#${new URLSearchParams({ token: reviewToken, at })}`,
  };
}

export const reviewPictures = ({ itemId }: { readonly itemId: string }): readonly Picture[] => [
  { name: 'review-queue', at: '/queue', prepare: (page) => page.getByText('Sell gift cards').first().waitFor() },
  {
    name: 'review-pull',
    at: `/queue/${itemId}`,
    prepare: (page) => page.getByRole('article').first().waitFor(),
  },
];
