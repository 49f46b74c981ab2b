import fc from 'fast-check';
import t from 'tap';
import { markers } from '../../../src/review/anchors/index.ts';
import type { ReviewFence } from '../../../src/review/github/index.ts';
import { type Fault, rateLimits } from '../forge/index.ts';
import { comment, patch, timeLimits, type World, world, write } from './harness.ts';

const reviewOf = ({ pull }: World, comments: readonly unknown[], body = 'Two things.') =>
  write('review', { number: pull.number, commitId: pull.headSha, body, comments });
const published = ({ repo }: World) => repo.reviews.filter(({ body, state }) => body !== '' && state !== 'PENDING');

t.test('a review is a comment at the reviewed head, with its findings at their lines', async (t) => {
  const all = await world(t);
  const { source, repo, pull, forge } = all;
  const request = reviewOf(all, [
    comment('f1', 2),
    comment('f2', 4, { startLine: 2 }),
    comment('f3', 2, { side: 'LEFT' }),
  ]);
  await forge.push(repo, pull.number, { headSha: 'b'.repeat(40), files: [] });
  const response = await source.send(request);
  const [review] = published(all);
  t.match(review, { state: 'COMMENTED', commitId: request.request['commitId'], author: 'oratorio-test[bot]' });
  t.ok(review?.body.endsWith(markers.review('run-1')));
  t.equal(response['reviewId'], review?.id);
  t.match(response['comments'], [
    { findingId: 'f1', placement: 'inline', commentId: Number },
    { findingId: 'f2', placement: 'inline' },
    { findingId: 'f3', placement: 'inline' },
  ]);
  t.match(
    repo.reviewComments.map(({ line, startLine, side }) => ({ line, startLine, side })),
    [
      { line: 2, startLine: null, side: 'RIGHT' },
      { line: 4, startLine: 2, side: 'RIGHT' },
      { line: 2, startLine: null, side: 'LEFT' },
    ],
  );
});

t.test('the same write twice is one on GitHub, and the second is answered as the first', async (t) => {
  const all = await world(t);
  const { source, another, repo, pull } = all;
  const { number, headSha } = pull;
  const asked = all.forge.comment(repo, number, 'ada', '@oratorio review').id;
  const writes = [
    reviewOf(all, [comment('f1', 2)]),
    write('summary', { number, itemId: 'item-1', body: 'All in all.' }),
    write('checkRun', {
      headSha,
      externalId: 'run-1',
      status: 'completed',
      conclusion: 'neutral',
      title: 'Done',
      summary: '',
    }),
    write('reply', { number, body: 'No.', marker: markers.reply(asked) }),
    write('reaction', { commentId: asked, content: 'eyes' }),
    write('fileComment', { number, commitId: headSha, path: 'b.ts', body: 'All of it.', findingId: 'f9' }),
    write('resolveThread', { number, findingId: 'f1' }),
  ];
  for (const one of writes) t.match(await another().send(one), await source.send(one).then(withoutChange), one.kind);
  t.equal(published(all).length, 1);
  t.equal(repo.comments.length, 3);
  t.equal(repo.checkRuns.length, 1);
  t.equal(repo.comments[0]?.reactions.length, 1);
  t.equal(repo.reviewComments.length, 2);
  t.ok(repo.reviewComments[0]?.isResolved);
});
/** Whether a thread was resolved before differs between the first time and the second. */
const withoutChange = ({ wasResolved: _, ...rest }: Readonly<Record<string, unknown>>) => rest;

t.test('the summary and the check run are changed in place', async (t) => {
  const { source, repo, pull } = await world(t);
  const { number, headSha } = pull;
  const run = { headSha, externalId: 'run-1', title: 'Reviewing', summary: '' };
  await source.send(write('summary', { number, itemId: 'i', body: 'First.' }));
  await source.send(write('summary', { number, itemId: 'i', body: 'Second.' }, 'run-2'));
  await source.send(write('checkRun', { ...run, status: 'in_progress' }));
  await source.send(write('checkRun', { ...run, status: 'completed', conclusion: 'success', title: 'Clean' }));
  t.match(repo.comments, [{ body: /^Second\./ }]);
  t.match(repo.checkRuns, [{ status: 'completed', conclusion: 'success', title: 'Clean' }]);
});

