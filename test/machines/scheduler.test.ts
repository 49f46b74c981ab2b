import t from 'tap';
import { createActor, fromCallback, SimulatedClock } from 'xstate';
import { type SchedulerEvent, schedulerMachine, type TickerCommand } from '../../machines/scheduler.ts';
import { asked, flush, open, type Question, transitionLog, type Walk, walkEvery } from './harness.ts';

/** A scheduler whose rows, clock and runs are the test's. */
class World {
  readonly taken: string[] = [];
  readonly done: string[] = [];
  readonly recoveries: Question<{ readonly recovered: number }, unknown>[] = [];
  readonly drains: Question<void, unknown>[] = [];
  readonly clock = new SimulatedClock();
  tickers = 0;
  readonly actor;

  constructor() {
    const machine = schedulerMachine.provide({
      actors: {
        recover: asked(this.recoveries) as never,
        drain: asked(this.drains) as never,
        ticker: fromCallback<TickerCommand>(({ receive }) => {
          this.tickers += 1;
          receive(({ type }) => this.done.push(type));
          return () => {
            this.tickers -= 1;
          };
        }),
      },
      actions: {
        restoreDueTimes: () => this.done.push('restoreDueTimes'),
        dispatchDue: () => this.done.push('dispatchDue'),
      },
    });
    this.actor = createActor(machine, {
      clock: this.clock,
      inspect: transitionLog(this.taken, (actor) => actor.id === 'scheduler'),
      id: 'scheduler',
    });
    this.actor.start();
  }

  send(event: SchedulerEvent): void {
    this.actor.send(event);
  }

  get state() {
    return this.actor.getSnapshot().value;
  }

  get context() {
    return this.actor.getSnapshot().context;
  }
}

const to = {
  async recovering() {},
  async watching(world: World) {
    open(world.recoveries).answer({ recovered: 2 });
    await flush();
  },
  async failed(world: World) {
    open(world.recoveries).fail(new Error('the disk is full'));
    await flush();
  },
  async draining(world: World) {
    await to.watching(world);
    world.send({ type: 'STOP' });
  },
};

const walks: readonly Walk<World>[] = [
  {
    takes: 'recovering done(recover) → watching',
    proves: 'the clock is watched after the recovery of the rows',
    given: to.recovering,
    when: to.watching,
    shows: (t, world) => t.same([world.context.recovered, world.tickers], [2, 1]),
  },
  {
    takes: 'recovering error(recover) → failed',
    proves: 'a failed recovery is recorded, and no run starts',
    given: to.recovering,
    when: to.failed,
    shows: (t, world) => t.same([world.context.lastError, world.tickers], ['the disk is full', 0]),
  },
  {
    takes: 'recovering STOP → stopped',
    proves: 'a recovering scheduler can be stopped',
    given: to.recovering,
    when: (world) => world.send({ type: 'STOP' }),
    shows: (t, world) => t.equal(world.actor.getSnapshot().status, 'done'),
  },
  {
    takes: 'failed after(recoverRetry) → recovering',
    proves: 'a failed recovery is retried after a pause',
    given: to.failed,
    when: (world) => world.clock.increment(30_000),
    shows: (t, world) => t.equal(world.recoveries.length, 2),
  },
  {
    takes: 'failed WAKE → recovering',
    proves: 'a wake-up retries a failed recovery at once',
    given: to.failed,
    when: async (world) => {
      world.send({ type: 'WAKE' });
      await to.watching(world);
    },
    shows: (t, world) => t.same([world.recoveries.length, world.state, world.context.lastError], [2, 'watching', null]),
  },
  {
    takes: 'failed STOP → stopped',
    proves: 'a failed scheduler can be stopped',
    given: to.failed,
    when: (world) => world.send({ type: 'STOP' }),
    shows: (t, world) => t.equal(world.state, 'stopped'),
  },
  {
    takes: 'watching TICK → ∅',
    proves: 'a tick dispatches due runs, then sets the timer',
    given: to.watching,
    when: (world) => world.send({ type: 'TICK', at: 5, wentBack: false }),
    shows(t, world) {
      t.same(world.done, ['dispatchDue', 'REARM']);
      t.match(world.context, { ticks: 1, lastTickAt: 5, setBacks: 0 });
    },
  },
  {
    takes: 'watching TICK [clockWentBack] → ∅',
    proves: 'after a clock set back due times are computed again before a dispatch',
    given: to.watching,
    when: (world) => world.send({ type: 'TICK', at: 5, wentBack: true }),
    shows(t, world) {
      t.same(world.done, ['restoreDueTimes', 'dispatchDue', 'REARM']);
      t.match(world.context, { ticks: 1, setBacks: 1 });
    },
  },
  {
    takes: 'watching WAKE → ∅',
    proves: 'a wake-up checks the clock at once',
    given: to.watching,
    when: (world) => world.send({ type: 'WAKE' }),
    shows: (t, world) => t.same(world.done, ['LOOK']),
  },
  {
    takes: 'watching STOP → draining',
    proves: 'a stop ends the ticker and drains the runs',
    given: to.watching,
    when: (world) => world.send({ type: 'STOP' }),
    shows(t, world) {
      world.send({ type: 'TICK', at: 6, wentBack: false });
      world.send({ type: 'WAKE' });
      t.same([world.tickers, world.done, world.state], [0, [], 'draining']);
    },
  },
  {
    takes: 'draining done(drain) → stopped',
    proves: 'the scheduler stops after the end of the last run',
    given: to.draining,
    when: (world) => open(world.drains).answer(),
    shows: (t, world) => t.equal(world.actor.getSnapshot().status, 'done'),
  },
  {
    takes: 'draining error(drain) → stopped',
    proves: 'a failed drain is recorded, and the scheduler stops',
    given: to.draining,
    when: (world) => open(world.drains).fail('gone'),
    shows: (t, world) => t.same([world.state, world.context.lastError], ['stopped', 'gone']),
  },
];

walkEvery(t, schedulerMachine, () => new World(), walks);

t.test('a scheduler without provided actors fails with an error', async (t) => {
  const actor = createActor(schedulerMachine).start();
  await flush();
  t.equal(actor.getSnapshot().value, 'failed');
  t.equal(actor.getSnapshot().context.lastError, 'not provided');
  actor.stop();
});
