import t from 'tap';
import {
  type AgentServerEvent,
  agentServerMachine,
  isDecided,
  isServing,
  isSuperseded,
} from '../../../machines/index.ts';
import { failure, flush, open, sourcesOf } from '../harness.ts';
import { policy, Workspace } from '../worlds.ts';
import { commands, isClean, sidecarCommands, sources, to } from './steps.ts';

t.test('the test files of this folder walk the transitions of every state', async (t) => {
  t.same(Object.values(sources).flat().sort(), sourcesOf(agentServerMachine).sort());
});

t.test('an event of an earlier incarnation is ignored in every state', async (t) => {
  const late: AgentServerEvent[] = [
    { type: 'PROCESS.SPAWNED', incarnation: 0, pid: 1 },
    { type: 'PROCESS.ENDING', incarnation: 0 },
    { type: 'PROCESS.EXITED', incarnation: 0, exitCode: 1, signal: null, at: 0 },
    { type: 'PROCESS.EXITED', incarnation: 0, exitCode: 75, signal: null, at: 0 },
    { type: 'PROCESS.REFUSED', incarnation: 0, error: 'no', isRetryable: true, at: 0 },
    { type: 'PROBE.PASSED', incarnation: 0, idleMs: 1e9 },
    { type: 'PROBE.FAILED', incarnation: 0, error: 'no' },
  ];
  for (const [name, lead] of Object.entries(to)) {
    const world = new Workspace({ livenessFailures: 1, idleStopMs: 1 });
    await lead(world);
    const before = world.actor.getSnapshot();
    for (const event of late) world.send(event);
    t.equal(world.actor.getSnapshot().context, before.context, `${name}: the context is the same object`);
    t.same(world.actor.getSnapshot().value, before.value, `${name}: so is the state`);
  }
});

t.test('a refusal during the abort of a start ends it', async (t) => {
  const world = new Workspace();
  await to.spawning(world);
  await world.pass(policy.startDeadlineMs);
  t.equal(world.state, 'starting.aborting.killing');
  await world.refused();
  t.equal(world.state, 'exited.backingOff');
  isClean(t, world);
});

t.test('a stopping sidecar is awaited, also when the request names it again', async (t) => {
  const world = new Workspace();
  await to.restingWhileSidecarLeaves(world);
  await world.ensure('keep');
  t.equal(world.state, 'starting.replacingProxy');
  await world.sidecar('exited');
  await world.prepared();
  t.equal(world.state, 'starting.proxying', 'the server gets a sidecar that lives');
});

t.test('an adopted server is restarted after a crash', async (t) => {
  const world = new Workspace();
  await to.adopting(world);
  await world.prepared('adopted');
  await world.spawned();
  await world.ready();
  t.match(world.emitted.at(-1), { type: 'appserver.running', ownership: 'adopted' });
  await world.exited(null);
  await world.pass(1_000);
  t.same(open(world.preparations).input, { workspacePath: '/w', incarnation: 2, mayStart: true, sidecar: null });
});

t.test('an external server is never stopped, restarted or given a sidecar', async (t) => {
  const world = new Workspace();
  await to.external(world);
  await world.stop();
  await world.restart();
  await world.ensure('replace');
  await world.probeFailed(3);
  t.equal(world.state, 'unhealthy');
  await world.pass(3_600_000);
  await world.ensure();
  await world.stop();
  t.equal(world.state, 'unhealthy');
  t.same(commands(world), []);
  await world.exited(null);
  t.equal(world.state, 'exited.resting');
});

t.test('the restart after a stable run does not wait, and the next one waits as after a first failure', async (t) => {
  const world = new Workspace();
  await to.backingOff(world);
  await world.pass(world.context.delayMs ?? 0);
  await world.prepared();
  await world.spawned();
  await world.ready();
  t.equal(world.context.attempt, 1);
  t.ok(world.context.delayMs, 'a first start that failed waits');
  await world.pass(policy.stableAfterMs);
  await world.exited(1);
  t.match(world.context, { attempt: 1, delayMs: 0 });
  await world.pass(0);
  await world.prepared();
  await world.spawned();
  await world.ready();
  await world.exited(1);
  t.equal(world.context.attempt, 2);
  t.ok(world.context.delayMs, 'a short run is no stable one');
});

