import t from 'tap';
import type { Job, NewDelivery, NewJob, NewWrite } from '../../../../src/review/store/index.ts';
import { onBoth, repositoryKey } from '../databases.ts';

const job = (key: string, change: Partial<NewJob> = {}): NewJob => ({
  kind: 'delivery',
  key,
  payload: { key },
  ...change,
});
const keys = (jobs: readonly Job[]) => jobs.map(({ key }) => key);
const minute = 60_000;

const delivery = (deliveryId: string, change: Partial<NewDelivery> = {}): NewDelivery => ({
  deliveryId,
  event: 'pull_request',
  action: 'opened',
  repositoryKey,
  number: 7,
  sender: 'alice',
  outcome: 'queued',
  reason: null,
  tookMs: 3.6,
  job: null,
  command: null,
  ...change,
});

const command = (commentId: number) => ({
  commentId,
  repositoryKey,
  number: 7,
  actor: 'alice',
  verb: 'review',
  focus: 'locks',
  status: 'queued' as const,
  errorCode: null,
});

onBoth(t, 'a delivery, its command and its job are accepted together, once', async (t, subject) => {
  const store = await subject.open();
  const first = delivery('a', { job: job('k', { kind: 'command' }), command: command(1) });
  t.equal(await store.takeDelivery(first), 'new');
  t.equal(await store.takeDelivery(first), 'duplicate');
  t.equal(await store.takeDelivery({ ...first, deliveryId: 'b' }), 'duplicate', 'the same comment by another delivery');
  t.equal((await store.claimJobs('one', ['command'], 9, minute)).length, 1);
  t.match(await store.deliveries({ limit: 9 }), {
    rows: [
      { deliveryId: 'b', outcome: 'ignored', reason: 'duplicateCommand' },
      { deliveryId: 'a', outcome: 'queued', tookMs: 4, redeliveries: 1, receivedAt: /^\d{4}-.*Z$/ },
    ],
    next: undefined,
  });
  t.match(await store.command(1), { verb: 'review', focus: 'locks', status: 'queued', runId: null });
  await store.updateCommand(1, { status: 'dispatched', runId: 'r' });
  t.match(await store.command(1), { status: 'dispatched', runId: 'r', errorCode: null });
  t.equal(await store.command(2), undefined);
  await store.setDeliveryOutcome('a', 'processed', 'done');
  const page = await store.deliveries({ limit: 1, outcome: 'processed' });
  t.match(page, { rows: [{ deliveryId: 'a', reason: 'done' }], next: undefined });
  const [newest] = (await store.deliveries({ limit: 1 })).rows;
  t.strictSame(Object.keys(newest ?? {}).includes('number'), true);
  await store.takeDelivery(delivery('c', { action: null, number: null, repositoryKey: null, sender: null }));
  t.notOk('action' in ((await store.deliveries({ limit: 1 })).rows[0] ?? {}), 'what is not known is left out');
});

onBoth(t, 'all queued deliveries of a pull request are settled together', async (t, subject) => {
  const store = await subject.open();
  const other = { repositoryKey: `${repositoryKey}-too` };
  await store.takeDelivery(delivery('a'));
  await store.takeDelivery(delivery('b'));
  await store.takeDelivery(delivery('done', { outcome: 'processed' }));
  await store.takeDelivery(delivery('comment', { event: 'issue_comment' }));
  await store.takeDelivery(delivery('eight', { number: 8 }));
  await store.takeDelivery(delivery('elsewhere', other));
  t.strictSame(await store.settleDeliveries(repositoryKey, 9, 'processed', null), []);
  const settled = await store.settleDeliveries(repositoryKey, 7, 'failed', 'forbidden');
  t.strictSame(settled.toSorted(), ['a', 'b']);
  t.strictSame(await store.settleDeliveries(repositoryKey, 7, 'processed', null), [], 'once');
  const { rows } = await store.deliveries({ limit: 9 });
  t.strictSame(
    rows.map(({ deliveryId, outcome, reason }) => [deliveryId, outcome, reason]),
    [
      ['elsewhere', 'queued', undefined],
      ['eight', 'queued', undefined],
      ['comment', 'queued', undefined],
      ['done', 'processed', undefined],
      ['b', 'failed', 'forbidden'],
      ['a', 'failed', 'forbidden'],
    ],
  );
});

