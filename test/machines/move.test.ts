import t from 'tap';
import { type ActorRefFrom, createActor, SimulatedClock } from 'xstate';
import { type MoveFacts, MoveFailure, type MoveMachineInput, type MoveWork, moveMachine } from '../../machines/move.ts';
import { nodeId } from '../../src/inspect/names.ts';
import { asked, flush, type Question, transitionLog, type Walk, walkEvery } from './harness.ts';

type Step = 'ask' | 'prepare' | 'offer' | 'send' | 'commit' | 'finish' | 'withdraw' | 'release';

/** A move whose places the test plays. */
class World {
  readonly clock = new SimulatedClock();
  readonly taken: string[] = [];
  readonly asked: Step[] = [];
  readonly questions: Record<Step, Question<MoveFacts, MoveWork>[]>;
  readonly actor: ActorRefFrom<typeof moveMachine>;

  constructor(earlier: Partial<MoveMachineInput> = {}) {
    this.questions = { ask: [], prepare: [], offer: [], send: [], commit: [], finish: [], withdraw: [], release: [] };
    const place = (step: Step) =>
      asked<MoveFacts, MoveWork>(() => {
        this.asked.push(step);
        return this.questions[step];
      });
    this.actor = createActor(
      moveMachine.provide({
        actors: {
          ...{ ask: place('ask'), prepare: place('prepare'), offer: place('offer'), send: place('send') },
          ...{ commit: place('commit'), finish: place('finish') },
          ...{ withdraw: place('withdraw'), release: place('release') },
        },
      }),
      {
        clock: this.clock,
        input: {
          ...{ moveId: 'm', seed: 1, isOffered: false, isCommitting: false, isCancelled: false, isRequested: false },
          reason: null,
          ...earlier,
        },
        inspect: transitionLog(this.taken, (actor) => actor === this.actor),
      },
    );
    this.actor.start();
  }

  cancel(): void {
    this.actor.send({ type: 'MOVE.CANCEL' });
  }

  get #question(): Question<MoveFacts, MoveWork> | undefined {
    return this.questions[this.asked.at(-1) ?? 'ask'].at(-1);
  }

  /** Whether the present step has not been stopped. */
  get isStepOpen(): boolean {
    return this.#question?.isOpen === true;
  }

  /** Answers the present step. */
  async answer(facts: MoveFacts = {}): Promise<void> {
    this.#question?.answer(facts);
    await flush();
  }

  async fail(kind: MoveFailure['kind'], reason: string = kind): Promise<void> {
    this.#question?.fail(new MoveFailure(kind, reason));
    await flush();
  }

  get state(): string {
    return this.actor
      .getSnapshot()
      ._nodes.filter(({ type }) => type === 'atomic' || type === 'final')
      .map(nodeId)
      .join(', ');
  }

  get context() {
    return this.actor.getSnapshot().context;
  }
}

/** Leads a new move to a state. */
const to = {
  async asking(_: World) {},
  async preparing(world: World) {
    await world.answer({ source: 'none', target: 'none' });
  },
  async offering(world: World) {
    await to.preparing(world);
    await world.answer();
  },
  async sending(world: World) {
    await to.offering(world);
    await world.answer();
  },
  async committing(world: World) {
    await to.sending(world);
    await world.answer();
  },
  async finishing(world: World) {
    await to.committing(world);
    await world.answer();
  },
  async withdrawing(world: World) {
    await to.sending(world);
    world.cancel();
  },
  async releasing(world: World) {
    await to.preparing(world);
    world.cancel();
  },
  async waiting(world: World) {
    await to.committing(world);
    await world.fail('lost');
  },
};

type State = keyof typeof to;
const working: readonly State[] = [
  ...(['asking', 'preparing', 'offering', 'sending', 'committing', 'finishing', 'withdrawing', 'releasing'] as const),
];

/** States in which the target may have the parts. */
const offered: ReadonlySet<State> = new Set([
  'offering',
  'sending',
  'committing',
  'finishing',
  'withdrawing',
  'waiting',
]);
const backFrom = (state: State): string => (offered.has(state) ? 'cancelling.withdrawing' : 'cancelling.releasing');