t.test('a reply goes to the thread of its command, and to the conversation when the thread is gone', async (t) => {
  const { repo, pull, source } = await world(t);
  const review = { number: 7, commitId: pull.headSha, body: '', comments: [comment('f1', 2)] };
  await source.send(write('review', review));
  const threadId = repo.reviewComments[0]?.id ?? 0;
  const request = { number: 7, body: 'Done.', marker: '<!-- oratorio:reply:5 -->', threadId };
  const first = await source.send(write('reply', request));
  t.strictSame(await source.send(write('reply', request)), first);
  t.match(repo.reviewComments, [{}, { body: /^Done\./, line: 2 }]);
  t.equal(repo.comments.length, 0);
  await source.send(write('reaction', { commentId: threadId, content: 'eyes', place: 'thread' }));
  const lost = { ...request, marker: '<!-- oratorio:reply:6 -->', threadId: 1 };
  for (let times = 0; times < 2; times += 1) await source.send(write('reply', lost));
  t.equal(repo.comments.length, 1);
});

t.test('a marker in a foreign text is not taken for ours', async (t) => {
  const { forge, source, repo, pull } = await world(t);
  forge.comment(repo, pull.number, 'mallory', `Mine ${markers.summary('i')}`);
  await source.send(write('summary', { number: pull.number, itemId: 'i', body: 'Ours.' }));
  t.match(repo.comments, [{ body: /^Mine/ }, { body: /^Ours/, author: 'oratorio-test[bot]' }]);
});

t.test('an item on a later page is found', async (t) => {
  const { forge, source, repo, pull } = await world(t);
  for (let at = 0; at < 250; at += 1) forge.comment(repo, pull.number, 'ada', `Talk ${at}`);
  const summary = write('summary', { number: pull.number, itemId: 'i', body: 'Once.' });
  await source.send(summary);
  await source.send(summary);
  t.equal(repo.comments.length, 251);
});

t.test('comments on refused lines move to their file or the text, and the others stay', async (t) => {
  const all = await world(t);
  const { source, repo } = all;
  const suggestion = '````suggestion\nx\n````';
  const response = await source.send(
    reviewOf(all, [
      comment('good', 2),
      comment('beyond', 400, { body: suggestion }),
      comment('across', 4, { startLine: 1, side: 'LEFT' }),
      comment('elsewhere', 1, { path: 'no/such.ts' }),
      comment('fine', 4),
    ]),
  );
  t.match(response['comments'], [
    { findingId: 'good', placement: 'inline' },
    { findingId: 'beyond', placement: 'file', commentId: Number },
    { findingId: 'across', placement: 'file' },
    { findingId: 'elsewhere', placement: 'summary', commentId: null },
    { findingId: 'fine', placement: 'inline' },
  ]);
  t.equal(published(all).length, 1);
  t.match(published(all)[0]?.body, /no\/such\.ts:1[\s\S]*About line 1/);
  t.notMatch(repo.reviewComments.find(({ body }) => body.includes('beyond'))?.body, 'suggestion');
});

t.test('comments that only GitHub refuses are found by halves, and no attempt stays', async (t) => {
  const all = await world(t);
  const { source, repo, pull } = all;
  // The files of the present head have those lines; those of the commit that is commented have not.
  const commit = pull.headSha;
  const long = { filename: 'a.ts', status: 'modified', patch: '@@ -1,1 +1,60 @@\n' };
  await all.forge.push(repo, pull.number, { headSha: 'c'.repeat(40), files: [long] });
  const lines = [2, 30, 3, 50, 4];
  const comments = lines.map((line) => comment(`f${line}`, line, { path: 'a.ts' }));
  all.pull.filesAt.set(commit, [{ filename: 'a.ts', status: 'modified', patch }]);
  Object.assign(long, { patch: `@@ -1,1 +1,60 @@\n${Array.from({ length: 60 }, (_, at) => `+${at}`).join('\n')}` });
  const response = await source.send(
    write('review', { number: pull.number, commitId: commit, body: 'Text', comments }),
  );
  t.match(
    response['comments'],
    lines.map((line) => ({ placement: line > 4 ? 'file' : 'inline' })),
  );
  t.equal(published(all).length, 1);
  t.notOk(repo.reviews.some(({ state }) => state === 'PENDING'));
});