onBoth(t, 'a delivery can contain any text', async (t, subject) => {
  const store = await subject.open();
  const named = { action: 'a\0b', sender: '\ud800', repositoryKey: null } as const;
  t.equal(await store.takeDelivery(delivery('odd', named)), 'new');
  t.match(await store.deliveries({ limit: 1 }), { rows: [{ action: 'a\ufffdb', sender: '\ufffd' }] });
});

onBoth(t, 'one of many concurrent equal deliveries is new', async (t, subject) => {
  const stores = [await subject.open(), await subject.open('two')];
  const taken = await Promise.all(
    Array.from({ length: 40 }, (_, n) => stores[n % 2]?.takeDelivery(delivery('same', { job: job('k') }))),
  );
  t.equal(taken.filter((each) => each === 'new').length, 1);
  t.equal((await stores[0]?.claimJobs('one', ['delivery'], 9, minute))?.length, 1);
  t.match(await stores[0]?.deliveries({ limit: 9 }), { rows: [{ redeliveries: 39 }] });
});

onBoth(t, 'jobs of one key run one after the other, in order', async (t, subject) => {
  const store = await subject.open();
  for (const each of ['a', 'a', 'b', 'a']) await store.enqueueJob(job(each));
  await store.enqueueJob(job('b', { kind: 'write' }));
  const first = await store.claimJobs('one', ['delivery', 'write'], 9, minute);
  t.strictSame(keys(first), ['a', 'b']);
  t.strictSame(await store.claimJobs('two', ['delivery', 'write'], 9, minute), []);
  const [a, b] = first;
  if (!a || !b) return;
  t.match(a, { kind: 'delivery', payload: { key: 'a' }, attempt: 1, lease: { owner: 'one', token: 1 } });
  const stale = { ...a, lease: { ...a.lease, token: 0 } };
  const ends = [stale, a, a].map((each) => store.completeJob(each));
  t.strictSame(await Promise.all(ends), [false, true, false], 'of those who complete it one has done it');
  t.equal(await store.completeJob(a), false, 'it is no more');
  t.equal(await store.completeJob(b), true);
  t.strictSame(await store.claimJobs('one', ['write'], 1, minute).then(keys), ['b']);
  t.strictSame(await store.claimJobs('one', ['sync'], 9, minute), []);
  const [second] = await store.claimJobs('one', ['delivery'], 1, minute);
  t.ok(second && second.jobId > a.jobId);
  t.strictSame(await store.claimJobs('one', [], 9, minute), []);
});

onBoth(t, 'a failed job is retried after its pause, or becomes a dead job', async (t, subject) => {
  const store = await subject.open();
  await store.enqueueJob(job('k'));
  await store.enqueueJob(job('k', { payload: { second: true } }));
  const [first] = await store.claimJobs('one', ['delivery'], 1, minute);
  if (!first) return t.fail('no job');
  t.equal(await store.failJob(first, 'no network', minute), true);
  t.equal(await store.failJob(first, 'no network', 0), false);
  t.strictSame(await store.claimJobs('one', ['delivery'], 9, minute), [], 'the one after it waits as well');
  await subject.sql(`UPDATE "jobs" SET "dueAt" = 1`);
  const [again] = await store.claimJobs('one', ['delivery'], 9, minute);
  t.match(again, { jobId: first.jobId, attempt: 2 });
  if (!again) return;
  t.equal(await store.failJob(again, 'gone', 'dead'), true);
  t.equal(await store.failJob(again, 'gone', 'dead'), false);
  const { jobId, key, kind, payload } = first;
  t.match(await store.deadJobs(9), [{ jobId, key, kind, payload, attempt: 2, error: 'gone', diedAt: Number }]);
  t.match(await store.claimJobs('one', ['delivery'], 9, minute), [{ payload: { second: true } }]);
});

onBoth(t, 'a job requested again while it runs is run again', async (t, subject) => {
  const store = await subject.open();
  const wish = job('k', { dedupe: 'pr 1' });
  await store.enqueueJob(job('k', { dedupe: 'pr 1', delayMs: minute }));
  await store.enqueueJob(wish);
  const [first] = await store.claimJobs('one', ['delivery'], 9, minute);
  if (!first) return t.fail('the earlier time counts');
  t.equal((await subject.sql('SELECT * FROM "jobs"')).length, 1);
  await store.enqueueJob(wish);
  await store.enqueueJob(job('k', { dedupe: 'pr 1', kind: 'sync' }));
  t.strictSame(await store.claimJobs('one', ['delivery', 'sync'], 9, minute), [], 'not side by side');
  t.equal(await store.completeJob(first), true);
  const [second] = await store.claimJobs('one', ['delivery'], 9, minute);
  if (!second) return t.fail('it is not run again');
  t.match(second, { jobId: first.jobId, attempt: 1, lease: { token: 2 } });
  await store.enqueueJob(wish);
  t.equal(await store.failJob(second, 'no', 'dead'), true);
  t.match(await store.deadJobs(9), [{ jobId: first.jobId }]);
  const [sync] = await store.claimJobs('one', ['sync'], 9, minute);
  t.equal(sync && (await store.completeJob(sync)), true);
  const [third] = await store.claimJobs('one', ['delivery'], 9, minute);
  t.match(third, { attempt: 1, payload: wish.payload }, 'the second wish has attempts of its own');
  t.equal(third && (await store.completeJob(third)), true);
  t.strictSame(await subject.sql('SELECT * FROM "jobs"'), []);
});

