import { createHmac } from 'node:crypto';
import { verify } from '@octokit/webhooks-methods';
import t from 'tap';
import { ReviewStoreError } from '../../../src/review/store/index.ts';
import { isSignedBy, parseSignature, WebhookIntake, WrongSignatures } from '../../../src/review/webhook/index.ts';
import { quiet } from '../store/databases.ts';
import {
  commentPayload,
  deliverTo,
  reviewPayload,
  scene,
  settingsWith,
  signatureOf,
  threadPayload,
} from './harness.ts';

const pull = (number: number, action = 'opened', rest: object = {}) => ({
  action,
  repository: { full_name: 'Octo/Hello', html_url: 'https://github.com/Octo/Hello' },
  pull_request: { number },
  sender: { login: 'alice' },
  ...rest,
});

t.test("GitHub's published signature vector is accepted, and nothing that differs", async (t) => {
  const published = 'sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17';
  const vector = parseSignature(published);
  const body = Buffer.from('Hello, World!');
  if (!vector) throw new Error('The vector cannot be read');
  t.ok(isSignedBy(["It's a Secret to Everybody"], body, vector));
  t.ok(isSignedBy(['new', "It's a Secret to Everybody"], body, vector), 'the previous secret');
  t.notOk(isSignedBy(["It's a secret to everybody"], body, vector));
  t.notOk(isSignedBy(["It's a Secret to Everybody"], Buffer.from('Hello, World'), vector));
  t.notOk(isSignedBy([], body, vector), 'no secret signs nothing');
  const malformed = ['', 'sha256=', published.slice(0, -1), `${published}0`, published.replace('sha256', 'sha1'), 'x'];
  for (const each of [undefined, ...malformed]) t.equal(parseSignature(each), undefined, String(each));
  t.ok(await verify('s', 'text', signatureOf(Buffer.from('text'), 's')), 'the oracle agrees with these tests');
});

t.test('the table, row by row', async (t) => {
  const { deliver, store } = await scene(t);
  const form = { headers: { 'content-type': 'application/x-www-form-urlencoded' } };
  const rows = [
    ['wrong signature', { body: pull(1), secret: 'other' }, 403, 'invalidSignature'],
    ['no signature', { body: pull(1), headers: { 'x-hub-signature-256': undefined } }, 403, 'invalidSignature'],
    ['wrong signature, form', { body: 'payload=%7B%7D', secret: 'other', ...form }, 403, 'invalidSignature'],
    ['form', { body: 'payload=%7B%7D', ...form }, 415, 'unsupportedMediaType'],
    ['no type', { body: pull(1), headers: { 'content-type': undefined } }, 415, 'unsupportedMediaType'],
    ['not JSON', { body: '{"a":' }, 400, 'invalidPayload'],
    ['empty', { body: '' }, 400, 'invalidPayload'],
    ['a list', { body: '[]' }, 400, 'invalidPayload'],
    ['null', { body: 'null' }, 400, 'invalidPayload'],
    ['no event', { body: pull(1), headers: { 'x-github-event': undefined } }, 400, 'missingHeader'],
    ['no delivery', { body: pull(1), headers: { 'x-github-delivery': undefined } }, 400, 'missingHeader'],
    ['strange delivery', { body: pull(1), headers: { 'x-github-delivery': "x' or 1" } }, 400, 'missingHeader'],
    ['no number', { event: 'pull_request', body: pull(0) }, 400, 'invalidPayload'],
  ] as const;
  for (const [what, given, status, code] of rows) {
    const answer = await deliver(given);
    t.match(answer, { status, body: { error: { code, message: String } } }, what);
  }
  t.same((await store.deliveries({ limit: 10 })).rows, [], 'nothing is kept of what is refused');
  t.same(await deliver({ event: 'ping', body: { zen: 'x' } }), { status: 200, body: { status: 'pong' } });
  t.match(await deliver({ event: 'push', body: pull(1), id: 'a' }), {
    status: 202,
    body: { status: 'ignored', reason: 'eventIgnored' },
  });
  t.match(await deliver({ event: 'pull_request', body: pull(1), id: 'b' }), {
    status: 202,
    body: { status: 'queued' },
  });
  t.match(await deliver({ event: 'pull_request', body: pull(1), id: 'b' }), {
    status: 200,
    body: { status: 'duplicate' },
  });
  const { rows: kept } = await store.deliveries({ limit: 10 });
  t.match(kept, [
    { deliveryId: 'b', outcome: 'queued', repositoryKey: 'github:github.com/octo/hello', number: 1, redeliveries: 1 },
    { deliveryId: 'a', outcome: 'ignored', reason: 'eventIgnored', sender: 'alice' },
  ]);
});

