/** Address and headers of the page of the review backend, and its documents compared with the sources. */
import { existsSync, readFileSync } from 'node:fs';
import t from 'tap';
import { reviewDocument } from '../../scripts/review-docs.ts';
import { contentSecurityPolicy } from '../../src/http/static-files.ts';
import { lineDiff } from '../../src/ui/views/review-queue/pull/line-diff.ts';
import { rowsOf } from '../../src/ui/views/review-queue/standing.ts';
import { startReviewBackend } from './review-backend.ts';

t.test('the page and its files are served without a token, everything else needs one', async (t) => {
  const directory = t.testdir({ 'index.html': '<!doctype html><title>page</title>', assets: { 'a.js': 'export {};' } });
  const { origin, close } = await startReviewBackend(directory);
  t.teardown(close);
  const ask = (path: string) => fetch(`${origin}${path}`, { redirect: 'manual' });
  const root = await ask('/');
  t.equal(root.status, 302);
  t.equal(root.headers.get('location'), '/review');
  t.equal((await ask('/review/')).headers.get('location'), '/review');
  const page = await ask('/review');
  t.match(await page.text(), '<title>page</title>');
  t.equal(page.headers.get('content-security-policy'), contentSecurityPolicy);
  t.equal((await ask('/assets/a.js')).status, 200);
  t.match(await (await ask('/assets/../service.token')).json(), { error: { code: 'notFound' } });
  t.equal((await ask('/assets/none.js')).status, 404);
  t.equal((await ask('/api/v1/status')).status, 401);
});

t.test('a missing build is reported, and the page is served once it is built', async (t) => {
  const directory = t.testdir({});
  const { origin, close } = await startReviewBackend(directory);
  t.teardown(close);
  const missing = await fetch(`${origin}/review`);
  t.equal(missing.status, 503);
  t.match(await missing.json(), { error: { code: 'pageNotBuilt' } });
});

t.test('a line diff keeps common lines and numbers the lines of the file', (t) => {
  const shown = (before: string, after: string, first?: number) =>
    lineDiff(before, after, first).map(({ kind, text, line }) => `${kind[0]}${line ?? ''} ${text}`);
  t.strictSame(shown('a\nb\nc\n', 'a\nB\nc\nd\n', 7), ['k7 a', 'r8 b', 'a B', 'k9 c', 'a d']);
  t.strictSame(shown('', 'new\n'), ['a new']);
  t.strictSame(shown('old', ''), ['r old']);
  t.strictSame(shown('same', 'same\n'), ['k same']);
  const long = Array.from({ length: 2_000 }, (_, line) => `line ${line}\n`).join('');
  t.equal(lineDiff(long, long, 1).length, 4_000, 'a text too long to compare is shown as removed and added');
  t.end();
});

t.test('an active run takes precedence over a failed one, and that over a draft to decide', (t) => {
  const item = { itemId: 'i', headSha: 'h', isPaused: false } as Parameters<typeof rowsOf>[0][number];
  const run = (state: string, runId = state) => ({ runId, itemId: 'i', state }) as Parameters<typeof rowsOf>[1][number];
  const draft = { draftId: 'd', itemId: 'i', status: 'draft' } as Parameters<typeof rowsOf>[2][number];
  const standing = (...given: [Parameters<typeof rowsOf>[1], Parameters<typeof rowsOf>[2], object?]) =>
    rowsOf([{ ...item, ...given[2] }], given[0], given[1]).map((row) => [row.standing, row.look.word]);
  t.strictSame(standing([run('queued'), run('failed')], [draft]), [['working', 'Waiting']]);
  t.strictSame(standing([run('failed'), run('done')], [draft]), [['failed', 'Failed']]);
  t.strictSame(standing([run('done')], [draft]), [['decide', 'To decide']]);
  t.strictSame(standing([run('done')], [], { reviewedHeadSha: 'h' }), [['done', 'Reviewed']]);
  t.strictSame(standing([run('done')], [], { reviewedHeadSha: 'g' }), [['rest', 'New commits']]);
  t.strictSame(
    standing([run('dreaming')], []),
    [['working', 'dreaming']],
    'a state of a later version is shown as it is',
  );
  t.strictSame(standing([], []), [['rest', 'Not reviewed']]);
  t.end();
});

t.test('docs/review-backend.md equals the document generated from the sources', (t) => {
  const text = readFileSync('docs/review-backend.md', 'utf8');
  t.equal(text, reviewDocument(), 'run: npm run docs');
  t.end();
});

t.test('every test title quoted in the documents exists', (t) => {
  let named = 0;
  for (const document of ['docs/page-faults.md', 'docs/review-security.md', 'docs/scaling.md']) {
    const text = readFileSync(document, 'utf8').replaceAll('\n', ' ');
    for (const [, file = '', names = ''] of text.matchAll(/`(test\/[\w/.-]+\.ts)`:((?: "[^"]+",?)+)/g)) {
      const source = existsSync(file) ? readFileSync(file, 'utf8') : '';
      for (const [, name = ''] of names.matchAll(/"([^"]+)"/g)) {
        named += 1;
        t.ok(source.includes(name), `${file}: ${name}`);
      }
    }
  }
  t.ok(named > 110, `${named} tests are named`);
  t.end();
});
