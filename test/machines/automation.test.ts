import t from 'tap';
import { createActor, fromCallback, SimulatedClock } from 'xstate';
import {
  type AutomationEmitted,
  type AutomationEvent,
  type AutomationMachineInput,
  type AutomationOutcome,
  type AutomationRunCommand,
  type AutomationRunInput,
  automationMachine,
  type Due,
  mergeDue,
} from '../../machines/automation.ts';
import { flush, transitionLog, type Walk, walkEvery } from './harness.ts';

const hour = 3_600_000;
const policy = { maxRetries: 2, retryInitialMs: 30_000, retryMaxMs: 600_000, turnTimeoutMs: 1_800_000 };

const dueAt = (scheduledFor: number, count = 1, first = scheduledFor): Due => ({ first, scheduledFor, count });
const broken = (isRetryable = true, retryAfterMs?: number): AutomationOutcome => ({
  status: 'failed',
  failure: { code: 'upstreamFailed', message: 'no answer', isRetryable, ...(retryAfterMs && { retryAfterMs }) },
});

/** One automation with slots and ends of runs controlled by the test. */
class World {
  readonly taken: string[] = [];
  readonly emitted: AutomationEmitted[] = [];
  readonly runs: AutomationRunInput[] = [];
  readonly commands: AutomationRunCommand[] = [];
  readonly clock = new SimulatedClock();
  asked = 0;
  released = 0;
  stopped = 0;
  readonly actor;

  constructor(input: Partial<AutomationMachineInput> = {}) {
    const machine = automationMachine.provide({
      actors: {
        run: fromCallback<AutomationRunCommand, AutomationRunInput>(({ input, receive }) => {
          this.runs.push(input);
          receive((command) => this.commands.push(command));
          return () => {
            this.stopped += 1;
          };
        }),
      },
      actions: {
        requestSlot: () => {
          this.asked += 1;
        },
        releaseSlot: () => {
          this.released += 1;
        },
      },
    });
    this.actor = createActor(machine, {
      clock: this.clock,
      inspect: transitionLog(this.taken, (actor) => actor.id === 'job'),
      id: 'job',
      input: {
        automationId: 'job_1',
        kind: 'cron',
        isEnabled: true,
        isRecurring: true,
        isSpent: false,
        vanishes: false,
        policy,
        seed: 1,
        failures: 0,
        retry: null,
        ...input,
      },
    });
    this.actor.on('automation.dropped', (event) => this.emitted.push(event));
    this.actor.start();
  }

  send(event: AutomationEvent): void {
    this.actor.send(event);
  }

  get context() {
    return this.actor.getSnapshot().context;
  }

  /** Path of the state: `active.running.working`. */
  get state(): string {
    const path: string[] = [];
    let value: unknown = this.actor.getSnapshot().value;
    for (; typeof value === 'object' && value !== null; [value] = Object.values(value))
      path.push(...Object.keys(value));
    return [...path, value].join('.');
  }

  ends(outcome: AutomationOutcome, at = 0): void {
    this.send({ type: 'RUN.ENDED', outcome, at });
  }
}

/** An earlier process left a run of the schedule. */
function left(world: World, effect: string | null, attempt = 1): void {
  const work = { scheduledFor: hour, attempt, trigger: 'schedule' as const };
  world.send({ type: 'RUN.LEFT', work, effect, outcome: broken(), at: 9 });
}

const once = (): World => new World({ kind: 'task', isRecurring: false });
const off = (): World => new World({ isEnabled: false });

/** Functions that lead a new world to a state. */
const to = {
  async nothing() {},
  async queued(world: World) {
    world.send({ type: 'DUE', due: dueAt(hour) });
  },
  async manual(world: World) {
    world.send({ type: 'RUN', at: 7 });
  },
  async starting(world: World) {
    await to.queued(world);
    world.send({ type: 'SLOT' });
  },
  async working(world: World) {
    await to.starting(world);
    world.send({ type: 'RUN.STARTED', threadId: 'thread', turnId: 'turn_001', ageMs: 0 });
  },
  async backingOff(world: World) {
    await to.working(world);
    world.ends(broken(), 1_000);
  },
  async completed(world: World) {
    await to.working(world);
    world.ends({ status: 'completed' });
  },
};

