import t from 'tap';
import {
  hunksFact,
  type NewDelivery,
  notesFact,
  type StoredDraft,
  type StoredFinding,
} from '../../../../src/review/store/index.ts';
import { claimed, facts, onBoth, repositoryKey, wishFor, withItem } from '../databases.ts';

const finding = (findingId: string, itemId: string, change: Partial<StoredFinding> = {}): StoredFinding => ({
  findingId,
  draftId: 'd1',
  itemId,
  severity: 'major',
  kind: 'comment',
  title: 'A race',
  body: 'Two may **write** at once.',
  path: 'src/a.ts',
  side: 'RIGHT',
  placement: 'inline',
  fingerprint: `print of ${findingId}`,
  status: 'accepted',
  isResolved: false,
  isPublished: false,
  warnings: [],
  commentId: null,
  threadNodeId: null,
  url: null,
  ...change,
});

type NewDraft = Omit<StoredDraft, 'version' | 'publishedAt' | 'url'>;
const draft = (runId: string, itemId: string, change: Partial<NewDraft> = {}): NewDraft => ({
  draftId: 'd1',
  runId,
  itemId,
  headSha: 'head-1',
  status: 'draft',
  summary: 'Fine.',
  findings: [finding('f1', itemId, { line: 3, startLine: 1, oldText: 'a', newText: 'b' }), finding('f2', itemId)],
  reviewedFiles: 2,
  totalFiles: 3,
  skippedFiles: [{ path: 'package-lock.json', reason: 'generated' }],
  warnings: ['one'],
  dropped: [
    {
      ...{ severity: 'note', title: 'A nit', path: 'src/a.ts', side: 'RIGHT', line: 3 },
      reason: 'belowMinSeverity',
    },
  ],
  blockedBy: null,
  ...change,
});

onBoth(t, 'a run has one draft, which can be replaced until its publication', async (t, subject) => {
  const { store, item } = await withItem(subject);
  await store.enqueueRun(wishFor(item));
  const { run, lease } = await claimed(store);
  const first = draft(run.runId, item.itemId);
  t.strictSame(await store.putDraft(lease, first), { ...first, version: 1, publishedAt: null, url: null });
  t.match(await store.run(run.runId), { draftId: 'd1' });
  const second = draft(run.runId, item.itemId, {
    draftId: 'd2',
    blockedBy: { code: 'draftContainsSecret', message: 'no' },
    findings: [finding('f1', item.itemId, { draftId: 'd2' })],
  });
  const stored = await store.putDraft(lease, second);
  t.equal(stored.version, 2);
  t.strictSame(await store.draft('d2'), stored);
  t.strictSame(await store.draftOfRun(run.runId), stored);
  t.equal(await store.draft('d1'), undefined);
  t.equal(await store.finding('f2'), undefined);

  const published = await store.updateDraft('d2', 2, {
    status: 'published',
    publishedAt: 5,
    url: 'u',
    blockedBy: null,
  });
  t.strictSame(published, { ...stored, version: 3, status: 'published', publishedAt: 5, url: 'u', blockedBy: null });
  t.equal(await store.updateDraft('d2', 2, { summary: 'late' }), undefined, 'of two who change it one is refused');
  t.match(await store.draft('d2'), { summary: 'Fine.', version: 3 });
  await t.rejects(store.putDraft(lease, first), { code: 'conflict' });
  t.match(await store.run(run.runId), { draftId: 'd2' }, 'what was refused changed nothing');
});