t.test('a refusal that does not concern the comments fails at once', async (t) => {
  const all = await world(t);
  const request = write('review', { number: 7, commitId: 'd'.repeat(40), body: 'Text', comments: [comment('f1', 2)] });
  await t.rejects(all.source.send(request), { code: 'rejected', status: 422, isRetryable: false });
  t.equal(all.forge.count('POST', /reviews$/), 2);
  t.equal(all.repo.reviews.length, 0);
});

t.test('a review of ours that was begun and not sent does not stand in the way', async (t) => {
  const all = await world(t);
  const { repo, source, pull } = all;
  const pending = {
    id: 1,
    number: 7,
    author: 'oratorio-test[bot]',
    body: '',
    commitId: pull.headSha,
    state: 'PENDING',
    createdAt: 0,
  } as const;
  repo.reviews.push(pending);
  await source.send(reviewOf(all, []));
  t.match(repo.reviews, [{ state: 'COMMENTED' }]);
});

t.test('texts are cut to the limit of GitHub, with their marker', async (t) => {
  const all = await world(t);
  const { source, repo } = all;
  const huge = '😀'.repeat(70_000);
  await source.send(reviewOf(all, [comment('f1', 2, { body: huge })], huge));
  await source.send(write('summary', { number: 7, itemId: 'i', body: huge }));
  await source.send(
    write('checkRun', { headSha: all.pull.headSha, externalId: 'x', status: 'queued', title: huge, summary: huge }),
  );
  for (const { body } of [...published(all), ...repo.reviewComments, ...repo.comments]) {
    t.ok(body.length < 65_536);
    t.match(body, /<!-- oratorio:\w+:[\w-]+ -->$/);
    t.notMatch(body, /[\uD800-\uDBFF](?![\uDC00-\uDFFF])/);
  }
});

t.test('a write that is not complete is refused before anything is asked', async (t) => {
  const { source, forge } = await world(t);
  await t.rejects(source.send(write('review', { number: 7 })), { code: 'invalidRequest', isRetryable: false });
  await t.rejects(source.send(write('checkRun', { owner: '' })), { code: 'invalidRequest' });
  t.equal(forge.count('POST', /repos/), 0);
});

t.test('every refusal has its code', async (t) => {
  const all = await world(t);
  const cases = [
    [
      { status: 403, message: 'Resource not accessible by integration' },
      { code: 'forbidden', isRetryable: false },
    ],
    [
      { status: 404, message: 'Not Found' },
      { code: 'notFound', isRetryable: false },
    ],
    [
      { status: 410, message: 'Gone' },
      { code: 'notFound', isRetryable: false },
    ],
    [
      { status: 422, message: 'Validation Failed' },
      { code: 'rejected', isRetryable: false },
    ],
    [{ status: 500 }, { code: 'sourceUnavailable', isRetryable: true, status: 500 }],
    [{ status: 502 }, { code: 'sourceUnavailable', isRetryable: true }],
    [{ status: 503 }, { code: 'sourceUnavailable', isRetryable: true }],
    [
      { status: 429, headers: { 'retry-after': '120' } },
      { code: 'secondaryRateLimited', retryAfterMs: 120_000 },
    ],
  ] as const;
  const isWrite = (method: string, path: string) => method === 'POST' && path.endsWith('/reviews');
  for (const [answer, expected] of cases) {
    all.forge.faults.add({ kind: 'status', matches: isWrite, ...answer });
    await t.rejects(all.source.send(reviewOf(all, [])), expected, JSON.stringify(answer));
  }
  t.equal(all.repo.reviews.length, 0);
});

