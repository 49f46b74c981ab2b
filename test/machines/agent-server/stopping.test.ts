import t from 'tap';
import { agentServerMachine } from '../../../machines/index.ts';
import { type Walk, walkEvery } from '../harness.ts';
import { policy, Workspace } from '../worlds.ts';
import { commands, isClean, sidecarCommands, sources, to, withPolicy } from './steps.ts';

const walks: Walk<Workspace>[] = [
  {
    takes: 'stopping ENSURE → ∅',
    proves: 'An ensure during a stop is answered by a start after it, never by a second process.',
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
    proves: 'A restart during a stop is the same.',
    given: to.terminating,
    when: (world) => world.restart(),
    shows: (t, world) => t.equal(world.context.stopReason, 'restart'),
  },
  {
    takes: 'stopping STOP → ∅',
    proves: 'A stop during a restart wins: the last word of the operator counts.',
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
    takes: 'stopping PROCESS.EXITED [endsUnhealthyRun] → stopping.settling',
    proves: 'A stop for bad health counts as a failure.',
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
    proves: 'A stop that was asked for is not a failure, whatever the exit code.',
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
    proves: 'A process that never came into being need not be waited for.',
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
    takes: 'stopping.choosing always [hasProcess] → stopping.terminating',
    proves: 'Also a process that was only asked for is waited for: it may come into being yet.',
    given: to.spawning,
    when: (world) => world.stop(),
    shows: (t, world) => {
      t.equal(world.state, 'stopping.terminating');
      t.same(commands(world), ['TERMINATE']);
    },
  },
  {
    takes: 'stopping.choosing always → stopping.settling',
    proves: 'Where there is no process a stop is done at once.',
    given: to.preparing,
    when: (world) => world.stop(),
    shows: (t, world) => {
      t.equal(world.state, 'stopped');
      isClean(t, world);
    },
  },
  {
    takes: 'stopping.terminating after(gracefulStop) → stopping.killing',
    proves: 'Politeness has an end.',
    given: to.terminating,
    when: (world) => world.pass(policy.gracefulStopMs),
    shows: (t, world) => {
      t.equal(world.state, 'stopping.killing');
      t.same(commands(world), ['TERMINATE', 'KILL']);
    },
  },
  {
    takes: 'stopping.killing after(killVerify) → stopping.stuck',
    proves: 'What survives SIGKILL is never called stopped.',
    given: to.killing,
    when: (world) => world.pass(policy.killVerifyMs),
    shows: (t, world) => {
      t.equal(world.state, 'stopping.stuck');
      t.ok(world.actor.getSnapshot().hasTag('settled'));
      t.match(world.context, { hasProcess: true, failureKind: 'unhealthy' });
    },
  },
  {
    takes: 'stopping.settling always [restartFollowsStop] → starting',
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
    proves: 'A server that falls ill again and again is given up.',
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
    takes: 'stopping.settling always [recoveryFollowsStop] → starting',
    proves: 'After a stop for bad health comes a start, counted as an attempt of the supervisor.',
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
    proves: 'The sidecar goes after the server that used it.',
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
    proves: 'At rest nothing is remembered that could surprise the next start.',
    given: to.terminating,
    when: (world) => world.exited(0),
    shows: (t, world) => {
      t.equal(world.state, 'stopped');
      t.match(world.context, { pid: null, failures: [], attempt: 0, sidecar: null, lastError: null });
      t.equal(world.emittedTypes.filter((type) => type === 'appserver.exited').length, 1);
    },
  },
  {
    takes: 'stopping.stoppingProxy PROXY.STOPPED → stopping.settling',
    proves: 'Stopped means: neither a server nor a sidecar lives.',
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
