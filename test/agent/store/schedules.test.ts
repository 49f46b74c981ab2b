import fc from 'fast-check';
import t from 'tap';
import type { ScheduleStore, StoredAutomation, StoredRun } from '../../../src/agent/index.ts';
import { openStore } from '../../../src/agent/store/index.ts';
import { opened, temporaryDirectory } from './helpers.ts';

const automation = (id: string, more: Partial<StoredAutomation> = {}): StoredAutomation => ({
  id,
  kind: 'cron',
  name: id,
  prompt: 'look around 😀',
  schedule: { kind: 'every', everyMs: 60_000 },
  scheduleText: 'Every minute',
  enabled: true,
  binding: { mode: 'new' },
  deleteAfterRun: false,
  nextAt: 1_000,
  version: 1,
  createdAt: 500,
  updatedAt: 500,
  anchorAt: 500,
  progress: { failures: 0, lastDueAt: null, retry: null, threadId: null },
  ...more,
});

const run = (automationId: string, scheduledFor: number, more: Partial<StoredRun> = {}): Omit<StoredRun, 'runId'> => ({
  automationId,
  scheduledFor,
  attempt: 1,
  status: 'running',
  trigger: 'schedule',
  coalesced: 1,
  startedAt: scheduledFor,
  ...more,
});

const timesOf = (schedules: ScheduleStore, id: string): number[] =>
  schedules.runs(id, { limit: 1_000 }).map(({ scheduledFor }) => scheduledFor);

t.test('a stored automation is read back unchanged, also after reopening', async (t) => {
  const directory = temporaryDirectory(t);
  const all = [
    automation('a'),
    automation('b', { kind: 'task', schedule: undefined, nextAt: null, enabled: false, model: 'm' }),
    automation('c', {
      binding: { mode: 'thread', threadId: 'thread_1' },
      approvalPolicy: 'autoApprove',
      deleteAfterRun: true,
      progress: {
        failures: 3,
        lastDueAt: 900,
        retry: { scheduledFor: 900, attempt: 2, trigger: 'manual', at: 950 },
        threadId: 'thread_2',
      },
    }),
  ];
  const store = openStore(directory);
  for (const each of all) store.schedules.put(each);
  store.close();
  const { schedules } = opened(t, directory);
  t.same(schedules.ids(), ['a', 'b', 'c'], 'in the order in which they were made');
  t.same([schedules.ids('task'), schedules.ids('cron')], [['b'], ['a', 'c']]);
  for (const each of all) t.strictSame(schedules.automation(each.id), JSON.parse(JSON.stringify(each)));
  t.match(schedules.automation('b'), { kind: 'task', nextAt: null, enabled: false });
  t.equal(schedules.automation('none'), undefined);
  t.equal(schedules.count(), 3);
});

t.test('a change replaces an automation and keeps its position and history', async (t) => {
  const { schedules } = opened(t);
  schedules.put(automation('a'));
  schedules.put(automation('b'));
  schedules.insertRun(run('a', 1_000));
  schedules.put(automation('a', { name: 'other', version: 2, nextAt: 2_000 }));
  t.match(schedules.automation('a'), { name: 'other', version: 2, nextAt: 2_000 });
  t.same(schedules.ids(), ['a', 'b']);
  t.equal(timesOf(schedules, 'a').length, 1);
});

t.test('due automations are the enabled ones with a time, earliest first', async (t) => {
  const { schedules } = opened(t);
  schedules.put(automation('late', { nextAt: 3_000 }));
  schedules.put(automation('soon', { nextAt: 1_000 }));
  schedules.put(automation('off', { enabled: false }));
  schedules.put(automation('never', { nextAt: null }));
  t.same(schedules.dues(), [
    { id: 'soon', nextAt: 1_000 },
    { id: 'late', nextAt: 3_000 },
  ]);
});

t.test('a due time has one run, however often it is begun', async (t) => {
  const directory = temporaryDirectory(t);
  const [one, other] = [opened(t, directory), opened(t, directory)];
  one.schedules.put(automation('a'));
  const begun = [one, other, one, other].map(({ schedules }) => schedules.insertRun(run('a', 1_000)));
  t.same(
    begun.map((each) => each !== undefined),
    [true, false, false, false],
  );
  t.match(begun[0], { runId: /^run_\d+$/, automationId: 'a', scheduledFor: 1_000 });
  t.ok(one.schedules.insertRun(run('a', 2_000)), 'another due time has another');
  one.schedules.put(automation('b'));
  t.ok(other.schedules.insertRun(run('b', 1_000)), 'so has another automation');
  t.equal(one.schedules.insertRun(run('gone', 1_000)), undefined, 'one that was removed has none');
});