t.test('a short rate limit is waited for; a long one is reported with its end', async (t) => {
  const all = await world(t);
  const { forge, source, repo } = all;
  const isWrite = (method: string, path: string) => method === 'POST' && path.endsWith('/reviews');
  forge.faults.add({ ...rateLimits.secondary(3), matches: isWrite });
  await source.send(reviewOf(all, []));
  t.equal(repo.reviews.length, 1);
  forge.faults.add({ ...rateLimits.secondary(), matches: isWrite });
  const other = write('review', { number: 7, commitId: all.pull.headSha, body: 'Other', comments: [] }, 'run-2');
  await t.rejects(source.send(other), { code: 'secondaryRateLimited', retryAfterMs: 60_000, isRetryable: true });
  forge.faults.add({ ...rateLimits.primary(Math.ceil(Date.now() / 1_000) + 1_000), matches: isWrite });
  await t.rejects(source.send(other), { code: 'rateLimited', isRetryable: true });
  t.equal(repo.reviews.length, 1);
});

t.test('writes of an installation go out one after the other', async (t) => {
  const all = await world(t);
  const { forge, source, repo } = all;
  forge.faults.add({
    kind: 'slow',
    delayMs: 200,
    matches: (method, path) => method === 'POST' && path.endsWith('/comments'),
  });
  const reply = (at: number) => source.send(write('reply', { number: 7, body: `${at}`, marker: markers.reply(at) }));
  await Promise.all([1, 2, 3].map(reply));
  t.equal(repo.comments.length, 3);
  t.equal(new Set(repo.comments.map(({ body }) => body)).size, 3);
});

t.test('a written item that is not in the lists yet is waited for, and not written again', async (t) => {
  const all = await world(t, { lookAfterSeconds: [0, 400, 400] });
  const { forge, another, repo, pull } = all;
  forge.listLagMs = 300;
  const asked = markers.reply(1);
  const writes = [
    reviewOf(all, [comment('f1', 2)]),
    write('summary', { number: pull.number, itemId: 'item-1', body: 'All in all.' }),
    write('reply', { number: pull.number, body: 'No.', marker: asked }),
  ];
  for (const one of writes) {
    forge.faults.add({ kind: 'cutAfter', matches: (method, path) => method === 'POST' && path.startsWith('/repos') });
    await another().send(one);
    // Another process, which only knows that it was tried, a moment after it happened.
    await another().send({ ...one, attempts: 1 });
  }
  t.equal(published(all).length, 1);
  t.equal(repo.comments.length, 2);
});

t.test('a thread is found and resolved wherever it is among hundreds', async (t) => {
  const all = await world(t);
  const { source, repo, pull } = all;
  const many = Array.from({ length: 230 }, (_, at) => comment(`f${at}`, 2));
  await source.send(reviewOf(all, many));
  for (const findingId of ['f0', 'f150', 'f229']) {
    const resolve = write('resolveThread', { number: pull.number, findingId });
    t.match(await source.send(resolve), { threadNodeId: /^PRRT_/, wasResolved: false });
    t.match(await source.send(resolve), { wasResolved: true });
  }
  t.equal(repo.reviewComments.filter(({ isResolved }) => isResolved).length, 3);
  const gone = write('resolveThread', { number: pull.number, findingId: 'never-seen' });
  t.match(await source.send(gone), { threadNodeId: null });
});