t.test('without a secret nothing is taken in, and a bad signature learns nothing of the rest', async (t) => {
  const { deliver, state } = await scene(t, settingsWith({ WebhookSecret: '', WebhookSecretPrevious: 'old' }));
  const before = await state();
  for (const key of ['', 'old', 'any']) {
    const answer = await deliver({ event: 'pull_request', body: pull(1), secret: key });
    t.match(answer, { status: 503, body: { error: { code: 'githubWebhookSecretRequired' } } });
  }
  t.same(await state(), before);
});

t.test('both secrets are good while the secret is being changed', async (t) => {
  let settings = settingsWith({ WebhookSecret: 'new', WebhookSecretPrevious: 'old' });
  const { deliver } = await scene(t, () => settings);
  for (const key of ['new', 'old']) t.equal((await deliver({ body: {}, secret: key })).status, 202, key);
  settings = settingsWith({ WebhookSecret: 'new' });
  t.equal((await deliver({ body: {}, secret: 'old' })).status, 403);
});

t.test('the raw bytes are signed: a byte order mark and bytes that are not UTF-8 do no harm', async (t) => {
  const { deliver, store } = await scene(t);
  const text = JSON.stringify(pull(5, 'opened', { note: 'ü' }));
  const marked = Buffer.concat([Buffer.from([0xef, 0xbb, 0xbf]), Buffer.from(text)]);
  const latin = Buffer.from(text, 'latin1');
  t.match(await deliver({ event: 'pull_request', body: marked, id: 'm' }), { status: 202, body: { status: 'queued' } });
  t.match(await deliver({ event: 'pull_request', body: latin, id: 'l' }), { status: 202, body: { status: 'queued' } });
  const stripped = { 'x-hub-signature-256': signatureOf(Buffer.from(text)) };
  t.equal((await deliver({ event: 'pull_request', body: marked, headers: stripped })).status, 403);
  t.equal((await store.deliveries({ limit: 9 })).rows.length, 2);
});

t.test('each event has the result of the table, and all others have none', async (t) => {
  const { deliver, store } = await scene(t, settingsWith({ AppId: 7 }));
  const sha = 'a'.repeat(40);
  const check = (run: object) => ({ ...pull(1, 'rerequested'), check_run: { head_sha: sha, app: { id: 7 }, ...run } });
  const install = (login: string) => ({ action: 'created', installation: { id: 3, account: { login } } });
  const rows: readonly (readonly [string, object, object])[] = [
    ['pull_request', pull(1, 'synchronize'), { status: 'queued' }],
    ['pull_request', pull(2, 'edited', { changes: { base: {} } }), { status: 'queued' }],
    ['pull_request', pull(3, 'edited', { changes: { title: {} } }), { status: 'queued' }],
    ['pull_request', pull(4, 'edited', { changes: { body: {} } }), { reason: 'editIgnored' }],
    ['pull_request', pull(5, 'locked'), { reason: 'actionIgnored' }],
    ['pull_request', pull(5, 'constructor'), { reason: 'actionIgnored' }],
    ['constructor', pull(5), { reason: 'eventIgnored' }],
    ['pull_request', { ...pull(6), repository: { full_name: 'a/b' } }, { reason: 'repositoryNotConfigured' }],
    [
      'pull_request',
      { ...pull(6), repository: { full_name: 'octo/hello', html_url: 'https://evil.example/octo/hello' } },
      { reason: 'repositoryNotConfigured' },
    ],
    ['check_run', check({ pull_requests: [{ number: 8 }] }), { status: 'queued' }],
    ['check_run', check({ external_id: 'run-1' }), { status: 'queued' }],
    ['check_run', check({}), { reason: 'checkRunWithoutPullRequest' }],
    ['check_run', check({ app: { id: 8 }, external_id: 'x' }), { reason: 'checkRunOfAnother' }],
    ['installation', install('OCTO'), { status: 'queued' }],
    ['installation', install('stranger'), { reason: 'repositoryNotConfigured' }],
    ['repository', { ...pull(1, 'archived') }, { status: 'queued' }],
  ];
  for (const [event, body, expected] of rows) {
    const answer = await deliver({ event, body });
    t.match(answer, { status: 202, body: expected }, `${event} ${JSON.stringify(body)}`);
  }
  const jobs = await store.claimJobs('t', ['delivery', 'sync'], 50, 60_000);
  t.match(
    jobs.map(({ kind, key, payload }) => [kind, key, payload['reason']]),
    [
      ['delivery', 'github:github.com/octo/hello#1', 'pull_request.synchronize'],
      ['delivery', 'github:github.com/octo/hello#2', 'pull_request.edited'],
      ['delivery', 'github:github.com/octo/hello#3', 'pull_request.edited'],
      ['delivery', 'github:github.com/octo/hello#8', 'check_run.rerequested'],
      ['delivery', `github:github.com/octo/hello@${sha}`, 'check_run.rerequested'],
      ['sync', 'owner:github.com/octo', 'installation.created'],
      ['sync', 'github:github.com/octo/hello', 'repository.archived'],
    ],
  );
});

