/** What becomes of a run: conversations, failures, retries, crashes, two at once. */
import t from 'tap';
import { type ScheduleStore, StorageError, type StoredRun } from '../../src/agent/index.ts';
import { openStore } from '../../src/agent/store/index.ts';
import { defaults } from '../../src/protocol/index.ts';
import { answers, call, say, settings, tool } from '../agent/helpers.ts';
import { day, gate, hour, minute, morning, refusal, temporaryDirectory, unreachable, until, World } from './world.ts';

const retryMs = 30_000;
const statuses = async (world: World, id: string): Promise<string[]> =>
  (await world.history(id)).map(({ status }) => status);

t.test('due times that come while it runs are one run after it, never one beside it', async (t) => {
  const held = gate();
  const world = await World.start(t, { answer: held.answer, settings: { turnTimeoutMs: day } });
  const { id } = await world.hourly();
  await world.clock.pass(hour + minute);
  await until(() => world.running.length === 1, 'the first run');
  await world.clock.pass(3 * hour);
  t.same([world.prompts.length, await world.stateOf(id)], [1, 'running']);
  held.open();
  await world.quiet();
  t.same([world.prompts.length, world.most], [2, 1]);
  t.match(await world.history(id), [
    { scheduledFor: '2026-07-01T10:00:00.000Z', status: 'completed', coalesced: 1 },
    { scheduledFor: '2026-07-01T11:00:00.000Z', status: 'missed', coalesced: 2 },
    { scheduledFor: '2026-07-01T13:00:00.000Z', status: 'completed', coalesced: 3 },
  ]);
});

t.test('only so many run at once; the others are queued, and come in order', async (t) => {
  const held = gate();
  const world = await World.start(t, { answer: held.answer, settings: { maxConcurrentRuns: 2 } });
  for (let number = 0; number < 7; number += 1) await world.hourly({ prompt: `job ${number}` });
  await world.clock.pass(hour + minute);
  await until(() => world.running.length === 2, 'two run');
  t.match((await world.automations.state()).countsByState, { running: 2, queued: 5 });
  held.open();
  await world.quiet();
  t.same([world.most, world.prompts.length], [2, 7]);
  t.same(world.prompts, ['job 0', 'job 1', 'job 2', 'job 3', 'job 4', 'job 5', 'job 6']);
});

t.test(
  'a run that fails is tried again, later each time, then given up; the next due time is another run',
  async (t) => {
    const world = await World.start(t, { answer: unreachable, settings: { maxRetries: 2 } });
    const { id } = await world.hourly();
    await world.pass(hour + 1_000);
    t.match(await world.automations.read(id), {
      state: 'backingOff',
      failures: 1,
      recentRuns: [{ status: 'failed', attempt: 1, error: { code: 'upstreamUnreachable', message: /nobody answers/ } }],
    });
    await world.pass(retryMs / 2 - 1_500);
    t.equal(world.prompts.length, 1, 'not at once');
    await world.pass(retryMs / 2 + 2_000);
    t.equal(world.prompts.length, 2);
    await world.pass(2 * retryMs + 1_000);
    t.match(await world.automations.read(id), { state: 'waiting', failures: 3, recentRuns: [{ attempt: 3 }] });
    world.answer = () => 'well again';
    await world.pass(hour);
    t.match(await world.automations.read(id), {
      failures: 0,
      recentRuns: [{ status: 'completed', result: 'well again' }, { status: 'failed' }],
    });
    const states = world.states.get(`automation/${id}`) ?? [];
    t.same(states.filter((state) => state === 'backingOff').length, 2);
  },
);

t.test('a retry that helps is the same run: one row, with the number of the try', async (t) => {
  let tries = 0;
  const answer = () => {
    tries += 1;
    return tries < 3 ? unreachable() : 'at last';
  };
  const world = await World.start(t, { answer });
  const { id } = await world.hourly();
  await world.pass(hour + 5 * minute);
  t.match(await world.history(id), [{ status: 'completed', attempt: 3, result: 'at last', error: undefined }]);
});