t.test(
  'regression: an attempt that something in between says was taken back makes no good line a bad one',
  async (t) => {
    const all = await world(t, { retries: 0 });
    const { forge, another, repo } = all;
    forge.faults.add({ kind: 'nonsense', matches: (method) => method === 'DELETE' });
    const request = reviewOf(all, [comment('beyond', 400), comment('good', 2)]);
    await t.rejects(another().send(request), { code: 'invalidAnswer', isRetryable: true });
    const response = await another().send({ ...request, attempts: 1 });
    t.match(response['comments'], [
      { findingId: 'beyond', placement: 'file' },
      { findingId: 'good', placement: 'inline' },
    ]);
    t.equal(repo.reviewComments.length, 2, 'each is told once');
    t.equal(published(all).length, 1);
  },
);

t.test('regression: a change of a check run that a proxy answers with a page is sent again', async (t) => {
  const { forge, another, repo, pull } = await world(t, { retries: 0 });
  const run = { headSha: pull.headSha, externalId: 'run-1', title: 'Reviewing', summary: '' };
  await another().send(write('checkRun', { ...run, status: 'in_progress' }));
  forge.faults.add({ kind: 'nonsense', matches: (method) => method === 'PATCH' });
  const completed = write('checkRun', { ...run, status: 'completed', conclusion: 'success' });
  await t.rejects(another().send(completed), { code: 'invalidAnswer', isRetryable: true });
  t.match(repo.checkRuns, [{ status: 'in_progress' }]);
  await another().send({ ...completed, attempts: 1 });
  t.match(repo.checkRuns, [{ status: 'completed', conclusion: 'success' }]);
});

const faultKinds: readonly Fault['kind'][] = [
  'status',
  'statusAfter',
  'cutBefore',
  'cutAfter',
  'cutBody',
  'nonsense',
  'hangAfter',
];

t.test('after any failure at any request, another attempt leaves exactly one of each', async (t) => {
  const all = await world(t, { retries: 0 });
  const { forge, another, repo, pull } = all;
  // A write that was given up too early would be carried out after the look for it, and be made twice.
  const { reach } = timeLimits(t);
  let run = 0;
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(...faultKinds),
      fc.integer({ min: 0, max: 14 }),
      fc.constantFrom(2, 400),
      async (kind, nth, line) => {
        run += 1;
        const id = `run-p${run}`;
        repo.reviews.length = 0;
        repo.reviewComments.length = 0;
        repo.comments.length = 0;
        repo.checkRuns.length = 0;
        const finding = comment(`f-${id}`, line);
        const writes = [
          write(
            'review',
            { number: 7, commitId: pull.headSha, body: 'Text', comments: [finding, comment(`g-${id}`, 2)] },
            id,
          ),
          write('summary', { number: 7, itemId: id, body: 'Summary' }, id),
          write('checkRun', { headSha: pull.headSha, externalId: id, status: 'queued', title: 'x', summary: '' }, id),
        ];
        let seen = -1;
        const matches = () => {
          seen += 1;
          return seen === nth;
        };
        forge.faults.add({ kind, status: 502, matches, onHeld: reach });
        const source = another({}, { retries: 0 });
        for (const one of writes) {
          for (let attempt = 0; ; attempt += 1) {
            const done = await source.send(one).then(
              () => true,
              () => false,
            );
            if (done) break;
            if (attempt > 6) throw new Error(`${one.kind} was not sent`);
          }
        }
        source.close();
        forge.faults.clear();
        const reviews = repo.reviews.filter(({ body }) => body.includes(markers.review(id)));
        const of = (findingId: string) =>
          repo.reviewComments.filter(({ body }) => body.includes(markers.finding(findingId)));
        if (reviews.length !== 1) throw new Error(`${reviews.length} reviews after ${kind} at ${nth}`);
        if (repo.reviews.some(({ state }) => state === 'PENDING')) throw new Error('A review was left behind');
        if (of(`f-${id}`).length !== 1 || of(`g-${id}`).length !== 1) throw new Error('A finding is not there once');
        if (repo.comments.length !== 1) throw new Error(`${repo.comments.length} summaries`);
        if (repo.checkRuns.length !== 1) throw new Error(`${repo.checkRuns.length} check runs`);
      },
    ),
    { numRuns: 24, endOnFailure: true },
  );
  t.pass('one of each');
});

