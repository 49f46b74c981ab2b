import t from 'tap';
import { agentServerMachine } from '../../../machines/index.ts';
import { type Walk, walkEvery } from '../harness.ts';
import { policy, Workspace } from '../worlds.ts';
import { commands, isClean, sidecarCommands, sources, to, withPolicy } from './steps.ts';

const withIdleStop = withPolicy({ idleStopMs: 60_000 });

const walks: Walk<Workspace>[] = [
  {
    takes: 'stopping.agreeing done(askToSleep) [staysAwake] → running',
    proves: 'A server that has a client or work stays awake, and emits nothing.',
    world: withIdleStop,
    given: to.agreeing,
    when: (world) => world.decided(false),
    shows: (t, world) => {
      t.equal(world.state, 'running');
      t.equal(world.context.stopReason, null);
      t.equal(world.emittedTypes.filter((type) => type === 'appserver.running').length, 1);
      t.same(commands(world), []);
    },
  },
  {
    takes: 'stopping.agreeing done(askToSleep) [staysAwake] → running',
    proves: 'A request while the server decides is applied when it stays awake.',
    world: withIdleStop,
    given: async (world) => {
      await to.agreeing(world);
      await world.ensure();
    },
    when: (world) => world.decided(false),
    shows: (t, world) => {
      t.equal(world.state, 'running');
      t.equal(world.context.deferredRequest, null);
      t.equal(world.os.processes.length, 1);
    },
  },
  {
    takes: 'stopping.agreeing done(askToSleep) → stopping.terminating',
    proves: 'A server that agrees to sleep is ended, and a request before its end starts it again.',
    world: withIdleStop,
    given: async (world) => {
      await to.agreeing(world);
      await world.ensure();
    },
    when: async (world) => {
      await world.decided(true);
      await world.exited(0);
    },
    shows: (t, world) => {
      t.same(world.state, 'starting.preparing');
      t.match(world.emitted.at(-1), { type: 'appserver.exited', stopReason: 'idle' });
      t.equal(world.context.deferredRequest, null);
    },
  },
  {
    takes: 'stopping.agreeing done(askToSleep) → stopping.terminating',
    proves: 'A stop by the user ends a server that would stay awake.',
    world: withIdleStop,
    given: async (world) => {
      await to.agreeing(world);
      await world.stop();
    },
    when: (world) => world.decided(false),
    shows: (t, world) => {
      t.equal(world.state, 'stopping.terminating');
      t.equal(world.context.stopReason, 'user');
      t.same(commands(world), ['TERMINATE']);
    },
  },
  {
    takes: 'stopping.agreeing error(askToSleep) → stopping.terminating',
    proves: 'An idle server that does not answer is stopped.',
    world: withIdleStop,
    given: to.agreeing,
    when: (world) => world.undecided(),
    shows: (t, world) => t.equal(world.state, 'stopping.terminating'),
  },
  {
    takes: 'stopping ENSURE [isIdleStop] → ∅',
    proves: 'A request while the server falls asleep waits for its end.',
    world: withIdleStop,
    given: to.fallingAsleep,
    when: (world) => world.ensure(),
    shows: (t, world) => {
      t.equal(world.state, 'stopping.terminating');
      t.match(world.context, { stopReason: 'idle', deferredRequest: { type: 'ENSURE' } });
    },
  },
  {
    takes: 'stopping ENSURE → ∅',
    proves: 'An ensure during a stop starts the server after the stop, never a second process beside it.',
    given: to.terminating,
    when: (world) => world.ensure(),
    shows: (t, world) => {
      t.equal(world.state, 'stopping.terminating');
      t.equal(world.context.stopReason, 'restart');
      t.equal(world.os.processes.length, 1);
    },
  },
  {
    takes: 'stopping RESTART → ∅',
    proves: 'A restart during a stop starts the server after the stop.',
    given: to.terminating,
    when: (world) => world.restart(),
    shows: (t, world) => t.equal(world.context.stopReason, 'restart'),
  },
  {
    takes: 'stopping STOP → ∅',
    proves: 'A stop during a restart cancels the start.',
    given: async (world) => {
      await world.run();
      await world.restart();
    },
    when: (world) => world.stop(),
    shows: (t, world) => {
      t.equal(world.context.stopReason, 'user');
      t.same(commands(world), ['TERMINATE'], 'it is not signalled twice');
    },
  },
  {
    takes: 'stopping PROCESS.EXITED [isThisIncarnation] → stopping.settling',
    proves: 'A stop of an unhealthy server counts as a failure.',
    given: async (world) => {
      await to.unhealthy(world);
      await world.pass(policy.unhealthyGraceMs);
    },
    when: (world) => world.exited(0),
    shows: (t, world) => {
      t.equal(world.state, 'starting.preparing');
      t.equal(world.context.failures.length, 1);
    },
  },
  {
    takes: 'stopping PROCESS.EXITED [isThisIncarnation] → stopping.settling',
    proves: 'A requested stop is not a failure, whatever the exit code.',
    given: to.terminating,
    when: (world) => world.exited(143),
    shows: (t, world) => {
      t.equal(world.state, 'stopped');
      t.match(world.emitted.at(-1), { type: 'appserver.exited', exitCode: 143, stopReason: 'user', error: null });
      isClean(t, world);
    },
  },
  {
    takes: 'stopping PROCESS.REFUSED [isThisIncarnation] → stopping.settling',
    proves: 'A refused process is not awaited.',
    given: async (world) => {
      await to.spawning(world);
      await world.stop();
    },
    when: (world) => world.refused(),
    shows: (t, world) => {
      t.equal(world.state, 'stopped');
      isClean(t, world);
    },
  },
  {
    takes: 'stopping.settling always [hasProcess] → stopping.terminating',
    proves: 'A requested process is awaited, because it may still be spawned.',
    given: to.spawning,
    when: (world) => world.stop(),
    shows: (t, world) => {
      t.equal(world.state, 'stopping.terminating');
      t.same(commands(world), ['TERMINATE']);
    },
  },
  {
    takes: 'stopping.settling always → stopped',
    proves: 'A stop without a process completes at once.',
    given: to.preparing,
    when: (world) => world.stop(),
    shows: (t, world) => {
      t.equal(world.state, 'stopped');
      isClean(t, world);
    },
  },
  {
    takes: 'stopping.terminating after(gracefulStop) → stopping.killing',
    proves: 'A process that ignores SIGTERM gets SIGKILL after the grace period.',
    given: to.terminating,
    when: (world) => world.pass(policy.gracefulStopMs),
    shows: (t, world) => {
      t.equal(world.state, 'stopping.killing');
      t.same(commands(world), ['TERMINATE', 'KILL']);
    },
  },
  {
    takes: 'stopping.killing after(killVerify) → stopping.stuck',
    proves:
      'A container whose engine is unreachable cannot be ended: the state is stuck, and the reason names the engine.',
    given: async (world) => {
      await to.runningInPlace(world);
      await world.place('PLACE.LOST');
      await world.stop();
      await world.pass(policy.gracefulStopMs);
    },
    when: (world) => world.pass(policy.killVerifyMs),
    shows: (t, world) => {
      t.equal(world.state, 'stopping.stuck');
      t.match(world.context.lastError, /container engine does not answer/);
    },
  },
  {
    takes: 'stopping.killing after(killVerify) → stopping.stuck',
    proves: 'A process that survives SIGKILL is stuck, not stopped.',
    given: to.killing,
    when: (world) => world.pass(policy.killVerifyMs),
    shows: (t, world) => {
      t.equal(world.state, 'stopping.stuck');
      t.ok(world.actor.getSnapshot().hasTag('settled'));
      t.match(world.context, { hasProcess: true, failureKind: 'unhealthy' });
    },
  },
  {
    takes: 'stopping.settling always [startFollowsStop] → starting',
    proves: 'The end of the old process is emitted before the new one begins, and a manual start resets the failures.',
    given: async (world) => {
      await to.backingOff(world);
      await world.pass(1_000);
      await world.prepared();
      await world.spawned();
      await world.ready();
      await world.restart();
    },
    when: (world) => world.exited(0),
    shows: (t, world) => {
      t.equal(world.state, 'starting.preparing');
      t.match(world.emitted.at(-1), { type: 'appserver.exited', stopReason: 'restart' });
      t.match(world.context, { failures: [], attempt: 0, delayMs: null });
    },
  },
  {
    takes: 'stopping.settling always [recoveryExceedsFailureLimit] → exited.givenUp',
    proves: 'A server that is unhealthy too often is given up.',
    world: withPolicy({ maxRestarts: 0 }),
    given: async (world) => {
      await to.unhealthy(world);
      await world.pass(policy.unhealthyGraceMs);
    },
    when: (world) => world.exited(0),
    shows: (t, world) => {
      t.equal(world.state, 'exited.givenUp');
      t.match(world.context.lastError, /^Gave up after 1 failures within 60 s/);
      isClean(t, world);
    },
  },
  {
    takes: 'stopping.settling always [startFollowsStop] → starting',
    proves: 'The stop of an unhealthy server is followed by a start, counted as an automatic attempt.',
    given: async (world) => {
      await to.unhealthy(world);
      await world.pass(policy.unhealthyGraceMs);
    },
    when: async (world) => {
      await world.exited(0);
      await world.prepared();
    },
    shows: (t, world) => {
      t.same(world.emitted.at(-1), { type: 'appserver.starting', attempt: 1, delayMs: 0 });
      t.match(
        world.emitted.find(({ type }) => type === 'appserver.exited'),
        { stopReason: 'unhealthy' },
      );
    },
  },
  {
    takes: 'stopping.settling always [hasSidecar] → stopping.stoppingProxy',
    proves: 'The sidecar stops after its server.',
    given: async (world) => {
      await to.runningWithSidecar(world);
      await world.stop();
    },
    when: (world) => world.exited(0),
    shows: (t, world) => {
      t.equal(world.state, 'stopping.stoppingProxy');
      t.same(sidecarCommands(world), ['TERMINATE']);
    },
  },
  {
    takes: 'stopping.settling always → stopped',
    proves: 'A stopped workspace retains no pid, failure, attempt or sidecar.',
    given: to.terminating,
    when: (world) => world.exited(0),
    shows: (t, world) => {
      t.equal(world.state, 'stopped');
      t.match(world.context, { pid: null, failures: [], attempt: 0, slot: { inForce: null }, lastError: null });
      t.equal(world.emittedTypes.filter((type) => type === 'appserver.exited').length, 1);
    },
  },
  {
    takes: 'stopping.stoppingProxy SLOT.EMPTIED → stopping.settling',
    proves: 'Stopped is reached when neither server nor sidecar runs.',
    given: to.stoppingSidecar,
    when: (world) => world.sidecar('exited'),
    shows: (t, world) => {
      t.equal(world.state, 'stopped');
      t.same(world.emittedTypes.slice(-2), ['apiProxy.exited', 'appserver.exited']);
      t.same(world.os.live('sidecar'), []);
      isClean(t, world);
    },
  },
];

walkEvery(t, agentServerMachine, () => new Workspace(), walks, sources.stopping);