t.test('due times that come during the pause are covered by the retry', async (t) => {
  let tries = 0;
  const answer = () => {
    tries += 1;
    return tries === 1 ? unreachable() : 'fine';
  };
  const world = await World.start(t, {
    answer,
    settings: { retryInitialDelayMs: 5 * hour, retryMaxDelayMs: 5 * hour },
  });
  const { id } = await world.hourly();
  await world.pass(hour + 5 * hour + minute);
  const [run, missed] = await world.history(id);
  t.match(run, { scheduledFor: '2026-07-01T10:00:00.000Z', status: 'completed', attempt: 2 });
  t.match(missed, { scheduledFor: '2026-07-01T11:00:00.000Z', status: 'missed' });
  t.equal(run?.coalesced, 1 + (missed?.coalesced ?? 0));
});

t.test('a retry that waits outlives the process; one that has waited too long is given up', async (t) => {
  const first = await World.start(t, { answer: unreachable });
  const { id } = await first.hourly();
  await first.pass(hour + 1_000);
  const second = await first.restart(t);
  t.match(await second.automations.read(id), { state: 'backingOff', failures: 1 });
  second.answer = () => 'fine';
  await second.pass(minute);
  t.match(await second.history(id), [{ status: 'completed', attempt: 2 }]);
  second.answer = unreachable;
  await second.pass(hour);
  await second.close();
  second.clock.jump(defaults.automations.resumeWithinMs + 10 * minute);
  const third = await second.restart(t, { answer: () => 'fine' });
  await third.quiet();
  t.match(
    (await third.history(id)).map(({ status, attempt }) => `${status} ${attempt}`),
    ['completed 2', /^failed/, 'completed 1'],
    'the due time of meanwhile has its run, the old one has not',
  );
});

/** Leaves a row as a process leaves it that is killed after it was inserted. */
function crash(directory: string, startedAt: number, more: Partial<StoredRun> = {}): string {
  const store = openStore(directory);
  const [id = ''] = store.schedules.ids();
  const row = store.schedules.automation(id);
  if (!row) throw new Error('there is no automation');
  const run = { automationId: row.id, attempt: 1, trigger: 'schedule', coalesced: 1, status: 'running' } as const;
  store.schedules.insertRun({ ...run, scheduledFor: startedAt, startedAt, ...more });
  store.schedules.put({ ...row, nextAt: startedAt + hour, progress: { ...row.progress, lastDueAt: startedAt } });
  store.close();
  return row.id;
}

t.test(
  'a process that was killed between row and turn: the run has failed, and is tried again when it is fresh',
  async (t) => {
    const first = await World.start(t);
    await first.hourly();
    await first.close();
    const id = crash(first.directory, morning + hour);
    first.clock.jumpTo(morning + hour + 10 * minute);
    const second = await first.restart(t);
    await second.pass(1_000);
    t.match(await second.history(id), [
      { scheduledFor: '2026-07-01T10:00:00.000Z', status: 'completed', attempt: 2, error: undefined },
    ]);
    t.equal(second.prompts.length, 1);
  },
);

t.test('one that is no longer fresh, or has been tried often enough, stays failed', async (t) => {
  for (const [startedAt, attempt] of [
    [morning + hour - defaults.automations.resumeWithinMs - minute, 1],
    [morning + hour, 4],
  ] as const) {
    const first = await World.start(t);
    await first.hourly();
    await first.close();
    const id = crash(first.directory, startedAt, { attempt });
    first.clock.jumpTo(morning + hour);
    const second = await first.restart(t);
    await second.pass(minute);
    t.match((await second.history(id))[0], { status: 'failed', attempt, error: { code: 'crashed' } });
    await second.close();
  }
});

