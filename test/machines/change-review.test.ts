import fc from 'fast-check';
import t from 'tap';
import { type ActorRefFrom, createActor } from 'xstate';
import {
  type ChangeReading,
  type ChangeRestore,
  type ChangeReviewEvent,
  changeReviewMachine,
  type RestoreOutcome,
  type ReviewReading,
} from '../../machines/change-review.ts';
import { nodeId } from '../../src/inspect/names.ts';
import { asked, flush, open, type Question, transitionLog, type Walk, walkEvery } from './harness.ts';

const conflict = { path: 'a.txt', change: 'modified', by: 'user' };
const refused: RestoreOutcome = { conflicts: [conflict], conflictsTotal: 1, restoreId: null };
const restored: RestoreOutcome = { conflicts: [], conflictsTotal: 0, restoreId: 'restore_1' };
const nothing: ReviewReading = { kept: [], reverted: [] };

/** The machine over a server that the test answers for. */
class World {
  readonly taken: string[] = [];
  readonly readings: Question<ReviewReading, ChangeReading>[] = [];
  readonly restores: Question<RestoreOutcome, ChangeRestore>[] = [];
  readonly actor: ActorRefFrom<typeof changeReviewMachine>;

  constructor() {
    const actors = { read: asked(this.readings), restore: asked(this.restores) };
    this.actor = createActor(changeReviewMachine.provide({ actors }), {
      input: { threadId: 'thread_1', turnId: 'turn_001' },
      inspect: transitionLog(this.taken, (actor) => actor === this.actor),
    });
    this.actor.start();
  }

  send(event: ChangeReviewEvent): void {
    this.actor.send(event);
  }

  get state(): string {
    return this.actor.getSnapshot()._nodes.map(nodeId).at(-1) ?? '';
  }

  get context() {
    return this.actor.getSnapshot().context;
  }

  /** The restore that was asked for last. */
  get order() {
    return this.restores.at(-1)?.input.order;
  }

  async answer(outcome: RestoreOutcome): Promise<void> {
    open(this.restores).answer(outcome);
    await flush();
  }
}

const path = 'a.txt';
const to = {
  async shown(world: World) {
    open(world.readings).answer(nothing);
    await flush();
  },
  async failed(world: World) {
    open(world.readings).fail(new Error('no connection'));
    await flush();
  },
  async restoring(world: World) {
    await to.shown(world);
    world.send({ type: 'REVERT', path });
  },
  async conflicted(world: World) {
    await to.restoring(world);
    await world.answer(refused);
  },
  async reverted(world: World) {
    open(world.readings).answer({ kept: ['b.txt'], reverted: [{ path, restoreId: 'restore_1' }] });
    await flush();
  },
};