t.test('a command is stored once by its comment; a user without permission gets a reason', async (t) => {
  const { deliver, store, sql } = await scene(t, settingsWith({ Repositories: ['octo/hello', 'octo/unrouted'] }));
  const say = (body: string, change: object = {}) =>
    deliver({ event: 'issue_comment', body: commentPayload(body, change) });
  t.match(await say('@oratorio review for races'), { status: 202, body: { status: 'queued', commandId: 42 } });
  t.match(await say('@oratorio review for races'), { status: 200, body: { status: 'duplicate' } }, 'another delivery');
  t.match(await store.command(42), { verb: 'review', focus: 'races', actor: 'alice', status: 'queued', number: 7 });
  const rejected = (errorCode: string) => ({ status: 202, body: { status: 'rejected', errorCode } });
  t.match(
    await say('@oratorio review', { id: 43, user: { login: 'x[bot]', type: 'Bot' } }),
    rejected('githubCommentCommandBotRejected'),
  );
  t.match(await say('@oratorio review\nnow', { id: 44 }), rejected('githubCommentCommandMultiline'));
  const elsewhere = (full_name: string, id: number) =>
    deliver({
      event: 'issue_comment',
      body: { ...commentPayload('@oratorio review', { id }), repository: { full_name } },
    });
  t.match(await elsewhere('octo/unrouted', 45), rejected('githubCommentCommandWorkspaceNotConfigured'));
  t.match(await elsewhere('octo/other', 46), rejected('githubCommentCommandRepositoryNotConfigured'));
  t.equal(await store.command(46), undefined, 'of a repository that is not ours nothing is kept but the delivery');
  t.match(await say('@oratorio review', { id: 47, author_association: 'NONE' }), { body: { status: 'queued' } });
  t.match(await say('nice work', { id: 48 }), { body: { status: 'ignored', reason: 'notACommand' } });
  t.match(await say('@oratorio is nice', { id: 49 }), { body: { reason: 'commandUnsupported' } });
  const issue = commentPayload('@oratorio review', { id: 50 }, { pull_request: undefined });
  t.match(await deliver({ event: 'issue_comment', body: issue }), { body: { reason: 'notAPullRequest' } });
  const edited = { ...commentPayload('@oratorio review', { id: 51 }), action: 'edited' };
  t.match(await deliver({ event: 'issue_comment', body: edited }), { body: { reason: 'actionIgnored' } });
  const jobs = await sql("select payload from jobs where kind = 'command' order by 1");
  t.equal(jobs.length, 4, 'one for each that is followed or replied to; none for the bot');
});

