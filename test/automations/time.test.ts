/** Due times and the wall clock: sleep, clocks that are set, restarts, deadlines far away. */
import fc from 'fast-check';
import t from 'tap';
import type { Schedule } from '../../src/protocol/index.ts';
import { defaults } from '../../src/protocol/index.ts';
import { at, day, FakeClock, hour, minute, morning, World } from './world.ts';

const fullHours = (text: string): string => text.slice(11, 16);

const kinds: readonly { readonly name: string; readonly schedule: Schedule; readonly dueAt: number }[] = [
  { name: 'every', schedule: { kind: 'every', everyMs: 15 * minute }, dueAt: morning + 15 * minute },
  { name: 'at', schedule: { kind: 'at', at: '2026-07-01T10:30:00+01:00' }, dueAt: morning + 30 * minute },
  {
    name: 'daily',
    schedule: { kind: 'daily', time: '12:15', timeZone: 'Europe/Berlin' },
    dueAt: at('2026-07-01T10:15:00Z'),
  },
  {
    name: 'cron',
    schedule: { kind: 'cron', expression: '20 9 * * 1-5', timeZone: 'UTC' },
    dueAt: morning + 20 * minute,
  },
];

for (const { name, schedule, dueAt } of kinds) {
  t.test(`a schedule of kind ${name} runs when due, not before, with its result in the history`, async (t) => {
    const world = await World.start(t);
    const { id, nextRunAt } = await world.add('cron', { schedule, prompt: name });
    t.equal(nextRunAt, new Date(dueAt).toISOString());
    await world.pass(dueAt - morning - 1);
    t.same([world.prompts, await world.stateOf(id)], [[], 'waiting']);
    await world.pass(defaults.automations.slackMs + 1);
    t.same(world.prompts, [name]);
    t.match(await world.history(id), [
      {
        scheduledFor: nextRunAt,
        status: 'completed',
        trigger: 'schedule',
        attempt: 1,
        coalesced: 1,
        result: `done: ${name}`,
        threadId: /^thread_/,
        turnId: 'turn_001',
      },
    ]);
    t.same(world.states.get(`automation/${id}`)?.slice(0, 5), [
      'waiting',
      'active.queued',
      'active.running.starting',
      'active.running.working',
      name === 'at' ? 'finished' : 'waiting',
    ]);
    t.equal((await world.automations.read(id)).nextRunAt === undefined, name === 'at');
  });
}

t.test('a task without a schedule runs at once and is finished', async (t) => {
  const world = await World.start(t);
  const task = await world.add('task', { prompt: 'tidy up' });
  await world.quiet();
  t.match(await world.automations.read(task.id), {
    state: 'finished',
    name: 'tidy up',
    scheduleText: 'Once, as soon as possible',
    recentRuns: [{ status: 'completed', result: 'done: tidy up' }],
    upcoming: [],
  });
});

t.test('a job due in 60 days runs then, with timers no longer than a tick', async (t) => {
  const world = await World.start(t);
  const warnings: unknown[] = [];
  const warn = (warning: unknown) => warnings.push(warning);
  process.on('warning', warn);
  t.teardown(() => process.off('warning', warn));
  const dueAt = morning + 60 * day;
  const { id } = await world.add('cron', { schedule: { kind: 'at', at: new Date(dueAt).toISOString() } });
  await world.pass(hour);
  world.clock.jumpTo(dueAt - 3 * minute);
  await world.pass(2 * minute);
  t.same(world.prompts, []);
  await world.pass(2 * minute);
  t.same([world.prompts, await world.stateOf(id)], [['go'], 'finished']);
  await world.pass(day);
  t.equal(world.prompts.length, 1);
  // The longest timers are a tick and the time limit of the turn.
  t.ok(world.clock.longest <= 30 * minute, `${world.clock.longest}`);
  t.same(warnings, []);
});

t.test('after sleep the missed due times are one run within a tick, with the missed ones in the history', async (t) => {
  const world = await World.start(t);
  const { id } = await world.hourly();
  world.clock.jump(5 * hour + 10 * minute);
  t.same(world.prompts, [], 'no timer has fired');
  await world.pass(defaults.automations.tickMs);
  t.equal(world.prompts.length, 1);
  t.match(await world.history(id), [
    { scheduledFor: '2026-07-01T10:00:00.000Z', status: 'missed', coalesced: 4, startedAt: undefined },
    { scheduledFor: '2026-07-01T14:00:00.000Z', status: 'completed', coalesced: 5 },
  ]);
  await world.pass(50 * minute);
  t.same(world.prompts.length, 2, 'the next hour is a run again');
});

