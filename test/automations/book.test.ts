/** Requests of users: create, change, enable, run, read and refresh automations. */
import fc from 'fast-check';
import t from 'tap';
import { openHistory } from '../../src/agent/index.ts';
import { DueIndex } from '../../src/automations/due-index.ts';
import { readAutomations, StoredAutomations } from '../../src/automations/index.ts';
import { intervalText } from '../../src/automations/words.ts';
import { type Automation, defaults, type Schedule } from '../../src/protocol/index.ts';
import { day, FakeClock, gate, hour, minute, morning, refusal, until, World } from './world.ts';

const hourly: Schedule = { kind: 'cron', expression: '0 * * * *', timeZone: 'UTC' };

t.test('an automation has its schedule in words and the next five due times', async (t) => {
  const world = await World.start(t);
  const texts: [Schedule | undefined, string][] = [
    [{ kind: 'every', everyMs: 15 * minute }, 'Every 15 minutes'],
    [{ kind: 'every', everyMs: hour }, 'Every hour'],
    [{ kind: 'every', everyMs: 90 * minute }, 'Every 1 hour 30 minutes'],
    [{ kind: 'at', at: '2026-12-24T19:00:00+01:00' }, 'Once, at 2026-12-24 18:00 UTC'],
    [{ kind: 'daily', time: '07:30', timeZone: 'Europe/Berlin' }, 'Every day at 07:30 (Europe/Berlin)'],
    [
      { kind: 'cron', expression: '30 7 * * 1-5', timeZone: 'America/New_York' },
      'At 07:30, Monday through Friday (America/New_York)',
    ],
    [
      { kind: 'cron', expression: '0 9 * * FRI#2', timeZone: 'UTC' },
      'At 09:00, on the second Friday of the month (UTC)',
    ],
    [undefined, 'Once, as soon as possible'],
  ];
  for (const [schedule, text] of texts) {
    const { scheduleText, upcoming, nextRunAt } = await world.add('task', { schedule, enabled: false });
    t.equal(scheduleText, text);
    t.same([upcoming, nextRunAt], [[], undefined], 'a disabled automation has no due time');
  }
  const { upcoming } = await world.hourly();
  t.same(
    upcoming,
    [10, 11, 12, 13, 14].map((each) => `2026-07-01T${each}:00:00.000Z`),
  );
  t.equal(intervalText(0), '0 seconds');
});

t.test('a schedule without a time zone gets the zone of the machine', async (t) => {
  const world = await World.start(t);
  const { schedule } = await world.add('cron', { schedule: { kind: 'daily', time: '07:30' } });
  t.match(schedule, { kind: 'daily', timeZone: Intl.DateTimeFormat().resolvedOptions().timeZone });
});

t.test('a schedule that is invalid or never due is refused without a change', async (t) => {
  const world = await World.start(t);
  const add = (schedule: Schedule | undefined, kind: Automation['kind'] = 'cron') =>
    refusal(world.add(kind, { schedule }));
  t.equal(await add(undefined), 'automationInvalid scheduleRequired');
  t.equal(await add({ kind: 'at', at: '2026-07-01T08:59:59Z' }), 'automationInvalid passed');
  t.equal(await add({ kind: 'cron', expression: '0 0 30 2 *' }), 'automationInvalid never');
  t.equal(await add({ kind: 'cron', expression: '0 0 * *' }), 'automationInvalid expression');
  t.equal(await add({ kind: 'cron', expression: '*/5 * * * * *' }), 'automationInvalid expression');
  t.match(await world.automations.state(), { tasks: [], cron: [], isRunning: true });
});

t.test(
  'an update leaves absent fields unchanged, restarts a schedule, and is refused for an older version',
  async (t) => {
    const world = await World.start(t);
    const { id } = await world.hourly({ name: 'first', model: 'm' });
    const changed = await world.automations.update(id, { name: 'second' }, 1);
    t.match(changed, { name: 'second', model: 'm', version: 2, nextRunAt: '2026-07-01T10:00:00.000Z' });
    t.equal(await refusal(world.automations.update(id, { name: 'third' }, 1)), 'automationConflict');
    const moved = await world.automations.update(id, { schedule: { kind: 'every', everyMs: 20 * minute } });
    t.match(moved, { scheduleText: 'Every 20 minutes', nextRunAt: '2026-07-01T09:20:00.000Z', version: 3 });
    t.equal(
      await refusal(world.automations.update(id, { schedule: { kind: 'at', at: '2020-01-01T00:00:00Z' } })),
      'automationInvalid passed',
    );
    t.equal(await refusal(world.automations.update('none', {})), 'automationNotFound');
    await world.pass(hour + minute);
    t.equal(world.prompts.length, 3, 'only the new schedule counts');
  },
);