onBoth(t, 'findings change individually, and published unresolved ones are listed', async (t, subject) => {
  const { store, item } = await withItem(subject);
  await store.enqueueRun(wishFor(item));
  const { run, lease } = await claimed(store);
  await store.putDraft(lease, draft(run.runId, item.itemId));
  t.strictSame(await store.openFindings(item.itemId), []);
  const updated = await store.updateFinding('f1', { isPublished: true, commentId: 9_000_000_001, url: 'u' });
  t.match(updated, { isPublished: true, commentId: 9_000_000_001, line: 3 });
  t.strictSame(await store.openFindings(item.itemId), [updated]);
  t.match((await store.itemActivity([item.itemId])).get(item.itemId), { openFindings: 1 });
  const fixed = await store.updateFinding('f1', { isResolved: true, resolution: 'fixed', resolutionNote: 'by push' });
  t.match(fixed, { isResolved: true, resolution: 'fixed', resolutionNote: 'by push' });
  t.strictSame(await store.openFindings(item.itemId), []);
  const open = await store.updateFinding('f1', { isResolved: false, resolution: undefined });
  t.notOk(open && 'resolution' in open, 'what is undefined is taken away');
  t.equal(await store.updateFinding('none', { isResolved: true }), undefined);
  t.strictSame(
    (await store.draft('d1'))?.findings.map(({ findingId }) => findingId),
    ['f1', 'f2'],
    'in the order they were handed in',
  );
});

onBoth(t, 'an edit of a finding fails when another edit has changed the draft', async (t, subject) => {
  const { store, item } = await withItem(subject);
  await store.enqueueRun(wishFor(item));
  const { run, lease } = await claimed(store);
  const { draftId, version } = await store.putDraft(lease, draft(run.runId, item.itemId));
  t.match(await store.updateFinding('f1', { title: 'Two races' }, version), { title: 'Two races' });
  t.equal(await store.updateFinding('f2', { status: 'skipped' }, version), undefined, 'the version has grown');
  t.equal(await store.updateDraft(draftId, version, { summary: 'late' }), undefined, 'for the draft as well');
  const now = await store.draft(draftId);
  t.match(now, { version: version + 1, summary: 'Fine.', findings: [{ title: 'Two races' }, { status: 'accepted' }] });
  await store.updateFinding('f2', { severity: 'note' });
  t.match(await store.draft(draftId), { version: version + 2 }, 'also without one');
  await store.updateFinding('f2', { isPublished: true, commentId: 5, url: 'u' });
  t.match(await store.draft(draftId), { version: version + 2 }, 'what became of it is no edit');
  const both = ['a', 'b'].map((body) => store.updateFinding('f1', { body }, version + 2));
  t.equal((await Promise.all(both)).filter(Boolean).length, 1, 'of two at once one is refused');
  t.equal(await store.updateFinding('none', { title: 'x' }), undefined);
});

onBoth(t, 'drafts are listed by page with their findings', async (t, subject) => {
  const { store } = await withItem(subject);
  for (let number = 1; number <= 3; number += 1) {
    const { item } = await store.upsertItem(facts(number));
    await store.enqueueRun(wishFor(item));
    const { run, lease } = await claimed(store);
    const draftId = `d${number}`;
    const findings = [finding(`f${number}`, item.itemId, { draftId })];
    await store.putDraft(lease, draft(run.runId, item.itemId, { draftId, findings }));
  }
  const first = await store.drafts({ limit: 2 });
  t.match(first.rows, [
    { draftId: 'd3', findings: [{ findingId: 'f3' }] },
    { draftId: 'd2', findings: [{ findingId: 'f2' }] },
  ]);
  t.match(await store.drafts({ limit: 2, cursor: first.next ?? '' }), { rows: [{ draftId: 'd1' }], next: undefined });
  t.equal((await store.drafts({ limit: 9, status: 'published' })).rows.length, 0);
  t.equal((await store.drafts({ limit: 9, itemId: first.rows[0]?.itemId ?? '' })).rows.length, 1);
  await t.rejects(store.drafts({ limit: 1, cursor: '-' }), { code: 'invalidCursor' });
});