const walks: readonly Walk<World>[] = [
  {
    takes: 'reading done(read) → shown',
    proves: 'changes that were read are shown, with the decisions that hold',
    given: async () => {},
    when: to.reverted,
    shows: (t, world) =>
      t.same(
        [world.state, world.context.kept, world.context.reverted],
        ['shown', ['b.txt'], [{ path, restoreId: 'restore_1' }]],
      ),
  },
  {
    takes: 'reading error(read) → failed',
    proves: 'a failed reading says why',
    given: async () => {},
    when: to.failed,
    shows: (t, world) => t.same([world.state, world.context.lastError], ['failed', 'no connection']),
  },
  {
    takes: 'reading READ → reading',
    proves: 'a turn that ends while its changes are read is read again',
    given: async () => {},
    when: (world) => world.send({ type: 'READ' }),
    shows: (t, world) =>
      t.same(
        world.readings.map(({ isOpen }) => isOpen),
        [false, true],
      ),
  },
  {
    takes: 'failed READ → reading',
    proves: 'the person tries again, and the old failure is gone',
    given: to.failed,
    when: (world) => world.send({ type: 'READ' }),
    shows: (t, world) => t.same([world.state, world.readings.length, world.context.lastError], ['reading', 2, null]),
  },
  {
    takes: 'shown READ → reading',
    proves: 'another reading replaces the decisions by what it finds',
    given: to.reverted,
    when: async (world) => {
      world.send({ type: 'READ' });
      await to.shown(world);
    },
    shows: (t, world) =>
      t.same([world.readings.length, world.state, world.context.kept, world.context.reverted], [2, 'shown', [], []]),
  },
  {
    takes: 'shown KEEP → ∅',
    proves: 'a kept change asks nothing of the server',
    given: to.shown,
    when: (world) => world.send({ type: 'KEEP', path }),
    shows: (t, world) => t.same([world.state, world.context.kept, world.restores.length], ['shown', [path], 0]),
  },
  {
    takes: 'shown RECONSIDER → ∅',
    proves: 'a decision can be taken back',
    given: async (world) => {
      await to.shown(world);
      world.send({ type: 'KEEP', path });
    },
    when: (world) => world.send({ type: 'RECONSIDER', path }),
    shows: (t, world) => t.same(world.context.kept, []),
  },
  {
    takes: 'shown REVERT → restoring',
    proves: 'a file is put back without force at first',
    given: to.shown,
    when: (world) => world.send({ type: 'REVERT', path }),
    shows: (t, world) => t.same([world.state, world.order], ['restoring', { path, restoreId: null, force: false }]),
  },
  {
    takes: 'shown TAKE_BACK [isReverted] → restoring',
    proves: 'a restore is taken back by its own id',
    given: to.reverted,
    when: (world) => world.send({ type: 'TAKE_BACK', path }),
    shows: (t, world) =>
      t.same([world.state, world.order], ['restoring', { path, restoreId: 'restore_1', force: false }]),
  },
  {
    takes: 'restoring done(restore) [isRefused] → conflicted',
    proves: 'conflicts are named, and nothing is noted as put back',
    given: to.restoring,
    when: (world) => world.answer(refused),
    shows: (t, world) =>
      t.same([world.state, world.context.conflicts, world.context.reverted], ['conflicted', [conflict], []]),
  },
  {
    takes: 'restoring done(restore) → reading',
    proves: 'the server says what was put back',
    given: to.restoring,
    when: (world) => world.answer(restored),
    shows: (t, world) => t.same([world.state, world.readings.length, world.context.order], ['reading', 2, null]),
  },
  {
    takes: 'restoring error(restore) → shown',
    proves: 'a failed restore is reported, and the review continues',
    given: to.restoring,
    when: async (world) => {
      open(world.restores).fail(new Error('a turn runs'));
      await flush();
    },
    shows: (t, world) =>
      t.same([world.state, world.context.lastError, world.context.reverted], ['shown', 'a turn runs', []]),
  },
  {
    takes: 'conflicted FORCE → restoring',
    proves: 'only the person overwrites changes of others',
    given: to.conflicted,
    when: (world) => world.send({ type: 'FORCE' }),
    shows: (t, world) => t.same([world.state, world.order], ['restoring', { path, restoreId: null, force: true }]),
  },
  {
    takes: 'conflicted LEAVE → shown',
    proves: 'the changes of others stay',
    given: to.conflicted,
    when: (world) => world.send({ type: 'LEAVE' }),
    shows: (t, world) =>
      t.same(
        [world.state, world.restores.length, world.context.conflicts, world.context.order],
        ['shown', 1, [], null],
      ),
  },
];

walkEvery(t, changeReviewMachine, () => new World(), walks);

t.test('a file whose name is a property of every object was not put back', async (t) => {
  const world = new World();
  await to.shown(world);
  for (const name of ['__proto__', 'constructor']) world.send({ type: 'TAKE_BACK', path: name });
  t.same([world.state, world.restores.length], ['shown', 0]);
});

const seed = process.env['ORATORIO_TEST_SEED'] === 'random' ? {} : { seed: 20_261_125 };
const events = fc.constantFrom<ChangeReviewEvent>(
  ...(['READ', 'FORCE', 'LEAVE'] as const).map((type) => ({ type })),
  ...(['KEEP', 'RECONSIDER', 'REVERT', 'TAKE_BACK'] as const).map((type) => ({ type, path })),
);
t.test('in every history a restore is forced only after it was refused, and one runs at a time', async () => {
  const history = fc.array(fc.record({ event: events, outcome: fc.constantFrom(refused, restored) }), {
    maxLength: 12,
  });
  await fc.assert(
    fc.asyncProperty(history, async (steps) => {
      const world = new World();
      let wasRefused = false;
      for (const { event, outcome } of steps) {
        if (world.state === 'reading') await to.reverted(world);
        const before = world.restores.length;
        world.send(event);
        const [restore, ...others] = world.restores.slice(before);
        if (others.length > 0 || (restore?.input.order.force === true && !wasRefused)) return false;
        if (!restore) continue;
        await world.answer(outcome);
        wasRefused = outcome === refused;
      }
      return true;
    }),
    { numRuns: 50, ...seed },
  );
});