t.test('of two concurrent updates of one version one is refused', async (t) => {
  const world = await World.start(t);
  const { id } = await world.hourly();
  const answers = await Promise.all(
    ['one', 'other'].map((name) => refusal(world.automations.update(id, { name, schedule: hourly }, 1))),
  );
  t.same(answers.sort(), ['automationConflict', 'not refused']);
});

t.test('a disabled automation does not run, and due times while disabled are not made up for', async (t) => {
  const world = await World.start(t);
  const { id } = await world.hourly();
  t.match(await world.automations.setEnabled(id, false), { state: 'paused', enabled: false, nextRunAt: undefined });
  await world.pass(5 * hour + 10 * minute);
  t.match(await world.automations.setEnabled(id, true), { state: 'waiting', nextRunAt: '2026-07-01T15:00:00.000Z' });
  await world.pass(hour);
  t.same(world.prompts.length, 1);
  t.match(await world.history(id), [{ status: 'completed', coalesced: 1 }]);
});

t.test('a one-off cannot be enabled after its time; an enabled task without a schedule runs at once', async (t) => {
  const world = await World.start(t);
  const past = await world.add('task', { schedule: { kind: 'at', at: '2026-07-01T10:00:00Z' }, enabled: false });
  const soon = await world.add('task', { enabled: false, prompt: 'soon' });
  await world.pass(2 * hour);
  t.equal(await refusal(world.automations.setEnabled(past.id, true)), 'automationInvalid passed');
  t.match(await world.automations.read(past.id), { enabled: false, state: 'paused' });
  await world.automations.setEnabled(soon.id, true);
  await world.quiet();
  t.same(world.prompts, ['soon']);
  const again = { schedule: { kind: 'at', at: '2026-07-01T12:00:00Z' } as const, enabled: true };
  t.match(await world.automations.update(past.id, again), { state: 'waiting' });
  await world.pass(2 * hour);
  t.equal(world.prompts.length, 2);
});

t.test('an automation disabled while queued misses that run and waits for the next due time', async (t) => {
  const held = gate();
  const world = await World.start(t, { answer: held.answer, settings: { maxConcurrentRuns: 1 } });
  await world.hourly({ prompt: 'first' });
  const { id } = await world.hourly({ prompt: 'second' });
  await world.clock.pass(hour + minute);
  await until(async () => (await world.stateOf(id)) === 'queued', 'it is queued');
  await world.automations.setEnabled(id, false);
  t.match(await world.automations.setEnabled(id, true), { state: 'waiting', nextRunAt: '2026-07-01T11:00:00.000Z' });
  held.open();
  await world.quiet();
  t.same(world.prompts, ['first']);
  t.match(await world.history(id), [{ status: 'missed', coalesced: 1, scheduledFor: '2026-07-01T10:00:00.000Z' }]);
});

t.test(
  'a manual run starts at once, also of a disabled or finished automation, but not beside an active run',
  async (t) => {
    const held = gate();
    const world = await World.start(t, { answer: held.answer });
    const { id } = await world.hourly({ enabled: false });
    const ran = await world.automations.run(id);
    t.equal(ran.state, 'running');
    t.equal(await refusal(world.automations.run(id)), 'automationInvalid running');
    held.open();
    await world.quiet();
    t.match(await world.automations.read(id), {
      state: 'paused',
      recentRuns: [{ trigger: 'manual', status: 'completed' }],
    });
    await world.automations.run(id);
    await world.quiet();
    t.equal((await world.history(id)).length, 2, 'two runs within a millisecond of the clock are two');
    const task = await world.add('task', {});
    await world.quiet();
    await world.automations.run(task.id);
    await world.quiet();
    t.same(
      (await world.history(task.id)).map(({ trigger }) => trigger),
      ['schedule', 'manual'],
    );
    t.equal(await world.stateOf(task.id), 'finished');
  },
);

t.test('a one-off with deletion after completion is removed when completed and stays when failed', async (t) => {
  const world = await World.start(t, { settings: { maxRetries: 0 } });
  const removed: boolean[] = [];
  world.automations.subscribe((change) => removed.push(change.removed));
  const { id } = await world.add('task', { deleteAfterRun: true });
  await until(async () => (await world.automations.state()).tasks.length === 0, 'it is gone');
  t.equal(await refusal(world.automations.read(id)), 'automationNotFound');
  await until(() => removed.at(-1) === true, 'the removal is emitted');
  world.answer = () => {
    throw new Error('no');
  };
  const failing = await world.add('task', { deleteAfterRun: true });
  await world.quiet();
  t.match(await world.automations.read(failing.id), { state: 'finished', recentRuns: [{ status: 'failed' }] });
});