const walks: readonly Walk<World>[] = [
  {
    takes: 'waiting DUE → active',
    proves: 'a due time queues a run',
    given: to.nothing,
    when: to.queued,
    shows(t, world) {
      t.equal(world.state, 'active.queued');
      t.same([world.asked, world.runs], [1, []], 'it asked, and begins nothing before it has a slot');
      t.same(world.context.due, dueAt(hour));
    },
  },
  {
    takes: '(any) DUE [isEnabled] → ∅',
    proves: 'due times before the start of a queued run are combined with it',
    given: to.queued,
    when(world) {
      world.send({ type: 'DUE', due: dueAt(3 * hour, 2, 2 * hour) });
    },
    shows(t, world) {
      t.same(world.context.due, { first: hour, scheduledFor: 3 * hour, count: 3 });
      world.send({ type: 'SLOT' });
      t.match(world.runs, [
        { work: { scheduledFor: 3 * hour, attempt: 1, trigger: 'schedule' }, covers: { count: 3 } },
      ]);
      t.equal(world.context.due, null);
    },
  },
  {
    takes: 'active.queued SLOT → active.running',
    proves: 'a free slot starts the run, named by its due time',
    given: to.queued,
    when: (world) => world.send({ type: 'SLOT' }),
    shows(t, world) {
      t.equal(world.state, 'active.running.starting');
      const work = { scheduledFor: hour, attempt: 1, trigger: 'schedule' };
      t.same(world.runs, [{ automationId: 'job_1', work, covers: dueAt(hour), isResumed: false }]);
    },
  },
  {
    takes: 'active.queued CANCEL → deciding',
    proves: 'a queued run can be cancelled, and the schedule continues',
    given: to.queued,
    when: (world) => world.send({ type: 'CANCEL' }),
    shows(t, world) {
      t.equal(world.state, 'waiting');
      t.same(world.emitted, [{ type: 'automation.dropped', due: dueAt(hour), as: 'cancelled' }]);
      t.same([world.released, world.context.due], [1, null]);
    },
  },
  {
    takes: 'active.queued DISABLE [isScheduled] → deciding',
    proves: 'a queued run of a disabled automation is missed',
    given: to.queued,
    when: (world) => world.send({ type: 'DISABLE' }),
    shows(t, world) {
      t.equal(world.state, 'paused');
      t.match(world.emitted, [{ as: 'missed', due: dueAt(hour) }]);
      t.equal(world.released, 1);
    },
  },
  {
    takes: '(any) DISABLE → ∅',
    proves: 'an active run and a manual run continue after the automation is disabled',
    given: to.manual,
    when(world) {
      world.send({ type: 'DISABLE' });
    },
    shows(t, world) {
      t.equal(world.state, 'active.queued');
      world.send({ type: 'SLOT' });
      t.match(world.runs, [{ work: { scheduledFor: 7, trigger: 'manual' }, covers: null }]);
      world.ends({ status: 'completed' });
      t.equal(world.state, 'paused');
    },
  },
  {
    takes: '(any) DISABLE [hasDue] → ∅',
    proves: 'due times that wait for the end of the run are missed when the automation is disabled',
    given: to.working,
    when(world) {
      world.send({ type: 'DUE', due: dueAt(2 * hour) });
      world.send({ type: 'DISABLE' });
    },
    shows(t, world) {
      t.equal(world.state, 'active.running.working');
      t.match(world.emitted, [{ as: 'missed', due: dueAt(2 * hour) }]);
      world.ends({ status: 'completed' });
      t.equal(world.state, 'paused');
    },
  },
  {
    takes: '(any) ENABLE → ∅',
    proves: 'an automation enabled during its run waits for its next due time afterwards',
    given: to.working,
    when(world) {
      world.send({ type: 'DISABLE' });
      world.send({ type: 'ENABLE' });
    },
    shows(t, world) {
      world.ends({ status: 'completed' });
      t.equal(world.state, 'waiting');
    },
  },
  {
    takes: '(any) CHANGED → ∅',
    proves: 'a new schedule during a run applies afterwards',
    world: once,
    given: to.working,
    when: (world) => world.send({ type: 'CHANGED', terms: { isRecurring: true, isSpent: false, vanishes: false } }),
    shows(t, world) {
      t.equal(world.state, 'active.running.working');
      world.ends({ status: 'completed' });
      t.equal(world.state, 'waiting');
    },
  },
  {
    takes: '(any) REMOVE → removed',
    proves: 'a removal takes effect in every state and releases the run',
    given: to.working,
    when: (world) => world.send({ type: 'REMOVE' }),
    shows(t, world) {
      t.equal(world.actor.getSnapshot().status, 'done');
      t.same([world.stopped, world.released], [1, 1]);
    },
  },
  {
    takes: 'deciding always [hasDue] → active',
    proves: 'due times during a run are combined into one run after it',
    given: to.working,
    when(world) {
      world.send({ type: 'DUE', due: dueAt(2 * hour) });
      world.send({ type: 'DUE', due: dueAt(3 * hour) });
      world.ends({ status: 'completed' });
    },
    shows(t, world) {
      t.equal(world.runs.length, 1);
      t.equal(world.state, 'active.queued');
      world.send({ type: 'SLOT' });
      t.match(world.runs[1], { work: { scheduledFor: 3 * hour, attempt: 1 }, covers: { first: 2 * hour, count: 2 } });
    },
  },
  {
    takes: 'deciding always [isSpent] → finished',
    proves: 'a one-off is finished after its run, whatever the outcome',
    world: once,
    given: to.working,
    when: (world) => world.ends(broken(false)),
    shows: (t, world) => t.same([world.state, world.context.failures], ['finished', 1]),
  },
  {
    takes: 'deciding always [vanishes] → removed',
    proves: 'a completed one-off with deletion after completion is removed',
    world: () => new World({ isRecurring: false, vanishes: true }),
    given: to.working,
    when: (world) => world.ends({ status: 'completed' }),
    shows: (t, world) => t.equal(world.actor.getSnapshot().status, 'done'),
  },
  {
    takes: 'deciding always [isEnabled] → waiting',
    proves: 'an enabled automation waits for its next due time after a run',
    given: to.working,
    when: (world) => world.ends({ status: 'completed' }),
    shows: (t, world) => t.same([world.state, world.released], ['waiting', 1]),
  },
  {
    takes: 'deciding always → paused',
    proves: 'a disabled automation is paused after a manual run',
    world: off,
    given: async (world) => {
      await to.manual(world);
      world.send({ type: 'SLOT' });
    },
    when: (world) => world.ends({ status: 'completed' }),
    shows: (t, world) => t.equal(world.state, 'paused'),
  },
  {
    takes: 'deciding always [hasRetry] → backingOff',
    proves: 'a retry pending in an earlier process is pending again',
    world: () =>
      new World({ retry: { work: { scheduledFor: hour, attempt: 2, trigger: 'schedule' }, at: 9 }, failures: 1 }),
    given: to.nothing,
    // The transition was taken at the start of the actor.
    when(world) {
      world.taken.push('deciding always [hasRetry] → backingOff');
    },
    shows(t, world) {
      t.same([world.state, world.context.retryAt], ['backingOff', 9]);
      world.send({ type: 'RETRY' });
      world.send({ type: 'SLOT' });
      t.match(world.runs, [{ work: { scheduledFor: hour, attempt: 2 }, covers: null }]);
    },
  },
  {
    takes: 'paused RUN → active',
    proves: 'a disabled automation can be run manually',
    world: off,
    given: to.nothing,
    when: to.manual,
    shows: (t, world) => t.equal(world.state, 'active.queued'),
  },
  {
    takes: 'paused ENABLE → deciding',
    proves: 'an enabled automation waits for its due time',
    world: off,
    // A due time means nothing to it before.
    given: to.queued,
    when: (world) => world.send({ type: 'ENABLE' }),
    shows: (t, world) => t.same([world.state, world.context.due], ['waiting', null]),
  },
  {
    takes: 'paused CHANGED → deciding',
    proves: 'a change of a disabled automation is stored',
    world: off,
    given: to.nothing,
    when: (world) => world.send({ type: 'CHANGED', terms: { isRecurring: false, isSpent: false, vanishes: true } }),
    shows: (t, world) => t.match(world.context, { isRecurring: false, vanishes: true }),
  },
  {
    takes: 'waiting RUN → active',
    proves: 'a waiting automation can be run manually besides its schedule',
    given: to.nothing,
    when: to.manual,
    shows(t, world) {
      world.send({ type: 'DUE', due: dueAt(hour) });
      world.send({ type: 'SLOT' });
      t.match(world.runs, [{ work: { scheduledFor: 7, trigger: 'manual' }, covers: null }]);
      world.ends({ status: 'completed' });
      t.equal(world.state, 'active.queued', 'the due time has a run of its own');
    },
  },
  {
    takes: 'waiting DISABLE → deciding',
    proves: 'a waiting automation can be disabled',
    given: to.nothing,
    when: (world) => world.send({ type: 'DISABLE' }),
    shows: (t, world) => t.same([world.state, world.emitted], ['paused', []]),
  },
  {
    takes: 'waiting CHANGED → deciding',
    proves: 'a changed automation waits for the due time of its new schedule',
    given: to.nothing,
    when: (world) => world.send({ type: 'CHANGED', terms: { isRecurring: false, isSpent: false, vanishes: false } }),
    shows: (t, world) => t.same([world.state, world.context.isRecurring], ['waiting', false]),
  },
  {
    takes: 'active.running RUN.ENDED [mayRetry] → backingOff',
    proves: 'a failed run is retried after a stored pause',
    given: to.working,
    when: (world) => world.ends(broken(), 1_000),
    shows(t, world) {
      t.equal(world.state, 'backingOff');
      const { delayMs, retryAt, work, failures, lastError } = world.context;
      t.ok(delayMs >= 15_000 && delayMs <= 30_000, `${delayMs}`);
      t.same([retryAt, failures, lastError], [1_000 + delayMs, 1, 'no answer']);
      t.match(work, { scheduledFor: hour, attempt: 2 });
      t.equal(world.released, 1, 'it holds no slot meanwhile');
      world.clock.increment(2 ** 40);
      t.equal(world.state, 'backingOff', 'no timer of the machine ends it');
    },
  },
  {
    takes: 'active.running RUN.ENDED [hasFailed] → deciding',
    proves: 'a permanent failure, or one of the last attempt, is not retried',
    given: to.working,
    when: (world) => world.ends(broken(false)),
    shows: (t, world) => t.same([world.state, world.context.failures, world.context.work], ['waiting', 1, null]),
  },
  {
    takes: 'active.running RUN.EFFECT → ∅',
    proves: 'a run that has begun a call with effects is not retried, and the next run begins without effects',
    given: to.working,
    when: (world) => world.send({ type: 'RUN.EFFECT', tool: 'Exec' }),
    shows(t, world) {
      t.same([world.state, world.context.effect], ['active.running.working', 'Exec']);
      world.ends(broken());
      t.same([world.state, world.context.failures, world.context.work], ['waiting', 1, null]);
      world.send({ type: 'DUE', due: dueAt(2 * hour) });
      world.send({ type: 'SLOT' });
      t.equal(world.context.effect, null);
    },
  },
  {
    takes: '(any) RUN.RESUMED → active.running',
    proves:
      'a run whose turn continues stays the same try, holds a slot, and its time limit counts from the start of the turn',
    given: to.nothing,
    when: (world) => world.send({ type: 'RUN.RESUMED', work: { scheduledFor: hour, attempt: 2, trigger: 'schedule' } }),
    shows(t, world) {
      t.same([world.state, world.asked], ['active.running.starting', 1]);
      t.match(world.runs, [
        { work: { scheduledFor: hour, attempt: 2, trigger: 'schedule' }, covers: null, isResumed: true },
      ]);
      world.send({ type: 'RUN.STARTED', threadId: 'thread', turnId: 'turn_001', ageMs: policy.turnTimeoutMs - 5 });
      world.clock.increment(4);
      t.same(world.commands, []);
      world.clock.increment(1);
      t.same(world.commands, [{ type: 'INTERRUPT', reason: 'timeout' }]);
      world.ends({ status: 'completed' });
      t.same([world.state, world.released], ['waiting', 1]);
      world.send({ type: 'DUE', due: dueAt(2 * hour) });
      world.send({ type: 'SLOT' });
      t.match(world.runs[1], { work: { attempt: 1 }, isResumed: false }, 'the next run is a new one');
    },
  },
  {
    takes: '(any) RUN.LEFT [mayRetry] → backingOff',
    proves: 'a run that an earlier process left before its effects is retried at once',
    given: to.nothing,
    when: (world) => left(world, null),
    shows(t, world) {
      t.same([world.state, world.context.retryAt, world.context.failures], ['backingOff', 9, 1]);
      world.send({ type: 'RETRY' });
      world.send({ type: 'SLOT' });
      t.match(world.runs, [{ work: { scheduledFor: hour, attempt: 2, trigger: 'schedule' }, covers: null }]);
    },
  },
  {
    takes: '(any) RUN.LEFT → ∅',
    proves: 'a run that an earlier process left after its first effect is not retried, and can be run by hand',
    given: to.nothing,
    when: (world) => left(world, 'Exec'),
    shows(t, world) {
      t.same([world.state, world.context.work, world.context.failures], ['waiting', null, 1]);
      world.send({ type: 'RUN', at: 7 });
      world.send({ type: 'SLOT' });
      t.match(world.runs, [{ work: { scheduledFor: 7, attempt: 1, trigger: 'manual' } }]);
    },
  },
  {
    takes: 'active.running RUN.ENDED [hasCompleted] → deciding',
    proves: 'a completed run clears the failures',
    given: async (world) => {
      await to.backingOff(world);
      world.send({ type: 'RETRY' });
      world.send({ type: 'SLOT' });
    },
    when: (world) => world.ends({ status: 'completed' }),
    shows: (t, world) => t.same([world.state, world.context.failures, world.context.lastError], ['waiting', 0, null]),
  },
  {
    takes: 'active.running RUN.ENDED → deciding',
    proves: 'a cancelled run, or one of another process, is not a failure',
    given: to.working,
    when: (world) => world.ends({ status: 'skipped' }),
    shows: (t, world) => t.same([world.state, world.context.failures], ['waiting', 0]),
  },
  {
    takes: 'active.running.starting RUN.STARTED → active.running.working',
    proves: 'the started turn is recorded',
    given: to.starting,
    when: (world) => world.send({ type: 'RUN.STARTED', threadId: 'thread', turnId: 'turn_001', ageMs: 0 }),
    shows: (t, world) => t.match(world.context, { threadId: 'thread', turnId: 'turn_001' }),
  },
  {
    takes: 'active.running.starting CANCEL → active.running.interrupting',
    proves: 'a run can be cancelled before its turn has started',
    given: to.starting,
    when: (world) => world.send({ type: 'CANCEL' }),
    shows: (t, world) => t.same(world.commands, [{ type: 'INTERRUPT', reason: 'cancel' }]),
  },
  {
    takes: 'active.running.working CANCEL → active.running.interrupting',
    proves: 'a cancel interrupts the turn once and waits for its end',
    given: to.working,
    when(world) {
      world.send({ type: 'CANCEL' });
      world.send({ type: 'CANCEL' });
    },
    shows(t, world) {
      t.same(world.commands, [{ type: 'INTERRUPT', reason: 'cancel' }]);
      t.same([world.state, world.released], ['active.running.interrupting', 0]);
      world.ends({ status: 'cancelled' });
      t.same([world.state, world.released], ['waiting', 1]);
    },
  },
  {
    takes: 'active.running.working after(turnTimeout) → active.running.interrupting',
    proves: 'a turn is interrupted at its deadline, not before',
    given: async (world) => {
      await to.working(world);
      world.clock.increment(policy.turnTimeoutMs - 1);
    },
    when: (world) => world.clock.increment(1),
    shows: (t, world) => t.same(world.commands, [{ type: 'INTERRUPT', reason: 'timeout' }]),
  },
  {
    takes: 'backingOff RETRY → active',
    proves: 'the retry is queued at its time and covers the due times since',
    given: async (world) => {
      await to.backingOff(world);
      world.send({ type: 'DUE', due: dueAt(2 * hour) });
    },
    when: (world) => world.send({ type: 'RETRY' }),
    shows(t, world) {
      t.equal(
        world.context.retryAt,
        1_000 + world.context.delayMs,
        'known until it has begun: it outlives the process',
      );
      world.send({ type: 'SLOT' });
      t.match(world.runs[1], { work: { scheduledFor: hour, attempt: 2 }, covers: dueAt(2 * hour) });
    },
  },
  {
    takes: 'backingOff RUN → active',
    proves: 'a manual run retries at once',
    given: to.backingOff,
    when: to.manual,
    shows(t, world) {
      world.send({ type: 'SLOT' });
      t.match(world.runs[1], { work: { scheduledFor: hour, attempt: 2, trigger: 'schedule' } });
    },
  },
  {
    takes: 'backingOff CANCEL → deciding',
    proves: 'a cancel gives up the retry and the due times since',
    given: async (world) => {
      await to.backingOff(world);
      world.send({ type: 'DUE', due: dueAt(2 * hour) });
    },
    when: (world) => world.send({ type: 'CANCEL' }),
    shows(t, world) {
      t.same([world.state, world.context.work, world.context.retryAt], ['waiting', null, null]);
      t.match(world.emitted, [{ as: 'cancelled', due: dueAt(2 * hour) }]);
    },
  },
  {
    takes: 'backingOff DISABLE [isScheduled] → deciding',
    proves: 'a disabled automation is not retried',
    given: to.backingOff,
    when: (world) => world.send({ type: 'DISABLE' }),
    shows: (t, world) => t.same([world.state, world.context.retryAt], ['paused', null]),
  },
  {
    takes: 'finished RUN → active',
    proves: 'a finished one-off can be run manually',
    world: once,
    given: to.completed,
    when: to.manual,
    shows(t, world) {
      world.send({ type: 'SLOT' });
      world.ends({ status: 'completed' });
      t.equal(world.state, 'finished');
    },
  },
  {
    takes: 'finished CHANGED → deciding',
    proves: 'a finished one-off with a new time waits again',
    world: once,
    given: to.completed,
    when: (world) => world.send({ type: 'CHANGED', terms: { isRecurring: false, isSpent: false, vanishes: false } }),
    shows: (t, world) => t.equal(world.state, 'waiting'),
  },
];

