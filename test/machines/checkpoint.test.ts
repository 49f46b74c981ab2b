import fc from 'fast-check';
import t from 'tap';
import { type Actor, createActor, SimulatedClock } from 'xstate';
import {
  type CheckpointEmitted,
  type CheckpointRequestKind,
  type CheckpointWork,
  checkpointMachine,
  type PlannedRestore,
} from '../../machines/index.ts';
import { asked, flush, open, type Question, transitionLog, type Walk, walkEvery } from './harness.ts';

/** The machine with work that the test answers. */
class World {
  readonly taken: string[] = [];
  readonly emitted: CheckpointEmitted[] = [];
  readonly recover: Question<void, CheckpointWork>[] = [];
  readonly markDeath: Question<void, CheckpointWork>[] = [];
  readonly mark: Question<void, CheckpointWork>[] = [];
  readonly prune: Question<void, CheckpointWork>[] = [];
  readonly plan: Question<PlannedRestore, CheckpointWork>[] = [];
  readonly apply: Question<void, CheckpointWork>[] = [];
  readonly conclude: Question<void, CheckpointWork>[] = [];
  readonly serve: Question<void, CheckpointWork>[] = [];
  readonly release: Question<void, CheckpointWork>[] = [];
  readonly clock = new SimulatedClock();
  readonly actor: Actor<typeof checkpointMachine>;
  #nextId = 1;

  constructor() {
    const { recover, markDeath, mark, prune, plan, apply, conclude, serve, release } = this;
    const actors = {
      ...{
        recover: asked(recover),
        markDeath: asked(markDeath),
        mark: asked(mark),
        prune: asked(prune),
        plan: asked(plan),
      },
      ...{ apply: asked(apply), conclude: asked(conclude), serve: asked(serve) },
      release: asked(release),
    };
    this.actor = createActor(checkpointMachine.provide({ actors }), {
      clock: this.clock,
      input: { treeId: 'tree', restMs: 120_000 },
      inspect: transitionLog(this.taken, (actor) => actor === this.actor),
    });
    // Without ids an event answers no request.
    this.actor.on('*', (event) => event.ids.length > 0 && this.emitted.push(event));
    this.actor.start();
  }

  request(kind: CheckpointRequestKind): number {
    const id = this.#nextId++;
    if (this.isActive) this.actor.send({ type: 'REQUEST', request: { id, kind } });
    return id;
  }

  close(): void {
    if (this.isActive) this.actor.send({ type: 'CLOSE' });
  }

  get isActive(): boolean {
    return this.actor.getSnapshot().status === 'active';
  }

  get value() {
    return this.actor.getSnapshot().value;
  }

  get context() {
    return this.actor.getSnapshot().context;
  }

  get questions(): readonly Question<never, CheckpointWork>[] {
    const { recover, markDeath, mark, prune, plan, apply, conclude, serve, release } = this;
    return [recover, markDeath, mark, prune, plan, apply, conclude, serve, release].flat() as unknown as Question<
      never,
      CheckpointWork
    >[];
  }
}

const full = new Error('the disk is full');
const failed = (...ids: number[]): CheckpointEmitted => ({ type: 'requests.failed', ids, message: full.message });
const done = (...ids: number[]): CheckpointEmitted => ({ type: 'requests.done', ids });

const to = {
  async recovering(_world: World) {},
  async markingDeath(world: World) {
    open(world.recover).answer();
    await flush();
  },
  async idle(world: World) {
    await to.markingDeath(world);
    open(world.markDeath).answer();
    await flush();
  },
  async marking(world: World) {
    await to.idle(world);
    world.request('start');
  },
  async pruning(world: World) {
    await to.idle(world);
    world.request('end');
    open(world.mark).answer();
    await flush();
  },
  async planning(world: World) {
    await to.idle(world);
    world.request('restore');
  },
  async applying(world: World) {
    await to.planning(world);
    open(world.plan).answer({ isRefused: false });
    await flush();
  },
  async concluding(world: World) {
    await to.applying(world);
    open(world.apply).answer();
    await flush();
  },
  async serving(world: World) {
    await to.idle(world);
    world.request('task');
  },
  async releasing(world: World) {
    await to.idle(world);
    world.clock.increment(120_000);
  },
  async resting(world: World) {
    await to.releasing(world);
    open(world.release).answer();
    await flush();
  },
  async unusable(world: World) {
    open(world.recover).fail(full);
    await flush();
  },
};