t.test('every change is emitted and counted, and an unchanged automation is the same object', async (t) => {
  const world = await World.start(t);
  const emitted: string[] = [];
  const stop = world.automations.subscribe(({ automation, removed }) =>
    emitted.push(removed ? 'removed' : automation.state),
  );
  const before = await world.automations.state();
  const { id } = await world.add('task', {});
  await world.quiet();
  await until(() => emitted.includes('finished'), 'its end is emitted');
  const after = await world.automations.state();
  t.ok(after.revision > before.revision);
  t.equal(await world.automations.state(), after, 'nothing is put together twice');
  t.match(after, { isRunning: true, countsByState: { finished: 1 }, tasks: [{ id }] });
  await world.automations.remove(id);
  await until(() => emitted.at(-1) === 'removed', 'its removal is emitted');
  t.ok((await world.automations.state()).revision > after.revision);
  stop();
  const heard = emitted.length;
  await world.add('task', {});
  await world.quiet();
  t.equal(emitted.length, heard);
});

t.test('a listener that throws does not affect other listeners and runs', async (t) => {
  const world = await World.start(t);
  world.automations.subscribe(() => {
    throw new Error('mine');
  });
  await world.add('task', {});
  await world.quiet();
  t.equal(world.prompts.length, 1);
  await until(() => world.faults.length > 0, 'it is reported');
});

t.test('jobs are listed by due time, those without one last', async (t) => {
  const world = await World.start(t);
  await world.hourly({ name: 'off', enabled: false });
  await world.add('cron', { name: 'tomorrow', schedule: { kind: 'daily', time: '08:00', timeZone: 'UTC' } });
  await world.hourly({ name: 'soon' });
  const names = (await world.automations.list('cron')).map(({ name }) => name);
  t.same(names, ['soon', 'tomorrow', 'off']);
});

t.test('a history is bounded and can be read page by page', async (t) => {
  const world = await World.start(t);
  const { id } = await world.add('task', {});
  await world.quiet();
  const first = await world.automations.runs(id, { limit: 1 });
  t.same([first.data.length, first.next], [1, undefined]);
  for (let number = 0; number < 4; number += 1) {
    world.clock.jump(1_000);
    await world.automations.run(id);
    await world.quiet();
  }
  const page = await world.automations.runs(id, { limit: 2 });
  t.equal(page.data.length, 2);
  const rest = await world.automations.runs(id, { limit: 10, before: page.next });
  t.equal(rest.data.length, 3);
  t.equal(await refusal(world.automations.runs('none', { limit: 1 })), 'automationNotFound');
});

t.test('with automations disabled in the settings everything can be read and every change is refused', async (t) => {
  const first = await World.start(t);
  const { id } = await first.hourly();
  const world = await first.restart(t, { settings: { isEnabled: false } });
  await world.pass(3 * hour);
  t.same([world.prompts, world.clock.timers], [[], 0]);
  t.match(await world.automations.state(), { isRunning: false, cron: [{ id }] });
  t.match(await world.automations.read(id), { id });
  t.equal(await refusal(world.automations.read('none')), 'automationNotFound');
  t.equal(await refusal(world.hourly()), 'automationsDisabled');
  t.equal(await refusal(world.automations.run(id)), 'automationsDisabled');
  t.equal(await refusal(world.automations.remove(id)), 'automationsDisabled');
  t.equal(world.automations.isExpecting, false);
  t.same(world.automations.describe(), { scheduler: 'disabled' });
});

t.test('automations can be read without a server', async (t) => {
  const world = await World.start(t);
  await world.hourly({ prompt: 'x' });
  await world.pass(hour + minute);
  await world.close();
  const history = openHistory(world.directory);
  t.teardown(() => history.close());
  const state = await readAutomations(history.schedules);
  t.match(state, {
    isRunning: false,
    cron: [{ state: 'waiting', recentRuns: [{ status: 'completed' }], nextRunAt: '2026-07-01T11:00:00.000Z' }],
  });
  const stored = new StoredAutomations(history.schedules);
  const [{ id = '' } = {}] = state.cron;
  t.match(await stored.read(id), { id });
  t.match(await stored.runs(id, { limit: 5 }), { data: [{ status: 'completed' }] });
  t.equal(await refusal(stored.read('none')), 'automationNotFound');
  t.equal(await refusal(stored.runs('none', { limit: 5 })), 'automationNotFound');
  for (const change of [stored.add(), stored.run(id), stored.setEnabled(id), stored.remove(id)]) {
    t.equal(await refusal(change), 'automationsDisabled');
  }
});