walkEvery(t, automationMachine, () => new World(), walks);

t.test('retries are limited by the policy, with growing pauses or the pause that the upstream requests', async (t) => {
  const world = new World();
  await to.working(world);
  const delays: number[] = [];
  for (let at = 0; ; at += hour) {
    world.ends(broken(true, delays.length === 1 ? 2 * hour : undefined), at);
    if (world.state !== 'backingOff') break;
    delays.push(world.context.delayMs);
    world.send({ type: 'RETRY' });
    world.send({ type: 'SLOT' });
  }
  t.equal(world.state, 'waiting');
  t.same(
    world.runs.map(({ work }) => work.attempt),
    [1, 2, 3],
  );
  t.ok((delays[0] ?? 0) < 30_001);
  t.equal(delays[1], 2 * hour);
  t.equal(world.context.failures, 3);
});

t.test('a one-off cancelled at its time is finished, and a disabled one is paused', async (t) => {
  const cancelled = once();
  await to.queued(cancelled);
  cancelled.send({ type: 'CANCEL' });
  t.equal(cancelled.state, 'finished');
  const disabled = once();
  await to.queued(disabled);
  disabled.send({ type: 'DISABLE' });
  t.equal(disabled.state, 'paused');
  disabled.send({ type: 'ENABLE' });
  t.equal(disabled.state, 'waiting');
});