t.test('regression: edge 2 a request for another sidecar waits for a restart that names it', async (t) => {
  const world = new Workspace();
  await to.runningWithSidecar(world);
  await world.ensure('replace');
  t.match(world.context, { slot: { inForce: 1, pending: 2 } }, 'the run is not disturbed');
  await world.ensure('keep');
  t.equal(world.context.slot.pending, null, 'a request for the present one withdraws it');
  await world.ensure('replace');
  await world.restart();
  await world.exited(0);
  t.same(sidecarCommands(world), [], 'a plain restart leaves the sidecar alone');
  await world.prepared();
  await world.spawned();
  await world.ready();
  t.match(world.context, { slot: { inForce: 1, proven: 1, pending: null, state: 'running' } });
  await world.restart('replace');
  await world.exited(0);
  t.equal(world.state, 'starting.replacingProxy', 'a restart that names it applies it');
});

t.test('regression: edge 2 a start without a requested sidecar returns to the last one that worked', async (t) => {
  for (const proven of [1, null]) {
    const world = new Workspace();
    await world.run(proven === null ? undefined : 'keep');
    await world.restart('replace');
    await world.exited(0);
    if (proven !== null) await world.sidecar('exited');
    await world.prepared();
    await world.sidecar('spawned');
    await world.sidecar('exited');
    t.match(world.state, 'exited.resting', 'no server starts on a sidecar that failed');
    t.equal(world.context.failureKind, 'apiProxy');
    await world.ensure();
    t.equal(open(world.preparations).input.sidecar, proven, `then with ${proven ?? 'none'}`);
    t.equal(world.context.slot.inForce, proven);
  }
});

t.test('regression: edge 3 an ensure restarts a sidecar that does not answer', async (t) => {
  const world = new Workspace();
  await to.runningWithSidecar(world);
  await world.sidecarProbeFailed(3);
  await world.ensure();
  t.equal(world.context.slot.state, 'starting', 'the caller waits');
  t.same(sidecarCommands(world), ['TERMINATE']);
  await world.sidecar('exited');
  t.equal(world.context.slot.state, 'starting', 'the next one is on its way');
  await world.sidecar('spawned');
  await world.sidecar('ready');
  t.match(world.context, { slot: { state: 'running', error: null } });
  t.same(
    world.emittedTypes.filter((type) => type.startsWith('apiProxy.')),
    ['apiProxy.running', 'apiProxy.unhealthy', 'apiProxy.exited', 'apiProxy.running'],
  );
});

t.test('regression: edge 16 an end is emitted once, and a failed start with its reason', async (t) => {
  const exits = (world: Workspace) => world.emitted.filter(({ type }) => type === 'appserver.exited');
  const failed = new Workspace();
  await to.preparing(failed);
  await failed.notPrepared(failure('invalidConfig', false, 'The file is broken.'));
  await failed.stop('hub');
  t.equal(failed.state, 'stopped');
  t.match(exits(failed), [{ pid: null, error: 'The file is broken.', stopReason: null }]);
  t.equal(exits(failed).length, 1, 'a shutdown does not end it again');

  const idle = new Workspace();
  await to.preparing(idle);
  await idle.stop();
  t.same(exits(idle), [], 'nothing was started, so nothing ends');

  const crashed = new Workspace();
  await to.resting(crashed);
  await crashed.stop();
  t.equal(exits(crashed).length, 1);

  const stopped = new Workspace();
  await to.runningWithSidecar(stopped);
  await stopped.sidecar('exited');
  await stopped.stop();
  await stopped.exited(0);
  t.equal(stopped.state, 'stopped');
  t.equal(stopped.emittedTypes.filter((type) => type === 'apiProxy.exited').length, 1, 'one end of one sidecar');
  t.equal(exits(stopped).length, 1);
});

t.test('regression: edge 17 a failure without a restart is not counted as a restart', async (t) => {
  const world = new Workspace();
  await to.preparing(world);
  const broken = failure('invalidConfig', false);
  Object.assign(broken, { failure: { kind: 'invalidConfig', message: 'broken', isRetryable: false, at: 1 } });
  await world.notPrepared(broken);
  t.equal(world.state, 'exited.resting');
  t.same(world.context.failures, []);

  const ended = new Workspace();
  await to.resting(ended);
  t.same(ended.context.failures, []);

  const crashed = new Workspace();
  await to.backingOff(crashed);
  t.equal(crashed.context.failures.length, 1, 'a crash that is followed by a restart is');
});