t.test('two schedulers on one database: every due time is said once', async (t) => {
  const directory = temporaryDirectory(t);
  const one = await World.start(t, { directory });
  const { id } = await one.hourly();
  const other = await World.start(t, { directory, clock: one.clock });
  for (let round = 0; round < 12; round += 1) {
    await one.clock.pass(hour);
    await one.quiet();
    await other.quiet();
  }
  t.equal(one.prompts.length + other.prompts.length, 12);
  const history = await one.history(id);
  t.equal(history.length, 12);
  t.ok(history.every(({ status, coalesced }) => status === 'completed' && coalesced === 1));
  t.same([...one.faults, ...other.faults], []);
});

t.test('a new conversation every time, one of its own, or one that is there', async (t) => {
  const world = await World.start(t);
  const { thread } = world.threads.start({ displayName: 'mine' });
  const fresh = await world.hourly({ binding: { mode: 'new' }, name: 'fresh' });
  const own = await world.hourly({ binding: { mode: 'own' }, name: 'own' });
  const bound = await world.hourly({ binding: { mode: 'thread', threadId: thread.id } });
  await world.pass(2 * hour + minute);
  const threadsOf = async (id: string) => (await world.history(id)).map(({ threadId }) => threadId);
  t.equal(new Set(await threadsOf(fresh.id)).size, 2);
  t.equal(new Set(await threadsOf(own.id)).size, 1);
  t.same(await threadsOf(bound.id), [thread.id, thread.id]);
  const [ownThread = ''] = await threadsOf(own.id);
  const listed = world.threads.list({ channelName: 'automation' });
  t.same(listed.map(({ displayName }) => displayName).sort(), ['fresh', 'fresh', 'own']);
  (await world.threads.delete(ownThread))();
  await world.pass(hour);
  const [, , third] = await threadsOf(own.id);
  t.ok(third !== undefined && third !== ownThread, 'one that was deleted is followed by another');
});

t.test('a conversation that is busy is waited for', async (t) => {
  const held = gate();
  const world = await World.start(t, { answer: held.answer });
  const { thread } = world.threads.start({});
  const { id } = await world.hourly({ binding: { mode: 'thread', threadId: thread.id }, prompt: 'the job' });
  world.threads.startTurn(thread.id, [{ type: 'text', text: 'a person' }], undefined).begin();
  world.threads.enqueue(thread.id, [{ type: 'text', text: 'the person again' }]);
  await world.clock.pass(hour + minute);
  t.equal(await world.stateOf(id), 'running');
  t.same(world.prompts, ['a person']);
  held.open();
  await until(async () => (await world.stateOf(id)) === 'waiting', 'the job has run');
  t.same(world.prompts, ['a person', 'the person again', 'the job'], 'who was first comes first');
  t.match(await world.history(id), [{ status: 'completed', threadId: thread.id, turnId: 'turn_003' }]);
});

t.test('a conversation that is gone is a failure that no retry helps', async (t) => {
  const world = await World.start(t);
  const { thread } = world.threads.start({});
  const { id } = await world.hourly({ binding: { mode: 'thread', threadId: thread.id } });
  (await world.threads.delete(thread.id))();
  await world.pass(hour + minute);
  t.match(await world.automations.read(id), {
    state: 'waiting',
    recentRuns: [{ status: 'failed', attempt: 1, error: { code: 'threadNotFound' } }],
  });
  t.equal(await refusal(world.hourly({ binding: { mode: 'thread', threadId: 'none' } })), 'threadNotFound');
});

t.test('a conversation that is deleted while it is waited for ends the wait', async (t) => {
  const held = gate();
  const world = await World.start(t, { answer: held.answer });
  const { thread } = world.threads.start({});
  const { id } = await world.hourly({ binding: { mode: 'thread', threadId: thread.id } });
  world.threads.startTurn(thread.id, [{ type: 'text', text: 'a person' }], undefined).begin();
  await world.clock.pass(hour + minute);
  (await world.threads.delete(thread.id))();
  await world.quiet();
  t.match(await world.history(id), [{ status: 'failed', error: { code: 'threadNotFound' } }]);
});

