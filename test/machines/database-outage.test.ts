import t from 'tap';
import { type ActorRefFrom, createActor, SimulatedClock } from 'xstate';
import { type DatabaseOutageEmitted, databaseOutageMachine } from '../../machines/index.ts';
import { transitionLog, type Walk, walkEvery } from './harness.ts';

const minute = 60_000;

/** Calls to a database, by a clock of the test. */
class World {
  readonly clock = new SimulatedClock();
  readonly taken: string[] = [];
  readonly reports: DatabaseOutageEmitted[] = [];
  readonly actor: ActorRefFrom<typeof databaseOutageMachine>;

  constructor() {
    this.actor = createActor(databaseOutageMachine, {
      clock: this.clock,
      input: { recoveryMs: 5_000, reminderMs: minute },
      inspect: transitionLog(this.taken, (actor) => actor === this.actor),
    });
    this.actor.on('*', (report) => void this.reports.push(report));
    this.actor.start();
  }

  async fails(...times: number[]): Promise<void> {
    for (const at of times) this.actor.send({ type: 'FAILED', at, message: `away at ${at}` });
  }

  async succeeds(): Promise<void> {
    this.actor.send({ type: 'SUCCEEDED' });
  }

  async pass(ms: number): Promise<void> {
    this.clock.increment(ms);
  }

  get state() {
    return this.actor.getSnapshot().value;
  }

  get types(): string[] {
    return this.reports.map(({ type }) => type);
  }
}

const away = (world: World) => world.fails(1_000);
async function recovering(world: World): Promise<void> {
  await away(world);
  await world.succeeds();
}

const walks: readonly Walk<World>[] = [
  {
    takes: 'available FAILED → unavailable',
    proves: 'the first failure reports an outage',
    given: async () => {},
    when: away,
    shows: (t, world) => t.match(world.reports, [{ type: 'outage.began', lastError: 'away at 1000', failures: 1 }]),
  },
  {
    takes: 'unavailable FAILED → unavailable',
    proves: 'failures within a minute are counted, not reported',
    given: away,
    when: (world) => world.fails(2_000, 3_000, minute),
    shows: (t, world) => {
      t.equal(world.actor.getSnapshot().context.failures, 4);
      t.same(world.types, ['outage.began']);
    },
  },
  {
    takes: 'unavailable FAILED [isReportDue] → unavailable',
    proves: 'an outage is reported again each minute with a count',
    given: away,
    when: (world) => world.fails(2_000, 1_000 + minute, 2_000 + minute, 1_000 + 2 * minute),
    shows: (t, world) => {
      t.same(world.types, ['outage.began', 'outage.continues', 'outage.continues']);
      t.same(
        world.reports.map(({ failures, durationMs }) => [failures, durationMs]),
        [
          [1, 0],
          [3, minute],
          [5, 2 * minute],
        ],
      );
    },
  },
  {
    takes: 'unavailable SUCCEEDED → recovering',
    proves: 'one success does not end an outage',
    given: away,
    when: (world) => world.succeeds(),
    shows: (t, world) => t.same([world.state, world.types], ['recovering', ['outage.began']]),
  },
  {
    takes: 'recovering FAILED → unavailable',
    proves: 'a failure soon after a success continues the outage',
    given: recovering,
    when: (world) => world.fails(2_000),
    shows: (t, world) => t.same([world.state, world.types], ['unavailable', ['outage.began']]),
  },
  {
    takes: 'recovering FAILED [isReportDue] → unavailable',
    proves: 'an outage with single successes is reported each minute',
    given: recovering,
    when: (world) => world.fails(1_000 + minute),
    shows: (t, world) => t.same(world.types, ['outage.began', 'outage.continues']),
  },
  {
    takes: 'recovering after(databaseRecovery) → available',
    proves: 'an outage is over after a pause without a failure',
    given: recovering,
    when: (world) => world.pass(5_000),
    shows: (t, world) => {
      t.match(world.reports.at(-1), { type: 'outage.ended', failures: 1, durationMs: 0 });
      t.equal(world.state, 'available');
    },
  },
];

walkEvery(t, databaseOutageMachine, () => new World(), walks);

t.test('the next outage begins with a count of its own', async (t) => {
  const world = new World();
  await recovering(world);
  await world.pass(5_000);
  await world.fails(90_000);
  t.match(world.reports.at(-1), { type: 'outage.began', failures: 1, durationMs: 0 });
});