const walks: Walk<World>[] = [
  {
    takes: '(any) REQUEST → ∅',
    proves: 'a request waits while other work is under way',
    given: to.recovering,
    when: (world) => world.request('start'),
    shows: (t, world) => t.same([world.context.waiting, world.mark], [[{ id: 1, kind: 'start' }], []]),
  },
  {
    takes: '(any) CLOSE → ∅',
    proves: 'an end waits for the work that is under way',
    given: to.marking,
    when: (world) => world.close(),
    shows: (t, world) => t.same([world.value, world.context.isClosing], ['marking', true]),
  },
  {
    takes: 'recovering done(recover) → markingDeath',
    proves: 'the death of the turns is marked before one of them goes on',
    given: async (world) => void world.request('resume'),
    when: (world) => open(world.recover).answer(),
    shows: (t, world) => t.same([world.markDeath.length, world.mark, world.emitted], [1, [], []]),
  },
  {
    takes: 'markingDeath done(markDeath) → idle',
    proves: 'after the recovery nothing is at work',
    given: to.markingDeath,
    when: (world) => open(world.markDeath).answer(),
    shows: (t, world) => t.same([world.value, world.emitted], ['idle', []]),
  },
  {
    takes: 'markingDeath error(markDeath) → unusable',
    proves: 'a turn whose death cannot be marked does not go on in these files',
    given: async (world) => {
      world.request('resume');
      await to.markingDeath(world);
    },
    when: (world) => open(world.markDeath).fail(full),
    shows: (t, world) => t.same([world.value, world.emitted, world.mark], ['unusable', [failed(1)], []]),
  },
  {
    takes: 'recovering error(recover) → unusable',
    proves: 'a store that cannot be recovered fails the requests that waited',
    given: async (world) => void world.request('start'),
    when: (world) => open(world.recover).fail(full),
    shows: (t, world) => t.same([world.value, world.emitted, world.context.waiting], ['unusable', [failed(1)], []]),
  },
  {
    takes: 'idle always [waitsForMark] → marking',
    proves: 'marks that wait share one scan, in their order, up to other work',
    given: async (world) => {
      await to.markingDeath(world);
      for (const kind of ['end', 'start', 'resume', 'restore', 'start'] as const) world.request(kind);
    },
    when: (world) => open(world.markDeath).answer(),
    shows: (t, world) => {
      t.same(
        open(world.mark).input.requests.map(({ id }) => id),
        [1, 2, 3],
      );
      t.same(
        world.context.waiting.map(({ id }) => id),
        [4, 5],
      );
    },
  },
  {
    takes: 'idle always [waitsForRestore] → planning',
    proves: 'a restore is planned alone',
    given: to.idle,
    when: (world) => world.request('restore'),
    shows: (t, world) => t.same(open(world.plan).input, { treeId: 'tree', requests: [{ id: 1, kind: 'restore' }] }),
  },
  {
    takes: 'idle always [waitsForTask] → serving',
    proves: 'a question is answered when nothing else is at work',
    given: to.idle,
    when: (world) => world.request('task'),
    shows: (t, world) => t.equal(world.serve.length, 1),
  },
  {
    takes: 'idle always [isFinished] → closed',
    proves: 'the end comes when nothing waits',
    given: to.idle,
    when: (world) => world.close(),
    shows: (t, world) => t.same([world.value, world.isActive], ['closed', false]),
  },
  {
    takes: 'marking done(mark) [endsTurn] → pruning',
    proves: 'the end of a turn is answered before old checkpoints are deleted',
    given: async (world) => {
      await to.idle(world);
      world.request('end');
    },
    when: (world) => open(world.mark).answer(),
    shows: (t, world) => t.same([world.emitted, world.prune.length, world.context.marks], [[done(1)], 1, 1]),
  },
  {
    takes: 'marking done(mark) → idle',
    proves: 'a committed start is answered',
    given: to.marking,
    when: (world) => open(world.mark).answer(),
    shows: (t, world) => t.same([world.emitted, world.prune, world.context.current], [[done(1)], [], []]),
  },
  {
    takes: 'marking error(mark) → idle',
    proves: 'a checkpoint that fails is reported, and the next one is tried',
    given: to.marking,
    when: (world) => open(world.mark).fail(full),
    shows: (t, world) => {
      t.same([world.emitted, world.context.lastError], [[failed(1)], full.message]);
      world.request('start');
      t.equal(world.value, 'marking');
    },
  },
  {
    takes: 'pruning done(prune) → idle',
    proves: 'the next request follows',
    given: to.pruning,
    when: (world) => open(world.prune).answer(),
    shows: (t, world) => t.same([world.value, world.context.current], ['idle', []]),
  },
  {
    takes: 'pruning error(prune) → idle',
    proves: 'old checkpoints that cannot be deleted hinder nothing',
    given: to.pruning,
    when: (world) => open(world.prune).fail(full),
    shows: (t, world) =>
      t.same([world.value, world.context.lastError, world.emitted], ['idle', full.message, [done(1)]]),
  },
  {
    takes: 'planning done(plan) [isRefused] → idle',
    proves: 'conflicts refuse a restore before anything has changed',
    given: to.planning,
    when: (world) => open(world.plan).answer({ isRefused: true }),
    shows: (t, world) => t.same([world.emitted, world.apply, world.context.restores], [[done(1)], [], 0]),
  },
  {
    takes: 'planning done(plan) → applying',
    proves: 'a restore that is written down is applied',
    given: to.planning,
    when: (world) => open(world.plan).answer({ isRefused: false }),
    shows: (t, world) => t.same([world.apply.length, world.emitted], [1, []]),
  },
  {
    takes: 'planning error(plan) → idle',
    proves: 'a restore that cannot be planned or staged has changed nothing',
    given: to.planning,
    when: (world) => open(world.plan).fail(full),
    shows: (t, world) => t.same([world.value, world.emitted], ['idle', [failed(1)]]),
  },
  {
    takes: 'applying done(apply) → concluding',
    proves: 'the conversation follows the files',
    given: to.applying,
    when: (world) => open(world.apply).answer(),
    shows: (t, world) => t.same([world.conclude.length, world.emitted], [1, []]),
  },
  {
    takes: 'applying error(apply) → unusable',
    proves: 'a restore that breaks off is left to the next start',
    given: async (world) => {
      await to.applying(world);
      world.request('start');
    },
    when: (world) => open(world.apply).fail(full),
    shows: (t, world) => t.same(world.emitted, [failed(1), failed(2)]),
  },
  {
    takes: 'concluding done(conclude) → idle',
    proves: 'a restore is answered when its end is committed',
    given: to.concluding,
    when: (world) => open(world.conclude).answer(),
    shows: (t, world) => t.same([world.emitted, world.context.restores], [[done(1)], 1]),
  },
  {
    takes: 'concluding error(conclude) → unusable',
    proves: 'an end that cannot be committed is left to the next start',
    given: to.concluding,
    when: (world) => open(world.conclude).fail(full),
    shows: (t, world) => t.same([world.value, world.emitted], ['unusable', [failed(1)]]),
  },
  {
    takes: 'serving done(serve) → idle',
    proves: 'an answer is passed on',
    given: to.serving,
    when: (world) => open(world.serve).answer(),
    shows: (t, world) => t.same([world.value, world.emitted], ['idle', [done(1)]]),
  },
  {
    takes: 'serving error(serve) → idle',
    proves: 'a question that cannot be answered fails alone',
    given: to.serving,
    when: (world) => open(world.serve).fail(full),
    shows: (t, world) => t.same([world.value, world.emitted], ['idle', [failed(1)]]),
  },
  {
    takes: 'idle after(rest) → releasing',
    proves: 'after a while without requests the store is closed',
    given: to.idle,
    when: (world) => world.clock.increment(120_000),
    shows: (t, world) => t.same([world.value, world.release.length], ['releasing', 1]),
  },
  {
    takes: 'releasing done(release) → resting',
    proves: 'a store that is closed rests',
    given: to.releasing,
    when: (world) => open(world.release).answer(),
    shows: (t, world) => t.equal(world.value, 'resting'),
  },
  {
    takes: 'releasing error(release) → resting',
    proves: 'a store that does not close is opened anew by the next request',
    given: to.releasing,
    when: (world) => open(world.release).fail(full),
    shows: (t, world) => t.same([world.value, world.context.lastError], ['resting', full.message]),
  },
  {
    takes: 'resting always [hasWork] → idle',
    proves: 'a request ends the rest',
    given: to.resting,
    when: (world) => world.request('start'),
    shows: (t, world) => t.same([world.value, world.mark.length], ['marking', 1]),
  },
  {
    takes: 'unusable REQUEST → ∅',
    proves: 'a request fails at once with the reason',
    given: to.unusable,
    when: (world) => world.request('start'),
    shows: (t, world) => t.same([world.emitted.at(-1), world.context.waiting], [failed(1), []]),
  },
  {
    takes: 'unusable CLOSE → closed',
    proves: 'an unusable store closes',
    given: to.unusable,
    when: (world) => world.close(),
    shows: (t, world) => t.notOk(world.isActive),
  },
  {
    takes: 'unusable always [isFinished] → closed',
    proves: 'a store that turns out to be unusable during the end closes',
    given: async (world) => world.close(),
    when: (world) => open(world.recover).fail(full),
    shows: (t, world) => t.notOk(world.isActive),
  },
];

