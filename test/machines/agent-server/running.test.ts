import t from 'tap';
import { agentServerMachine } from '../../../machines/index.ts';
import { type Walk, walkEvery } from '../harness.ts';
import { policy, Workspace } from '../worlds.ts';
import { commands, isClean, sources, to, withPolicy } from './steps.ts';

const walks: Walk<Workspace>[] = [
  {
    takes: 'unhealthy after(unhealthyGrace) [isPlaceLost] → unhealthy',
    proves:
      'An unhealthy container is not restarted while its engine is unreachable, and gets a new grace period afterwards.',
    given: to.unhealthyWithoutPlace,
    when: async (world) => {
      await world.pass(policy.unhealthyGraceMs);
      await world.place('PLACE.BACK');
      await world.pass(policy.unhealthyGraceMs - 1);
    },
    shows: (t, world) => {
      t.equal(world.state, 'unhealthy');
      t.same(commands(world), []);
      t.equal(world.emittedTypes.filter((type) => type === 'appserver.unhealthy').length, 1);
    },
  },
  {
    takes: 'running ENSURE → ∅',
    proves: 'An ensure of a running server restarts a dead sidecar at once and changes nothing else.',
    given: async (world) => {
      await to.runningWithSidecar(world);
      await world.sidecar('exited');
    },
    when: (world) => world.ensure(),
    shows: (t, world) => {
      t.equal(world.state, 'running');
      t.equal(world.context.incarnation, 1);
      t.equal(world.os.processes.filter(({ kind }) => kind === 'sidecar').length, 2);
    },
  },
  {
    takes: '(any) RESTART [not hasExternalServer] → stopping',
    proves: 'A restart first sends SIGTERM to the server.',
    given: to.running,
    when: (world) => world.restart(),
    shows: (t, world) => {
      t.equal(world.state, 'stopping.terminating');
      t.same(commands(world), ['TERMINATE']);
      t.equal(world.context.stopReason, 'restart');
    },
  },
  {
    takes: '(any) STOP [not hasExternalServer] → stopping',
    proves: 'A stop sends SIGTERM and waits.',
    given: to.running,
    when: (world) => world.stop(),
    shows: (t, world) => {
      t.equal(world.state, 'stopping.terminating');
      t.same(commands(world), ['TERMINATE']);
    },
  },
  {
    takes: 'running PROBE.PASSED [isSleepDue] → stopping.agreeing',
    proves: 'A server that exceeds the idle time of the policy is asked to sleep.',
    world: withPolicy({ idleStopMs: 60_000 }),
    given: to.running,
    when: (world) => world.probePassed(60_000),
    shows: (t, world) => {
      t.equal(world.state, 'stopping.agreeing');
      t.match(world.sleeps.at(-1)?.input, { workspacePath: '/w', incarnation: 1, idleStopMs: 60_000 });
      t.equal(world.context.stopReason, 'idle');
    },
  },
  {
    takes: 'running PROBE.PASSED [isRestartDue] → stopping',
    proves: 'An idle server whose program was replaced is restarted.',
    given: to.running,
    when: (world) => world.probePassed(0, true),
    shows: (t, world) => {
      t.equal(world.state, 'stopping.terminating');
      t.equal(world.context.stopReason, 'restart');
    },
  },
  {
    takes: 'running PROBE.PASSED [isThisIncarnation] → ∅',
    proves: 'A server with a sidecar does not sleep, because its sidecar would end.',
    world: withPolicy({ idleStopMs: 60_000 }),
    given: to.runningWithSidecar,
    when: (world) => world.probePassed(60_000),
    shows: (t, world) => t.equal(world.state, 'running'),
  },
  {
    takes: 'running PROBE.PASSED [isThisIncarnation] → ∅',
    proves: 'A server in a container does not sleep.',
    world: withPolicy({ idleStopMs: 60_000 }),
    given: to.runningInPlace,
    when: (world) => world.probePassed(60_000),
    shows: (t, world) => t.equal(world.state, 'running'),
  },
  {
    takes: 'running PROBE.PASSED [isThisIncarnation] → ∅',
    proves: 'A passed probe resets the failed ones.',
    given: async (world) => {
      await world.run();
      await world.probeFailed(2);
    },
    when: (world) => world.probePassed(),
    shows: (t, world) => {
      t.equal(world.context.probeFailures, 0);
      t.equal(world.state, 'running');
    },
  },
  {
    takes: 'running PROBE.FAILED [reachesFailureThreshold] → unhealthy',
    proves: 'The third failure in a row is emitted, with the count.',
    given: async (world) => {
      await world.run();
      await world.probeFailed(2);
    },
    when: (world) => world.probeFailed(),
    shows: (t, world) => {
      t.equal(world.state, 'unhealthy');
      const { pid } = world.os.last('server');
      t.same(world.emitted.at(-1), { type: 'appserver.unhealthy', pid, error: 'no answer', consecutiveFailures: 3 });
    },
  },
  {
    takes: 'running ENSURE [isEnding] → ∅',
    proves: 'An ensure between the end of the process and the end of its group is applied after both.',
    given: async (world) => {
      await to.running(world);
      await world.ending();
    },
    when: (world) => world.ensure('replace'),
    shows: (t, world) => {
      t.equal(world.state, 'running');
      t.match(world.context, { slot: { pending: 1 }, deferredRequest: { type: 'ENSURE', sidecar: 1 } });
    },
  },
  {
    takes: 'unhealthy PROBE.PASSED [isThisIncarnation] → running',
    proves: 'A server that answers again is running and emitted as recovered.',
    given: to.unhealthy,
    when: (world) => world.probePassed(),
    shows: (t, world) => {
      t.equal(world.state, 'running');
      t.match(world.emitted.at(-1), { type: 'appserver.running', recovered: true });
      t.match(world.context, { lastError: null, probeFailures: 0 });
      t.equal(world.os.processes.length, 1, 'it is the same process');
    },
  },
  {
    takes: '(any) PROBE.FAILED [isThisProcess] → ∅',
    proves: 'Further failures are counted and not emitted again.',
    given: to.unhealthy,
    when: (world) => world.probeFailed(),
    shows: (t, world) => {
      t.equal(world.context.probeFailures, 4);
      t.equal(world.emittedTypes.filter((type) => type === 'appserver.unhealthy').length, 1);
    },
  },
  {
    takes: 'unhealthy ENSURE [not hasExternalServer] → stopping',
    proves: 'An ensure restarts a server that does not answer instead of returning it.',
    given: to.unhealthy,
    when: (world) => world.ensure(),
    shows: (t, world) => {
      t.equal(world.state, 'stopping.terminating');
      t.equal(world.context.stopReason, 'restart');
    },
  },
  {
    takes: '(any) RESTART [not hasExternalServer] → stopping',
    proves: 'A restart skips the grace period.',
    given: to.unhealthy,
    when: (world) => world.restart(),
    shows: (t, world) => t.equal(world.context.stopReason, 'restart'),
  },
  {
    takes: '(any) STOP [not hasExternalServer] → stopping',
    proves: 'A server that does not answer can be stopped.',
    given: to.unhealthy,
    when: (world) => world.stop(),
    shows: (t, world) => {
      t.equal(world.state, 'stopping.terminating');
      t.equal(world.context.stopReason, 'user');
    },
  },
  {
    takes: '(any) PROCESS.ENDING [endsUnasked] → ∅',
    proves: 'The end of an unhealthy process is recorded before its group is empty.',
    given: to.unhealthy,
    when: (world) => world.ending(),
    shows: (t, world) => {
      t.equal(world.state, 'unhealthy');
      t.equal(world.context.isEnding, true);
    },
  },
  {
    takes: '(any) PROCESS.EXITED [isThisProcess] → exited',
    proves: 'The exit of an unhealthy server is a crash.',
    given: to.unhealthy,
    when: (world) => world.exited(1),
    shows: (t, world) => {
      t.equal(world.state, 'exited.backingOff');
      isClean(t, world);
    },
  },
  {
    takes: 'unhealthy after(unhealthyGrace) [mayRestart] → stopping',
    proves: 'After the grace period the server is stopped for a restart.',
    given: to.unhealthy,
    when: (world) => world.pass(policy.unhealthyGraceMs),
    shows: (t, world) => {
      t.equal(world.state, 'stopping.terminating');
      t.equal(world.context.stopReason, 'unhealthy');
    },
  },
];

walkEvery(t, agentServerMachine, () => new Workspace(), walks, sources.running);
