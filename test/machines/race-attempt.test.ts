import t from 'tap';
import { type ActorRefFrom, createActor } from 'xstate';
import {
  type AttemptCheck,
  type AttemptTurn,
  type RaceAttemptInput,
  raceAttemptMachine,
} from '../../machines/race-attempt.ts';
import { asked, flush, open, type Question, transitionLog, type Walk, walkEvery } from './harness.ts';

/** The machine over a server that the test answers for. */
class World {
  readonly taken: string[] = [];
  readonly copies: Question<void, RaceAttemptInput>[] = [];
  readonly turns: Question<AttemptTurn, RaceAttemptInput>[] = [];
  readonly checks: Question<AttemptCheck, RaceAttemptInput>[] = [];
  interrupts = 0;
  readonly actor: ActorRefFrom<typeof raceAttemptMachine>;

  constructor() {
    const machine = raceAttemptMachine.provide({
      actors: { open: asked(this.copies), work: asked(this.turns), check: asked(this.checks) },
      actions: {
        interruptTurn: () => {
          this.interrupts += 1;
        },
      },
    });
    this.actor = createActor(machine, {
      input: { number: 2 },
      inspect: transitionLog(this.taken, (actor) => actor === this.actor),
    });
    this.actor.start();
  }

  get state(): string {
    return this.actor.getSnapshot().value;
  }

  get failure() {
    return this.actor.getSnapshot().context.failure;
  }

  decide(): void {
    this.actor.send({ type: 'RACE.DECIDED' });
  }

  async copied(): Promise<void> {
    open(this.copies).answer();
    await flush();
  }

  async worked(isCancelled = false): Promise<void> {
    open(this.turns).answer({ isCancelled });
    await flush();
  }

  async checked(hasPassed: boolean): Promise<void> {
    open(this.checks).answer({ hasPassed });
    await flush();
  }
}

const fail = async <T, I>(questions: readonly Question<T, I>[], code: string): Promise<void> => {
  open(questions).fail(Object.assign(new Error(`it is ${code}`), { code }));
  await flush();
};
const to = {
  async opening() {},
  working: (world: World) => world.copied(),
  async checking(world: World) {
    await world.copied();
    await world.worked();
  },
};

const walks: readonly Walk<World>[] = [
  {
    takes: 'opening RACE.DECIDED → ∅',
    proves: 'a copy that has begun is completed, so that it can be deleted',
    given: to.opening,
    when: (world) => world.decide(),
    shows: (t, world) => t.same([world.state, world.copies[0]?.isOpen, world.interrupts], ['opening', true, 0]),
  },
  {
    takes: 'opening done(open) [isDecided] → stopped',
    proves: 'nothing begins once another attempt has passed',
    given: async (world) => world.decide(),
    when: (world) => world.copied(),
    shows: (t, world) => t.same([world.state, world.turns.length], ['stopped', 0]),
  },
  {
    takes: 'opening done(open) → working',
    proves: 'the agent begins in its own files',
    given: to.opening,
    when: (world) => world.copied(),
    shows: (t, world) => t.same([world.state, world.turns[0]?.input], ['working', { number: 2 }]),
  },
  {
    takes: 'opening error(open) → failed',
    proves: 'an agent that cannot be had fails its attempt with the reason, and no turn begins',
    given: to.opening,
    when: (world) => fail(world.copies, 'agentUnavailable'),
    shows: (t, world) => t.match([world.state, world.failure?.code, world.turns], ['failed', 'agentUnavailable', []]),
  },
  {
    takes: 'working RACE.DECIDED → ∅',
    proves: 'the turn is interrupted, and its end awaited',
    given: to.working,
    when: (world) => world.decide(),
    shows: (t, world) => t.same([world.state, world.interrupts], ['working', 1]),
  },
  {
    takes: 'working done(work) [isOver] → stopped',
    proves: 'a turn that was interrupted is not checked',
    given: to.working,
    when: (world) => world.worked(true),
    shows: (t, world) => t.same([world.state, world.checks.length], ['stopped', 0]),
  },
  {
    takes: 'working done(work) → checking',
    proves: 'a turn that has ended is checked',
    given: to.working,
    when: (world) => world.worked(),
    shows: (t, world) => t.same([world.state, world.checks.length], ['checking', 1]),
  },
  {
    takes: 'working error(work) → failed',
    proves: 'an agent that ends in its turn fails its attempt with the reason',
    given: to.working,
    when: (world) => fail(world.turns, 'agentExited'),
    shows: (t, world) => t.match([world.state, world.failure?.code], ['failed', 'agentExited']),
  },
  {
    takes: 'checking done(check) [hasPassed] → passed',
    proves: 'the command decides',
    given: to.checking,
    when: (world) => world.checked(true),
    shows: (t, world) => t.same([world.state, world.failure], ['passed', null]),
  },
  {
    takes: 'checking done(check) → failed',
    proves: 'a command that fails is no failure of the agent',
    given: to.checking,
    when: (world) => world.checked(false),
    shows: (t, world) => t.same([world.state, world.failure], ['failed', null]),
  },
  {
    takes: 'checking error(check) → failed',
    proves: 'a command that cannot be started fails the attempt with the reason',
    given: to.checking,
    when: (world) => fail(world.checks, 'checkFailed'),
    shows: (t, world) => t.match([world.state, world.failure?.code], ['failed', 'checkFailed']),
  },
];

walkEvery(t, raceAttemptMachine, () => new World(), walks);

t.test(
  'a turn that ends although the race is decided is not checked, and a check that runs is not disturbed',
  async (t) => {
    const late = new World();
    await to.working(late);
    late.decide();
    await late.worked(false);
    t.same([late.state, late.checks.length], ['stopped', 0]);
    const checking = new World();
    await to.checking(checking);
    checking.decide();
    t.same([checking.state, checking.checks[0]?.isOpen, checking.interrupts], ['checking', true, 0]);
  },
);