t.test('a one-off with deletion after completion stays after a failure and after a manual run', async (t) => {
  const world = new World({ isRecurring: false, vanishes: true });
  await to.manual(world);
  world.send({ type: 'SLOT' });
  world.ends({ status: 'completed' });
  t.equal(world.state, 'waiting', 'its time is still to come');
  await to.working(world);
  world.ends(broken(false));
  t.equal(world.state, 'finished');
});

t.test('a left run is not retried after its last attempt, nor when its automation is disabled', async (t) => {
  for (const world of [new World(), off()]) {
    left(world, null, world.context.isEnabled ? policy.maxRetries + 1 : 1);
    t.match(world.state, /^(waiting|paused)$/);
    t.same([world.context.work, world.context.failures], [null, 1]);
  }
});

t.test('a late end of a run is ignored', async (t) => {
  const world = new World();
  await to.completed(world);
  world.ends(broken());
  world.send({ type: 'SLOT' });
  world.send({ type: 'RETRY' });
  await flush();
  t.same([world.state, world.runs.length], ['waiting', 1]);
});

t.test('due times are combined into one with their number', async (t) => {
  t.same(mergeDue(null, dueAt(5)), dueAt(5));
  t.same(mergeDue(dueAt(9, 2, 3), dueAt(5)), { first: 3, scheduledFor: 9, count: 3 });
});

t.test('no run starts without a provided driver', async (t) => {
  const { context } = new World();
  const actor = createActor(automationMachine, { input: { ...context, retry: null, kind: 'cron' } }).start();
  actor.send({ type: 'DUE', due: dueAt(1) });
  t.ok(actor.getSnapshot().hasTag('queued'), 'no slot is given');
  actor.stop();
});
