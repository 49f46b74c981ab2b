import t from 'tap';
import { agentServerMachine } from '../../../machines/index.ts';
import { open, type Walk, walkEvery } from '../harness.ts';
import { Workspace } from '../worlds.ts';
import { commands, isClean, sources, to, withPolicy } from './steps.ts';

const walks: Walk<Workspace>[] = [
  {
    takes: '(any) PLACE.LOST [isThisProcess] → ∅',
    proves: 'A container whose engine does not answer keeps its state, because it may still run.',
    given: to.runningInPlace,
    when: (world) => world.place('PLACE.LOST'),
    shows: (t, world) => {
      t.equal(world.state, 'running');
      t.equal(world.context.isPlaceLost, true);
      t.same(world.emitted.at(-1), { type: 'place.lost' });
      t.same(commands(world), []);
    },
  },
  {
    takes: '(any) PLACE.BACK [isThisProcess] → ∅',
    proves: 'A running container stays running when its engine answers again.',
    given: async (world) => {
      await to.runningInPlace(world);
      await world.place('PLACE.LOST');
    },
    when: (world) => world.place('PLACE.BACK'),
    shows: (t, world) => {
      t.equal(world.state, 'running');
      t.equal(world.context.isPlaceLost, false);
      t.same(world.emitted.at(-1), { type: 'place.back' });
    },
  },
  {
    takes: 'stopped always [isIdleStop] → asleep',
    proves: 'A server without work is asleep when its processes have ended.',
    world: withPolicy({ idleStopMs: 60_000 }),
    given: to.fallingAsleep,
    when: (world) => world.exited(0),
    shows: (t, world) => {
      t.equal(world.state, 'asleep');
      t.match(world.emitted.at(-1), { type: 'appserver.exited', stopReason: 'idle', error: null });
      isClean(t, world);
    },
  },
  {
    takes: 'stopped always [isIdleStop] → asleep',
    proves: 'A workspace that slept under an earlier Hub sleeps again, and emits nothing.',
    given: to.rest,
    when: (world) => world.stop('idle'),
    shows: (t, world) => {
      t.equal(world.state, 'asleep');
      t.same(world.emitted, []);
      isClean(t, world);
    },
  },
  {
    takes: '(any) ENSURE [not hasProcess] → starting',
    proves: 'A request wakes a server that sleeps.',
    world: withPolicy({ idleStopMs: 60_000 }),
    given: to.asleep,
    when: (world) => world.ensure(),
    shows: (t, world) => {
      t.equal(world.state, 'starting.preparing');
      t.equal(world.context.incarnation, 2);
      t.equal(world.context.stopReason, null);
    },
  },
  {
    takes: '(any) STOP [not hasExternalServer] → stopping',
    proves: 'A user stops a server that sleeps: no request starts it then.',
    world: withPolicy({ idleStopMs: 60_000 }),
    given: to.asleep,
    when: (world) => world.stop(),
    shows: (t, world) => {
      t.equal(world.state, 'stopped');
      t.equal(world.context.stopReason, 'user');
      t.equal(world.emittedTypes.filter((type) => type === 'appserver.exited').length, 1);
      isClean(t, world);
    },
  },
  {
    takes: '(any) SLOT.CHANGED [changesSlot] → ∅',
    proves: 'A sidecar that was restarted automatically is recorded and emitted as running.',
    given: async (world) => {
      await to.runningWithSidecar(world);
      await world.sidecar('exited');
      await world.pass(1_000);
      await world.sidecar('spawned');
    },
    when: (world) => world.sidecar('ready'),
    shows: (t, world) => {
      t.match(world.context, { slot: { state: 'running', pid: world.os.last('sidecar').pid, error: null } });
      t.equal(world.emittedTypes.at(-1), 'apiProxy.running');
      t.equal(world.state, 'running');
    },
  },
  {
    takes: '(any) SLOT.CHANGED [changesSlot] → ∅',
    proves: 'A sidecar that stops answering is recorded and emitted; its server keeps running.',
    given: to.runningWithSidecar,
    when: (world) => world.sidecarProbeFailed(3),
    shows: (t, world) => {
      t.match(world.context, { slot: { state: 'unhealthy', error: 'The sidecar does not answer: no answer.' } });
      t.match(world.emitted.at(-1), { type: 'apiProxy.unhealthy', sidecar: 1, consecutiveFailures: 3 });
      t.equal(world.state, 'running');
    },
  },
  {
    takes: '(any) SLOT.CHANGED [changesSlot] → ∅',
    proves: 'The death of a sidecar is emitted and leaves its server running.',
    given: to.runningWithSidecar,
    when: (world) => world.sidecar('exited'),
    shows: (t, world) => {
      t.match(world.context, { slot: { state: 'exited', pid: null, error: 'The sidecar exited (code 1).' } });
      t.match(world.emitted.at(-1), { type: 'apiProxy.exited', exitCode: 1, stopped: false });
      t.equal(world.state, 'running');
    },
  },
  {
    takes: '(any) SLOT.CHANGED [changesSlot] → ∅',
    proves: 'The sidecar of a server that must not restart is stopped and released.',
    given: to.restingWhileSidecarLeaves,
    when: (world) => world.sidecar('exited'),
    shows: (t, world) => {
      t.equal(world.state, 'exited.resting');
      t.match(world.emitted.at(-1), { type: 'apiProxy.exited', stopped: true });
      t.equal(world.context.slot.state, 'none');
      isClean(t, world);
    },
  },
  {
    takes: '(any) PROBE.FAILED [isThisProcess] → ∅',
    proves: 'One failed probe does not make a server unhealthy.',
    given: to.running,
    when: (world) => world.probeFailed(),
    shows: (t, world) => {
      t.equal(world.state, 'running');
      t.equal(world.context.probeFailures, 1);
    },
  },
  {
    takes: '(any) PROCESS.ENDING [endsUnasked] → ∅',
    proves: 'A server whose process has ended does not serve, and its end waits until its group is empty.',
    given: to.running,
    when: (world) => world.ending(),
    shows: (t, world) => {
      t.equal(world.state, 'running');
      t.equal(world.context.isEnding, true);
    },
  },
  {
    takes: '(any) PROCESS.EXITED [isThisProcess] → exited',
    proves: 'A crash is emitted with its cause and the pause before the next attempt.',
    given: to.running,
    when: (world) => world.exited(null, 'SIGSEGV'),
    shows: (t, world) => {
      t.equal(world.state, 'exited.backingOff');
      t.match(world.emitted.at(-1), {
        type: 'appserver.exited',
        signal: 'SIGSEGV',
        error: 'The agent server was ended by SIGSEGV.',
        delayMs: Number,
      });
      isClean(t, world);
    },
  },
  {
    takes: '(any) ENSURE [not hasProcess] → starting',
    proves: 'An ensure checks for an owner of the workspace before it starts a process.',
    given: to.rest,
    when: (world) => world.ensure(),
    shows: (t, world) => {
      t.equal(world.state, 'starting.preparing');
      t.same(open(world.preparations).input, { workspacePath: '/w', incarnation: 1, mayStart: true, sidecar: null });
      t.same(world.os.processes, []);
    },
  },
  {
    takes: '(any) RESTART [not hasExternalServer] → stopping',
    proves: 'A restart of a stopped server is a start.',
    given: to.rest,
    when: (world) => world.restart(),
    shows: (t, world) => t.equal(world.state, 'starting.preparing'),
  },
  {
    takes: '(any) STOP [not hasExternalServer] → stopping',
    proves: 'A stop of a stopped server ends its request for a sidecar and emits nothing.',
    given: to.rest,
    when: (world) => world.stop(),
    shows: (t, world) => {
      t.equal(world.state, 'stopped');
      t.equal(world.context.stopReason, 'user');
      t.same(world.emitted, []);
    },
  },
  {
    takes: 'stopped RESTORE → exited.givenUp',
    proves: 'A workspace that an earlier supervisor gave up rests with its failures, and emits nothing.',
    given: to.rest,
    when: (world) =>
      world.send({ type: 'RESTORE', failures: [-3, -2, -1], restartCount: 2, error: 'It was killed.', exitCode: null }),
    shows: (t, world) => {
      t.equal(world.state, 'exited.givenUp');
      t.match(world.context, { failures: [-3, -2, -1], restartCount: 2, lastError: 'It was killed.', pid: null });
      t.same(world.emitted, []);
    },
  },
  {
    takes: 'stopped ADOPT → starting',
    proves: 'An adoption never starts a server that has ended.',
    given: to.rest,
    when: (world) => world.send({ type: 'ADOPT', sidecar: 'none' }),
    shows: (t, world) => {
      t.equal(world.state, 'starting.preparing');
      t.same(open(world.preparations).input, { workspacePath: '/w', incarnation: 1, mayStart: false, sidecar: null });
    },
  },
  {
    takes: 'stopped ADOPT → starting',
    proves: 'The failures under an earlier supervisor count for the adopted server.',
    given: to.rest,
    when: (world) => world.send({ type: 'ADOPT', sidecar: 'none', failures: [-2, -1] }),
    shows: (t, world) => t.match(world.context, { failures: [-2, -1], attempt: 2, restartCount: 2 }),
  },
  {
    takes: '(any) ENSURE [not hasProcess] → starting',
    proves: 'An ensure starts a server that was given up, without its earlier failures.',
    world: withPolicy({ maxRestarts: 0 }),
    given: to.backingOff,
    when: (world) => world.ensure(),
    shows: (t, world) => {
      t.equal(world.state, 'starting.preparing');
      t.match(world.context, { failures: [], attempt: 0, lastError: null });
    },
  },
  {
    takes: '(any) RESTART [not hasExternalServer] → stopping',
    proves: 'A restart skips the back-off and clears the failures.',
    given: to.backingOff,
    when: (world) => world.restart(),
    shows: (t, world) => {
      t.equal(world.state, 'starting.preparing');
      t.same(world.context.failures, []);
    },
  },
  {
    takes: '(any) STOP [not hasExternalServer] → stopping',
    proves: 'A stop cancels a pending restart.',
    given: to.backingOff,
    when: (world) => world.stop(),
    shows: (t, world) => {
      t.equal(world.state, 'stopped');
      world.clock.increment(60_000);
      t.equal(world.state, 'stopped');
    },
  },
  {
    takes: 'exited.deciding always [mustNotRestart] → exited.resting',
    proves: 'A server that ended with success is not restarted by the policy onFailure.',
    given: to.running,
    when: (world) => world.exited(0),
    shows: (t, world) => {
      t.equal(world.state, 'exited.resting');
      t.match(world.emitted.at(-1), { type: 'appserver.exited', delayMs: null });
      world.clock.increment(600_000);
      t.equal(world.state, 'exited.resting');
    },
  },
  {
    takes: 'exited.deciding always [exceedsFailureLimit] → exited.givenUp',
    proves: 'Too many failures in the window end the automatic restarts.',
    world: withPolicy({ maxRestarts: 1 }),
    given: async (world) => {
      await to.backingOff(world);
      await world.pass(1_000);
      await world.prepared();
      await world.spawned();
    },
    when: (world) => world.exited(1),
    shows: (t, world) => {
      t.equal(world.state, 'exited.givenUp');
      t.match(world.context.lastError, /^Gave up after 2 failures .*exited with code 1/);
      world.clock.increment(600_000);
      t.equal(world.state, 'exited.givenUp');
    },
  },
  {
    takes: 'exited.deciding always → exited.backingOff',
    proves: 'The pause is jittered over the upper half of its ceiling and emitted.',
    given: to.running,
    when: (world) => world.exited(1),
    shows: (t, world) => {
      t.equal(world.state, 'exited.backingOff');
      const { delayMs } = world.context;
      t.ok(delayMs !== null && delayMs >= 500 && delayMs <= 1_000, String(delayMs));
      t.match(world.emitted.at(-1), { type: 'appserver.exited', delayMs });
    },
  },
  {
    takes: 'exited.backingOff ENSURE → starting',
    proves: 'An ensure skips the wait and keeps the count of failures.',
    given: to.backingOff,
    when: (world) => world.ensure(),
    shows: (t, world) => {
      t.equal(world.state, 'starting.preparing');
      t.match(world.context, { delayMs: null, attempt: 1 });
      t.equal(world.context.failures.length, 1);
    },
  },
  {
    takes: 'exited.backingOff after(backoff) → starting',
    proves: 'The back-off ends with a start that emits its number of attempt.',
    given: to.backingOff,
    when: async (world) => {
      await world.pass(world.context.delayMs ?? 0);
      await world.prepared();
    },
    shows: (t, world) => {
      t.match(world.emitted.at(-1), { type: 'appserver.starting', attempt: 1, delayMs: Number });
      t.equal(world.context.incarnation, 2);
    },
  },
];

walkEvery(t, agentServerMachine, () => new Workspace(), walks, sources.atRest);
