import t from 'tap';
import { type ActorRefFrom, createActor, SimulatedClock } from 'xstate';
import { type MoveEvent, type MoveFacts, type MoveOutcome, moveMachine } from '../../machines/move.ts';
import { nodeId } from '../../src/inspect/names.ts';
import { asked, flush, type Question, transitionLog, type Walk, walkEvery } from './harness.ts';

const steps = ['ask', 'prepare', 'offer', 'send', 'commit', 'finish', 'withdraw', 'release'] as const;
type Step = (typeof steps)[number];

/** A move whose places the test plays. */
class World {
  readonly clock = new SimulatedClock();
  readonly taken: string[] = [];
  readonly asked: Step[] = [];
  readonly questions: Record<Step, Question<MoveOutcome, { readonly moveId: string }>[]>;
  readonly actor: ActorRefFrom<typeof moveMachine>;

  constructor(earlier: { readonly isOffered?: boolean; readonly isCancelled?: boolean } = {}) {
    this.questions = { ask: [], prepare: [], offer: [], send: [], commit: [], finish: [], withdraw: [], release: [] };
    const place = (step: Step) =>
      asked<MoveOutcome, { readonly moveId: string }>(() => {
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
        input: { moveId: 'm', seed: 1, isOffered: false, isCancelled: false, reason: null, ...earlier },
        inspect: transitionLog(this.taken, (actor) => actor === this.actor),
      },
    );
    this.actor.start();
  }

  send(type: MoveEvent['type']): void {
    this.actor.send({ type });
  }