t.test('a run is updated by each attempt and by its end', async (t) => {
  const { schedules } = opened(t);
  schedules.put(automation('a'));
  const begun = schedules.insertRun(run('a', 1_000));
  if (!begun) throw new Error('it was not begun');
  t.match(schedules.unfinishedRuns(), [begun]);
  const ended = { ...begun, status: 'failed' as const, error: { code: 'x', message: 'y' }, finishedAt: 5 };
  schedules.updateRun(ended);
  t.same(schedules.unfinishedRuns(), []);
  t.strictSame(schedules.run('a', 1_000), ended);
  schedules.updateRun({ ...begun, attempt: 2 });
  t.match(schedules.runs('a', { limit: 5 }), [{ runId: begun.runId, attempt: 2, status: 'running', error: undefined }]);
  schedules.updateRun({ ...begun, scheduledFor: 9 });
  t.same(timesOf(schedules, 'a'), [1_000], 'what has no row gets none');
});

t.test('a history is paged, newest due time first', async (t) => {
  const { schedules } = opened(t);
  schedules.put(automation('a'));
  for (const at of [3, 1, 5, 2, 4]) schedules.insertRun(run('a', at, { status: 'completed' }));
  const first = schedules.runs('a', { limit: 2 });
  t.same(
    first.map(({ scheduledFor }) => scheduledFor),
    [5, 4],
  );
  const next = schedules.runs('a', { limit: 9, before: first.at(-1)?.runId });
  t.same(
    next.map(({ scheduledFor }) => scheduledFor),
    [3, 2, 1],
  );
  for (const before of ['run_999', 'run_', 'nonsense', '', 'run_1 OR 1']) {
    t.same(schedules.runs('a', { limit: 9, before }), [], before);
  }
  t.same(schedules.runs('none', { limit: 9 }), []);
  t.same(schedules.runs('a', { limit: -1 }), []);
});

t.test('trimming deletes the oldest runs and no running one', async (t) => {
  const { schedules } = opened(t);
  schedules.put(automation('a'));
  schedules.put(automation('b'));
  schedules.insertRun(run('a', 1));
  for (const at of [2, 3, 4, 5]) schedules.insertRun(run('a', at, { status: 'completed' }));
  schedules.insertRun(run('b', 1, { status: 'completed' }));
  schedules.trimRuns('a', 3);
  t.same(timesOf(schedules, 'a'), [5, 4, 3, 1]);
  schedules.trimRuns('a', 100);
  t.same(timesOf(schedules, 'a'), [5, 4, 3, 1]);
  schedules.trimRuns('a', 0);
  t.same([timesOf(schedules, 'a'), timesOf(schedules, 'b')], [[1], [1]]);
});

t.test('removing an automation deletes its history; run ids are not reused', async (t) => {
  const { schedules } = opened(t);
  schedules.put(automation('a'));
  const before = schedules.insertRun(run('a', 1));
  t.equal(schedules.delete('a'), true);
  t.equal(schedules.delete('a'), false);
  t.same([schedules.count(), schedules.unfinishedRuns()], [0, []]);
  schedules.put(automation('a'));
  t.not(schedules.insertRun(run('a', 1))?.runId, before?.runId);
});

t.test('automations that wait for a retry, and those handled after a time, are found', async (t) => {
  const { schedules } = opened(t);
  const progress = automation('x').progress;
  const retry = { scheduledFor: 1, attempt: 2, trigger: 'schedule' as const, at: 7 };
  schedules.put(automation('plain'));
  schedules.put(automation('retrying', { progress: { ...progress, retry } }));
  schedules.put(automation('handled', { progress: { ...progress, lastDueAt: 5_000 } }));
  t.match(schedules.retrying(), [{ id: 'retrying', progress: { retry } }]);
  t.match(schedules.handledAfter(4_999), [{ id: 'handled' }]);
  t.same(schedules.handledAfter(5_000), []);
});

t.test('a transaction is written as a whole or not at all', async (t) => {
  const { schedules } = opened(t);
  t.throws(() =>
    schedules.transaction(() => {
      schedules.put(automation('a'));
      throw new Error('changed my mind');
    }),
  );
  t.equal(schedules.count(), 0);
  t.equal(
    schedules.transaction(() => 7),
    7,
  );
});

t.test('any order of begins and trims keeps the newest due times, each once', async (t) => {
  const { schedules } = opened(t);
  let number = 0;
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 0, max: 50 }), { maxLength: 60 }), fc.nat(20), (times, keep) => {
      number += 1;
      const id = `any ${number}`;
      schedules.put(automation(id));
      for (const at of times) schedules.insertRun(run(id, at, { status: 'completed' }));
      schedules.trimRuns(id, keep);
      const expected = [...new Set(times)].sort((one, other) => other - one).slice(0, keep);
      t.strictSame(timesOf(schedules, id), expected);
    }),
    { numRuns: 50 },
  );
});
