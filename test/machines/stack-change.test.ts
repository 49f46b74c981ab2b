import t from 'tap';
import { type Actor, createActor, SimulatedClock } from 'xstate';
import { type StackChangeInput, stackChangeMachine } from '../../machines/index.ts';
import { asked, flush, open, type Question, transitionLog, type Walk, walkEvery } from './harness.ts';

const portTaken = Object.assign(new Error('port 80 is taken'), { code: 'portTaken' });

/** One change whose phases are answered by the test. */
class World {
  readonly taken: string[] = [];
  readonly carryOut: Question<void, { readonly phase: string }>[] = [];
  readonly undo: Question<void, void>[] = [];
  readonly #input: Partial<StackChangeInput>;
  #actor: Actor<typeof stackChangeMachine> | undefined;

  constructor(input: Partial<StackChangeInput> = {}) {
    this.#input = input;
  }

  begin(): void {
    this.#actor = createActor(
      stackChangeMachine.provide({ actors: { carryOut: asked(this.carryOut), undo: asked(this.undo) } }),
      {
        id: 'change',
        clock: new SimulatedClock(),
        inspect: transitionLog(this.taken, (actor) => actor.id === 'change'),
        input: { command: 'upgrade', phases: ['images', 'health'], onFailure: 'undo', ...this.#input },
      },
    ).start();
  }

  get actor() {
    if (!this.#actor) throw new Error('it has not begun');
    return this.#actor;
  }
  get state() {
    return this.actor.getSnapshot().value;
  }
  get failure() {
    return this.actor.getSnapshot().context.failure;
  }
}

const to = {
  async nothing() {},
  async applying(world: World) {
    world.begin();
  },
  async undoing(world: World) {
    world.begin();
    open(world.carryOut).fail(portTaken);
    await flush();
  },
};
const kept = () => new World({ onFailure: 'keep' });

const walks: readonly Walk<World>[] = [
  {
    takes: 'choosing always [hasPhase] → applying',
    proves: 'a change begins with its first phase',
    given: to.nothing,
    when: to.applying,
    shows: (t, world) => t.same(open(world.carryOut).input, { phase: 'images' }),
  },
  {
    takes: 'choosing always → done',
    proves: 'a change without phases is done',
    world: () => new World({ phases: [] }),
    given: to.nothing,
    when: to.applying,
    shows: (t, world) => t.same([world.state, world.carryOut], ['done', []]),
  },
  {
    takes: 'applying done(carryOut) → choosing',
    proves: 'the phases follow each other, each once, and complete the change',
    given: to.applying,
    async when(world) {
      open(world.carryOut).answer();
      await flush();
      open(world.carryOut).answer();
      await flush();
    },
    shows(t, world) {
      t.same(
        world.carryOut.map(({ input }) => input.phase),
        ['images', 'health'],
      );
      t.same([world.state, world.failure, world.undo], ['done', null, []]);
    },
  },
  {
    takes: 'applying error(carryOut) → failing',
    proves: 'a failure is recorded with its code',
    given: to.applying,
    when: (world) => open(world.carryOut).fail(portTaken),
    shows: (t, world) => t.same(world.failure, { code: 'portTaken', message: 'port 80 is taken', isRetryable: false }),
  },
  {
    takes: 'applying CANCEL → failing',
    proves: 'a cancel aborts the active phase before the undo',
    given: to.applying,
    when: (world) => world.actor.send({ type: 'CANCEL' }),
    shows(t, world) {
      t.match(world.failure, { code: 'cancelled' });
      t.same([world.state, world.carryOut[0]?.isOpen], ['undoing', false]);
    },
  },
  {
    takes: 'failing always [mustUndo] → undoing',
    proves: 'completed phases are undone',
    given: to.applying,
    when: (world) => open(world.carryOut).fail(portTaken),
    shows: (t, world) => t.same([world.state, world.undo.length], ['undoing', 1]),
  },
  {
    takes: 'failing always → kept',
    proves: 'a change that can be resumed is not undone',
    world: kept,
    given: to.applying,
    when: (world) => open(world.carryOut).fail(new Error('no code')),
    shows: (t, world) => t.same([world.state, world.undo, world.failure?.code], ['kept', [], 'internalError']),
  },
  {
    takes: 'undoing done(undo) → undone',
    proves: 'an undone change has the reason of its failure',
    given: to.undoing,
    when: (world) => open(world.undo).answer(),
    shows: (t, world) => t.same([world.state, world.failure?.code], ['undone', 'portTaken']),
  },
  {
    takes: 'undoing error(undo) → damaged',
    proves: 'a failed undo leaves the stack damaged with the first failure as reason',
    given: to.undoing,
    when: (world) => open(world.undo).fail(new Error('disk')),
    shows: (t, world) => t.same([world.state, world.failure?.code], ['damaged', 'portTaken']),
  },
];

walkEvery(t, stackChangeMachine, () => new World(), walks);
