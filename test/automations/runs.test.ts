/** Runs of automations: threads, failures, retries, crashes and concurrency. */
import t from 'tap';
import * as v from 'valibot';
import {
  createBuiltinTools,
  Library,
  type ModelEvent,
  placeRules,
  RuleBook,
  type ScheduleStore,
  StorageError,
  type StoredRun,
} from '../../src/agent/index.ts';
import { openStore } from '../../src/agent/store/index.ts';
import { Config } from '../../src/config/index.ts';
import { defaults } from '../../src/protocol/index.ts';
import { answers, call, say, scripted, settings, tool } from '../agent/helpers.ts';
import {
  day,
  gate,
  hour,
  minute,
  morning,
  refusal,
  type Teardown,
  temporaryDirectory,
  unreachable,
  until,
  World,
} from './world.ts';

const retryMs = 30_000;
const statuses = async (world: World, id: string): Promise<string[]> =>
  (await world.history(id)).map(({ status }) => status);

t.test('due times during a run are combined into one run after it', async (t) => {
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

t.test('runs beyond the limit are queued and start in order', async (t) => {
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

t.test('a failed run is retried with growing pauses up to its limit; the next due time is a new run', async (t) => {
  const world = await World.start(t, { answer: unreachable, settings: { maxRetries: 2 } });
  const { id } = await world.hourly();
  await world.pass(hour + 1_000);
  t.match(await world.automations.read(id), {
    state: 'backingOff',
    failures: 1,
    recentRuns: [{ status: 'failed', attempt: 1, error: { code: 'upstreamUnreachable', message: /nobody answers/ } }],
  });
  await world.pass(retryMs / 2 - 1_500);
  t.equal(world.prompts.length, 1, 'no retry before the back-off');
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
});

t.test('a successful retry is the same run, with the number of the attempt', async (t) => {
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

t.test('due times during the back-off are covered by the retry', async (t) => {
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

t.test('a pending retry survives a restart, and an overdue one is given up', async (t) => {
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

t.test('a run killed between its row and its turn has failed, and is retried if recent', async (t) => {
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
});

t.test('an old killed run, or one out of attempts, stays failed', async (t) => {
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

t.test(
  'a killed run that had begun a call with effects stays failed with the reason, and can be run by hand',
  async (t) => {
    const first = await World.start(t);
    await first.hourly();
    await first.close();
    const id = crash(first.directory, morning + hour, { effect: 'Exec' });
    first.clock.jumpTo(morning + hour + minute);
    const second = await first.restart(t);
    await second.pass(minute);
    t.match(await second.automations.read(id), {
      state: 'waiting',
      failures: 1,
      recentRuns: [{ status: 'failed', attempt: 1, error: { code: 'crashed', message: /because Exec had begun/ } }],
    });
    t.same(second.prompts, []);
    await second.automations.run(id);
    await second.quiet();
    t.match(await second.history(id), [{ status: 'failed' }, { status: 'completed', trigger: 'manual', attempt: 1 }]);
  },
);

/** World whose model calls the tool, then fails. The tool reads, or has effects. */
async function worldOf(t: Teardown, isReadOnly: boolean, answer: 'fails' | 'waits') {
  const inTool = Promise.withResolvers<void>();
  let calls = 0;
  const used = tool({
    name: 'Deploy',
    isReadOnly,
    run: async (_args, { signal }) => {
      calls += 1;
      inTool.resolve();
      if (answer === 'waits') {
        await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason), { once: true }));
      }
      return { text: 'deployed', isError: false };
    },
  });
  let requests = 0;
  const provider = scripted(async function* () {
    requests += 1;
    if (requests % 2 === 0) unreachable();
    yield call(`c${requests}`, 'Deploy');
  });
  const world = await World.start(t, { provider, runtime: { tools: () => [used] } });
  const { id } = await world.hourly();
  return { world, id, inTool: inTool.promise, calls: () => calls };
}

t.test('a run that fails after a call with effects is not retried, and one that has only read is', async (t) => {
  const { world, id, calls } = await worldOf(t, false, 'fails');
  await world.pass(hour + 20 * minute);
  t.match(await world.automations.read(id), {
    state: 'waiting',
    recentRuns: [{ attempt: 1, error: { code: 'upstreamUnreachable', message: /^nobody answers.* Deploy had begun/ } }],
  });
  t.equal(calls(), 1);
  const reading = await worldOf(t, true, 'fails');
  await reading.world.pass(hour + 20 * minute);
  t.match(await reading.world.history(reading.id), [{ attempt: 4, error: { message: 'nobody answers' } }]);
  t.equal(reading.calls(), 4);
});

t.test('commands that read and sub-agents that explore have no effects; a sub-agent that writes has', async (t) => {
  const explore = call('c1', 'SpawnSubagent', { task: 'look', type: 'explore' });
  const work = call('c1', 'SpawnSubagent', { task: 'write' });
  const write = call('c2', 'WriteFile', { path: 'a', content: 'a' });
  const scenes: readonly (readonly [readonly ModelEvent[], RegExp])[] = [
    [[call('c1', 'Exec', { command: 'ls' })], /^nobody answers$/],
    [[call('c1', 'Exec', { command: 'touch a' })], / Exec had begun/],
    [[explore, say('found')], /^nobody answers$/],
    [[work, write, say('written')], / WriteFile had begun/],
  ];
  const home = temporaryDirectory(t);
  const places = { blockedPaths: [], home, environment: process.env, passEnvironment: [], secrets: [] };
  const { Tools } = v.parse(Config, { Tools: { Shell: { Sandbox: 'off' } } });
  const rules = new RuleBook({ configured: [], stateDirectory: home, places: placeRules(places) });
  for (const [events, message] of scenes) {
    let requests = 0;
    const provider = scripted(async function* () {
      const event = events[requests];
      requests += 1;
      yield event ?? unreachable();
    });
    const workspacePath = temporaryDirectory(t);
    const tools = createBuiltinTools({ ...places, tools: Tools });
    const library = new Library(home);
    const runtime = { workspacePath, tools: () => tools, rules, library, settings };
    const world = await World.start(t, { provider, runtime, settings: { maxRetries: 0 } });
    const { id } = await world.add('task', { approvalPolicy: 'autoApprove' });
    await world.quiet();
    t.match(await world.history(id), [{ status: 'failed', error: { code: 'upstreamUnreachable', message } }]);
    t.equal(requests, events.length + 1);
    await world.close();
  }
});

t.test('a run that a stop of the server cuts during a call with effects is not repeated after the start', async (t) => {
  for (const isReadOnly of [false, true]) {
    const { world, id, inTool } = await worldOf(t, isReadOnly, 'waits');
    await world.clock.pass(hour + minute);
    await inTool;
    const next = await world.restart(t);
    await next.pass(minute);
    const [run] = await next.history(id);
    if (isReadOnly) t.match(run, { status: 'completed', attempt: 2 });
    else t.match(run, { status: 'failed', attempt: 1, error: { code: 'shutdown', message: /Deploy had begun/ } });
    await next.close();
  }
});

t.test('a call with effects does not begin when the fact cannot be stored', async (t) => {
  let isFull = false;
  const ran: string[] = [];
  const deploy = tool({
    name: 'Deploy',
    run: () => {
      ran.push('deployed');
      return { text: 'deployed', isError: false };
    },
  });
  const world = await World.start(t, {
    provider: answers([call('c1', 'Deploy')], [say('done')]),
    runtime: { tools: () => [deploy] },
    settings: { maxRetries: 0 },
    schedules: (real) =>
      new Proxy(real, {
        get(target, name) {
          if (name === 'updateRun') {
            return (run: StoredRun) => {
              if (isFull && run.effect !== undefined) throw new StorageError('diskFull', 'the disk is full');
              target.updateRun(run);
            };
          }
          const value: unknown = Reflect.get(target, name);
          return typeof value === 'function' ? value.bind(target) : value;
        },
      }),
  });
  isFull = true;
  const { id } = await world.add('task', {});
  await world.quiet();
  t.match(await world.history(id), [
    { status: 'failed', error: { code: 'storageFailed', message: 'the disk is full' } },
  ]);
  t.same(ran, []);
});

t.test('two schedulers of one database run every due time once', async (t) => {
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

t.test('a run uses a new thread, the thread of its automation, or a bound thread', async (t) => {
  const world = await World.start(t);
  const { thread } = world.runtime.threads.start({ displayName: 'mine' });
  const fresh = await world.hourly({ binding: { mode: 'new' }, name: 'fresh' });
  const own = await world.hourly({ binding: { mode: 'own' }, name: 'own' });
  const bound = await world.hourly({ binding: { mode: 'thread', threadId: thread.id } });
  await world.pass(2 * hour + minute);
  const threadsOf = async (id: string) => (await world.history(id)).map(({ threadId }) => threadId);
  t.equal(new Set(await threadsOf(fresh.id)).size, 2);
  t.equal(new Set(await threadsOf(own.id)).size, 1);
  t.same(await threadsOf(bound.id), [thread.id, thread.id]);
  const [ownThread = ''] = await threadsOf(own.id);
  const listed = world.runtime.threads.list({ channelName: 'automation' });
  t.same(listed.map(({ displayName }) => displayName).sort(), ['fresh', 'fresh', 'own']);
  (await world.runtime.threads.delete(ownThread))();
  await world.pass(hour);
  const [, , third] = await threadsOf(own.id);
  t.ok(third !== undefined && third !== ownThread, 'a deleted thread is replaced by a new one');
});

t.test('a run waits for a busy thread', async (t) => {
  const held = gate();
  const world = await World.start(t, { answer: held.answer });
  const { thread } = world.runtime.threads.start({});
  const { id } = await world.hourly({ binding: { mode: 'thread', threadId: thread.id }, prompt: 'the job' });
  world.runtime.turns.start(thread.id, [{ type: 'text', text: 'a person' }], undefined).begin();
  world.runtime.turns.enqueue(thread.id, [{ type: 'text', text: 'the person again' }]);
  await world.clock.pass(hour + minute);
  t.equal(await world.stateOf(id), 'running');
  t.same(world.prompts, ['a person']);
  held.open();
  await until(async () => (await world.stateOf(id)) === 'waiting', 'the job has run');
  t.same(world.prompts, ['a person', 'the person again', 'the job'], 'earlier inputs are handled first');
  t.match(await world.history(id), [{ status: 'completed', threadId: thread.id, turnId: 'turn_003' }]);
});

t.test('a deleted bound thread fails the run without a retry', async (t) => {
  const world = await World.start(t);
  const { thread } = world.runtime.threads.start({});
  const { id } = await world.hourly({ binding: { mode: 'thread', threadId: thread.id } });
  (await world.runtime.threads.delete(thread.id))();
  await world.pass(hour + minute);
  t.match(await world.automations.read(id), {
    state: 'waiting',
    recentRuns: [{ status: 'failed', attempt: 1, error: { code: 'threadNotFound' } }],
  });
  t.equal(await refusal(world.hourly({ binding: { mode: 'thread', threadId: 'none' } })), 'threadNotFound');
});

t.test('the deletion of a busy bound thread fails the waiting run', async (t) => {
  const held = gate();
  const world = await World.start(t, { answer: held.answer });
  const { thread } = world.runtime.threads.start({});
  const { id } = await world.hourly({ binding: { mode: 'thread', threadId: thread.id } });
  world.runtime.turns.start(thread.id, [{ type: 'text', text: 'a person' }], undefined).begin();
  await world.clock.pass(hour + minute);
  (await world.runtime.threads.delete(thread.id))();
  await world.quiet();
  t.match(await world.history(id), [{ status: 'failed', error: { code: 'threadNotFound' } }]);
});

t.test('a call that needs approval is declined unless the automation has another approval policy', async (t) => {
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
  const world = await World.start(t, { provider, runtime: { tools: () => [deploy], settings } });
  const declined = await world.add('task', {});
  await world.quiet();
  t.match(await world.history(declined.id), [{ status: 'completed', result: 'as told' }]);
  t.same(ran, []);
  provider.requests.length = 0;
  const asked = await world.add('task', { approvalPolicy: 'default' });
  await until(() => world.runtime.turns.approvals().length === 1, 'an approval is pending');
  t.equal(await world.stateOf(asked.id), 'running');
  const [request] = world.runtime.turns.approvals();
  world.runtime.turns.respond(request?.requestId ?? '', 'accept');
  await world.quiet();
  t.same(ran, ['deployed']);
  provider.requests.length = 0;
  await world.add('task', { approvalPolicy: 'autoApprove' });
  await world.quiet();
  t.same(ran, ['deployed', 'deployed']);
});

t.test('a cancelled run ends its turn, and the schedule continues', async (t) => {
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
  t.match(world.runtime.threads.read(threadId, { includeTurns: true }).turns, [
    { status: 'cancelled', interruptedBy: 'user' },
  ]);
  t.equal(world.running.length, 0, 'the request to the model is aborted');
  t.equal(await refusal(world.automations.cancel(id)), 'automationInvalid notRunning');
});

t.test('an interrupt of the turn cancels the run', async (t) => {
  const world = await World.start(t, { answer: gate().answer });
  const { id } = await world.add('task', {});
  const turn = await until(async () => (await world.history(id)).find(({ turnId }) => turnId !== undefined), 'a turn');
  world.runtime.turns.interrupt(turn.threadId ?? '', turn.turnId ?? '')();
  await world.quiet();
  t.same(await statuses(world, id), ['cancelled']);
});

t.test('a run cancelled before its turn is not repeated after a restart', async (t) => {
  const first = await World.start(t);
  const { id } = await first.add('task', {});
  await first.automations.cancel(id);
  await first.quiet();
  t.same([first.prompts, await statuses(first, id)], [[], ['cancelled']]);
  const second = await first.restart(t);
  await second.pass(hour);
  t.same([second.prompts, await second.stateOf(id)], [[], 'finished']);
});

t.test('a turn beyond its time limit is ended, and the run retried', async (t) => {
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

t.test('a run interrupted by a shutdown has failed, and is retried after the restart', async (t) => {
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

t.test('runs queued at a shutdown do not start, and run after the restart', async (t) => {
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

t.test('the removal of a running automation ends its turn and leaves nothing', async (t) => {
  const world = await World.start(t, { answer: gate().answer });
  const { id } = await world.hourly();
  await world.clock.pass(hour + minute);
  await until(() => world.running.length === 1, 'it runs');
  t.equal(await world.automations.remove(id), true);
  await until(() => world.runtime.turns.count === 0, 'its turn has ended');
  t.equal(await world.automations.remove(id), false);
  t.equal(await refusal(world.automations.read(id)), 'automationNotFound');
  await world.pass(day);
  t.same([world.prompts.length, world.faults], [1, []]);
  t.same(world.actors, new Set(['scheduler']));
});

t.test('a full disk delays due runs without losing one', async (t) => {
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
  t.ok(
    world.faults.length > 0 && world.faults.every((fault) => fault instanceof StorageError),
    'the failures are reported',
  );
  isFull = false;
  await world.pass(20 * minute);
  const history = await world.history(id);
  t.match(
    history[0],
    { scheduledFor: '2026-07-01T10:00:00.000Z', status: 'completed' },
    'the end of the run is written once there is room',
  );
  await world.pass(hour);
  t.match((await world.history(id)).at(-1), { status: 'completed' });
  t.ok((await statuses(world, id)).every((status) => status === 'completed' || status === 'missed'));
});
