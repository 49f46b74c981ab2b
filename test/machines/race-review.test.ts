import t from 'tap';
import { type ActorRefFrom, createActor } from 'xstate';
import { type RaceAct, type RaceOutcome, type RaceReviewEvent, raceReviewMachine } from '../../machines/race-review.ts';
import { nodeId } from '../../src/inspect/names.ts';
import { asked, flush, open, type Question, transitionLog, type Walk, walkEvery } from './harness.ts';

const conflicts = [{ path: 'a.txt', change: 'modified', by: 'user' }];

/** The machine over a server that the test answers for. */
class World {
  readonly taken: string[] = [];
  readonly acts: Question<RaceOutcome, RaceAct>[] = [];
  readonly actor: ActorRefFrom<typeof raceReviewMachine>;

  constructor() {
    this.actor = createActor(raceReviewMachine.provide({ actors: { act: asked(this.acts) } }), {
      input: { threadId: 'thread_1' },
      inspect: transitionLog(this.taken, (actor) => actor === this.actor),
    });
    this.actor.start();
  }

  send(event: RaceReviewEvent): void {
    this.actor.send(event);
  }

  get state(): string {
    return this.actor.getSnapshot()._nodes.map(nodeId).at(-1) ?? '';
  }

  get context() {
    return this.actor.getSnapshot().context;
  }

  get order() {
    return this.acts.at(-1)?.input.order;
  }

  async answer(outcome: RaceOutcome): Promise<void> {
    open(this.acts).answer(outcome);
    await flush();
  }
}

const apply = { type: 'APPLY', attemptId: 'thread_2' } as const;
const undo = { type: 'UNDO', restoreId: 'restore_1' } as const;
const to = {
  async applying(world: World) {
    world.send(apply);
  },
  async refusedUndo(world: World) {
    world.send(undo);
    await world.answer({ conflicts, conflictsTotal: 1 });
  },
};

const walks: readonly Walk<World>[] = [
  {
    takes: 'idle APPLY → acting',
    proves: 'the chosen attempt is applied',
    given: async () => {},
    when: (world) => world.send(apply),
    shows: (t, world) =>
      t.same([world.state, world.order], ['acting', { kind: 'apply', attemptId: 'thread_2', force: false }]),
  },
  {
    takes: 'idle UNDO → acting',
    proves: 'the applied attempt is taken back without force at first',
    given: async () => {},
    when: (world) => world.send(undo),
    shows: (t, world) =>
      t.same([world.state, world.order], ['acting', { kind: 'undo', restoreId: 'restore_1', force: false }]),
  },
  {
    takes: 'acting done(act) [isRefused] → conflicted',
    proves: 'conflicts are named',
    given: to.applying,
    when: (world) => world.answer({ conflicts, conflictsTotal: 1 }),
    shows: (t, world) => t.same([world.state, world.context.conflicts], ['conflicted', conflicts]),
  },
  {
    takes: 'acting done(act) → idle',
    proves: 'an act that is done leaves nothing behind',
    given: to.applying,
    when: (world) => world.answer({ conflicts: [], conflictsTotal: 0 }),
    shows: (t, world) => t.same([world.state, world.context.order], ['idle', null]),
  },
  {
    takes: 'acting error(act) → idle',
    proves: 'a failure is reported, and the next act forgets it',
    given: to.applying,
    when: async (world) => {
      open(world.acts).fail(new Error('a turn runs'));
      await flush();
    },
    shows: (t, world) => {
      t.same([world.state, world.context.lastError], ['idle', 'a turn runs']);
      world.send(apply);
      t.equal(world.context.lastError, null);
    },
  },
  {
    takes: 'conflicted FORCE → acting',
    proves: 'only the person overwrites changes of others',
    given: to.refusedUndo,
    when: (world) => world.send({ type: 'FORCE' }),
    shows: (t, world) => t.match([world.state, world.order], ['acting', { kind: 'undo', force: true }]),
  },
  {
    takes: 'conflicted LEAVE → idle',
    proves: 'the changes of others stay',
    given: to.refusedUndo,
    when: (world) => world.send({ type: 'LEAVE' }),
    shows: (t, world) => t.same([world.state, world.context.conflicts, world.acts.length], ['idle', [], 1]),
  },
];

walkEvery(t, raceReviewMachine, () => new World(), walks);

t.test('one act runs at a time, and a refused one waits for the decision', async (t) => {
  const world = new World();
  world.send(apply);
  world.send(undo);
  t.equal(world.acts.length, 1);
  await world.answer({ conflicts, conflictsTotal: 1 });
  world.send(undo);
  t.same([world.state, world.acts.length], ['conflicted', 1]);
  world.send({ type: 'FORCE' });
  t.match([world.state, world.order], ['acting', { kind: 'apply', attemptId: 'thread_2', force: true }]);
});