t.test('nobody is there to ask: what needs approval is declined, unless the user wants it otherwise', async (t) => {
  const provider = answers([call('c1', 'Deploy')], [say('as told')]);
  const ran: string[] = [];
  const deploy = tool({
    name: 'Deploy',
    needsApproval: true,
    run: () => {
      ran.push('deployed');
      return { text: 'deployed', isError: false };
    },
  });
  const world = await World.start(t, { provider, threads: { tools: () => [deploy], settings } });
  const declined = await world.add('task', {});
  await world.quiet();
  t.match(await world.history(declined.id), [{ status: 'completed', result: 'as told' }]);
  t.same(ran, []);
  provider.requests.length = 0;
  const asked = await world.add('task', { approvalPolicy: 'default' });
  await until(() => world.threads.approvals().length === 1, 'it asks');
  t.equal(await world.stateOf(asked.id), 'running');
  const [request] = world.threads.approvals();
  world.threads.respond(request?.requestId ?? '', 'accept');
  await world.quiet();
  t.same(ran, ['deployed']);
  provider.requests.length = 0;
  await world.add('task', { approvalPolicy: 'autoApprove' });
  await world.quiet();
  t.same(ran, ['deployed', 'deployed']);
});

t.test('a run that is cancelled ends its turn, and the schedule goes on', async (t) => {
  const world = await World.start(t, { answer: gate().answer });
  const { id } = await world.hourly();
  await world.clock.pass(hour + minute);
  await until(() => world.running.length === 1, 'it runs');
  await world.automations.cancel(id);
  await world.quiet();
  t.match(await world.automations.read(id), {
    state: 'waiting',
    nextRunAt: '2026-07-01T11:00:00.000Z',
    recentRuns: [{ status: 'cancelled', attempt: 1 }],
  });
  const [{ threadId = '' } = {}] = await world.history(id);
  t.match(world.threads.read(threadId, { includeTurns: true }).turns, [{ status: 'cancelled', interruptedBy: 'user' }]);
  t.equal(world.running.length, 0, 'the model has been let go');
  t.equal(await refusal(world.automations.cancel(id)), 'automationInvalid notRunning');
});

t.test('somebody who interrupts the turn in its conversation has cancelled the run', async (t) => {
  const world = await World.start(t, { answer: gate().answer });
  const { id } = await world.add('task', {});
  const turn = await until(async () => (await world.history(id)).find(({ turnId }) => turnId !== undefined), 'a turn');
  world.threads.interrupt(turn.threadId ?? '', turn.turnId ?? '')();
  await world.quiet();
  t.same(await statuses(world, id), ['cancelled']);
});

t.test('a run that was cancelled before its turn began is cancelled, and does not come again', async (t) => {
  const first = await World.start(t);
  const { id } = await first.add('task', {});
  await first.automations.cancel(id);
  await first.quiet();
  t.same([first.prompts, await statuses(first, id)], [[], ['cancelled']]);
  const second = await first.restart(t);
  await second.pass(hour);
  t.same([second.prompts, await second.stateOf(id)], [[], 'finished']);
});

t.test('a turn that takes too long is ended, and tried again', async (t) => {
  const held = gate();
  const world = await World.start(t, { answer: held.answer, settings: { turnTimeoutMs: 10 * minute, maxRetries: 1 } });
  const { id } = await world.hourly();
  await world.clock.pass(hour + minute);
  await until(() => world.running.length === 1, 'it runs');
  await world.clock.pass(9 * minute + 5_000);
  await world.quiet();
  t.match(await world.history(id), [
    { status: 'failed', error: { code: 'timeout', message: /10 minutes \(Automations.TurnTimeoutMinutes\)/ } },
  ]);
  t.equal(await world.stateOf(id), 'backingOff');
  held.open();
  await world.pass(minute);
  t.match(await world.history(id), [{ status: 'completed', attempt: 2 }]);
});