t.test('refresh reads rows of another process and the clock', async (t) => {
  const world = await World.start(t);
  const { id } = await world.hourly();
  const row = world.store.schedules.automation(id);
  if (!row) throw new Error('it has no row');
  world.store.schedules.put({ ...row, id: 'job_other', name: 'other' });
  world.clock.jump(hour + minute);
  const state = await world.automations.refresh();
  t.equal(state.cron.length, 2);
  await world.quiet();
  t.equal(world.prompts.length, 2, 'both ran without a timer');
});

t.test('without automations nothing is loaded and no timer set', async (t) => {
  const world = await World.start(t);
  t.same(world.automations.describe(), { scheduler: 'notStarted' });
  t.match(await world.automations.state(), { tasks: [], cron: [], isRunning: true }, 'the server can run automations');
  t.equal(await refusal(world.automations.run('none')), 'automationNotFound');
  t.equal(await world.automations.remove('none'), false);
  t.same([world.clock.timers, world.automations.isExpecting], [0, false]);
  const { id } = await world.hourly();
  t.match(world.automations.describe(), { scheduler: 'watching', automations: 1, runs: 0 });
  t.equal(world.automations.isExpecting, true);
  await world.automations.setEnabled(id, false);
  t.equal(world.automations.isExpecting, false, 'no automation will be due');
});

t.test('a request during the shutdown is refused and leaves nothing', async (t) => {
  const world = await World.start(t);
  await world.hourly();
  const closing = world.close();
  t.equal(await refusal(world.add('task', {})), 'overloaded');
  await closing;
  t.same([world.clock.timers, world.actors.size, world.faults], [0, 0, []]);
});

t.test('of ten thousand jobs only due ones have actors, and each runs at its time', async (t) => {
  const clock = new FakeClock(morning);
  const before = await World.start(t, { clock });
  const count = 10_000;
  const { id } = await before.hourly();
  const row = before.store.schedules.automation(id);
  if (!row) throw new Error('it has no row');
  before.store.schedules.transaction(() => {
    for (let number = 0; number < count; number += 1) {
      const schedule: Schedule = { kind: 'every', everyMs: 10 * day, initialDelayMs: (number + 1) * minute };
      const nextAt = morning + (number + 1) * minute;
      before.store.schedules.put({ ...row, id: `job_${number}`, prompt: `${number}`, schedule, nextAt });
    }
    before.store.schedules.delete(id);
  });
  await before.close();
  const world = await World.start(t, { directory: before.directory, clock, settings: { maxConcurrentRuns: 20 } });
  t.match(world.automations.describe(), { automations: count, actors: 0 }, 'no job has an actor');
  for (let number = 0; number < 50; number += 1) await world.clock.pass(minute);
  await until(() => world.prompts.length === 50 && world.runtime.turns.count === 0, '50 of them ran');
  t.same(
    world.prompts,
    Array.from({ length: 50 }, (_, number) => `${number}`),
  );
  await until(() => world.actors.size === 1, 'actors of waiting jobs are stopped');
  t.equal((await world.automations.state()).cron.length, count);
  // 150 jobs become due while the laptop sleeps: more than one batch.
  world.clock.jump(150 * minute);
  await world.clock.pass(defaults.automations.tickMs + minute);
  await until(() => world.prompts.length === 201 && world.runtime.turns.count === 0, 'all that is due has run');
  t.equal(new Set(world.prompts).size, 201, 'each once');
});

t.test('the index returns the same as a sorted list', async (t) => {
  const steps = fc.array(
    fc.oneof(
      fc.record({ do: fc.constant('set' as const), id: fc.nat(12), at: fc.option(fc.nat(30)) }),
      fc.record({ do: fc.constant('take' as const), now: fc.nat(30), limit: fc.nat(4) }),
    ),
    { maxLength: 200 },
  );
  fc.assert(
    fc.property(steps, (all) => {
      const index = new DueIndex();
      const model = new Map<string, number>();
      for (const step of all) {
        if (step.do === 'set') {
          index.set(`${step.id}`, step.at);
          if (step.at === null) model.delete(`${step.id}`);
          else model.set(`${step.id}`, step.at);
        } else {
          const taken = index.take(step.now, step.limit);
          const due = [...model.values()].filter((at) => at <= step.now).sort((one, other) => one - other);
          t.same(
            taken.map(({ at }) => at),
            due.slice(0, step.limit),
          );
          for (const { id, at } of taken) {
            t.equal(model.get(id), at);
            model.delete(id);
          }
        }
        t.equal(index.next(), model.size === 0 ? null : Math.min(...model.values()));
        t.equal(index.size, model.size);
      }
    }),
    { numRuns: 40 },
  );
});