const reply = { kind: 'reply', repositoryKey, runId: null, request: {} } as const;
const mention = (number: number): NewDelivery => ({
  ...{ deliveryId: `mention ${number}`, event: 'issue_comment', action: 'created', repositoryKey, number },
  ...{ sender: 'alice', outcome: 'rejected', reason: null, tookMs: 1, job: null },
  command: {
    ...{ commentId: number, repositoryKey, number, actor: 'alice', verb: 'dance', focus: null },
    ...{ status: 'rejected', errorCode: 'unknownCommand' },
  },
});

onBoth(t, 'old rows are deleted, except for those still needed', async (t, subject) => {
  const { store, item } = await withItem(subject);
  const done = async (findingIsOpen: boolean, number: number) => {
    const { item } = await store.upsertItem(facts(number));
    await store.enqueueRun(wishFor(item));
    const { run, lease } = await claimed(store);
    const draftId = `d${number}`;
    const findings = [finding(`f${number}`, item.itemId, { draftId, isPublished: true, isResolved: !findingIsOpen })];
    await store.putDraft(lease, draft(run.runId, item.itemId, { draftId, findings }));
    await store.putWrite({
      kind: 'review',
      dedupeKey: `review ${run.runId}`,
      repositoryKey: item.repositoryKey,
      runId: run.runId,
      request: {},
    });
    await store.updateRun(run.runId, lease, { state: 'done' });
    return { runId: run.runId, item };
  };
  const open = await done(true, 1);
  const closed = await done(false, 2);
  await store.enqueueRun(wishFor(item, { headSha: 'waits' }));
  await store.publish('run.changed', { n: 1 });
  await store.publish('run.changed', { n: 2 });
  const never = { deliveries: 0, events: 0, runs: 0 };
  t.equal(await store.prune(never), 0);
  const soon = (await store.now()) + 60_000;
  for (const runId of [open.runId, closed.runId]) await store.setFact(notesFact(runId), '{}');
  await store.setFact(hunksFact(closed.runId), '{}');
  await store.setFact('of no run', '');
  t.equal(await store.prune({ ...never, runs: soon }), 5, 'a run, its draft, its write, its notes and its hunks');
  t.equal(await store.run(closed.runId), undefined);
  t.equal(await store.fact(notesFact(closed.runId)), undefined);
  t.equal(await store.fact(hunksFact(closed.runId)), undefined);
  t.strictSame([await store.fact(notesFact(open.runId)), await store.fact('of no run')], ['{}', '']);
  t.equal(await store.finding('f2'), undefined);
  t.match(await store.run(open.runId), { state: 'done' }, 'what was told there must not be told again');
  t.equal((await store.runs({ limit: 9 })).rows.length, 2);
  await store.upsertItem(facts(1, { state: 'merged', updatedAt: facts(1).updatedAt + 1 }));
  t.equal(await store.prune({ ...never, runs: soon }), 4, 'an item that is closed needs it no more');
  t.equal(await store.prune({ ...never, events: soon }), 1);
  t.match(await store.events(0, 9), [{ data: { n: 2 } }], 'the newest event stays');
  t.equal(await store.oldestEvent(), await store.newestEvent());

  await store
    .putWrite({ ...reply, dedupeKey: 'sent' })
    .then(({ writeId }) => store.updateWrite(writeId, { status: 'sent' }));
  await store.putWrite({ ...reply, dedupeKey: 'pending' });
  t.equal(await store.prune({ ...never, runs: soon }), 1, 'a write without a run, when it is settled');
  const counts = { repositories: 1, changedItems: 0, apiCalls: 1, notModified: 1 };
  await store.putSyncJob({ jobId: 's', trigger: 'startup', status: 'succeeded', ...counts });
  t.equal(await store.prune({ ...never, deliveries: soon }), 1, 'a sync job');
  for (const number of [1, 2]) await store.takeDelivery(mention(number));
  t.equal(await store.prune({ ...never, runs: soon }), 1, 'a command, when its item is closed');
  t.match([await store.command(1), await store.command(2)], [undefined, { number: 2 }]);
});
