import t, { type Test } from 'tap';
import { apiProxyMachine } from '../../machines/index.ts';
import { flush, type Walk, walkEvery } from './harness.ts';
import { policy, SidecarWorld } from './worlds.ts';

const to = {
  async probing(world: SidecarWorld) {
    await world.spawned();
  },
  async aborting(world: SidecarWorld) {
    await world.spawned();
    await world.notReady();
  },
  running: (world: SidecarWorld) => world.run(),
  async unhealthy(world: SidecarWorld) {
    await world.run();
    await world.probeFailed(3);
  },
  async ending(world: SidecarWorld) {
    await to.unhealthy(world);
    await world.pass(policy.unhealthyGraceMs);
  },
  async endingByForce(world: SidecarWorld) {
    await to.ending(world);
    await world.pass(policy.gracefulStopMs);
  },
  async terminating(world: SidecarWorld) {
    await world.run();
    await world.send('PROXY.STOP');
  },
  async killing(world: SidecarWorld) {
    await to.terminating(world);
    await world.pass(policy.gracefulStopMs);
  },
  async backingOff(world: SidecarWorld) {
    await world.run();
    await world.exited(1);
  },
};

const commands = (world: SidecarWorld) => world.os.last('sidecar').commands;

function isClean(t: Test, world: SidecarWorld): void {
  t.same(world.os.live('sidecar'), [], 'no sidecar lives');
  t.same(Object.keys(world.actor.getSnapshot().children), [], 'no actor is left');
}

