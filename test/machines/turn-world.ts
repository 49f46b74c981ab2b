/** One turn machine whose actors are answered by the test, on a clock that the test moves. */
import { type Actor, createActor, SimulatedClock } from 'xstate';
import {
  type Inference,
  type InferenceInput,
  type PreparedTurn,
  type ReviewedCalls,
  type ToolRun,
  type TurnEmitted,
  type TurnEvent,
  type TurnInput,
  type TurnKey,
  turnMachine,
  turnStateOf,
} from '../../machines/index.ts';
import { asked, flush, open, type Question, transitionLog } from './harness.ts';

export const approvalTimeoutMs = 300_000;
export const cancelGraceMs = 5_000;

export class World {
  readonly taken: string[] = [];
  readonly emitted: TurnEmitted[] = [];
  readonly prepare: Question<PreparedTurn, TurnKey>[] = [];
  readonly compact: Question<void, TurnKey>[] = [];
  readonly infer: Question<Inference, InferenceInput>[] = [];
  readonly review: Question<ReviewedCalls, TurnKey>[] = [];
  readonly runTools: Question<ToolRun, TurnKey>[] = [];
  readonly settle: Question<void, TurnKey>[] = [];
  readonly clock = new SimulatedClock();
  readonly actor: Actor<typeof turnMachine>;

  constructor({ maxRounds = 10 }: Partial<TurnInput> = {}) {
    const machine = turnMachine.provide({
      actors: {
        prepare: asked(this.prepare),
        compact: asked(this.compact),
        infer: asked(this.infer),
        review: asked(this.review),
        runTools: asked(this.runTools),
        settle: asked(this.settle),
      },
    });
    this.actor = createActor(machine, {
      id: 'turn',
      clock: this.clock,
      inspect: transitionLog(this.taken, (actor) => actor.id === 'turn'),
      input: { threadId: 'thread', turnId: 'turn_001', maxRounds },
    });
    this.actor.on('*', (event) => this.emitted.push(event));
    this.actor.start();
  }

  /** An ended turn ignores events. */
  send(event: TurnEvent): void {
    if (this.actor.getSnapshot().status === 'active') this.actor.send(event);
  }

  get value() {
    return this.actor.getSnapshot().value;
  }

  get context() {
    return this.actor.getSnapshot().context;
  }

  /** State for clients. */
  get state() {
    return turnStateOf(this.actor.getSnapshot());
  }

  /** Types of the emitted events, without their prefix. */
  get kinds(): string[] {
    return this.emitted.map(({ type }) => type.replace('turn.', ''));
  }

  /** Number of effects that run. */
  get running(): number {
    const effects = [this.prepare, this.compact, this.infer, this.review, this.runTools, this.settle];
    return effects.flatMap((questions) => questions.filter(({ isOpen }) => isOpen)).length;
  }
}

/** An answer without calls, changed by `over`. */
export const answerOf = (over: Partial<Inference> = {}): Inference => ({
  calls: 0,
  clientCalls: 0,
  isSteered: false,
  finish: 'stop',
  ...over,
});

export const rejected = Object.assign(new Error('no such model'), { code: 'upstreamRejected' });
export const tooLong = Object.assign(new Error('too long'), { code: 'contextTooLong' });

/** Leads a new world to a state. */
export const to = {
  async preparing(_world: World) {},
  async compacting(world: World) {
    open(world.prepare).answer({ isTooLong: true });
    await flush();
  },
  async inferring(world: World) {
    open(world.prepare).answer({ isTooLong: false });
    await flush();
  },
  async reviewing(world: World) {
    await to.inferring(world);
    open(world.infer).answer(answerOf({ calls: 2 }));
    await flush();
  },
  async awaitingApproval(world: World) {
    await to.reviewing(world);
    open(world.review).answer({ pending: ['one', 'two'] });
    await flush();
  },
  async runningTools(world: World) {
    await to.reviewing(world);
    open(world.review).answer({ pending: [] });
    await flush();
  },
  async cancelling(world: World) {
    await to.inferring(world);
    world.send({ type: 'INTERRUPT', by: 'user' });
  },
  /** The outcome is `completed`. */
  async storing(world: World) {
    await to.inferring(world);
    open(world.infer).answer(answerOf());
    await flush();
  },
};

/** States in which the turn works or waits for approval. */
export const workingStates = [
  'preparing',
  'compacting',
  'inferring',
  'reviewing',
  'awaitingApproval',
  'runningTools',
] as const;