t.test('a delivery that was ignored, was rejected or has failed is judged again by the present settings', async (t) => {
  let settings = settingsWith({ Repositories: ['octo/other'] });
  const { deliver, store } = await scene(t, () => settings);
  const opened = { event: 'pull_request', body: pull(1), id: 'opened' };
  const mention = { event: 'issue_comment', body: commentPayload('@oratorio review'), id: 'mention' };
  const unknown = { reason: 'repositoryNotConfigured' };
  const duplicate = { status: 200, body: { status: 'duplicate' } };
  t.match(await deliver(opened), { status: 202, body: { status: 'ignored', ...unknown } });
  t.match(await deliver(mention), { status: 202, body: { status: 'rejected' } });
  t.match(await deliver(opened), duplicate, 'judged as before');
  settings = settingsWith({ Repositories: ['octo/hello', 'octo/other'] });
  for (const each of [opened, mention]) {
    t.match(await deliver(each), { status: 202, body: { status: 'queued' } }, each.id);
    t.match(await deliver(each), duplicate, 'a queued delivery is known');
  }
  t.match(await store.deliveries({ limit: 9 }), {
    rows: [
      { deliveryId: 'mention', outcome: 'queued', redeliveries: 2 },
      { deliveryId: 'opened', outcome: 'queued', redeliveries: 3, number: 1 },
    ],
  });
  t.equal((await store.claimJobs('t', ['delivery', 'command'], 9, 60_000)).length, 2);
  await store.setDeliveryOutcome('opened', 'processed', null);
  t.match(await deliver(opened), duplicate, 'a processed delivery is known');
  await store.setDeliveryOutcome('opened', 'failed', 'forbidden');
  t.match(await deliver(opened), { status: 202, body: { status: 'queued' } });
  await store.updateCommand(42, { status: 'rejected', errorCode: 'githubCommentCommandActorUnauthorized' });
  await store.setDeliveryOutcome('mention', 'rejected', 'githubCommentCommandActorUnauthorized');
  t.match(await deliver(mention), { status: 202, body: { status: 'queued' } });
  t.match(await store.command(42), { status: 'queued', errorCode: null });
});

t.test(
  'a body that GitHub sends once is a duplicate under another delivery id, unless the first came to nothing',
  async (t) => {
    let settings = settingsWith({ Repositories: ['octo/other'] });
    const { deliver, store } = await scene(t, () => settings);
    const head = { number: 3, head: { sha: 'a'.repeat(40) }, updated_at: '2026-01-01T00:00:00Z' };
    const given = { event: 'pull_request', body: { ...pull(3), pull_request: head } };
    t.match(await deliver({ ...given, id: 'a' }), { body: { status: 'ignored' } });
    settings = settingsWith();
    t.match(await deliver({ ...given, id: 'b' }), { status: 202, body: { status: 'queued' } });
    t.match(await deliver({ ...given, id: 'c' }), { status: 200, body: { status: 'duplicate' } });
    t.match(await deliver({ ...given, id: 'c' }), { status: 200, body: { status: 'duplicate' } });
    t.match(await deliver({ ...given, id: 'a' }), { status: 200, body: { status: 'duplicate' } });
    const pushed = { ...head, updated_at: '2026-01-01T00:00:01Z' };
    t.match(await deliver({ ...given, body: { ...pull(3), pull_request: pushed } }), { body: { status: 'queued' } });
    t.match(await deliver({ event: 'pull_request', body: pull(3), id: 'd' }), { body: { status: 'queued' } });
    t.match(await deliver({ event: 'pull_request', body: pull(3), id: 'e' }), { body: { status: 'queued' } });
    const { rows } = await store.deliveries({ limit: 9 });
    t.match(
      rows.find(({ deliveryId }) => deliveryId === 'c'),
      { outcome: 'ignored', reason: 'duplicateBody' },
    );
  },
);