/** The fence of one write, as the outbox keeps it between attempts. */
function fence(): ReviewFence & { readonly saved: number[] } {
  const saved: number[] = [];
  return { saved, load: async () => saved.at(-1) ?? null, save: async (reviewId) => void saved.push(reviewId) };
}

/** Requests that the forge carries out long after the client has given them up: when `apply` is called. */
function lateRequests() {
  const go = Promise.withResolvers<void>();
  const statuses: number[] = [];
  let held = 0;
  let onDone = () => {};
  const fault = (matches: NonNullable<Fault['matches']>, times = 1): Fault => ({
    ...{ kind: 'late', matches, times, until: go.promise },
    onHeld: () => {
      held += 1;
    },
    onDone: (status) => {
      statuses.push(status);
      onDone();
    },
  });
  /** @returns the status of each, which no client sees */
  const apply = async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    onDone = () => statuses.length === held && resolve();
    onDone();
    go.resolve();
    await promise;
    return statuses;
  };
  return { fault, apply };
}

t.test('a review whose creation takes effect after its repetition stays invisible, and is removed', async (t) => {
  const all = await world(t, { retries: 0 });
  const { forge, another, repo } = all;
  const late = lateRequests();
  forge.faults.add(late.fault((method, path) => method === 'POST' && path.endsWith('/reviews')));
  const request = reviewOf(all, [comment('f1', 2)]);
  const kept = fence();
  await t.rejects(another().send(request, kept), { code: 'connectionFailed', isRetryable: true });
  await another().send({ ...request, attempts: 1 }, kept);
  t.equal(published(all).length, 1);
  t.strictSame(await late.apply(), [200]);
  t.equal(published(all).length, 1, 'the second one is pending');
  t.equal(repo.reviews.filter(({ state }) => state === 'PENDING').length, 1);
  await another().send({ ...request, attempts: 2 }, kept);
  t.equal(published(all).length, 1);
  await another().send(write('review', { ...request.request, comments: [], body: 'Next.' }, 'run-2'), fence());
  t.notOk(repo.reviews.some(({ state }) => state === 'PENDING'));
  t.equal(published(all).length, 2);
});

t.test('a submission that takes effect after its repetition publishes nothing twice', async (t) => {
  const all = await world(t, { retries: 0 });
  const { forge, another } = all;
  const late = lateRequests();
  forge.faults.add(late.fault((method, path) => method === 'POST' && path.endsWith('/events')));
  const request = reviewOf(all, [comment('f1', 2)]);
  const kept = fence();
  await t.rejects(another().send(request, kept), { code: 'connectionFailed' });
  // Lists show nothing of it: the saved id alone leads to the review.
  forge.listLagMs = 60_000;
  const { reviewId } = await another().send({ ...request, attempts: 1 }, kept);
  t.strictSame(await late.apply(), [422]);
  forge.listLagMs = 0;
  t.match(published(all), [{ id: reviewId }]);
  t.strictSame(kept.saved, [reviewId]);
});

t.test('a saved review that GitHub no longer has is written again', async (t) => {
  const all = await world(t);
  const kept = fence();
  await kept.save(1);
  const { reviewId } = await all.source.send({ ...reviewOf(all, []), attempts: 1 }, kept);
  t.match(published(all), [{ id: reviewId }]);
});