const walks: Walk<SidecarWorld>[] = [
  {
    takes: 'starting PROXY.STOP → stopping',
    proves: 'A stop overtakes a start, and waits for the process that was already asked for.',
    given: flush,
    when: (world) => world.send('PROXY.STOP'),
    shows: (t, world) => {
      t.equal(world.state, 'stopping.terminating');
      t.same(commands(world), ['TERMINATE']);
    },
  },
  {
    takes: 'starting PROCESS.EXITED [isThisIncarnation] → exited',
    proves: 'A sidecar that never served and ends is not revived: its start has failed.',
    given: to.probing,
    when: (world) => world.exited(2),
    shows: (t, world) => {
      t.equal(world.state, 'exited.resting');
      t.match(world.told.at(-1), { type: 'PROXY.EXITED', exitCode: 2, final: true });
      isClean(t, world);
    },
  },
  {
    takes: 'starting PROCESS.REFUSED [isThisIncarnation] → exited',
    proves: 'What the operating system will not start is reported as final.',
    given: flush,
    when: (world) => world.refused(),
    shows: (t, world) => {
      t.equal(world.state, 'exited.resting');
      t.match(world.told.at(-1), { type: 'PROXY.EXITED', error: 'it was refused', final: true });
      isClean(t, world);
    },
  },
  {
    takes: 'starting after(proxyDeadline) → starting.aborting',
    proves: 'A sidecar that does not answer in time is killed before its start counts as failed.',
    given: to.probing,
    when: (world) => world.pass(policy.proxyDeadlineMs),
    shows: (t, world) => {
      t.equal(world.state, 'starting.aborting.killing');
      t.same(commands(world), ['KILL']);
      t.same(world.told, []);
      t.match(world.context.lastError, 'not ready within 10000 ms');
    },
  },
  {
    takes: 'starting.spawning PROCESS.SPAWNED [isThisIncarnation] → starting.probing',
    proves: 'It is asked for its models once it is there.',
    given: flush,
    when: (world) => world.spawned(),
    shows: (t, world) => {
      t.equal(world.state, 'starting.probing');
      t.equal(world.readiness.length, 1);
    },
  },
  {
    takes: 'starting.probing done(readiness) → running',
    proves: 'Running is reported when it has answered, not before.',
    given: to.probing,
    when: (world) => world.ready(),
    shows: (t, world) => {
      t.equal(world.state, 'running');
      t.same(world.told, [{ type: 'PROXY.RUNNING', pid: world.os.last('sidecar').pid }]);
    },
  },
  {
    takes: 'starting.probing error(readiness) → starting.aborting',
    proves: 'A sidecar that cannot become ready is killed, and the reason is kept.',
    given: to.probing,
    when: (world) => world.notReady(),
    shows: (t, world) => {
      t.equal(world.state, 'starting.aborting.killing');
      t.equal(world.context.lastError, 'no models');
    },
  },
  {
    takes: 'starting.aborting.killing after(killVerify) → starting.aborting.stuck',
    proves: 'What survives SIGKILL is waited for.',
    given: to.aborting,
    when: (world) => world.pass(policy.killVerifyMs),
    shows: (t, world) => {
      t.equal(world.state, 'starting.aborting.stuck');
      t.match(world.context.lastError, 'did not end after SIGKILL');
      t.same(world.told, []);
    },
  },
  {
    takes: 'running PROXY.STOP → stopping',
    proves: 'A stop is polite first.',
    given: to.running,
    when: (world) => world.send('PROXY.STOP'),
    shows: (t, world) => t.same(commands(world), ['TERMINATE']),
  },
  {
    takes: 'running PROCESS.EXITED [isThisIncarnation] → exited',
    proves: 'A death after service is reported as not final.',
    given: to.running,
    when: (world) => world.exited(null, 'SIGKILL'),
    shows: (t, world) => {
      t.equal(world.state, 'exited.backingOff');
      t.match(world.told.at(-1), { type: 'PROXY.EXITED', signal: 'SIGKILL', final: false });
      isClean(t, world);
    },
  },
  {
    takes: 'running PROBE.PASSED [isThisIncarnation] → ∅',
    proves: 'A success forgets the failures before it.',
    given: async (world) => {
      await world.run();
      await world.probeFailed(2);
    },
    when: (world) => world.probePassed(),
    shows: (t, world) => t.match([world.state, world.context.probeFailures], ['running', 0]),
  },
  {
    takes: 'running PROBE.FAILED [reachesFailureThreshold] → unhealthy',
    proves: 'Several failures in a row are reported with the reason.',
    given: async (world) => {
      await world.run();
      await world.probeFailed(2);
    },
    when: (world) => world.probeFailed(),
    shows: (t, world) => {
      t.equal(world.state, 'unhealthy');
      t.match(world.told.at(-1), { type: 'PROXY.UNHEALTHY', error: /no answer/, consecutiveFailures: 3 });
      t.same(commands(world), []);
    },
  },
  {
    takes: 'running PROBE.FAILED [isThisIncarnation] → ∅',
    proves: 'One failure is counted, no more.',
    given: to.running,
    when: (world) => world.probeFailed(),
    shows: (t, world) => t.match([world.state, world.context.probeFailures], ['running', 1]),
  },
  {
    takes: 'unhealthy PROBE.PASSED [isThisIncarnation] → running',
    proves: 'One success ends the trouble, and running is reported again.',
    given: to.unhealthy,
    when: (world) => world.probePassed(),
    shows: (t, world) => {
      t.match(world.context, { probeFailures: 0, lastError: null });
      t.equal(world.told.at(-1)?.type, 'PROXY.RUNNING');
      t.equal(world.os.processes.length, 1, 'it is the same process');
    },
  },
  {
    takes: 'unhealthy PROBE.FAILED [isThisIncarnation] → ∅',
    proves: 'Further failures are counted and not reported again.',
    given: to.unhealthy,
    when: (world) => world.probeFailed(),
    shows: (t, world) => {
      t.equal(world.context.probeFailures, 4);
      t.equal(world.told.filter(({ type }) => type === 'PROXY.UNHEALTHY').length, 1);
    },
  },
  {
    takes: 'unhealthy PROXY.START → ending',
    proves: 'A start need not wait for the grace period.',
    given: to.unhealthy,
    when: (world) => world.send('PROXY.START'),
    shows: (t, world) => {
      t.same(commands(world), ['TERMINATE']);
      t.equal(world.context.startFollows, true);
    },
  },
  {
    takes: 'unhealthy PROXY.STOP → stopping',
    proves: 'A sidecar that does not answer can be stopped.',
    given: to.unhealthy,
    when: (world) => world.send('PROXY.STOP'),
    shows: (t, world) => t.same(commands(world), ['TERMINATE']),
  },
  {
    takes: 'unhealthy PROCESS.EXITED [isThisIncarnation] → exited',
    proves: 'Its own death is a failure like any other.',
    given: to.unhealthy,
    when: (world) => world.exited(1),
    shows: (t, world) => {
      t.equal(world.state, 'exited.backingOff');
      isClean(t, world);
    },
  },
  {
    takes: 'unhealthy after(unhealthyGrace) [mayRestart] → ending',
    proves: 'After the grace period it is ended so that another can start.',
    given: to.unhealthy,
    when: (world) => world.pass(policy.unhealthyGraceMs),
    shows: (t, world) => t.same(commands(world), ['TERMINATE']),
  },
  {
    takes: 'ending PROXY.START → ∅',
    proves: 'A start during the end is remembered.',
    given: to.ending,
    when: (world) => world.send('PROXY.START'),
    shows: (t, world) => {
      t.equal(world.context.startFollows, true);
      t.equal(world.state, 'ending.terminating');
    },
  },
  {
    takes: 'ending PROXY.STOP → stopping',
    proves: 'A stop wins over the restart that was due.',
    given: to.ending,
    when: async (world) => {
      await world.send('PROXY.STOP');
      await world.exited(0);
    },
    shows: (t, world) => {
      t.equal(world.state, 'stopped');
      isClean(t, world);
    },
  },
  {
    takes: 'ending PROCESS.EXITED [startFollows] → starting',
    proves: 'The start that was requested follows at once, after the end was reported.',
    given: async (world) => {
      await to.unhealthy(world);
      await world.send('PROXY.START');
    },
    when: (world) => world.exited(null, 'SIGTERM'),
    shows: (t, world) => {
      t.equal(world.state, 'starting.spawning');
      t.match(world.told.at(-1), { type: 'PROXY.EXITED', signal: 'SIGTERM', final: false, restarts: true });
      t.match(world.context, { incarnation: 2, startFollows: false });
    },
  },
  {
    takes: 'ending PROCESS.EXITED [isThisIncarnation] → exited',
    proves: 'Without a request the restart policy decides, and the reason is kept.',
    given: to.ending,
    when: (world) => world.exited(0),
    shows: (t, world) => {
      t.equal(world.state, 'exited.backingOff');
      t.match(world.told.at(-1), { type: 'PROXY.EXITED', error: /does not answer/, final: false, restarts: false });
      t.equal(world.context.failures.length, 1);
    },
  },
  {
    takes: 'ending.terminating after(gracefulStop) → ending.killing',
    proves: 'A hung process may ignore SIGTERM.',
    given: to.ending,
    when: (world) => world.pass(policy.gracefulStopMs),
    shows: (t, world) => t.same(commands(world), ['TERMINATE', 'KILL']),
  },
  {
    takes: 'ending.killing after(killVerify) → ending.stuck',
    proves: 'A process that survives SIGKILL is waited for.',
    given: to.endingByForce,
    when: (world) => world.pass(policy.killVerifyMs),
    shows: (t, world) => {
      t.equal(world.state, 'ending.stuck');
      t.match(world.context.lastError, 'did not end after SIGKILL');
    },
  },
  {
    takes: 'stopping PROCESS.EXITED [isThisIncarnation] → stopped',
    proves: 'Stopped is reported when the group is empty.',
    given: to.terminating,
    when: (world) => world.exited(0),
    shows: (t, world) => {
      t.equal(world.state, 'stopped');
      t.match(world.told.at(-1), { type: 'PROXY.STOPPED', exitCode: 0 });
      isClean(t, world);
    },
  },
  {
    takes: 'stopping PROCESS.REFUSED [isThisIncarnation] → stopped',
    proves: 'A process that never came into being need not be waited for.',
    given: (world) => world.send('PROXY.STOP'),
    when: (world) => world.refused(),
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
    shows: (t, world) => t.same(commands(world), ['TERMINATE', 'KILL']),
  },
  {
    takes: 'stopping.killing after(killVerify) → stopping.stuck',
    proves: 'What survives SIGKILL is never called stopped.',
    given: to.killing,
    when: (world) => world.pass(policy.killVerifyMs),
    shows: (t, world) => {
      t.equal(world.state, 'stopping.stuck');
      t.notOk(world.told.some(({ type }) => type === 'PROXY.STOPPED'));
    },
  },
  {
    takes: 'stopped PROXY.START → starting',
    proves: 'It can be started again as a new incarnation.',
    given: async (world) => {
      await to.terminating(world);
      await world.exited(0);
    },
    when: (world) => world.send('PROXY.START'),
    shows: (t, world) => {
      t.equal(world.state, 'starting.spawning');
      t.equal(world.os.last('sidecar').incarnation, 2);
    },
  },
  {
    takes: 'exited PROXY.START → starting',
    proves: 'A start does not wait for the back-off, and forgets the failures.',
    given: to.backingOff,
    when: (world) => world.send('PROXY.START'),
    shows: (t, world) => {
      t.equal(world.state, 'starting.spawning');
      t.match(world.context, { failures: [], attempt: 0 });
    },
  },
  {
    takes: 'exited PROXY.STOP → stopped',
    proves: 'A stop cancels the restart that was due, and is answered at once.',
    given: to.backingOff,
    when: (world) => world.send('PROXY.STOP'),
    shows: (t, world) => {
      world.clock.increment(60_000);
      t.equal(world.state, 'stopped');
      t.match(world.told.at(-1), { type: 'PROXY.STOPPED', pid: null });
    },
  },
  {
    takes: 'exited.deciding always [mustNotRestart] → exited.resting',
    proves: 'Policy never means never.',
    world: () => new SidecarWorld({ restart: 'never' }),
    given: to.running,
    when: (world) => world.exited(1),
    shows: (t, world) => {
      world.clock.increment(600_000);
      t.equal(world.state, 'exited.resting');
      t.match(world.told.at(-1), { type: 'PROXY.EXITED', final: true });
    },
  },
  {
    takes: 'exited.deciding always [exceedsFailureLimit] → exited.givenUp',
    proves: 'Too many failures in the window end the restarts, which is reported.',
    world: () => new SidecarWorld({ maxRestarts: 1 }),
    given: async (world) => {
      await to.backingOff(world);
      await world.pass(1_000);
    },
    when: (world) => world.exited(1),
    shows: (t, world) => {
      t.equal(world.state, 'exited.givenUp');
      t.match(world.told.at(-1), { type: 'PROXY.EXITED', final: true });
    },
  },
  {
    takes: 'exited.deciding always → exited.backingOff',
    proves: 'A sidecar that served before is revived after a jittered pause.',
    given: to.running,
    when: (world) => world.exited(0),
    shows: (t, world) => {
      t.equal(world.state, 'exited.backingOff');
      const { delayMs } = world.context;
      t.ok(delayMs >= 500 && delayMs <= 1_000, String(delayMs));
    },
  },
  {
    takes: 'exited.backingOff after(backoff) → starting',
    proves: 'The revival is a new incarnation.',
    given: to.backingOff,
    when: (world) => world.pass(world.context.delayMs),
    shows: (t, world) => {
      t.equal(world.state, 'starting.spawning');
      t.equal(world.os.last('sidecar').incarnation, 2);
    },
  },
];