t.test('a lost race for the lock is repeated at most three times', async (t) => {
  const world = new Workspace();
  await world.ensure();
  for (let race = 0; race < 3; race++) {
    await world.prepared();
    await world.exited(75);
    t.equal(world.state, 'starting.preparing');
  }
  await world.prepared();
  await world.exited(75);
  t.equal(world.state, 'exited.backingOff');
});

t.test('an ensure during the back-off of a failed adoption may start a new server', async (t) => {
  const world = new Workspace();
  world.send({ type: 'ADOPT', sidecar: 'none' });
  await world.pass(policy.startDeadlineMs);
  t.equal(world.state, 'exited.backingOff');
  await world.ensure();
  t.equal(open(world.preparations).input.mayStart, true);
});

t.test('a sidecar that exceeded the deadline of a start does not affect the next start', async (t) => {
  const world = new Workspace();
  await to.proxying(world);
  await world.pass(policy.startDeadlineMs);
  t.equal(world.state, 'exited.backingOff');
  await world.ensure('keep');
  t.equal(world.state, 'starting.replacingProxy', 'the old one goes first');
  await world.sidecar('spawned');
  await world.sidecar('exited');
  await world.prepared();
  await world.sidecar('spawned');
  await world.sidecar('ready');
  await world.spawned();
  await world.ready();
  t.equal(world.state, 'running');
  t.equal(world.os.live('sidecar').length, 1);
});

t.test('a stop during an adoption ends the server once it is adopted', async (t) => {
  const world = new Workspace();
  await to.adopting(world);
  await world.stop('hub');
  await world.prepared('adopted');
  await world.spawned();
  await world.ready();
  t.equal(world.state, 'stopping.terminating');
  t.match(world.context, { stopReason: 'hub', deferredRequest: null });
  await world.exited(0);
  t.equal(world.state, 'stopped');
  t.same(world.emittedTypes, ['appserver.running', 'appserver.exited']);
  isClean(t, world);
});

t.test('a restart during an adoption replaces the server once it is adopted', async (t) => {
  const world = new Workspace();
  await to.adopting(world);
  await world.restart();
  await world.prepared('adopted');
  await world.spawned();
  await world.ready();
  t.equal(world.state, 'stopping.terminating');
  await world.exited(0);
  t.match(open(world.preparations).input, { mayStart: true });
});

t.test('a stop during an adoption that finds no server leads to rest', async (t) => {
  const world = new Workspace();
  await to.adopting(world);
  await world.stop();
  await world.notPrepared(failure('crashed', false));
  t.equal(world.state, 'stopped');
  t.equal(world.context.deferredRequest, null);
  isClean(t, world);
});

t.test('a restart during an adoption starts a server when none is found', async (t) => {
  const world = new Workspace();
  await to.adopting(world);
  await world.restart();
  await world.notPrepared(failure('crashed', false));
  t.equal(world.state, 'starting.preparing');
  t.match(open(world.preparations).input, { mayStart: true });
});

t.test('an ensure during an adoption starts a server when none is found', async (t) => {
  const world = new Workspace();
  await to.adopting(world);
  await world.ensure('replace');
  await world.ensure();
  await world.notPrepared(failure('crashed', false));
  t.equal(world.state, 'starting.preparing');
  t.match(open(world.preparations).input, { mayStart: true, sidecar: 1 });
  t.equal(world.context.deferredRequest, null);
});

t.test('an ensure during an adoption leaves the adopted server running', async (t) => {
  const world = new Workspace();
  await to.adopting(world);
  await world.ensure();
  await world.prepared('adopted');
  await world.spawned();
  await world.ready();
  t.equal(world.state, 'running');
  t.same(commands(world), []);
});

t.test('an ensure after a stop during an adoption replaces the server once it is adopted', async (t) => {
  const world = new Workspace();
  await to.adopting(world);
  await world.stop();
  await world.ensure();
  await world.prepared('adopted');
  await world.spawned();
  await world.ready();
  t.match(world.context, { stopReason: 'restart' });
  await world.exited(0);
  t.match(open(world.preparations).input, { mayStart: true });
});

