import t from 'tap';
import { type Actor, createActor, fromCallback, SimulatedClock } from 'xstate';
import {
  type Drafted,
  type Prepared,
  type Published,
  type ReviewFailure,
  type ReviewRunEmitted,
  type ReviewRunEvent,
  type ReviewRunInput,
  type ReviewRunKey,
  reviewFailureOf,
  reviewRunMachine,
} from '../../machines/review-run.ts';
import { asked, flush, open, type Question, transitionLog, type Walk, walkEvery } from './harness.ts';

const passing = { code: 'agentUnavailable', message: 'not now', isRetryable: true };
const lasting = { code: 'turnFailed', message: 'never', isRetryable: false };

type ReturnToQueue = ReviewRunKey & { readonly failure: ReviewFailure | null };
type Interrupt = ReviewRunKey & { readonly why: 'cancelled' | 'tooLong' };

/** One run whose steps are answered by the test. */
class World {
  readonly taken: string[] = [];
  readonly emitted: ReviewRunEmitted[] = [];
  readonly prepare: Question<Prepared, ReviewRunKey>[] = [];
  readonly review: Question<void, ReviewRunKey>[] = [];
  readonly draft: Question<Drafted, ReviewRunKey>[] = [];
  readonly publish: Question<Published, ReviewRunKey>[] = [];
  readonly interrupt: Question<void, Interrupt>[] = [];
  readonly returnToQueue: Question<void, ReturnToQueue>[] = [];
  readonly clock = new SimulatedClock();
  watched = 0;
  readonly #input: Partial<ReviewRunInput>;
  #actor: Actor<typeof reviewRunMachine> | undefined;

  constructor(input: Partial<ReviewRunInput> = {}) {
    this.#input = input;
  }

  /** Creates and starts the actor, which leaves `queued` at once. */
  begin() {
    const machine = reviewRunMachine.provide({
      actors: {
        prepare: asked(this.prepare),
        review: asked(this.review),
        draft: asked(this.draft),
        publish: asked(this.publish),
        interrupt: asked(this.interrupt),
        returnToQueue: asked(this.returnToQueue),
        watch: fromCallback<ReviewRunEvent, ReviewRunKey>(() => {
          this.watched += 1;
          return () => {
            this.watched -= 1;
          };
        }),
      },
    });
    const actor = createActor(machine, {
      id: 'run',
      clock: this.clock,
      inspect: transitionLog(this.taken, (actor) => actor.id === 'run'),
      input: {
        ...{ runId: 'r', resumeAt: 'preparing', attempt: 1, maxAttempts: 3, isCancelRequested: false },
        ...this.#input,
      },
    });
    actor.on('run.failed', (event) => this.emitted.push(event));
    this.#actor = actor;
    return actor.start();
  }

