import t from 'tap';
import { type ActorRefFrom, createActor, fromCallback, SimulatedClock } from 'xstate';
import {
  type BackgroundProcessEvent,
  backgroundProcessMachine,
  type EndedTree,
  type EndTreeInput,
} from '../../machines/index.ts';
import { asked, flush, open, type Question, transitionLog, type Walk, walkEvery } from './harness.ts';

/** The machine with a command whose fate the test decides. */
class World {
  readonly taken: string[] = [];
  readonly ends: Question<EndedTree, EndTreeInput>[] = [];
  readonly actor: ActorRefFrom<typeof backgroundProcessMachine>;
  report: (event: BackgroundProcessEvent) => void = () => undefined;
  spawns = 0;
  releases = 0;

  constructor() {
    const command = fromCallback<BackgroundProcessEvent>(({ sendBack }) => {
      this.spawns += 1;
      this.report = sendBack;
      return () => {
        this.releases += 1;
      };
    });
    this.actor = createActor(backgroundProcessMachine.provide({ actors: { command, endTree: asked(this.ends) } }), {
      clock: new SimulatedClock(),
      input: { processId: 'proc_1', threadId: 'thread' },
      inspect: transitionLog(this.taken, (actor) => actor === this.actor),
    });
    this.actor.start();
  }

  get value() {
    return this.actor.getSnapshot().value;
  }

  get context() {
    return this.actor.getSnapshot().context;
  }
}

const to = {
  async starting(_world: World) {},
  async running(world: World) {
    world.report({ type: 'COMMAND.SPAWNED', pid: 7 });
  },
  async clearing(world: World) {
    await to.running(world);
    world.report({ type: 'COMMAND.EXITED', exitCode: 3, signal: null });
  },
  async stopping(world: World) {
    await to.running(world);
    world.actor.send({ type: 'PROCESS.STOP', by: 'agent' });
  },
  /** A stop that comes before the spawn. */
  async stoppingEarly(world: World) {
    world.actor.send({ type: 'PROCESS.STOP', by: 'server' });
  },
};

const walks: Walk<World>[] = [
  {
    takes: 'starting COMMAND.SPAWNED → running',
    proves: 'a spawned command runs, and its pid is known',
    given: to.starting,
    when: (world) => world.report({ type: 'COMMAND.SPAWNED', pid: 7 }),
    shows: (t, world) => t.same([world.context.pid, world.spawns, world.ends.length], [7, 1, 0]),
  },
  {
    takes: 'starting COMMAND.REFUSED → failed',
    proves: 'a command that cannot be spawned fails with the reason',
    given: to.starting,
    when: (world) => world.report({ type: 'COMMAND.REFUSED', error: 'ENOENT' }),
    shows: (t, world) => {
      t.same([world.value, world.context.lastError, world.releases], ['failed', 'ENOENT', 1]);
      t.equal(world.actor.getSnapshot().status, 'done');
    },
  },
  {
    takes: 'starting PROCESS.STOP → stopping',
    proves: 'a stop before the spawn ends what may be spawned',
    given: to.starting,
    when: (world) => world.actor.send({ type: 'PROCESS.STOP', by: 'thread' }),
    shows: (t, world) => t.same([world.context.stoppedBy, open(world.ends).input], ['thread', { isPolite: true }]),
  },
  {
    takes: 'running COMMAND.EXITED → clearing',
    proves: 'an exit ends what the command left running, without a grace period',
    given: to.running,
    when: (world) => world.report({ type: 'COMMAND.EXITED', exitCode: 3, signal: null }),
    shows: (t, world) => t.same([world.context.exitCode, open(world.ends).input], [3, { isPolite: false }]),
  },
  {
    takes: 'running PROCESS.STOP → stopping',
    proves: 'a stop ends the command with all its descendants, SIGTERM first',
    given: to.running,
    when: (world) => world.actor.send({ type: 'PROCESS.STOP', by: 'agent' }),
    shows: (t, world) => t.same([world.context.stoppedBy, open(world.ends).input], ['agent', { isPolite: true }]),
  },
  {
    takes: 'clearing done(clear) → ended',
    proves: 'a process of which nothing is left has ended, with its exit code',
    given: to.clearing,
    when: (world) => open(world.ends).answer({ survivors: 0 }),
    shows: (t, world) => {
      t.same([world.value, world.context.exitCode, world.context.survivors, world.releases], ['ended', 3, 0, 1]);
      t.equal(world.actor.getSnapshot().status, 'done');
    },
  },
  {
    takes: 'clearing error(clear) → ended',
    proves: 'a failed search ends the process, and says why',
    given: to.clearing,
    when: (world) => open(world.ends).fail(new Error('no /proc')),
    shows: (t, world) => t.same([world.value, world.context.lastError], ['ended', 'no /proc']),
  },
  {
    takes: 'stopping COMMAND.SPAWNED → ∅',
    proves: 'a command that is spawned during its stop is known',
    given: to.stoppingEarly,
    when: (world) => world.report({ type: 'COMMAND.SPAWNED', pid: 8 }),
    shows: (t, world) => t.same([world.value, world.context.pid], ['stopping', 8]),
  },
  {
    takes: 'stopping COMMAND.REFUSED → ∅',
    proves: 'the reason of a refusal during the stop is known',
    given: to.stoppingEarly,
    when: (world) => world.report({ type: 'COMMAND.REFUSED', error: 'ENOENT' }),
    shows: (t, world) => t.same([world.value, world.context.lastError], ['stopping', 'ENOENT']),
  },
  {
    takes: 'stopping COMMAND.EXITED → ∅',
    proves: 'the exit of a command that is stopped does not end the wait for its descendants',
    given: to.stopping,
    when: (world) => world.report({ type: 'COMMAND.EXITED', exitCode: null, signal: 'SIGTERM' }),
    shows: (t, world) => t.same([world.value, world.context.signal, world.ends.length], ['stopping', 'SIGTERM', 1]),
  },
  {
    takes: 'stopping done(stop) → ended',
    proves: 'survivors of SIGKILL are counted',
    given: to.stopping,
    when: (world) => open(world.ends).answer({ survivors: 2 }),
    shows: (t, world) => t.same([world.value, world.context.survivors, world.releases], ['ended', 2, 1]),
  },
  {
    takes: 'stopping error(stop) → ended',
    proves: 'a failed stop ends the process, and says why',
    given: to.stopping,
    when: (world) => open(world.ends).fail('odd'),
    shows: (t, world) => t.same([world.value, world.context.lastError], ['ended', 'odd']),
  },
];

walkEvery(t, backgroundProcessMachine, () => new World(), walks);

t.test('a second stop changes nothing: the first one counts', async (t) => {
  const world = new World();
  await to.stopping(world);
  world.actor.send({ type: 'PROCESS.STOP', by: 'server' });
  await flush();
  t.same([world.context.stoppedBy, world.ends.length], ['agent', 1]);
});