onBoth(t, 'an expired job lease can be claimed, and its late owner changes nothing', async (t, subject) => {
  const store = await subject.open();
  await store.enqueueJob(job('k'));
  const [late] = await store.claimJobs('one', ['delivery'], 9, minute);
  if (!late) return t.fail('no job');
  const renewed = await store.renewJob(late, 2 * minute);
  t.ok(renewed && renewed.lease.until > late.lease.until);
  await subject.sql(`UPDATE "jobs" SET "dueAt" = 1`);
  const other = await subject.open('two');
  const [taken] = await other.claimJobs('two', ['delivery'], 9, minute);
  if (!taken) return t.fail('it is not taken over');
  t.match(taken, { jobId: late.jobId, attempt: 2, lease: { owner: 'two', token: 2 } });
  t.equal(await store.renewJob(late, minute), undefined);
  t.equal(await store.completeJob(late), false);
  t.equal(await store.failJob(late, 'late', 'dead'), false);
  t.equal(await store.failJob(late, 'late', 0), false);
  t.equal(await other.completeJob(taken), true);
  t.strictSame(await store.deadJobs(9), []);
});

onBoth(t, 'the backlog counts pending work', async (t, subject) => {
  const store = await subject.open();
  const nothing = {
    oldestDueAt: null,
    deadJobs: 0,
    runs: { waiting: 0, active: 0 },
    writes: { pending: 0, failed: 0 },
  };
  t.strictSame(await store.backlog(), { jobs: new Map(), ...nothing });
  for (const key of ['a', 'b', 'c']) await store.enqueueJob(job(key));
  await store.enqueueJob(job('d', { kind: 'sync', delayMs: minute }));
  const [first, second] = await store.claimJobs('one', ['delivery'], 2, minute);
  if (!first || !second) return t.fail('no jobs');
  await store.failJob(second, 'gone', 'dead');
  await store.putWrite({ kind: 'reply', dedupeKey: 'r', repositoryKey, runId: null, request: {} });
  const found = await store.backlog();
  const jobs = new Map([
    ['delivery', { waiting: 1, taken: 1 }],
    ['sync', { waiting: 1, taken: 0 }],
  ]);
  t.strictSame(found.jobs, jobs);
  t.match(found, { oldestDueAt: Number, deadJobs: 1, writes: { pending: 1, failed: 0 } });
  t.ok((found.oldestDueAt ?? 0) <= (await store.now()));
});

onBoth(t, 'a write is added once, with the job that sends it', async (t, subject) => {
  const store = await subject.open();
  const write: NewWrite = {
    kind: 'review',
    dedupeKey: 'review 1',
    repositoryKey,
    runId: 'r',
    request: { body: 'ok\0' },
  };
  const send = (writeId: string) => job('send', { kind: 'write', payload: { writeId } });
  const stored = await store.putWrite(write, send);
  t.match(stored, { ...write, status: 'pending', attempts: 0, response: null, createdAt: Number, sentAt: null });
  t.strictSame(await store.putWrite({ ...write, request: {} }, send), stored);
  t.match(await store.claimJobs('one', ['write'], 9, minute), [{ payload: { writeId: stored.writeId } }]);
  await store.updateWrite(stored.writeId, { status: 'failed', attempts: 1, lastError: { code: 'x', message: 'y' } });
  t.match(await store.write(stored.writeId), { status: 'failed', attempts: 1, lastError: { code: 'x' } });
  await store.updateWrite(stored.writeId, { status: 'sent', attempts: 2, response: { id: 5 }, lastError: null });
  const sent = await store.write(stored.writeId);
  t.match(sent, { status: 'sent', response: { id: 5 }, lastError: null, sentAt: Number });
  await store.updateWrite(stored.writeId, { status: 'failed', lastError: { code: 'late', message: '' } });
  t.strictSame(await store.write(stored.writeId), sent, 'what was sent stays sent');
  await store.putWrite({ ...write, dedupeKey: 'review 2', runId: null });
  t.equal((await store.writes({ runId: 'r', limit: 9 })).rows.length, 1);
  const page = await store.writes({ limit: 1 });
  t.match(page, { rows: [{ dedupeKey: 'review 2' }] });
  t.match(await store.writes({ limit: 1, cursor: page.next ?? '' }), { rows: [{ dedupeKey: 'review 1' }] });
  t.equal((await store.writes({ status: 'pending', limit: 9 })).rows.length, 1);
});