const walks: Walk<World>[] = [
  {
    takes: 'cancellable.asking done(ask) → cancellable.preparing',
    proves: 'a conversation that is not at the target is prepared',
    given: to.asking,
    when: (world) => world.answer({ source: 'none', target: 'none' }),
    shows: (t, world) => t.same([world.state, world.asked], ['cancellable.preparing', ['ask', 'prepare']]),
  },
  {
    takes: 'cancellable.asking done(ask) [hasArrived] → finishing',
    proves: 'a conversation that has arrived is finished, never sent again',
    given: to.asking,
    when: (world) => world.answer({ source: 'leaving', target: 'arrived' }),
    shows: (t, world) => t.same([world.state, world.asked], ['finishing', ['ask', 'finish']]),
  },
  {
    takes: 'cancellable.asking done(ask) [isCancelled] → cancelling',
    proves: 'a move that goes back asks both places after a loss, and continues to go back',
    given: async (world) => {
      await to.withdrawing(world);
      await world.fail('lost');
      world.clock.increment(world.context.delayMs);
    },
    when: (world) => world.answer({ source: 'leaving', target: 'receiving' }),
    shows: (t, world) => t.same([world.state, world.context.failures], ['cancelling.withdrawing', 0]),
  },
  {
    takes: 'cancellable.preparing done(prepare) → cancellable.offering',
    proves: 'from the offer on, the target may have the parts',
    given: to.preparing,
    when: (world) => world.answer(),
    shows: (t, world) => t.same([world.state, world.context.isOffered], ['cancellable.offering', true]),
  },
  {
    takes: 'cancellable.offering done(offer) → cancellable.sending',
    proves: 'parts are sent to a target that takes them',
    given: to.offering,
    when: (world) => world.answer(),
    shows: (t, world) => t.equal(world.state, 'cancellable.sending'),
  },
  {
    takes: 'cancellable.sending done(send) → committing',
    proves: 'a complete target commits',
    given: to.sending,
    when: (world) => world.answer(),
    shows: (t, world) => t.same([world.state, world.context.isCommitting], ['committing', true]),
  },
  {
    takes: 'committing done(commit) → finishing',
    proves: 'after the commit the source is marked',
    given: to.committing,
    when: (world) => world.answer(),
    shows: (t, world) => t.equal(world.state, 'finishing'),
  },
  {
    takes: 'finishing done(finish) → moved',
    proves: 'the move ends with the marked source',
    given: to.finishing,
    when: (world) => world.answer(),
    shows: (t, world) => t.same([world.state, world.asked.includes('release')], ['moved', false]),
  },
  {
    takes: 'finishing error(finish) [isRefused] → moved',
    proves: 'a source that no longer has the conversation ends the move',
    given: to.finishing,
    when: (world) => world.fail('refused'),
    shows: (t, world) => t.equal(world.state, 'moved'),
  },
  {
    takes: '(any) error(*) [isRefused] → cancelling',
    proves: 'a refusal up to the commit goes back and keeps the reason',
    given: to.committing,
    when: (world) => world.fail('refused', 'no'),
    shows: (t, world) => {
      t.equal(world.state, 'cancelling.withdrawing');
      t.same([world.context.reason, world.context.isCancelled], ['no', true]);
    },
  },
  {
    takes: '(any) error(*) → cancellable.waiting',
    proves: 'a place that does not answer the commit releases nothing',
    given: to.committing,
    when: (world) => world.fail('lost', 'away'),
    shows: (t, world) => {
      t.same([world.state, world.context.reason], ['cancellable.waiting', 'away']);
      t.notOk(world.asked.includes('release'));
    },
  },
  {
    takes: 'cancellable MOVE.CANCEL → cancelling',
    proves: 'a request to cancel stops the copying at once',
    given: to.sending,
    when: (world) => world.cancel(),
    shows: (t, world) => {
      t.equal(world.state, 'cancelling.withdrawing');
      t.notOk(world.questions.send[0]?.isOpen, 'the signal of the step is aborted');
    },
  },
  {
    takes: 'cancelling.choosing always [isOffered] → cancelling.withdrawing',
    proves: 'a target that may have the parts forgets them before the source is released',
    given: to.sending,
    when: (world) => world.fail('refused'),
    shows: (t, world) => t.same([world.state, world.asked.includes('release')], ['cancelling.withdrawing', false]),
  },
  {
    takes: 'cancelling.choosing always → cancelling.releasing',
    proves: 'without an offer only the source is released',
    given: to.preparing,
    when: (world) => world.fail('refused'),
    shows: (t, world) => t.same([world.state, world.asked.at(-1)], ['cancelling.releasing', 'release']),
  },
  {
    takes: 'cancelling.withdrawing done(withdraw) → cancelling.releasing',
    proves: 'the source is released after the target has confirmed',
    given: to.withdrawing,
    when: (world) => world.answer({ target: 'none' }),
    shows: (t, world) => t.equal(world.state, 'cancelling.releasing'),
  },
  {
    takes: 'cancelling.withdrawing done(withdraw) [hasArrived] → finishing',
    proves: 'a conversation that has arrived stays at the target, and the source is not released',
    given: to.withdrawing,
    when: (world) => world.answer({ target: 'arrived' }),
    shows: (t, world) => t.same([world.state, world.asked.includes('release')], ['finishing', false]),
  },
  {
    takes: 'cancelling.withdrawing error(withdraw) [mayRelease] → cancelling.releasing',
    proves: 'a target that is no longer known, and was not asked for its commit, does not lock the source',
    given: to.withdrawing,
    when: (world) => world.fail('refused'),
    shows: (t, world) => t.equal(world.state, 'cancelling.releasing'),
  },
  {
    takes: 'cancelling.withdrawing error(withdraw) → cancellable.waiting',
    proves: 'a target that may have the conversation, and is no longer known, leaves the source locked',
    given: async (world) => {
      await to.committing(world);
      await world.fail('refused', 'no');
    },
    when: (world) => world.fail('refused', 'no host build'),
    shows: (t, world) => {
      t.same([world.state, world.context.reason], ['cancellable.waiting', 'no']);
      t.notOk(world.asked.includes('release'));
    },
  },
  {
    takes: 'cancelling.releasing done(release) [isCommitting] → unconfirmed',
    proves: 'the user can take a conversation back from a target that no longer exists',
    given: async (world) => {
      await to.waiting(world);
      world.cancel();
      await world.fail('refused', 'There is no host build.');
    },
    when: (world) => world.answer(),
    shows: (t, world) => {
      t.equal(world.state, 'unconfirmed');
      t.match(world.context.reason, /user cancelled/);
    },
  },
  {
    takes: 'cancelling.releasing done(release) → cancelled',
    proves: 'the released source ends the move',
    given: to.releasing,
    when: (world) => world.answer(),
    shows: (t, world) => {
      t.equal(world.state, 'cancelled');
      t.match(world.context.reason, /user/);
    },
  },
  {
    takes: 'cancelling.releasing error(release) [isRefused] → cancelled',
    proves: 'a source that no longer has the conversation ends the move',
    given: to.releasing,
    when: (world) => world.fail('refused'),
    shows: (t, world) => t.equal(world.state, 'cancelled'),
  },
  {
    takes: 'cancellable.waiting after(movePause) → cancellable.asking',
    proves: 'both places are asked again after a pause',
    given: to.waiting,
    when: (world) => world.clock.increment(world.context.delayMs),
    shows: (t, world) => t.same([world.state, world.asked.at(-1)], ['cancellable.asking', 'ask']),
  },
];