  /** Answers the present step. */
  async answer(outcome: MoveOutcome): Promise<void> {
    const step = this.asked.at(-1) ?? 'ask';
    this.questions[step].at(-1)?.answer(outcome);
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

const done = (target: MoveFacts['target'] = 'none', source: MoveFacts['source'] = 'leaving'): MoveOutcome => ({
  kind: 'done',
  facts: { source, target },
});
const fine: MoveOutcome = { kind: 'done' };
const refused: MoveOutcome = { kind: 'refused', reason: 'no' };
const lost: MoveOutcome = { kind: 'lost', reason: 'away' };

const to = {
  async asking(_: World) {},
  async preparing(world: World) {
    await world.answer(done('none', 'none'));
  },
  async offering(world: World) {
    await to.preparing(world);
    await world.answer(fine);
  },
  async sending(world: World) {
    await to.offering(world);
    await world.answer(fine);
  },
  async committing(world: World) {
    await to.sending(world);
    await world.answer(fine);
  },
  async finishing(world: World) {
    await to.committing(world);
    await world.answer(fine);
  },
  async withdrawing(world: World) {
    await to.sending(world);
    await world.answer(refused);
  },
  async releasing(world: World) {
    await to.preparing(world);
    await world.answer(refused);
  },
  async waiting(world: World) {
    await to.committing(world);
    await world.answer(lost);
  },
};

/** A place that does not answer: nothing is released, and both places are asked after a pause. */
const silent = (state: Exclude<keyof typeof to, 'waiting'>, node: string, step: Step): Walk<World> => ({
  takes: `${node} done(${step}) [isLost] → waiting`,
  proves: `a place that does not answer while ${state} leaves everything as it is`,
  given: to[state],
  when: (world) => world.answer(lost),
  shows: (t, world) => {
    t.equal(world.state, 'waiting');
    t.notOk(world.asked.includes('release') && state !== 'releasing');
  },
});

/** A refusal before the commit. */
const back = (state: 'asking' | 'preparing' | 'offering' | 'sending', step: Step): Walk<World> => ({
  takes: `${state} done(${step}) [mustGoBack] → cancelling`,
  proves: `a refusal while ${state} goes back and keeps the reason`,
  given: to[state],
  when: (world) => world.answer(refused),
  shows: (t, world) => {
    const isOffered = state === 'offering' || state === 'sending';
    t.equal(world.state, isOffered ? 'cancelling.withdrawing' : 'cancelling.releasing');
    t.same([world.context.reason, world.context.isCancelled], ['no', true]);
  },
});

/** The user's request during a step: it is followed when the step has ended. */
const cancelIn = (state: 'asking' | 'preparing' | 'offering'): Walk<World> => ({
  takes: `${state} MOVE.CANCEL → ∅`,
  proves: `a request to cancel while ${state} is followed after the step`,
  given: to[state],
  when: async (world) => {
    world.send('MOVE.CANCEL');
    t.equal(world.state, state);
    await world.answer(fine);
  },
  shows: (t, world) => {
    t.match(world.state, /^cancelling\./);
    t.match(world.context.reason, /user/);
  },
});

const walks: Walk<World>[] = [
  {
    takes: 'asking done(ask) → preparing',
    proves: 'a conversation that is not at the target is prepared',
    given: to.asking,
    when: (world) => world.answer(done('none', 'none')),
    shows: (t, world) => t.same([world.state, world.asked], ['preparing', ['ask', 'prepare']]),
  },
  {
    takes: 'asking done(ask) [hasArrived] → finishing',
    proves: 'a conversation that has arrived is finished, never sent again',
    given: to.asking,
    when: (world) => world.answer(done('arrived')),
    shows: (t, world) => t.same([world.state, world.asked], ['finishing', ['ask', 'finish']]),
  },
  {
    takes: 'preparing done(prepare) → offering',
    proves: 'from the offer on, the target may have the parts',
    given: to.preparing,
    when: (world) => world.answer(fine),
    shows: (t, world) => t.same([world.state, world.context.isOffered], ['offering', true]),
  },
  {
    takes: 'offering done(offer) → sending',
    proves: 'parts are sent to a target that takes them',
    given: to.offering,
    when: (world) => world.answer(fine),
    shows: (t, world) => t.equal(world.state, 'sending'),
  },
  {
    takes: 'sending done(send) → committing',
    proves: 'a complete target commits',
    given: to.sending,
    when: (world) => world.answer(fine),
    shows: (t, world) => t.equal(world.state, 'committing'),
  },
  {
    takes: 'committing done(commit) → finishing',
    proves: 'after the commit the source is marked',
    given: to.committing,
    when: (world) => world.answer(fine),
    shows: (t, world) => t.equal(world.state, 'finishing'),
  },
  {
    takes: 'committing done(commit) [isRefused] → cancelling',
    proves: 'conflicts at the target go back',
    given: to.committing,
    when: (world) => world.answer(refused),
    shows: (t, world) => t.equal(world.state, 'cancelling.withdrawing'),
  },
  {
    takes: 'finishing done(finish) → moved',
    proves: 'the move ends with the marked source',
    given: to.finishing,
    when: (world) => world.answer(fine),
    shows: (t, world) => t.same([world.state, world.asked.includes('release')], ['moved', false]),
  },
  ...(['asking', 'preparing', 'offering', 'sending'] as const).map((state, at) => back(state, steps[at] ?? 'ask')),
  ...(['asking', 'preparing', 'offering', 'sending', 'committing', 'finishing'] as const).map((state, at) =>
    silent(state, state, steps[at] ?? 'ask'),
  ),
  silent('withdrawing', 'cancelling.withdrawing', 'withdraw'),
  silent('releasing', 'cancelling.releasing', 'release'),
  cancelIn('asking'),
  cancelIn('preparing'),
  cancelIn('offering'),
  {
    takes: 'sending MOVE.CANCEL → cancelling',
    proves: 'a request to cancel ends the copying at once',
    given: to.sending,
    when: (world) => world.send('MOVE.CANCEL'),
    shows: (t, world) => t.equal(world.state, 'cancelling.withdrawing'),
  },
  {
    takes: 'cancelling.choosing always [isOffered] → cancelling.withdrawing',
    proves: 'a target that may have the parts forgets them before the source is released',
    given: to.sending,
    when: (world) => world.answer(refused),
    shows: (t, world) => t.same([world.state, world.asked.includes('release')], ['cancelling.withdrawing', false]),
  },
  {
    takes: 'cancelling.choosing always → cancelling.releasing',
    proves: 'without an offer only the source is released',
    given: to.preparing,
    when: (world) => world.answer(refused),
    shows: (t, world) => t.same([world.state, world.asked.at(-1)], ['cancelling.releasing', 'release']),
  },
  {
    takes: 'cancelling.withdrawing done(withdraw) → cancelling.releasing',
    proves: 'the source is released after the target has confirmed',
    given: to.withdrawing,
    when: (world) => world.answer(done('none')),
    shows: (t, world) => t.equal(world.state, 'cancelling.releasing'),
  },
  {
    takes: 'cancelling.withdrawing done(withdraw) [hasArrived] → finishing',
    proves: 'a conversation that has arrived stays at the target, and the source is not released',
    given: to.withdrawing,
    when: (world) => world.answer(done('arrived')),
    shows: (t, world) => t.same([world.state, world.asked.includes('release')], ['finishing', false]),
  },
  {
    takes: 'cancelling.releasing done(release) → cancelled',
    proves: 'the released source ends the move',
    given: to.releasing,
    when: (world) => world.answer(fine),
    shows: (t, world) => t.same([world.state, world.context.reason], ['cancelled', 'no']),
  },
  {
    takes: 'waiting after(movePause) → asking',
    proves: 'both places are asked again after a pause',
    given: to.waiting,
    when: (world) => world.clock.increment(world.context.delayMs),
    shows: (t, world) => t.same([world.state, world.asked.at(-1)], ['asking', 'ask']),
  },
  {
    takes: 'waiting MOVE.RETRY → asking',
    proves: 'the user can ask for an attempt at once',
    given: to.waiting,
    when: (world) => world.send('MOVE.RETRY'),
    shows: (t, world) => t.equal(world.state, 'asking'),
  },
  {
    takes: 'waiting MOVE.CANCEL → asking',
    proves: 'a cancelled move asks both places before it goes back',
    given: to.waiting,
    when: (world) => world.send('MOVE.CANCEL'),
    shows: (t, world) => t.same([world.state, world.context.isCancelled], ['asking', true]),
  },
];

walkEvery(t, moveMachine, () => new World(), walks);

t.test('under the next Hub, a cancelled move goes back and an offered one continues', async (t) => {
  const cancelled = new World({ isOffered: true, isCancelled: true });
  await cancelled.answer(done('receiving'));
  t.equal(cancelled.state, 'cancelling.withdrawing');
  const offered = new World({ isOffered: true });
  await offered.answer(done('receiving'));
  t.equal(offered.state, 'preparing');
});

t.test('pauses grow to half a minute, and an answer resets them', async (t) => {
  const world = new World({ isOffered: true });
  const pauses: number[] = [];
  for (let attempt = 0; attempt < 12; attempt += 1) {
    await world.answer(lost);
    pauses.push(world.context.delayMs);
    world.clock.increment(world.context.delayMs);
  }
  t.ok((pauses[0] ?? 0) <= 500 && pauses.every((pause) => pause <= 30_000), pauses.join());
  t.ok((pauses.at(-1) ?? 0) >= 15_000, pauses.join());
  await world.answer(done('receiving'));
  t.same([world.context.failures, world.context.reason], [0, null]);
});