onBoth(t, 'one process at a time has a role; facts and sync jobs are stored', async (t, subject) => {
  const store = await subject.open();
  const other = await subject.open('two');
  const sync = ['sync'];
  t.strictSame([...(await store.takeRoles(sync, 'one', minute))], sync);
  t.strictSame([...(await store.takeRoles(sync, 'one', minute))], sync, 'it is renewed');
  t.strictSame([...(await other.takeRoles(sync, 'two', minute))], []);
  t.strictSame([...(await other.takeRoles(['sync', 'clean'], 'two', minute))], ['clean'], 'each role for itself');
  t.strictSame([...(await store.takeRoles(['clean', 'sync'], 'one', 0))], sync, 'and let go');
  t.strictSame([...(await store.takeRoles([], 'one', minute))], []);
  const both = await Promise.all([store.takeRoles(sync, 'one', minute), other.takeRoles(sync, 'two', minute)]);
  t.equal(both.filter((taken) => taken.has('sync')).length, 1);

  t.equal(await store.fact('cursor'), undefined);
  await store.setFact('cursor', 'a');
  await store.setFact('cursor', 'b');
  t.equal(await other.fact('cursor'), 'b');
  await store.setFact('cursor', null);
  await store.setFact('none', null);
  t.equal(await other.fact('cursor'), undefined);

  const counts = { repositories: 1, changedItems: 2, apiCalls: 3, notModified: 4 };
  await store.putSyncJob({ jobId: 's1', trigger: 'startup', status: 'running', ...counts });
  await store.putSyncJob({ jobId: 's2', trigger: 'manual', status: 'queued', repositoryKey, ...counts });
  const error = { code: 'rateLimited', message: 'wait' };
  await store.putSyncJob({ jobId: 's1', trigger: 'startup', status: 'failed', error, ...counts, apiCalls: 9 });
  const [newest, oldest] = await store.syncJobs(9);
  t.match(newest, { jobId: 's2', repositoryKey });
  t.notOk(newest && 'finishedAt' in newest);
  t.match(oldest, { jobId: 's1', status: 'failed', apiCalls: 9, error, createdAt: /Z$/, finishedAt: /Z$/ });
});

onBoth(t, 'events are numbered and read after a number', async (t, subject) => {
  const store = await subject.open();
  t.equal(await store.newestEvent(), 0);
  t.equal(await store.oldestEvent(), 0);
  const woken: string[] = [];
  const stop = store.onWake((what) => woken.push(what));
  await store.publish('item.changed', { itemId: 'i', text: 'ü\0' });
  t.ok(woken.includes('events'));
  stop();
  await store.publish('run.changed', {});
  const [first, second] = await store.events(0, 9);
  t.match(first, { kind: 'item.changed', data: { itemId: 'i', text: 'ü\0' }, at: /Z$/ });
  t.match(await store.events(first?.seq ?? 0, 9), [{ kind: 'run.changed' }]);
  t.equal(await store.newestEvent(), second?.seq);
  t.equal((await store.events(0, 1)).length, 1);
});

onBoth(t, 'a closed store rejects calls after completing those in progress', async (t, subject) => {
  const store = await subject.open();
  const taken = store.takeDelivery(delivery('last', { job: job('k') }));
  await store.close();
  t.equal(await taken, 'new');
  await t.rejects(store.takeDelivery(delivery('late')), { code: 'storeClosed' });
  await t.rejects(store.newestEvent(), { code: 'storeClosed' });
  await t.rejects(store.drafts({ limit: 1 }), { code: 'storeClosed' });
  await store.close();
  const next = await subject.open('two');
  t.match(await next.deliveries({ limit: 9 }), { rows: [{ deliveryId: 'last' }] });
});