walkEvery(t, moveMachine, () => new World(), walks);

for (const state of working) {
  t.test(`a place that does not answer while ${state} releases nothing`, async (t) => {
    const world = new World();
    await to[state](world);
    const before = world.asked.length;
    await world.fail('lost');
    t.same([world.state, world.asked.length], ['cancellable.waiting', before]);
  });
}

for (const state of ['asking', 'preparing', 'offering', 'sending', 'waiting'] as const) {
  t.test(`a request to cancel while ${state} stops the step and goes back`, async (t) => {
    const world = new World();
    await to[state](world);
    const step = world.questions[world.asked.at(-1) ?? 'ask'].at(-1);
    world.cancel();
    t.equal(world.state, backFrom(state));
    t.notOk(step?.isOpen);
    t.match(world.context.reason, /user/);
  });
}

for (const state of ['committing', 'finishing', 'withdrawing', 'releasing'] as const) {
  t.test(`a request to cancel while ${state} changes nothing`, async (t) => {
    const world = new World();
    await to[state](world);
    const { state: before, context } = world;
    world.cancel();
    t.same([world.state, world.context], [before, context]);
    t.ok(world.isStepOpen);
  });
}

t.test('under the next Hub, a cancelled move goes back and an offered one continues', async (t) => {
  const cancelled = new World({ isOffered: true, isCancelled: true });
  await cancelled.answer({ source: 'leaving', target: 'receiving' });
  t.equal(cancelled.state, 'cancelling.withdrawing');
  const offered = new World({ isOffered: true });
  await offered.answer({ source: 'leaving', target: 'receiving' });
  t.equal(offered.state, 'cancellable.preparing');
});

t.test('pauses grow to half a minute, and an answer resets them', async (t) => {
  const world = new World({ isOffered: true });
  const pauses: number[] = [];
  for (let attempt = 0; attempt < 12; attempt += 1) {
    await world.fail('lost');
    pauses.push(world.context.delayMs);
    world.clock.increment(world.context.delayMs);
  }
  t.ok((pauses[0] ?? 0) <= 500 && pauses.every((pause) => pause <= 30_000), pauses.join());
  t.ok((pauses.at(-1) ?? 0) >= 15_000, pauses.join());
  await world.answer({ source: 'leaving', target: 'receiving' });
  t.same([world.context.failures, world.context.reason], [0, null]);
});