t.test('a comment that takes effect after its repetition is removed by the duplicate check', async (t) => {
  const all = await world(t, { retries: 0 });
  const { forge, source, repo, pull } = all;
  const { number, headSha: commitId } = pull;
  const writes = [
    write('summary', { number, itemId: 'item-1', body: 'All in all.' }),
    write('reply', { number, body: 'No.', marker: markers.reply(1) }),
    write('fileComment', { number, commitId, path: 'b.ts', body: 'All of it.', findingId: 'f9' }),
  ];
  const isComment = (method: string, path: string) => method === 'POST' && path.endsWith('/comments');
  forge.comment(repo, number, 'mallory', markers.summary('item-1'));
  for (const one of writes) {
    const late = lateRequests();
    forge.faults.add(late.fault(isComment));
    await t.rejects(source.send(one), { code: 'connectionFailed', retryAfterMs: 15 }, 'GitHub gets time to end it');
    const response = await source.send({ ...one, attempts: 1 });
    await late.apply();
    t.equal(await source.removeDuplicates({ ...one, response }), 1, one.kind);
    t.equal(await source.removeDuplicates({ ...one, response }), 0, one.kind);
    const left = [...repo.comments, ...repo.reviewComments].map(({ id }) => id);
    t.ok(left.includes(Number(response['commentId'])), 'the comment of the response stays');
  }
  t.equal(repo.comments.length, 3, 'summary, reply, and what another account wrote');
  t.equal(repo.reviewComments.length, 1);
});

t.test('a check run that was created twice is updated twice', async (t) => {
  const { forge, source, repo, pull } = await world(t, { retries: 0 });
  const run = { headSha: pull.headSha, externalId: 'run-1', title: 'Reviewing', summary: '' };
  const late = lateRequests();
  forge.faults.add(late.fault((method, path) => method === 'POST' && path.endsWith('/check-runs')));
  const begun = write('checkRun', { ...run, status: 'in_progress' });
  await t.rejects(source.send(begun), { code: 'connectionFailed' });
  const { checkRunId } = await source.send({ ...begun, attempts: 1 });
  await late.apply();
  t.match(await source.send(write('checkRun', { ...run, status: 'completed', conclusion: 'success' })), { checkRunId });
  t.match(repo.checkRuns, [{ status: 'completed' }, { status: 'completed' }]);
});

t.test('exactly one review is visible when any requests take effect long after they were given up', async (t) => {
  const all = await world(t, { retries: 0, lookAfterSeconds: [0] });
  const { forge, another, repo, pull } = all;
  let run = 0;
  await fc.assert(
    fc.asyncProperty(
      fc.uniqueArray(fc.integer({ min: 0, max: 9 }), { minLength: 1, maxLength: 4 }),
      fc.constantFrom(2, 400),
      fc.integer({ min: 0, max: 5 }),
      async (lateOnes, line, appliedAt) => {
        run += 1;
        const id = `run-late${run}`;
        repo.reviews.length = 0;
        repo.reviewComments.length = 0;
        const late = lateRequests();
        let writes = -1;
        const isLate = (method: string) => {
          if (method !== 'GET') writes += 1;
          return method !== 'GET' && lateOnes.includes(writes);
        };
        forge.faults.add(late.fault(isLate, lateOnes.length));
        const comments = [comment(`f-${id}`, line), comment(`g-${id}`, 2)];
        const request = write('review', { number: 7, commitId: pull.headSha, body: 'Text', comments }, id);
        const kept = fence();
        const source = another();
        let response: Readonly<Record<string, unknown>> | undefined;
        for (let attempts = 0; !response; attempts += 1) {
          if (attempts === appliedAt) await late.apply();
          if (attempts > 12) throw new Error('The review was not sent');
          response = await source.send({ ...request, attempts }, kept).catch(() => undefined);
        }
        forge.faults.clear();
        await late.apply();
        await source.removeDuplicates({ ...request, response });
        source.close();
        const visible = repo.reviews.filter(
          ({ state, body }) => state !== 'PENDING' && body.includes(markers.review(id)),
        );
        if (visible.length !== 1) throw new Error(`${visible.length} reviews`);
        const pending = new Set(repo.reviews.filter(({ state }) => state === 'PENDING').map((each) => each.id));
        for (const { findingId } of comments) {
          const shown = repo.reviewComments.filter(
            ({ body, reviewId }) => body.includes(markers.finding(findingId)) && !pending.has(reviewId),
          );
          if (shown.length !== 1) throw new Error(`${shown.length} comments of ${findingId}`);
        }
      },
    ),
    { numRuns: 24, endOnFailure: true },
  );
  t.pass('one review, each finding once');
});