t.test('a server that is stopped in a run says so, and runs it again when it is back', async (t) => {
  const first = await World.start(t, { answer: gate().answer });
  const { id } = await first.hourly();
  await first.clock.pass(hour + minute);
  await until(() => first.running.length === 1, 'it runs');
  await first.close();
  t.same([first.running.length, first.clock.timers, first.actors.size], [0, 0, 0], 'nothing is left');
  const second = await World.start(t, { directory: first.directory, clock: first.clock });
  t.match(await second.history(id), [{ status: 'failed', error: { code: 'shutdown' } }]);
  await second.pass(minute);
  t.match(await second.history(id), [{ status: 'completed', attempt: 2 }]);
});

t.test('a server that is stopped while much is queued begins none of it, and loses none', async (t) => {
  const first = await World.start(t, { answer: gate().answer, settings: { maxConcurrentRuns: 1 } });
  const ids: string[] = [];
  for (let number = 0; number < 5; number += 1) ids.push((await first.hourly({ prompt: `${number}` })).id);
  await first.clock.pass(hour + minute);
  await until(() => first.running.length === 1, 'one runs');
  await first.close();
  t.equal(first.prompts.length, 1);
  const second = await World.start(t, { directory: first.directory, clock: first.clock });
  await second.pass(minute);
  for (const id of ids) t.same(await statuses(second, id), ['completed']);
});

t.test('removed while it runs: the turn is ended, and nothing is left of it', async (t) => {
  const world = await World.start(t, { answer: gate().answer });
  const { id } = await world.hourly();
  await world.clock.pass(hour + minute);
  await until(() => world.running.length === 1, 'it runs');
  t.equal(await world.automations.remove(id), true);
  await until(() => world.threads.activeTurns === 0, 'its turn has ended');
  t.equal(await world.automations.remove(id), false);
  t.equal(await refusal(world.automations.read(id)), 'automationNotFound');
  await world.pass(day);
  t.same([world.prompts.length, world.faults], [1, []]);
  t.same(world.actors, new Set(['scheduler']));
});

t.test('a disk that takes nothing delays what is due; nothing is lost, nothing ends', async (t) => {
  let isFull = false;
  const full = <T>(work: () => T): T => {
    if (isFull) throw new StorageError('diskFull', 'no room');
    return work();
  };
  const schedules = (real: ScheduleStore): ScheduleStore => ({
    transaction: (work) => full(() => real.transaction(work)),
    put: (row) => full(() => real.put(row)),
    delete: (id) => full(() => real.delete(id)),
    insertRun: (run) => full(() => real.insertRun(run)),
    updateRun: (run) => full(() => real.updateRun(run)),
    trimRuns: (id, keep) => full(() => real.trimRuns(id, keep)),
    dues: () => real.dues(),
    retrying: () => real.retrying(),
    handledAfter: (time) => real.handledAfter(time),
    unfinishedRuns: () => real.unfinishedRuns(),
    count: () => real.count(),
    ids: (kind) => real.ids(kind),
    automation: (id) => real.automation(id),
    runs: (id, range) => real.runs(id, range),
    run: (id, time) => real.run(id, time),
  });
  const held = gate();
  const world = await World.start(t, { schedules, answer: held.answer });
  const { id } = await world.hourly();
  await t.rejects(
    (async () => {
      isFull = true;
      await world.hourly();
    })(),
    { code: 'diskFull' },
  );
  isFull = false;
  await world.clock.pass(hour + minute);
  await until(() => world.running.length === 1, 'the first run');
  isFull = true;
  held.open();
  await world.clock.pass(2 * hour);
  t.ok(world.faults.length > 0 && world.faults.every((fault) => fault instanceof StorageError), 'it is told');
  isFull = false;
  await world.pass(20 * minute);
  const history = await world.history(id);
  t.match(history[0], { scheduledFor: '2026-07-01T10:00:00.000Z', status: 'completed' }, 'the end is written late');
  await world.pass(hour);
  t.match((await world.history(id)).at(-1), { status: 'completed' });
  t.ok((await statuses(world, id)).every((status) => status === 'completed' || status === 'missed'));
});