walkEvery(t, apiProxyMachine, () => new SidecarWorld(), walks);

t.test('only the first process is adopted; what follows is spawned', async (t) => {
  const adopted = new SidecarWorld({}, true);
  t.equal(adopted.os.last('sidecar').mode, 'adopt');
  await adopted.run();
  await adopted.exited(null);
  await adopted.pass(1_000);
  t.equal(adopted.os.last('sidecar').mode, 'spawn');

  const gone = new SidecarWorld({}, true);
  await gone.exited(null);
  await gone.send('PROXY.START');
  t.equal(gone.os.last('sidecar').mode, 'spawn');
});

t.test('a refusal that comes while the start is being aborted ends it', async (t) => {
  const world = new SidecarWorld();
  await world.pass(policy.proxyDeadlineMs);
  t.equal(world.state, 'starting.aborting.killing');
  await world.refused();
  t.equal(world.state, 'exited.resting');
  isClean(t, world);
});

t.test('regression: edge 3 a policy that never restarts leaves an unhealthy sidecar until a start', async (t) => {
  const world = new SidecarWorld({ restart: 'never' });
  await to.unhealthy(world);
  await world.pass(3_600_000);
  t.equal(world.state, 'unhealthy');
  await world.send('PROXY.START');
  await world.exited(0);
  t.equal(world.state, 'starting.spawning');
});

t.test('an event of an earlier incarnation changes nothing', async (t) => {
  for (const [name, lead] of Object.entries(to)) {
    const world = new SidecarWorld();
    await lead(world);
    const before = world.actor.getSnapshot();
    world.actor.send({ type: 'PROCESS.SPAWNED', incarnation: 0, pid: 1 });
    world.actor.send({ type: 'PROCESS.EXITED', incarnation: 0, exitCode: 1, signal: null, at: 0 });
    world.actor.send({ type: 'PROCESS.REFUSED', incarnation: 0, error: 'no', isRetryable: true, at: 0 });
    world.actor.send({ type: 'PROBE.PASSED', incarnation: 0 });
    for (let times = 0; times < 4; times++) world.actor.send({ type: 'PROBE.FAILED', incarnation: 0, error: 'no' });
    t.equal(world.actor.getSnapshot().context, before.context, name);
    t.same(world.actor.getSnapshot().value, before.value, name);
  }
});
