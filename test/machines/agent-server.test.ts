import t, { type Test } from 'tap';
import { type AgentServerEvent, agentServerMachine, type SupervisionPolicy } from '../../machines/index.ts';
import { failure, flush, open, type Walk, walkEvery } from './harness.ts';
import { policy, Workspace } from './worlds.ts';

/** Steps that lead a fresh workspace somewhere. */
const to = {
  rest: flush,
  preparing: (world: Workspace) => world.ensure(),
  async spawning(world: Workspace) {
    await world.ensure();
    await world.prepared();
  },
  async probing(world: Workspace) {
    await to.spawning(world);
    await world.spawned();
  },
  async aborting(world: Workspace) {
    await to.probing(world);
    await world.notReady();
  },
  async proxying(world: Workspace) {
    await world.ensure('keep');
    await world.prepared();
  },
  running: (world: Workspace) => world.run(),
  runningWithSidecar: (world: Workspace) => world.run('keep'),
  async externalProbing(world: Workspace) {
    await world.ensure();
    await world.prepared('external');
    await world.spawned();
  },
  async external(world: Workspace) {
    await to.externalProbing(world);
    await world.ready();
  },
  async unhealthy(world: Workspace) {
    await world.run();
    await world.probeFailed(3);
  },
  async terminating(world: Workspace) {
    await world.run();
    await world.stop();
  },
  async killing(world: Workspace) {
    await to.terminating(world);
    await world.pass(policy.gracefulStopMs);
  },
  async stoppingSidecar(world: Workspace) {
    await to.runningWithSidecar(world);
    await world.stop();
    await world.exited(0);
  },
  async backingOff(world: Workspace) {
    await world.run();
    await world.exited(1);
  },
  async resting(world: Workspace) {
    await world.run();
    await world.exited(0);
  },
  /** The sidecar goes down because its server rests for good; it has not gone yet. */
  async restingWhileSidecarLeaves(world: Workspace) {
    await to.runningWithSidecar(world);
    await world.exited(0);
  },
};

const withPolicy = (changes: Partial<SupervisionPolicy>) => () => new Workspace(changes);
const commands = (world: Workspace) => world.os.last('server').commands;
const sidecarCommands = (world: Workspace) => world.os.last('sidecar').commands;

/** Nothing of ours lives and no actor is left but what is named. */
function isClean(t: Test, world: Workspace, children: string[] = []): void {
  t.same(world.os.live('server'), [], 'no server lives');
  t.same(Object.keys(world.actor.getSnapshot().children), children, 'no actor is left');
  t.same(world.errors, []);
}