t.test('days of sleep are one run per automation, also of a one-off', async (t) => {
  const world = await World.start(t);
  await world.add('cron', { schedule: { kind: 'every', everyMs: minute }, prompt: 'every minute' });
  await world.add('cron', { schedule: { kind: 'at', at: '2026-07-02T09:00:00Z' }, prompt: 'once' });
  world.clock.jump(9 * day);
  await world.pass(defaults.automations.tickMs);
  t.same([...world.prompts].sort(), ['every minute', 'once']);
});

t.test('a clock set back repeats no run and loses no new automation', async (t) => {
  const world = await World.start(t);
  const { id } = await world.hourly();
  await world.pass(2 * hour + minute);
  t.equal(world.prompts.length, 2);
  const late = await world.add('cron', { schedule: { kind: 'cron', expression: '30 * * * *', timeZone: 'UTC' } });
  world.clock.jump(-90 * minute);
  await world.pass(88 * minute);
  t.same(
    (await world.history(id)).map(({ scheduledFor, status }) => `${fullHours(scheduledFor)} ${status}`),
    ['10:00 completed', '11:00 completed'],
    '10 and 11 o’clock occurred twice',
  );
  t.equal((await world.history(late.id)).length, 0, 'its due times had passed at its creation');
  await world.pass(62 * minute);
  t.match((await world.history(id)).at(-1), { scheduledFor: '2026-07-01T12:00:00.000Z', status: 'completed' });
  t.match(await world.history(late.id), [{ scheduledFor: '2026-07-01T11:30:00.000Z', status: 'completed' }]);
});

t.test('a clock that was years ahead for a moment does not suppress the due times until then', async (t) => {
  const world = await World.start(t);
  const { id } = await world.hourly();
  world.clock.jump(3_650 * day);
  await world.pass(defaults.automations.tickMs);
  t.equal(world.prompts.length, 1);
  world.clock.jumpTo(morning + 10 * minute);
  await world.pass(2 * hour);
  t.equal(world.prompts.length, 2);
  t.match(
    (await world.history(id)).slice(0, 2),
    [
      { scheduledFor: '2026-07-01T10:00:00.000Z', status: 'missed' },
      { scheduledFor: '2026-07-01T11:00:00.000Z', status: 'completed' },
    ],
    '10 o’clock is missed, and 11 o’clock runs',
  );
});

t.test('a clock set back without a server is detected at the start', async (t) => {
  const first = await World.start(t);
  const { id } = await first.hourly();
  first.clock.jump(400 * day);
  await first.pass(defaults.automations.tickMs);
  await first.close();
  first.clock.jumpTo(morning + 10 * minute);
  const second = await first.restart(t);
  t.match(await second.automations.read(id), { nextRunAt: '2026-07-01T10:00:00.000Z' });
  await second.pass(2 * hour);
  t.equal(second.prompts.length, 1);
});

t.test('hourly and daily jobs run once per due time across both clock changes', async (t) => {
  for (const [from, times] of [
    ['2026-03-28T22:30:00Z', { hourly: 25, daily: ['2026-03-29T01:00:00.000Z'] }],
    ['2026-10-24T22:30:00Z', { hourly: 25, daily: ['2026-10-25T00:30:00.000Z'] }],
  ] as const) {
    const world = await World.start(t, { clock: new FakeClock(at(from)) });
    const timeZone = 'Europe/Berlin';
    const hourly = await world.add('cron', { schedule: { kind: 'cron', expression: '0 * * * *', timeZone } });
    const daily = await world.add('cron', { schedule: { kind: 'daily', time: '02:30', timeZone } });
    for (let half = 0; half < 50; half += 1) await world.pass(30 * minute);
    const ran = await world.history(hourly.id);
    t.equal(ran.length, times.hourly, 'the hours of a day are as many as pass');
    t.ok(ran.every(({ coalesced, status }) => coalesced === 1 && status === 'completed'));
    t.same(
      (await world.history(daily.id)).map(({ scheduledFor }) => scheduledFor),
      times.daily,
    );
    await world.close();
  }
});

