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
    proves: 'A stop ends a start and waits for the process that was already requested.',
    given: flush,
    when: (world) => world.send('PROXY.STOP'),
    shows: (t, world) => {
      t.equal(world.state, 'stopping.terminating');
      t.same(commands(world), ['TERMINATE']);
    },
  },
  {
    takes: 'starting PROCESS.EXITED [isThisIncarnation] → exited',
    proves: 'A sidecar that ends before it served is not restarted: its start has failed.',
    given: to.probing,
    when: (world) => world.exited(2),
    shows: (t, world) => {
      t.equal(world.state, 'exited.resting');
      t.match(world.reported.at(-1), { type: 'PROXY.EXITED', exitCode: 2, final: true });
      isClean(t, world);
    },
  },
  {
    takes: 'starting PROCESS.REFUSED [isThisIncarnation] → exited',
    proves: 'A refusal of the operating system is reported as final.',
    given: flush,
    when: (world) => world.refused(),
    shows: (t, world) => {
      t.equal(world.state, 'exited.resting');
      t.match(world.reported.at(-1), { type: 'PROXY.EXITED', error: 'it was refused', final: true });
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
      t.same(world.reported, []);
      t.match(world.context.lastError, 'not ready within 10000 ms');
    },
  },
  {
    takes: 'starting.spawning PROCESS.SPAWNED [isThisIncarnation] → starting.probing',
    proves: 'A spawned sidecar is probed.',
    given: flush,
    when: (world) => world.spawned(),
    shows: (t, world) => {
      t.equal(world.state, 'starting.probing');
      t.equal(world.readiness.length, 1);
    },
  },
  {
    takes: 'starting.probing done(readiness) → running',
    proves: 'Running is reported when the sidecar has answered, not before.',
    given: to.probing,
    when: (world) => world.ready(),
    shows: (t, world) => {
      t.equal(world.state, 'running');
      t.same(world.reported, [{ type: 'PROXY.RUNNING', pid: world.os.last('sidecar').pid }]);
    },
  },
  {
    takes: 'starting.probing error(readiness) → starting.aborting',
    proves: 'A sidecar that cannot become ready is killed, and the reason recorded.',
    given: to.probing,
    when: (world) => world.notReady(),
    shows: (t, world) => {
      t.equal(world.state, 'starting.aborting.killing');
      t.equal(world.context.lastError, 'no models');
    },
  },
  {
    takes: 'starting.aborting.killing after(killVerify) → starting.aborting.stuck',
    proves: 'A process that survives SIGKILL during the abort is awaited.',
    given: to.aborting,
    when: (world) => world.pass(policy.killVerifyMs),
    shows: (t, world) => {
      t.equal(world.state, 'starting.aborting.stuck');
      t.match(world.context.lastError, 'did not end after SIGKILL');
      t.same(world.reported, []);
    },
  },
  {
    takes: 'running PROXY.STOP → stopping',
    proves: 'A stop first sends SIGTERM.',
    given: to.running,
    when: (world) => world.send('PROXY.STOP'),
    shows: (t, world) => t.same(commands(world), ['TERMINATE']),
  },
  {
    takes: 'running PROCESS.EXITED [isThisIncarnation] → exited',
    proves: 'An exit after service is reported as not final.',
    given: to.running,
    when: (world) => world.exited(null, 'SIGKILL'),
    shows: (t, world) => {
      t.equal(world.state, 'exited.backingOff');
      t.match(world.reported.at(-1), { type: 'PROXY.EXITED', signal: 'SIGKILL', final: false });
      isClean(t, world);
    },
  },
  {
    takes: 'running PROBE.PASSED [isThisIncarnation] → ∅',
    proves: 'A passed probe resets the failed ones.',
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
      t.match(world.reported.at(-1), { type: 'PROXY.UNHEALTHY', error: /no answer/, consecutiveFailures: 3 });
      t.same(commands(world), []);
    },
  },
  {
    takes: 'running PROBE.FAILED [isThisIncarnation] → ∅',
    proves: 'One failed probe is counted and changes nothing else.',
    given: to.running,
    when: (world) => world.probeFailed(),
    shows: (t, world) => t.match([world.state, world.context.probeFailures], ['running', 1]),
  },
  {
    takes: 'unhealthy PROBE.PASSED [isThisIncarnation] → running',
    proves: 'One passed probe makes the sidecar running again, which is reported.',
    given: to.unhealthy,
    when: (world) => world.probePassed(),
    shows: (t, world) => {
      t.match(world.context, { probeFailures: 0, lastError: null });
      t.equal(world.reported.at(-1)?.type, 'PROXY.RUNNING');
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
      t.equal(world.reported.filter(({ type }) => type === 'PROXY.UNHEALTHY').length, 1);
    },
  },
  {
    takes: 'unhealthy PROXY.START → ending',
    proves: 'A start skips the grace period.',
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
    proves: 'The exit of an unhealthy sidecar is a failure.',
    given: to.unhealthy,
    when: (world) => world.exited(1),
    shows: (t, world) => {
      t.equal(world.state, 'exited.backingOff');
      isClean(t, world);
    },
  },
  {
    takes: 'unhealthy after(unhealthyGrace) [mayRestart] → ending',
    proves: 'After the grace period the sidecar is ended for a restart.',
    given: to.unhealthy,
    when: (world) => world.pass(policy.unhealthyGraceMs),
    shows: (t, world) => t.same(commands(world), ['TERMINATE']),
  },
  {
    takes: 'ending PROXY.START → ∅',
    proves: 'A start during the end is deferred until after it.',
    given: to.ending,
    when: (world) => world.send('PROXY.START'),
    shows: (t, world) => {
      t.equal(world.context.startFollows, true);
      t.equal(world.state, 'ending.terminating');
    },
  },
  {
    takes: 'ending PROXY.STOP → stopping',
    proves: 'A stop cancels the pending restart.',
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
    proves: 'A requested start follows at once, after the end is reported.',
    given: async (world) => {
      await to.unhealthy(world);
      await world.send('PROXY.START');
    },
    when: (world) => world.exited(null, 'SIGTERM'),
    shows: (t, world) => {
      t.equal(world.state, 'starting.spawning');
      t.match(world.reported.at(-1), { type: 'PROXY.EXITED', signal: 'SIGTERM', final: false, restarts: true });
      t.match(world.context, { incarnation: 2, startFollows: false });
    },
  },
  {
    takes: 'ending PROCESS.EXITED [isThisIncarnation] → exited',
    proves: 'Without a request the restart policy decides, and the reason is recorded.',
    given: to.ending,
    when: (world) => world.exited(0),
    shows: (t, world) => {
      t.equal(world.state, 'exited.backingOff');
      t.match(world.reported.at(-1), { type: 'PROXY.EXITED', error: /does not answer/, final: false, restarts: false });
      t.equal(world.context.failures.length, 1);
    },
  },
  {
    takes: 'ending.terminating after(gracefulStop) → ending.killing',
    proves: 'A hung process that ignores SIGTERM gets SIGKILL.',
    given: to.ending,
    when: (world) => world.pass(policy.gracefulStopMs),
    shows: (t, world) => t.same(commands(world), ['TERMINATE', 'KILL']),
  },
  {
    takes: 'ending.killing after(killVerify) → ending.stuck',
    proves: 'A process that survives SIGKILL is awaited.',
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
      t.match(world.reported.at(-1), { type: 'PROXY.STOPPED', exitCode: 0 });
      isClean(t, world);
    },
  },
  {
    takes: 'stopping PROCESS.REFUSED [isThisIncarnation] → stopped',
    proves: 'A refused process is not awaited.',
    given: (world) => world.send('PROXY.STOP'),
    when: (world) => world.refused(),
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
    shows: (t, world) => t.same(commands(world), ['TERMINATE', 'KILL']),
  },
  {
    takes: 'stopping.killing after(killVerify) → stopping.stuck',
    proves: 'A process that survives SIGKILL is stuck, not stopped.',
    given: to.killing,
    when: (world) => world.pass(policy.killVerifyMs),
    shows: (t, world) => {
      t.equal(world.state, 'stopping.stuck');
      t.notOk(world.reported.some(({ type }) => type === 'PROXY.STOPPED'));
    },
  },
  {
    takes: 'stopped PROXY.START → starting',
    proves: 'A stopped sidecar can be started as a new incarnation.',
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
    proves: 'A start skips the back-off and clears the failures.',
    given: to.backingOff,
    when: (world) => world.send('PROXY.START'),
    shows: (t, world) => {
      t.equal(world.state, 'starting.spawning');
      t.match(world.context, { failures: [], attempt: 0 });
    },
  },
  {
    takes: 'exited PROXY.STOP → stopped',
    proves: 'A stop cancels the pending restart and completes at once.',
    given: to.backingOff,
    when: (world) => world.send('PROXY.STOP'),
    shows: (t, world) => {
      world.clock.increment(60_000);
      t.equal(world.state, 'stopped');
      t.match(world.reported.at(-1), { type: 'PROXY.STOPPED', pid: null });
    },
  },
  {
    takes: 'exited.deciding always [mustNotRestart] → exited.resting',
    proves: 'The policy never prevents a restart.',
    world: () => new SidecarWorld({ restart: 'never' }),
    given: to.running,
    when: (world) => world.exited(1),
    shows: (t, world) => {
      world.clock.increment(600_000);
      t.equal(world.state, 'exited.resting');
      t.match(world.reported.at(-1), { type: 'PROXY.EXITED', final: true });
    },
  },
  {
    takes: 'exited.deciding always [exceedsFailureLimit] → exited.givenUp',
    proves: 'Too many failures within the window end the restarts, which is reported.',
    world: () => new SidecarWorld({ maxRestarts: 1 }),
    given: async (world) => {
      await to.backingOff(world);
      await world.pass(1_000);
    },
    when: (world) => world.exited(1),
    shows: (t, world) => {
      t.equal(world.state, 'exited.givenUp');
      t.match(world.reported.at(-1), { type: 'PROXY.EXITED', final: true });
    },
  },
  {
    takes: 'exited.deciding always → exited.backingOff',
    proves: 'A sidecar that served before is restarted after a jittered pause.',
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
    proves: 'The restart is a new incarnation.',
    given: to.backingOff,
    when: (world) => world.pass(world.context.delayMs),
    shows: (t, world) => {
      t.equal(world.state, 'starting.spawning');
      t.equal(world.os.last('sidecar').incarnation, 2);
    },
  },
];

walkEvery(t, apiProxyMachine, () => new SidecarWorld(), walks);

t.test('the first process is adopted, later ones are spawned', async (t) => {
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

t.test('a refusal during the abort of a start ends it', async (t) => {
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

t.test('an event of an earlier incarnation is ignored', async (t) => {
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