const walks: Walk<Workspace>[] = [
  {
    takes: '(any) PROXY.RUNNING → ∅',
    proves: 'A sidecar that came back by itself is known to be there, and told.',
    given: async (world) => {
      await to.runningWithSidecar(world);
      await world.sidecar('exited');
      await world.pass(1_000);
      await world.sidecar('spawned');
    },
    when: (world) => world.sidecar('ready'),
    shows: (t, world) => {
      t.match(world.context, { proxy: 'running', proxyPid: world.os.last('sidecar').pid, proxyError: null });
      t.equal(world.emittedTypes.at(-1), 'apiProxy.running');
      t.equal(world.state, 'running');
    },
  },
  {
    takes: '(any) PROXY.UNHEALTHY → ∅',
    proves: 'A sidecar that stops answering is known and emitted; its server runs on.',
    given: to.runningWithSidecar,
    when: (world) => world.sidecarProbeFailed(3),
    shows: (t, world) => {
      t.match(world.context, { proxy: 'unhealthy', proxyError: 'The sidecar does not answer: no answer.' });
      t.match(world.emitted.at(-1), { type: 'apiProxy.unhealthy', sidecar: 1, consecutiveFailures: 3 });
      t.equal(world.state, 'running');
    },
  },
  {
    takes: '(any) PROXY.EXITED → ∅',
    proves: 'The death of a sidecar is told and leaves its server running.',
    given: to.runningWithSidecar,
    when: (world) => world.sidecar('exited'),
    shows: (t, world) => {
      t.match(world.context, { proxy: 'exited', proxyPid: null, proxyError: 'The sidecar exited (code 1).' });
      t.match(world.emitted.at(-1), { type: 'apiProxy.exited', exitCode: 1, stopped: false });
      t.equal(world.state, 'running');
    },
  },
  {
    takes: '(any) PROXY.STOPPED → ∅',
    proves: 'When a server rests for good its sidecar goes too, and is released.',
    given: to.restingWhileSidecarLeaves,
    when: (world) => world.sidecar('exited'),
    shows: (t, world) => {
      t.equal(world.state, 'exited.resting');
      t.match(world.emitted.at(-1), { type: 'apiProxy.exited', stopped: true });
      t.equal(world.context.proxy, 'none');
      isClean(t, world);
    },
  },
  {
    takes: 'stopped ENSURE → starting',
    proves: 'An ensure asks who owns the workspace before anything is started.',
    given: to.rest,
    when: (world) => world.ensure(),
    shows: (t, world) => {
      t.equal(world.state, 'starting.preparing');
      t.same(open(world.preparations).input, { workspacePath: '/w', incarnation: 1, mayStart: true, sidecar: null });
      t.same(world.os.processes, []);
    },
  },
  {
    takes: 'stopped RESTART → starting',
    proves: 'A restart of what does not run is a start.',
    given: to.rest,
    when: (world) => world.restart(),
    shows: (t, world) => t.equal(world.state, 'starting.preparing'),
  },
  {
    takes: 'stopped ADOPT → starting',
    proves: 'An adoption never starts what is not alive any more.',
    given: to.rest,
    when: (world) => world.send({ type: 'ADOPT', sidecar: 'none' }),
    shows: (t, world) => {
      t.equal(world.state, 'starting.preparing');
      t.same(open(world.preparations).input, { workspacePath: '/w', incarnation: 1, mayStart: false, sidecar: null });
    },
  },
  {
    takes: 'starting STOP [not isOurs] → stopping',
    proves: "A stop lets somebody else's server go at once: it is not ours to signal or to wait for.",
    given: to.externalProbing,
    when: (world) => world.stop(),
    shows: (t, world) => {
      t.equal(world.state, 'stopped');
      t.same(commands(world), []);
      isClean(t, world);
    },
  },
  {
    takes: 'starting STOP → stopping',
    proves: 'A stop overtakes a start, and waits for the process that was already asked for.',
    given: to.probing,
    when: (world) => world.stop('hub'),
    shows: (t, world) => {
      t.equal(world.state, 'stopping.terminating');
      t.equal(world.context.stopReason, 'hub');
      t.equal(world.readiness[0]?.isOpen, false, 'readiness is not asked any more');
    },
  },
  {
    takes: 'starting ENSURE → ∅',
    proves: 'A second ensure shares the start that is under way.',
    given: to.spawning,
    when: (world) => world.ensure(),
    shows: (t, world) => {
      t.equal(world.state, 'starting.spawning');
      t.equal(world.context.incarnation, 1);
      t.equal(world.os.processes.length, 1);
    },
  },
  {
    takes: 'starting RESTART [not isOurs] → stopping',
    proves: "A restart while somebody else's server is being looked at begins the look anew.",
    given: to.externalProbing,
    when: (world) => world.restart(),
    shows: (t, world) => {
      t.equal(world.state, 'starting.preparing');
      t.equal(world.context.incarnation, 2);
      t.same(commands(world), []);
      isClean(t, world, ['prepare']);
    },
  },
  {
    takes: 'starting RESTART → stopping',
    proves: 'A restart ends the start under way before it begins another.',
    given: to.probing,
    when: (world) => world.restart('none'),
    shows: (t, world) => {
      t.equal(world.state, 'stopping.terminating');
      t.equal(world.context.stopReason, 'restart');
    },
  },
  {
    takes: 'starting PROCESS.EXITED [lostTheLockRace] → starting.preparing',
    proves: 'A server that lost the workspace lock makes us look who won, without counting it as a failure.',
    given: to.probing,
    when: (world) => world.exited(75),
    shows: (t, world) => {
      t.equal(world.state, 'starting.preparing');
      t.match(world.context, { incarnation: 2, lockRaces: 1, hasProcess: false, failures: [] });
      isClean(t, world, ['prepare']);
    },
  },
  {
    takes: 'starting PROCESS.EXITED [isThisIncarnation] → exited',
    proves: 'A server that ends before it was ready is a failure, told with its exit code.',
    given: to.probing,
    when: (world) => world.exited(3),
    shows: (t, world) => {
      t.equal(world.state, 'exited.backingOff');
      t.match(world.emitted.at(-1), { type: 'appserver.exited', exitCode: 3, stopReason: null });
      t.match(world.context, { failureKind: 'crashed', lastError: 'The agent server exited with code 3.' });
      isClean(t, world);
    },
  },
  {
    takes: 'starting PROCESS.REFUSED [isThisIncarnation] → exited',
    proves: 'What the operating system will never start is not tried again.',
    given: to.spawning,
    when: (world) => world.refused(false),
    shows: (t, world) => {
      t.equal(world.state, 'exited.resting');
      t.match(world.context, { failureKind: 'startFailed', lastError: 'it was refused', pid: null });
      isClean(t, world);
    },
  },
  {
    takes: 'starting after(startDeadline) [not hasProcess] → exited',
    proves: 'A preparation that never ends is given up: nothing has to be killed.',
    given: to.preparing,
    when: (world) => world.pass(policy.startDeadlineMs),
    shows: (t, world) => {
      t.equal(world.state, 'exited.backingOff');
      t.match(world.context, { failureKind: 'unhealthy', lastError: /not ready within 20000 ms/ });
      t.equal(world.preparations[0]?.isOpen, false);
      isClean(t, world);
    },
  },
  {
    takes: 'starting after(startDeadline) [not isOurs] → exited',
    proves: "Somebody else's server that does not answer is let go, not killed.",
    given: to.externalProbing,
    when: (world) => world.pass(policy.startDeadlineMs),
    shows: (t, world) => {
      t.equal(world.state, 'exited.resting');
      t.same(commands(world), []);
      t.equal(world.context.hasProcess, false);
      isClean(t, world);
    },
  },
  {
    takes: 'starting after(startDeadline) → starting.aborting',
    proves: 'A server that is not ready in time is killed before the start counts as failed.',
    given: to.probing,
    when: (world) => world.pass(policy.startDeadlineMs),
    shows: (t, world) => {
      t.equal(world.state, 'starting.aborting.killing');
      t.same(commands(world), ['KILL']);
      t.notOk(world.emittedTypes.includes('appserver.exited'));
    },
  },
  {
    takes: 'starting.clearing always [mustReplaceProxy] → starting.replacingProxy',
    proves: 'A sidecar that is to be another one is stopped before the server is prepared.',
    given: async (world) => {
      await to.runningWithSidecar(world);
      await world.restart('replace');
    },
    when: (world) => world.exited(0),
    shows: (t, world) => {
      t.equal(world.state, 'starting.replacingProxy');
      t.same(sidecarCommands(world), ['TERMINATE']);
      t.equal(world.preparations.length, 1);
    },
  },
  {
    takes: 'starting.clearing always → starting.preparing',
    proves: 'A sidecar that is to stay is left alone by a restart of its server.',
    given: async (world) => {
      await to.runningWithSidecar(world);
      await world.restart();
    },
    when: (world) => world.exited(0),
    shows: (t, world) => {
      t.equal(world.state, 'starting.preparing');
      t.same(sidecarCommands(world), []);
      t.equal(world.context.proxy, 'running');
    },
  },
  {
    takes: 'starting.replacingProxy PROXY.STOPPED → starting.preparing',
    proves: 'The start goes on when the old sidecar is gone.',
    given: async (world) => {
      await to.runningWithSidecar(world);
      await world.restart('replace');
      await world.exited(0);
    },
    when: (world) => world.sidecar('exited'),
    shows: (t, world) => {
      t.equal(world.state, 'starting.preparing');
      t.match(world.context, { proxy: 'none', sidecar: 2, proxySidecar: null, isProxyLeaving: false });
      t.same(world.os.live('sidecar'), []);
    },
  },
  {
    takes: 'starting.preparing done(prepare) [needsProxy] → starting.proxying',
    proves: 'The sidecar is started before the server that uses it (§4.2 rule 1).',
    given: (world) => world.ensure('keep'),
    when: (world) => world.prepared(),
    shows: (t, world) => {
      t.equal(world.state, 'starting.proxying');
      t.same(world.emittedTypes, ['port.allocated', 'appserver.starting']);
      t.same(
        world.os.processes.map(({ kind }) => kind),
        ['sidecar'],
      );
    },
  },
  {
    takes: 'starting.preparing done(prepare) [adoptsProxy] → starting.spawning',
    proves: 'A server that lives already is taken over at once, and its sidecar beside it.',
    given: async (world) => {
      world.send({ type: 'ADOPT', sidecar: 1 });
      await flush();
    },
    when: (world) => world.prepared('adopted'),
    shows: (t, world) => {
      t.equal(world.state, 'starting.spawning');
      t.equal(world.os.last('server').mode, 'adopt');
      t.equal(world.os.last('sidecar').mode, 'adopt');
      t.notOk(world.emittedTypes.includes('appserver.starting'));
    },
  },
  {
    takes: 'starting.preparing done(prepare) → starting.spawning',
    proves: 'Ports are told, then the start, then the process is asked for; a new policy holds from here on.',
    given: to.preparing,
    when: (world) => world.prepared('managed', { ...policy, maxRestarts: 9 }),
    shows: (t, world) => {
      t.equal(world.state, 'starting.spawning');
      t.same(world.emitted, [
        { type: 'port.allocated', service: 'appServerWebSocket', port: 4000 },
        { type: 'appserver.starting', attempt: 0, delayMs: null },
      ]);
      t.match(world.os.last('server'), { mode: 'spawn', incarnation: 1 });
      t.equal(world.context.policy.maxRestarts, 9);
    },
  },
  {
    takes: 'starting.preparing error(prepare) → exited',
    proves: 'A workspace that is locked by somebody else rests: trying again cannot help.',
    given: to.preparing,
    when: (world) => world.notPrepared(failure('workspaceLocked', false, 'Process 7 owns the lock.')),
    shows: (t, world) => {
      t.equal(world.state, 'exited.resting');
      t.match(world.context, { failureKind: 'workspaceLocked', lastError: 'Process 7 owns the lock.' });
      isClean(t, world);
    },
  },
  {
    takes: 'starting.proxying PROXY.RUNNING → starting.spawning',
    proves: 'The server is asked for when the sidecar answers, not before.',
    given: async (world) => {
      await to.proxying(world);
      await world.sidecar('spawned');
    },
    when: (world) => world.sidecar('ready'),
    shows: (t, world) => {
      t.equal(world.state, 'starting.spawning');
      t.equal(world.emittedTypes.at(-1), 'apiProxy.running');
      t.equal(world.context.proxy, 'running');
    },
  },
  {
    takes: 'starting.proxying PROXY.EXITED [proxyGaveUp] → exited',
    proves: 'No server is ever started on a dead sidecar: the start fails and nothing is left (§4.2 rule 1).',
    given: async (world) => {
      await to.proxying(world);
      await world.sidecar('spawned');
    },
    when: async (world) => {
      await world.sidecar('notReady');
      await world.sidecar('exited');
    },
    shows: (t, world) => {
      t.equal(world.state, 'exited.resting');
      t.match(world.context, { failureKind: 'apiProxy', lastError: 'no models', proxy: 'none' });
      t.same(world.os.live('sidecar'), []);
      isClean(t, world);
    },
  },
  {
    takes: 'starting.proxying PROXY.EXITED → ∅',
    proves: 'A sidecar that served before and is being revived is waited for.',
    given: async (world) => {
      await to.runningWithSidecar(world);
      await world.sidecar('exited');
      await world.exited(1);
      await world.pass(1_000);
      await world.prepared();
    },
    when: (world) => world.sidecar('exited'),
    shows: (t, world) => {
      t.equal(world.state, 'starting.proxying');
      t.equal(world.context.proxy, 'exited');
      t.match(world.emitted.at(-1), { type: 'apiProxy.exited', stopped: false });
    },
  },
  {
    takes: 'starting.spawning PROCESS.SPAWNED [isThisIncarnation] → starting.probing',
    proves: 'The process is known by its pid and is not usable yet.',
    given: to.spawning,
    when: (world) => world.spawned(),
    shows: (t, world) => {
      t.equal(world.state, 'starting.probing');
      t.equal(world.context.pid, world.os.last('server').pid);
      t.notOk(world.emittedTypes.includes('appserver.running'));
    },
  },
  {
    takes: 'starting.probing done(readiness) → running',
    proves: 'appserver.running is told when the server has answered, and then only.',
    given: to.probing,
    when: (world) => world.ready(),
    shows: (t, world) => {
      t.equal(world.state, 'running');
      const { pid } = world.os.last('server');
      t.same(world.emitted.at(-1), { type: 'appserver.running', pid, ownership: 'managed', recovered: false });
      t.equal(world.context.serverVersion, '1.0.0');
    },
  },
  {
    takes: 'starting.probing error(readiness) [not isOurs] → exited',
    proves: "Somebody else's server that fails the handshake is let go and never signalled.",
    given: to.externalProbing,
    when: (world) => world.notReady(),
    shows: (t, world) => {
      t.equal(world.state, 'exited.resting');
      t.same(commands(world), []);
      t.equal(world.context.hasProcess, false);
      isClean(t, world);
    },
  },
  {
    takes: 'starting.probing error(readiness) → starting.aborting',
    proves: 'A server that fails the handshake is killed before anything else happens.',
    given: to.probing,
    when: (world) => world.notReady(),
    shows: (t, world) => {
      t.equal(world.state, 'starting.aborting.killing');
      t.same(commands(world), ['KILL']);
      t.equal(world.context.failureKind, 'unhealthy');
    },
  },
  {
    takes: 'starting.aborting PROCESS.EXITED [isThisIncarnation] → exited',
    proves: 'The reason told is why it was killed, not that it was killed.',
    given: to.aborting,
    when: (world) => world.exited(null, 'SIGKILL'),
    shows: (t, world) => {
      t.equal(world.state, 'exited.backingOff');
      t.match(world.emitted.at(-1), { type: 'appserver.exited', signal: 'SIGKILL', error: 'it unhealthy' });
      isClean(t, world);
    },
  },
  {
    takes: 'starting.aborting.killing after(killVerify) → starting.aborting.stuck',
    proves: 'A process that survives SIGKILL is said to be stuck, and is still waited for.',
    given: to.aborting,
    when: (world) => world.pass(policy.killVerifyMs),
    shows: (t, world) => {
      t.equal(world.state, 'starting.aborting.stuck');
      t.ok(world.actor.getSnapshot().hasTag('settled'), 'whoever waits is answered');
      t.equal(world.context.hasProcess, true);
      t.match(world.context.lastError, 'did not end after SIGKILL');
    },
  },
  {
    takes: 'running ENSURE → ∅',
    proves: 'An ensure of a running server changes nothing but that a dead sidecar is revived at once.',
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
    takes: 'running RESTART [isOurs] → stopping',
    proves: 'A restart stops the server politely first.',
    given: to.running,
    when: (world) => world.restart(),
    shows: (t, world) => {
      t.equal(world.state, 'stopping.terminating');
      t.same(commands(world), ['TERMINATE']);
      t.equal(world.context.stopReason, 'restart');
    },
  },
  {
    takes: 'running STOP [isOurs] → stopping',
    proves: 'A stop sends SIGTERM and waits.',
    given: to.running,
    when: (world) => world.stop(),
    shows: (t, world) => {
      t.equal(world.state, 'stopping.terminating');
      t.same(commands(world), ['TERMINATE']);
    },
  },
  {
    takes: 'running PROBE.PASSED [isIdleTooLong] → stopping',
    proves: 'A server that has been idle too long is stopped, when the policy says so.',
    world: withPolicy({ idleStopMs: 60_000 }),
    given: to.running,
    when: (world) => world.probePassed(60_000),
    shows: (t, world) => {
      t.equal(world.state, 'stopping.terminating');
      t.equal(world.context.stopReason, 'idle');
    },
  },
  {
    takes: 'running PROBE.PASSED [isThisIncarnation] → ∅',
    proves: 'Only failures in a row count.',
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
    takes: 'running PROBE.FAILED [isLastStraw] → unhealthy',
    proves: 'The third failure in a row is told, with the count.',
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
    takes: 'running PROBE.FAILED [isThisIncarnation] → ∅',
    proves: 'One failed probe is not an illness.',
    given: to.running,
    when: (world) => world.probeFailed(),
    shows: (t, world) => {
      t.equal(world.state, 'running');
      t.equal(world.context.probeFailures, 1);
    },
  },
  {
    takes: 'running PROCESS.EXITED [isThisIncarnation] → exited',
    proves: 'A crash is told with what is known of it and when the next attempt is.',
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
    takes: 'unhealthy PROBE.PASSED [isThisIncarnation] → running',
    proves: 'A server that answers again is running again, and told to be recovered.',
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
    takes: 'unhealthy PROBE.FAILED [isThisIncarnation] → ∅',
    proves: 'Further failures are counted and not told again.',
    given: to.unhealthy,
    when: (world) => world.probeFailed(),
    shows: (t, world) => {
      t.equal(world.context.probeFailures, 4);
      t.equal(world.emittedTypes.filter((type) => type === 'appserver.unhealthy').length, 1);
    },
  },
  {
    takes: 'unhealthy ENSURE [isOurs] → stopping',
    proves: 'An ensure does not hand out a server that does not answer: it is restarted.',
    given: to.unhealthy,
    when: (world) => world.ensure(),
    shows: (t, world) => {
      t.equal(world.state, 'stopping.terminating');
      t.equal(world.context.stopReason, 'restart');
    },
  },
  {
    takes: 'unhealthy RESTART [isOurs] → stopping',
    proves: 'An operator need not wait for the grace period.',
    given: to.unhealthy,
    when: (world) => world.restart(),
    shows: (t, world) => t.equal(world.context.stopReason, 'restart'),
  },
  {
    takes: 'unhealthy STOP [isOurs] → stopping',
    proves: 'What does not answer can be stopped.',
    given: to.unhealthy,
    when: (world) => world.stop(),
    shows: (t, world) => {
      t.equal(world.state, 'stopping.terminating');
      t.equal(world.context.stopReason, 'user');
    },
  },
  {
    takes: 'unhealthy PROCESS.EXITED [isThisIncarnation] → exited',
    proves: 'A server that dies while it is unhealthy is a crash like any other.',
    given: to.unhealthy,
    when: (world) => world.exited(1),
    shows: (t, world) => {
      t.equal(world.state, 'exited.backingOff');
      isClean(t, world);
    },
  },
  {
    takes: 'unhealthy after(unhealthyGrace) [mayRestart] → stopping',
    proves: 'The grace period spent, the server is stopped in order to be started again.',
    given: to.unhealthy,
    when: (world) => world.pass(policy.unhealthyGraceMs),
    shows: (t, world) => {
      t.equal(world.state, 'stopping.terminating');
      t.equal(world.context.stopReason, 'unhealthy');
    },
  },
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
    takes: 'stopping PROCESS.EXITED [isThisIncarnationUnhealthy] → stopping.settling',
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
    proves: 'The end of the old process is told before the new one begins, and the operator starts with a clean slate.',
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
    takes: 'stopping.settling always [recoveryIsHopeless] → exited.givenUp',
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
    takes: 'stopping.settling always [hasProxy] → stopping.stoppingProxy',
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
  {
    takes: 'exited ENSURE → starting',
    proves: 'An operator may start what was given up, with a clean slate.',
    world: withPolicy({ maxRestarts: 0 }),
    given: to.backingOff,
    when: (world) => world.ensure(),
    shows: (t, world) => {
      t.equal(world.state, 'starting.preparing');
      t.match(world.context, { failures: [], attempt: 0, lastError: null });
    },
  },
  {
    takes: 'exited RESTART → starting',
    proves: 'A restart does not wait for the back-off, and forgets the failures.',
    given: to.backingOff,
    when: (world) => world.restart(),
    shows: (t, world) => {
      t.equal(world.state, 'starting.preparing');
      t.same(world.context.failures, []);
    },
  },
  {
    takes: 'exited STOP → stopping',
    proves: 'A stop cancels the restart that was due.',
    given: to.backingOff,
    when: (world) => world.stop(),
    shows: (t, world) => {
      t.equal(world.state, 'stopped');
      world.clock.increment(60_000);
      t.equal(world.state, 'stopped');
    },
  },
  {
    takes: 'exited.deciding always [restsForGood] → exited.resting',
    proves: 'A server that ended with success by itself is not started again (onFailure).',
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
    takes: 'exited.deciding always [gaveUp] → exited.givenUp',
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
    proves: 'The pause is jittered over the upper half of its ceiling and told.',
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
    proves: 'The supervisor starts again by itself and tells which attempt it is.',
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

walkEvery(t, agentServerMachine, () => new Workspace(), walks);

t.test('an event of an earlier incarnation changes nothing, in any state', async (t) => {
  const late: AgentServerEvent[] = [
    { type: 'PROCESS.SPAWNED', incarnation: 0, pid: 1 },
    { type: 'PROCESS.EXITED', incarnation: 0, exitCode: 1, signal: null, at: 0 },
    { type: 'PROCESS.EXITED', incarnation: 0, exitCode: 75, signal: null, at: 0 },
    { type: 'PROCESS.REFUSED', incarnation: 0, error: 'no', retriable: true, at: 0 },
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

t.test('a refusal that comes while the start is being aborted ends it', async (t) => {
  const world = new Workspace();
  await to.spawning(world);
  await world.pass(policy.startDeadlineMs);
  t.equal(world.state, 'starting.aborting.killing');
  await world.refused();
  t.equal(world.state, 'exited.backingOff');
  isClean(t, world);
});

t.test('a sidecar that is leaving is waited for, also when the request names it again', async (t) => {
  const world = new Workspace();
  await to.restingWhileSidecarLeaves(world);
  await world.ensure('keep');
  t.equal(world.state, 'starting.replacingProxy');
  await world.sidecar('exited');
  await world.prepared();
  t.equal(world.state, 'starting.proxying', 'the server gets a sidecar that lives');
});

t.test('an adopted server that crashes later is started like any other', async (t) => {
  const world = new Workspace();
  world.send({ type: 'ADOPT', sidecar: 'none' });
  await flush();
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

t.test('a long run makes the next crash the first again, in its back-off', async (t) => {
  const world = new Workspace();
  await to.backingOff(world);
  await world.pass(world.context.delayMs ?? 0);
  await world.prepared();
  await world.spawned();
  await world.ready();
  t.equal(world.context.attempt, 1);
  await world.pass(policy.stableAfterMs);
  await world.exited(1);
  t.equal(world.context.attempt, 1);
});

t.test('regression: edge 2 a request for another sidecar waits for a restart that names it', async (t) => {
  const world = new Workspace();
  await to.runningWithSidecar(world);
  await world.ensure('replace');
  t.match(world.context, { sidecar: 1, pendingSidecar: 2 }, 'the run is not disturbed');
  await world.ensure('keep');
  t.equal(world.context.pendingSidecar, null, 'a request for the present one withdraws it');
  await world.ensure('replace');
  await world.restart();
  await world.exited(0);
  t.same(sidecarCommands(world), [], 'a plain restart leaves the sidecar alone');
  await world.prepared();
  await world.spawned();
  await world.ready();
  t.match(world.context, { sidecar: 1, provenSidecar: 1, pendingSidecar: null, proxy: 'running' });
  await world.restart('replace');
  await world.exited(0);
  t.equal(world.state, 'starting.replacingProxy', 'a restart that names it applies it');
});

t.test('regression: edge 2 a start without a request returns to the proven sidecar', async (t) => {
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
    t.equal(world.context.sidecar, proven);
  }
});

t.test('regression: edge 3 an ensure restarts a sidecar that does not answer', async (t) => {
  const world = new Workspace();
  await to.runningWithSidecar(world);
  await world.sidecarProbeFailed(3);
  await world.ensure();
  t.equal(world.context.proxy, 'starting', 'the caller waits');
  t.same(sidecarCommands(world), ['TERMINATE']);
  await world.sidecar('exited');
  t.equal(world.context.proxy, 'starting', 'the next one is on its way');
  await world.sidecar('spawned');
  await world.sidecar('ready');
  t.match(world.context, { proxy: 'running', proxyError: null });
  t.same(
    world.emittedTypes.filter((type) => type.startsWith('apiProxy.')),
    ['apiProxy.running', 'apiProxy.unhealthy', 'apiProxy.exited', 'apiProxy.running'],
  );
});

t.test('regression: edge 16 an end is emitted once, and a failed start keeps its reason', async (t) => {
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

t.test('regression: edge 17 a failure that no restart follows is not counted as one', async (t) => {
  const world = new Workspace();
  await to.preparing(world);
  const locked = failure('workspaceLocked', false);
  Object.assign(locked, { failure: { kind: 'workspaceLocked', message: 'locked', retriable: false, at: 1 } });
  await world.notPrepared(locked);
  t.equal(world.state, 'exited.resting');
  t.same(world.context.failures, []);

  const ended = new Workspace();
  await to.resting(ended);
  t.same(ended.context.failures, []);

  const crashed = new Workspace();
  await to.backingOff(crashed);
  t.equal(crashed.context.failures.length, 1, 'a crash that is followed by a restart is');
});

t.test('a lost race for the lock is run again at most three times', async (t) => {
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

t.test('a sidecar that kept a start from its deadline does not spoil the next one', async (t) => {
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
