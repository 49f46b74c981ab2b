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

type GiveBack = ReviewRunKey & { readonly failure: ReviewFailure | null };
type Interrupt = ReviewRunKey & { readonly why: 'cancelled' | 'tooLong' };

/** One run whose steps end as the test says. */
class World {
  readonly taken: string[] = [];
  readonly emitted: ReviewRunEmitted[] = [];
  readonly prepare: Question<Prepared, ReviewRunKey>[] = [];
  readonly review: Question<void, ReviewRunKey>[] = [];
  readonly draft: Question<Drafted, ReviewRunKey>[] = [];
  readonly publish: Question<Published, ReviewRunKey>[] = [];
  readonly interrupt: Question<void, Interrupt>[] = [];
  readonly giveBack: Question<void, GiveBack>[] = [];
  readonly clock = new SimulatedClock();
  watched = 0;
  readonly #input: Partial<ReviewRunInput>;
  #actor: Actor<typeof reviewRunMachine> | undefined;

  constructor(input: Partial<ReviewRunInput> = {}) {
    this.#input = input;
  }

  /** Decides at once where it goes on, so a walk begins it. */
  begin() {
    const machine = reviewRunMachine.provide({
      actors: {
        prepare: asked(this.prepare),
        review: asked(this.review),
        draft: asked(this.draft),
        publish: asked(this.publish),
        interrupt: asked(this.interrupt),
        giveBack: asked(this.giveBack),
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
    if (!this.#actor) throw new Error('it has not begun');
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

/** How a step fails, in a way that may pass and in one that will not. */
function failing(
  state: 'preparing' | 'reviewing' | 'drafting' | 'publishing',
  step: 'prepare' | 'review' | 'draft' | 'publish',
): Walk<World>[] {
  return [
    {
      takes: `${state} error(${step}) [isRetryable] → backingOff`,
      proves: 'what may pass is tried again, after the pause that was asked for',
      given: to[state],
      when: (world) => open<unknown, unknown>(world[step]).fail({ ...passing, retryAfterMs: 60_000 }),
      shows(t, world) {
        t.match(open(world.giveBack).input, { attempt: 1, failure: { ...passing, retryAfterMs: 60_000 } });
        t.same(world.emitted, []);
      },
    },
    {
      takes: `${state} error(${step}) → failed`,
      proves: 'what will not pass is told',
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
    else question.fail(new Error('nobody is there'));
  };
  return [
    {
      takes: `interrupting ${as}(interrupt) [hasAttemptsLeft] → backingOff`,
      proves: 'it is tried again',
      given: to.interrupting,
      when: end,
      shows: (t, world) => t.match(open(world.giveBack).input.failure, { code: 'agentStalled', isRetryable: true }),
    },
    {
      takes: `interrupting ${as}(interrupt) → failed`,
      proves: 'after the last attempt it has failed, for its length and not for the way it was ended',
      world: last,
      given: to.interrupting,
      when: end,
      shows: (t, world) => t.match(world.emitted, [{ failure: { code: 'agentStalled' } }]),
    },
  ];
}

const cancels = (state: 'preparing' | 'reviewing' | 'drafting' | 'interrupting'): Walk<World> => ({
  takes: `${state} CANCEL → cancelling`,
  proves: 'the agent is stopped first',
  given: to[state],
  when: (world) => world.send({ type: 'CANCEL' }),
  shows: (t, world) => t.match(open(world.interrupt).input, { runId: 'r', why: 'cancelled' }),
});

const walks: readonly Walk<World>[] = [
  {
    takes: '(any) LEASE.LOST → abandoned',
    proves: 'nothing goes on without the lease',
    given: to.reviewing,
    when: (world) => world.send({ type: 'LEASE.LOST' }),
    shows(t, world) {
      t.same([world.state, world.watched, world.emitted], ['abandoned', 0, []]);
      t.notOk(world.review[0]?.isOpen, 'the step is told to stop');
    },
  },
  {
    takes: 'queued always [resumesPublishing] → publishing',
    proves: 'what was being told is told to its end, whatever else somebody wants',
    world: () => new World({ resumeAt: 'publishing', attempt: 9, isCancelRequested: true }),
    given: to.nothing,
    when: to.preparing,
    shows: (t, world) => t.match(open(world.publish).input, { runId: 'r', attempt: 9 }),
  },
  {
    takes: 'queued always [isCancelRequested] → cancelling',
    proves: 'what was cancelled while nobody worked on it does not begin',
    world: () => new World({ resumeAt: 'drafting', isCancelRequested: true }),
    given: to.nothing,
    when: to.preparing,
    shows: (t, world) => t.same([world.prepare, world.draft, world.interrupt.length], [[], [], 1]),
  },
  {
    takes: 'queued always [exceedsAttempts] → failed',
    proves: 'a review that ends every process that makes it is not made for ever',
    world: () => new World({ attempt: 4 }),
    given: to.nothing,
    when: to.preparing,
    shows: (t, world) => t.match(world.failure, { code: 'attemptsExhausted' }),
  },
  {
    takes: 'queued always [resumesDrafting] → drafting',
    proves: 'what was handed in is not asked for again',
    world: () => new World({ resumeAt: 'drafting' }),
    given: to.nothing,
    when: to.preparing,
    shows: (t, world) => t.same([world.prepare.length, world.draft.length], [0, 1]),
  },
  {
    takes: 'queued always → preparing',
    proves: 'anything else begins at the beginning',
    given: to.nothing,
    when: to.preparing,
    shows: (t, world) => t.same([world.prepare.length, world.watched], [1, 1]),
  },
  {
    takes: 'preparing done(prepare) [isSuperseded] → superseded',
    proves: 'it gives way to a newer head, and says so',
    given: to.preparing,
    when: (world) => open(world.prepare).answer({ outcome: 'superseded', reason: { code: 'newerHead', message: 'b' } }),
    shows: (t, world) => t.match(world.failure, { code: 'newerHead', isRetryable: false }),
  },
  {
    takes: 'preparing done(prepare) [isUnwanted] → cancelled',
    proves: 'what nobody wants any more ends, and says why',
    given: to.preparing,
    when: (world) =>
      open(world.prepare).answer({ outcome: 'unwanted', reason: { code: 'pullRequestGone', message: 'gone' } }),
    shows: (t, world) => t.match(world.failure, { code: 'pullRequestGone' }),
  },
  {
    takes: 'preparing done(prepare) [hasNothingToReview] → drafting',
    proves: 'the agent is not bothered for nothing',
    given: to.preparing,
    when: (world) => open(world.prepare).answer({ outcome: 'nothingToReview' }),
    shows: (t, world) => t.same([world.review.length, world.draft.length], [0, 1]),
  },
  {
    takes: 'preparing done(prepare) → reviewing',
    proves: 'the agent is asked',
    given: to.preparing,
    when: (world) => open(world.prepare).answer({ outcome: 'ready' }),
    shows: (t, world) => t.equal(world.review.length, 1),
  },
  {
    takes: 'reviewing done(review) → drafting',
    proves: 'what it handed in becomes a draft',
    given: to.reviewing,
    when: (world) => open(world.review).answer(),
    shows: (t, world) => t.equal(world.draft.length, 1),
  },
  {
    takes: 'reviewing STALLED → interrupting',
    proves: 'a silent agent is ended',
    given: to.reviewing,
    when: (world) => world.send({ type: 'STALLED' }),
    shows(t, world) {
      t.match(open(world.interrupt).input, { why: 'tooLong' });
      t.equal(world.failure?.code, 'agentStalled');
    },
  },
  {
    takes: 'reviewing DEADLINE → interrupting',
    proves: 'one that goes on for ever likewise',
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
    proves: 'where that is wanted the draft is told',
    given: to.drafting,
    when: (world) => open(world.draft).answer({ mustPublish: true }),
    shows: (t, world) => t.equal(world.publish.length, 1),
  },
  {
    takes: 'drafting done(draft) → done',
    proves: 'else it waits for a person',
    given: to.drafting,
    when: (world) => open(world.draft).answer({ mustPublish: false }),
    shows: (t, world) => t.same([world.publish, world.watched], [[], 0]),
  },
  {
    takes: 'publishing done(publish) → done',
    proves: 'everything was sent',
    given: to.publishing,
    when: (world) => open(world.publish).answer({ outcome: 'settled' }),
    shows: (t, world) => t.same([world.state, world.emitted], ['done', []]),
  },
  {
    takes: 'publishing done(publish) [isPending] → awaitingWrites',
    proves: 'it makes room while the source cannot be reached, which is no failure',
    given: to.publishing,
    when: (world) => open(world.publish).answer({ outcome: 'pending' }),
    shows: (t, world) => t.match(open(world.giveBack).input, { attempt: 1, failure: null }),
  },
  ...(['awaitingWrites', 'backingOff'] as const).flatMap((state): Walk<World>[] => [
    {
      takes: `${state} done(giveBack) → givenBack`,
      proves: 'the queue has it',
      given: to[state],
      when: (world) => open(world.giveBack).answer(),
      shows: (t, world) => t.same([world.actor.getSnapshot().status, world.watched], ['done', 0]),
    },
    {
      takes: `${state} error(giveBack) → abandoned`,
      proves: 'what cannot be given back comes back when its lease has run out',
      given: to[state],
      when: (world) => open(world.giveBack).fail(new Error('no database')),
      shows: (t, world) => t.same([world.state, world.watched], ['abandoned', 0]),
    },
  ]),
  {
    takes: 'cancelling done(interrupt) → cancelled',
    proves: 'it has ended',
    given: to.cancelling,
    when: (world) => open(world.interrupt).answer(),
    shows: (t, world) => t.same([world.state, world.failure], ['cancelled', null]),
  },
  {
    takes: 'cancelling error(interrupt) → cancelled',
    proves: 'also when the agent cannot be reached: nothing of its answer is taken',
    given: to.cancelling,
    when: (world) => open(world.interrupt).fail(new Error('nobody is there')),
    shows: (t, world) => t.equal(world.state, 'cancelled'),
  },
];

walkEvery(t, reviewRunMachine, () => new World(), walks);

t.test('while it is told, and while it is given back, nobody can stop it half way', async (t) => {
  for (const state of ['publishing', 'awaitingWrites', 'backingOff'] as const) {
    const world = new World();
    await to[state](world);
    for (const type of ['CANCEL', 'STALLED', 'DEADLINE'] as const) world.send({ type });
    t.equal(world.state, state);
    world.actor.stop();
  }
});

t.test('only a turn of the agent can take too long', async (t) => {
  for (const state of ['preparing', 'drafting'] as const) {
    const world = new World();
    await to[state](world);
    world.send({ type: 'STALLED' });
    world.send({ type: 'DEADLINE' });
    t.equal(world.state, state);
    world.actor.stop();
  }
});

t.test('the last attempt is the last', async (t) => {
  const world = last();
  world.begin();
  open(world.prepare).fail(passing);
  await flush();
  t.equal(world.state, 'failed');
  t.match(world.emitted, [{ failure: { code: 'agentUnavailable' } }]);
});

t.test('whatever is thrown is a failure with a code; what says nothing of itself is not tried again', async (t) => {
  t.same(reviewFailureOf(new Error('oh')), { code: 'internalError', message: 'oh', isRetryable: false });
  t.same(reviewFailureOf(undefined), { code: 'internalError', message: 'undefined', isRetryable: false });
  t.same(reviewFailureOf({ code: 'x', message: 'y', isRetryable: true, retryAfterMs: 5, token: 'z' }), {
    ...{ code: 'x', message: 'y', isRetryable: true, retryAfterMs: 5 },
  });
});

t.test('nothing happens when nothing is provided', async (t) => {
  const input = { runId: 'r', resumeAt: 'preparing', attempt: 1, maxAttempts: 1, isCancelRequested: false } as const;
  const actor = createActor(reviewRunMachine, { input }).start();
  await flush();
  t.match(actor.getSnapshot(), { value: 'failed', context: { failure: { message: 'not provided' } } });
});