t.test('a restart right before, at or after the due time leads to one run', async (t) => {
  for (const offset of [-1, 0, 1, 10 * minute]) {
    const first = await World.start(t);
    const { id } = await first.hourly();
    await first.pass(hour + offset - 2);
    await first.close();
    first.clock.jump(2);
    const second = await first.restart(t);
    await second.quiet();
    await second.pass(minute);
    const history = await second.history(id);
    t.match(history, [{ scheduledFor: '2026-07-01T10:00:00.000Z', coalesced: 1, status: 'completed' }], `${offset} ms`);
    t.equal(first.prompts.length + second.prompts.length, 1);
    await second.close();
  }
});

t.test('due times without a server are one run at the start, with the missed ones in the history', async (t) => {
  const first = await World.start(t);
  const hourly = await first.hourly({ prompt: 'hourly' });
  const once = await first.add('task', { schedule: { kind: 'at', at: '2026-07-01T12:00:00Z' }, prompt: 'once' });
  const off = await first.hourly({ enabled: false, prompt: 'off' });
  await first.close();
  first.clock.jump(7 * hour + minute);
  const second = await first.restart(t);
  await second.quiet();
  t.same([...second.prompts].sort(), ['hourly', 'once']);
  t.match(await second.history(hourly.id), [
    { status: 'missed', coalesced: 6 },
    { status: 'completed', coalesced: 7, scheduledFor: '2026-07-01T16:00:00.000Z' },
  ]);
  t.match(await second.history(once.id), [{ scheduledFor: '2026-07-01T12:00:00.000Z', status: 'completed' }]);
  t.same(await second.history(off.id), []);
});

/** Events of a computer between due times. */
const happenings = fc.oneof(
  fc.record({ do: fc.constant('pass' as const), ms: fc.integer({ min: 1, max: 3 * hour }) }),
  fc.record({ do: fc.constant('sleep' as const), ms: fc.integer({ min: minute, max: 30 * hour }) }),
  fc.record({ do: fc.constant('restart' as const), ms: fc.integer({ min: 0, max: 5 * hour }) }),
  fc.record({ do: fc.constant('setBack' as const), ms: fc.integer({ min: 1, max: 2 * hour }) }),
);

t.test('across random sleeps, restarts and clock changes every due time is run or missed once', async (t) => {
  await fc.assert(
    fc.asyncProperty(fc.array(happenings, { minLength: 1, maxLength: 8 }), async (steps) => {
      let world = await World.start(t);
      const { id } = await world.add('cron', { schedule: { kind: 'every', everyMs: 20 * minute } });
      let latest = world.clock.now();
      let prompts = 0;
      for (const step of steps) {
        if (step.do === 'pass') await world.pass(step.ms);
        else if (step.do === 'setBack') world.clock.jump(-step.ms);
        else world.clock.jump(step.ms);
        if (step.do === 'restart') {
          prompts += world.prompts.length;
          world = await world.restart(t);
        }
        await world.pass(defaults.automations.tickMs + 10);
        // A due time at this very moment is run within the slack of the timer.
        const { slackMs } = defaults.automations;
        if ((world.clock.now() - morning) % (20 * minute) <= slackMs) await world.pass(slackMs + 1);
        latest = Math.max(latest, world.clock.now());
      }
      const history = await world.history(id);
      prompts += world.prompts.length;
      const wasSetBack = steps.some((step) => step.do === 'setBack');
      const dues = Math.floor((latest - morning) / (20 * minute));
      const runs = history.filter(({ status }) => status === 'completed');
      const missed = history.filter(({ status }) => status === 'missed');
      const accounted = runs.length + missed.reduce((sum, { coalesced }) => sum + coalesced, 0);
      t.equal(prompts, runs.length, 'each run has one prompt');
      t.equal(new Set(history.map(({ scheduledFor }) => scheduledFor)).size, history.length);
      // After a clock set back, due times missed before may be made up for.
      if (wasSetBack) t.ok(accounted >= dues, `${accounted} of ${dues}`);
      else t.equal(accounted, Math.min(dues, accounted), `${accounted} of ${dues}`);
      if (!wasSetBack && dues < 90) t.equal(accounted, dues, JSON.stringify(steps));
      t.same(world.faults, []);
      await world.close();
    }),
    { numRuns: 25 },
  );
});