t.test(
  'a server whose process has ended does not serve, and an ensure before its group is empty starts the next one',
  async (t) => {
    const world = new Workspace();
    await to.running(world);
    await world.ending();
    t.match(world.actor.getSnapshot(), { value: 'running', context: { isEnding: true } });
    t.notOk(isServing(world.actor.getSnapshot()));
    t.notOk(isDecided(world.actor.getSnapshot()));
    await world.ensure('replace');
    t.same(commands(world), []);
    await world.exited(null, 'SIGKILL');
    t.equal(world.state, 'starting.preparing');
    t.match(world.context, { isEnding: false, deferredRequest: null, slot: { inForce: 1 }, attempt: 1 });
  },
);

t.test('a stop replaces an ensure that waits for the end of the process', async (t) => {
  const world = new Workspace();
  await to.running(world);
  await world.ending();
  await world.ensure();
  await world.stop();
  await world.exited(null, 'SIGKILL');
  t.equal(world.state, 'stopped');
  isClean(t, world);
  await world.ensure();
  t.match(world.context, { deferredRequest: null, isEnding: false });
});

t.test('a stop during an adoption does not signal an external server', async (t) => {
  const world = new Workspace();
  await to.adopting(world);
  await world.stop();
  await world.prepared('external');
  await world.spawned();
  await world.ready();
  t.equal(world.state, 'running');
  t.same(commands(world), []);
});

t.test('a replaced port is emitted before the server is running', async (t) => {
  const world = new Workspace();
  await to.probing(world);
  await world.ready([{ service: 'dashboard', port: 4_711 }]);
  t.same(world.emitted.slice(-2, -1), [{ type: 'port.allocated', service: 'dashboard', port: 4_711 }]);
  t.equal(world.emittedTypes.at(-1), 'appserver.running');
});

t.test('restartCount counts restarts, not a failure before its restart', async (t) => {
  const world = new Workspace({ maxRestarts: 1 });
  await to.backingOff(world);
  t.equal(world.context.restartCount, 0, 'a restart is due');
  await world.pass(world.context.delayMs ?? 0);
  t.equal(world.context.restartCount, 1, 'it is made');
  await world.prepared();
  await world.spawned();
  await world.exited(1);
  t.equal(world.state, 'exited.givenUp');
  t.equal(world.context.restartCount, 1, 'no restart follows the last failure');
  await world.ensure();
  t.equal(world.context.restartCount, 0, 'a manual start begins anew');
});

t.test('a start that came to nothing under an earlier Hub emits nothing and leaves a clean rest', async (t) => {
  const world = new Workspace();
  await to.adopting(world);
  await world.notPrepared(failure('neverStarted', false));
  t.equal(world.state, 'stopped');
  t.same(world.emitted, []);
  await world.ensure();
  t.match(
    world.context,
    { lastError: null, failureKind: null, mayStart: true },
    'the next start begins without its reason',
  );
});

t.test(
  'an adopted server whose sidecar ended unseen emits the end with its pid before the next sidecar starts',
  async (t) => {
    const world = new Workspace();
    world.send({ type: 'ADOPT', sidecar: 1 });
    await flush();
    open(world.preparations).answer({ ownership: 'adopted', ports: [], lostSidecarPid: 71 });
    await flush();
    t.match(world.emitted, [{ type: 'apiProxy.exited', sidecar: 1, pid: 71, stopped: false }]);
    t.equal(world.context.slot.state, 'starting');
  },
);

t.test('a request after a stop supersedes it: the stopped run is over when the next one begins', async (t) => {
  for (const later of ['ensure', 'restart'] as const) {
    const world = new Workspace();
    await world.run();
    const before = world.actor.getSnapshot();
    await world.stop();
    await world[later]();
    t.notOk(isSuperseded(world.actor.getSnapshot(), before), 'its process still runs');
    await world.exited(0);
    t.ok(isSuperseded(world.actor.getSnapshot(), before), later);
    t.match(world.emitted.at(-1), { type: 'appserver.exited', stopReason: 'restart' });
  }
});

t.test('a stop after an ensure that waits for an adoption wins', async (t) => {
  const world = new Workspace();
  await to.adopting(world);
  await world.ensure();
  await world.prepared('adopted');
  await world.stop();
  await world.spawned();
  await world.exited(0);
  t.equal(world.state, 'stopped');
});