  get actor() {
    if (!this.#actor) throw new Error('the actor has not been started');
    return this.#actor;
  }

  send(event: ReviewRunEvent): void {
    this.actor.send(event);
  }
  get state() {
    return this.actor.getSnapshot().value;
  }
  get failure() {
    return this.actor.getSnapshot().context.failure;
  }
}

const last = () => new World({ attempt: 3 });
const to = {
  async nothing() {},
  async preparing(world: World) {
    world.begin();
  },
  async reviewing(world: World) {
    await to.preparing(world);
    open(world.prepare).answer({ outcome: 'ready' });
    await flush();
  },
  async drafting(world: World) {
    await to.reviewing(world);
    open(world.review).answer();
    await flush();
  },
  async publishing(world: World) {
    await to.drafting(world);
    open(world.draft).answer({ mustPublish: true });
    await flush();
  },
  async interrupting(world: World) {
    await to.reviewing(world);
    world.send({ type: 'STALLED' });
  },
  async backingOff(world: World) {
    await to.preparing(world);
    open(world.prepare).fail(passing);
    await flush();
  },
  async awaitingWrites(world: World) {
    await to.publishing(world);
    open(world.publish).answer({ outcome: 'pending' });
    await flush();
  },
  async cancelling(world: World) {
    await to.preparing(world);
    world.send({ type: 'CANCEL' });
  },
};

/** Walks of a retryable and of a permanent failure of a step. */
function failing(
  state: 'preparing' | 'reviewing' | 'drafting' | 'publishing',
  step: 'prepare' | 'review' | 'draft' | 'publish',
): Walk<World>[] {
  return [
    {
      takes: `${state} error(${step}) [isRetryable] → backingOff`,
      proves: 'a retryable failure is retried after the requested pause',
      given: to[state],
      when: (world) => open<unknown, unknown>(world[step]).fail({ ...passing, retryAfterMs: 60_000 }),
      shows(t, world) {
        t.match(open(world.returnToQueue).input, { attempt: 1, failure: { ...passing, retryAfterMs: 60_000 } });
        t.same(world.emitted, []);
      },
    },
    {
      takes: `${state} error(${step}) → failed`,
      proves: 'a permanent failure ends the run and is emitted',
      given: to[state],
      when: (world) => open<unknown, unknown>(world[step]).fail(lasting),
      shows(t, world) {
        t.same(world.emitted, [{ type: 'run.failed', failure: lasting }]);
        t.equal(world.watched, 0, 'nothing is left at work');
      },
    },
  ];
}

/** A turn that was ended for its length, well or not. */
function interrupted(as: 'done' | 'error'): Walk<World>[] {
  const end = (world: World) => {
    const question = open(world.interrupt);
    if (as === 'done') question.answer();
    else question.fail(new Error('the agent cannot be reached'));
  };
  return [
    {
      takes: `interrupting ${as}(interrupt) [hasAttemptsLeft] → backingOff`,
      proves: 'an interrupted run is retried while attempts are left',
      given: to.interrupting,
      when: end,
      shows: (t, world) =>
        t.match(open(world.returnToQueue).input.failure, { code: 'agentStalled', isRetryable: true }),
    },
    {
      takes: `interrupting ${as}(interrupt) → failed`,
      proves: 'the last attempt fails with the time limit as reason, not with the interrupt',
      world: last,
      given: to.interrupting,
      when: end,
      shows: (t, world) => t.match(world.emitted, [{ failure: { code: 'agentStalled' } }]),
    },
  ];
}

const cancels = (state: 'preparing' | 'reviewing' | 'drafting' | 'interrupting'): Walk<World> => ({
  takes: `${state} CANCEL → cancelling`,
  proves: 'a cancel interrupts the agent first',
  given: to[state],
  when: (world) => world.send({ type: 'CANCEL' }),
  shows: (t, world) => t.match(open(world.interrupt).input, { runId: 'r', why: 'cancelled' }),
});

const walks: readonly Walk<World>[] = [
  {
    takes: '(any) LEASE.LOST → abandoned',
    proves: 'a lost lease abandons the run in every state',
    given: to.reviewing,
    when: (world) => world.send({ type: 'LEASE.LOST' }),
    shows(t, world) {
      t.same([world.state, world.watched, world.emitted], ['abandoned', 0, []]);
      t.notOk(world.review[0]?.isOpen, 'the step is aborted');
    },
  },
  {
    takes: 'queued always [resumesPublishing] → publishing',
    proves: 'an interrupted publication is completed before a cancel or a limit applies',
    world: () => new World({ resumeAt: 'publishing', attempt: 9, isCancelRequested: true }),
    given: to.nothing,
    when: to.preparing,
    shows: (t, world) => t.match(open(world.publish).input, { runId: 'r', attempt: 9 }),
  },
  {
    takes: 'queued always [isCancelRequested] → cancelling',
    proves: 'a run cancelled in the queue is not started',
    world: () => new World({ resumeAt: 'drafting', isCancelRequested: true }),
    given: to.nothing,
    when: to.preparing,
    shows: (t, world) => t.same([world.prepare, world.draft, world.interrupt.length], [[], [], 1]),
  },
  {
    takes: 'queued always [exceedsAttempts] → failed',
    proves: 'a run beyond its attempts has failed, also if every process crashed in it',
    world: () => new World({ attempt: 4 }),
    given: to.nothing,
    when: to.preparing,
    shows: (t, world) => t.match(world.failure, { code: 'attemptsExhausted' }),
  },
  {
    takes: 'queued always [resumesDrafting] → drafting',
    proves: 'a run with a submitted review continues with its draft',
    world: () => new World({ resumeAt: 'drafting' }),
    given: to.nothing,
    when: to.preparing,
    shows: (t, world) => t.same([world.prepare.length, world.draft.length], [0, 1]),
  },
  {
    takes: 'queued always → preparing',
    proves: 'any other run starts with the preparation',
    given: to.nothing,
    when: to.preparing,
    shows: (t, world) => t.same([world.prepare.length, world.watched], [1, 1]),
  },
  {
    takes: 'preparing done(prepare) [isSuperseded] → superseded',
    proves: 'a run of an older head is superseded',
    given: to.preparing,
    when: (world) => open(world.prepare).answer({ outcome: 'superseded', reason: { code: 'newerHead', message: 'b' } }),
    shows: (t, world) => t.match(world.failure, { code: 'newerHead', isRetryable: false }),
  },
  {
    takes: 'preparing done(prepare) [isUnwanted] → cancelled',
    proves: 'an unwanted run is cancelled with its reason',
    given: to.preparing,
    when: (world) =>
      open(world.prepare).answer({ outcome: 'unwanted', reason: { code: 'pullRequestGone', message: 'gone' } }),
    shows: (t, world) => t.match(world.failure, { code: 'pullRequestGone' }),
  },
  {
    takes: 'preparing done(prepare) [hasNothingToReview] → drafting',
    proves: 'a run without changes to review skips the agent',
    given: to.preparing,
    when: (world) => open(world.prepare).answer({ outcome: 'nothingToReview' }),
    shows: (t, world) => t.same([world.review.length, world.draft.length], [0, 1]),
  },
  {
    takes: 'preparing done(prepare) → reviewing',
    proves: 'a prepared run is reviewed by the agent',
    given: to.preparing,
    when: (world) => open(world.prepare).answer({ outcome: 'ready' }),
    shows: (t, world) => t.equal(world.review.length, 1),
  },
  {
    takes: 'reviewing done(review) → drafting',
    proves: 'the submitted review becomes a draft',
    given: to.reviewing,
    when: (world) => open(world.review).answer(),
    shows: (t, world) => t.equal(world.draft.length, 1),
  },
  {
    takes: 'reviewing STALLED → interrupting',
    proves: 'a stalled agent is interrupted',
    given: to.reviewing,
    when: (world) => world.send({ type: 'STALLED' }),
    shows(t, world) {
      t.match(open(world.interrupt).input, { why: 'tooLong' });
      t.equal(world.failure?.code, 'agentStalled');
    },
  },
  {
    takes: 'reviewing DEADLINE → interrupting',
    proves: 'an agent beyond its deadline is interrupted',
    given: to.reviewing,
    when: (world) => world.send({ type: 'DEADLINE' }),
    shows: (t, world) => t.equal(world.failure?.code, 'runTimedOut'),
  },
  ...interrupted('done'),
  ...interrupted('error'),
  ...(['preparing', 'reviewing', 'interrupting', 'drafting'] as const).map(cancels),
  ...failing('preparing', 'prepare'),
  ...failing('reviewing', 'review'),
  ...failing('drafting', 'draft'),
  ...failing('publishing', 'publish'),
  {
    takes: 'drafting done(draft) [mustPublish] → publishing',
    proves: 'a draft is published where the settings require it',
    given: to.drafting,
    when: (world) => open(world.draft).answer({ mustPublish: true }),
    shows: (t, world) => t.equal(world.publish.length, 1),
  },
  {
    takes: 'drafting done(draft) → done',
    proves: 'any other draft awaits a decision of the user',
    given: to.drafting,
    when: (world) => open(world.draft).answer({ mustPublish: false }),
    shows: (t, world) => t.same([world.publish, world.watched], [[], 0]),
  },
  {
    takes: 'publishing done(publish) → done',
    proves: 'a sent publication completes the run',
    given: to.publishing,
    when: (world) => open(world.publish).answer({ outcome: 'settled' }),
    shows: (t, world) => t.same([world.state, world.emitted], ['done', []]),
  },
  {
    takes: 'publishing done(publish) [isPending] → awaitingWrites',
    proves: 'pending writes release the place of the run without a failure',
    given: to.publishing,
    when: (world) => open(world.publish).answer({ outcome: 'pending' }),
    shows: (t, world) => t.match(open(world.returnToQueue).input, { attempt: 1, failure: null }),
  },
  ...(['awaitingWrites', 'backingOff'] as const).flatMap((state): Walk<World>[] => [
    {
      takes: `${state} done(returnToQueue) → givenBack`,
      proves: 'the run is back in the queue',
      given: to[state],
      when: (world) => open(world.returnToQueue).answer(),
      shows: (t, world) => t.same([world.actor.getSnapshot().status, world.watched], ['done', 0]),
    },
    {
      takes: `${state} error(returnToQueue) → abandoned`,
      proves: 'a run that cannot be returned to the queue is abandoned until its lease expires',
      given: to[state],
      when: (world) => open(world.returnToQueue).fail(new Error('no database')),
      shows: (t, world) => t.same([world.state, world.watched], ['abandoned', 0]),
    },
  ]),
  {
    takes: 'cancelling done(interrupt) → cancelled',
    proves: 'the interrupted run is cancelled',
    given: to.cancelling,
    when: (world) => open(world.interrupt).answer(),
    shows: (t, world) => t.same([world.state, world.failure], ['cancelled', null]),
  },
  {
    takes: 'cancelling error(interrupt) → cancelled',
    proves: 'a run is cancelled also when the agent cannot be interrupted',
    given: to.cancelling,
    when: (world) => open(world.interrupt).fail(new Error('the agent cannot be reached')),
    shows: (t, world) => t.equal(world.state, 'cancelled'),
  },
];

walkEvery(t, reviewRunMachine, () => new World(), walks);

t.test('publishing, awaitingWrites and backingOff ignore CANCEL, STALLED and DEADLINE', async (t) => {
  for (const state of ['publishing', 'awaitingWrites', 'backingOff'] as const) {
    const world = new World();
    await to[state](world);
    for (const type of ['CANCEL', 'STALLED', 'DEADLINE'] as const) world.send({ type });
    t.equal(world.state, state);
    world.actor.stop();
  }
});

t.test('STALLED and DEADLINE are ignored outside of a turn of the agent', async (t) => {
  for (const state of ['preparing', 'drafting'] as const) {
    const world = new World();
    await to[state](world);
    world.send({ type: 'STALLED' });
    world.send({ type: 'DEADLINE' });
    t.equal(world.state, state);
    world.actor.stop();
  }
});

t.test('a retryable failure of the last attempt fails the run', async (t) => {
  const world = last();
  world.begin();
  open(world.prepare).fail(passing);
  await flush();
  t.equal(world.state, 'failed');
  t.match(world.emitted, [{ failure: { code: 'agentUnavailable' } }]);
});

t.test('any thrown value becomes a failure with a code, and is retryable only if it has the flag', async (t) => {
  t.same(reviewFailureOf(new Error('oh')), { code: 'internalError', message: 'oh', isRetryable: false });
  t.same(reviewFailureOf(undefined), { code: 'internalError', message: 'undefined', isRetryable: false });
  t.same(reviewFailureOf({ code: 'x', message: 'y', isRetryable: true, retryAfterMs: 5, token: 'z' }), {
    ...{ code: 'x', message: 'y', isRetryable: true, retryAfterMs: 5 },
  });
});

t.test('a run without provided actors fails', async (t) => {
  const input = { runId: 'r', resumeAt: 'preparing', attempt: 1, maxAttempts: 1, isCancelRequested: false } as const;
  const actor = createActor(reviewRunMachine, { input }).start();
  await flush();
  t.match(actor.getSnapshot(), { value: 'failed', context: { failure: { message: 'not provided' } } });
});