walkEvery(t, checkpointMachine, () => new World(), walks);

t.test('in any history one thing is at work, and every request is answered once', async (t) => {
  const event = fc.constantFrom(
    'start',
    'resume',
    'end',
    'restore',
    'task',
    'answer',
    'refuse',
    'fail',
    'rest',
    'close',
  );
  const seed = process.env['ORATORIO_TEST_SEED'] === 'random' ? {} : { seed: 16 };
  await fc.assert(
    fc.asyncProperty(fc.array(event, { maxLength: 40 }), async (events) => {
      const world = new World();
      const requested = new Set<number>();
      for (const each of events) {
        const question = world.questions.find(({ isOpen }) => isOpen);
        if (each === 'close') world.close();
        else if (each === 'rest') world.clock.increment(120_000);
        else if (each === 'answer') question?.answer({ isRefused: false } as never);
        else if (each === 'refuse') question?.answer({ isRefused: true } as never);
        else if (each === 'fail') question?.fail(full);
        else if (world.isActive) requested.add(world.request(each));
        await flush();
        if (world.questions.filter(({ isOpen }) => isOpen).length > 1) throw new Error('two things are at work');
      }
      for (let question = world.questions.find(({ isOpen }) => isOpen); question; ) {
        question.answer({ isRefused: true } as never);
        await flush();
        question = world.questions.find(({ isOpen }) => isOpen);
      }
      const answered = world.emitted.flatMap(({ ids }) => ids);
      t.same(answered.toSorted(), [...requested].toSorted());
    }),
    { numRuns: 60, ...seed },
  );
});