t.test('a command counts in a thread and in the text of a review as in the conversation', async (t) => {
  const { deliver, store } = await scene(t);
  const places = [
    ['issue_comment', commentPayload, null],
    ['pull_request_review_comment', threadPayload, 40],
    ['pull_request_review', reviewPayload, null],
  ] as const;
  let id = 100;
  const nextId = () => {
    id += 1;
    return id;
  };
  for (const [event, payload, threadId] of places) {
    const say = (body: string, change: object = {}) =>
      deliver({
        event,
        body: payload(body, { id: nextId(), ...(threadId !== null && { in_reply_to_id: threadId }), ...change }),
      });
    t.match(await say('@oratorio pause'), { status: 202, body: { status: 'queued', commandId: id } }, event);
    t.match(await store.command(id), { verb: 'pause', actor: 'alice', number: 7, status: 'queued' });
    t.match(await say('nice work'), { body: { status: 'ignored', reason: 'notACommand' } }, event);
    const robot = { user: { login: 'x[bot]', type: 'Bot' } };
    t.match(await say('@oratorio pause', robot), { body: { errorCode: 'githubCommentCommandBotRejected' } }, event);
    const mannequin = { author_association: 'MANNEQUIN' };
    t.match(await say('@oratorio pause', mannequin), { body: { errorCode: 'githubCommentCommandActorUnauthorized' } });
    const edited = { ...payload('@oratorio pause', { id: nextId() }), action: 'edited' };
    t.match(await deliver({ event, body: edited }), { body: { reason: 'actionIgnored' } }, event);
  }
  t.match(await deliver({ event: 'pull_request_review', body: reviewPayload(null, { id: 1 }) }), {
    body: { reason: 'notACommand' },
  });
  const started = threadPayload('@oratorio resolve', { id: 9 });
  t.match(await deliver({ event: 'pull_request_review_comment', body: started }), { body: { status: 'queued' } });
  const jobs = await store.claimJobs('t', ['command'], 1, 60_000);
  t.match(jobs, [{ payload: { commentId: 101, place: 'conversation', threadId: null } }]);
});

t.test('a store that fails is 503 with a time to come back, and a bug is a bug', async (t) => {
  const failing = (error: Error) =>
    new WebhookIntake({
      settings: () => settingsWith(),
      logger: quiet,
      store: { takeDelivery: () => Promise.reject(error), publish: async () => {} },
    });
  const answer = await deliverTo(failing(new ReviewStoreError('databaseFull', 'full')), { body: {} });
  t.match(answer, { status: 503, body: { error: { code: 'intakeUnavailable' } }, retryAfterSeconds: Number });
  await t.rejects(deliverTo(failing(new TypeError('bug')), { body: {} }), { message: 'bug' });
});

t.test('wrong signatures of one address become 429; right ones are never held up', async (t) => {
  let now = 0;
  const wrong = new WrongSignatures(() => now);
  for (let count = 0; count < 30; count += 1) t.equal(wrong.count('a'), undefined);
  t.equal(wrong.count('a'), 60);
  t.equal(wrong.count('b'), undefined, 'another address');
  now = 60_000;
  t.equal(wrong.count('a'), undefined, 'a new window');
  for (let address = 0; address < 10_000; address += 1) wrong.count(String(address));

  const { deliver } = await scene(t);
  const statuses = new Set<number>();
  for (let count = 0; count < 35; count += 1) statuses.add((await deliver({ body: {}, secret: 'other' })).status);
  t.same([...statuses], [403, 429]);
  t.equal((await deliver({ body: {} })).status, 202);
});

t.test('the events of the stream count each delivery once', async (t) => {
  const { deliver, store, intake } = await scene(t);
  for (let count = 0; count < 5; count += 1) await deliver({ body: {} });
  await intake.close();
  const events = await store.events(0, 100);
  const counts = events.map(({ data }) => Number(data['count']));
  t.equal(
    counts.reduce((sum, count) => sum + count, 0),
    5,
  );
});

t.test('a thousand deliveries at once are each kept once, the same ones twice or not', async (t) => {
  const { deliver, store, sql } = await scene(t);
  const answers = await Promise.all(
    Array.from({ length: 1_000 }, (_, index) =>
      deliver({ event: 'pull_request', body: pull(1 + (index % 500)), id: `d-${index % 500}` }),
    ),
  );
  const countOf = (status: string) => answers.filter(({ body }) => body['status'] === status).length;
  t.same([countOf('queued'), countOf('duplicate')], [500, 500]);
  t.match(await sql('select count(*) as n from deliveries'), [{ n: 500 }]);
  t.equal((await store.claimJobs('t', ['delivery'], 1_000, 60_000)).length, 500);
});

t.test('createHmac of Node and the signatures of these tests agree', async (t) => {
  const body = Buffer.from([0xff, 0x00, 0xfe]);
  t.equal(signatureOf(body, 'k'), `sha256=${createHmac('sha256', 'k').update(body).digest('hex')}`);
});
