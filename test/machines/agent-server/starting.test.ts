import t from 'tap';
import { exitFailure } from '../../../machines/agent-server-context.ts';
import { agentServerMachine } from '../../../machines/index.ts';
import { failure, flush, type Walk, walkEvery } from '../harness.ts';
import { policy, Workspace } from '../worlds.ts';
import { commands, isClean, sidecarCommands, sources, to } from './steps.ts';

const walks: Walk<Workspace>[] = [
  {
    takes: 'starting STOP [isAdopting] → ∅',
    proves: 'A stop waits for an adoption, so that no live server is left unsupervised.',
    given: to.adopting,
    when: (world) => world.stop(),
    shows: (t, world) => {
      t.equal(world.state, 'starting.preparing');
      t.same(world.context.deferredRequest, { type: 'STOP', reason: 'user' });
    },
  },
  {
    takes: 'starting RESTART [isAdopting] → ∅',
    proves: 'A restart waits for an adoption, with the sidecar it names.',
    given: to.adopting,
    when: (world) => world.restart('replace'),
    shows: (t, world) => {
      t.equal(world.state, 'starting.preparing');
      t.same(world.context.deferredRequest, { type: 'RESTART', sidecar: 1 });
    },
  },
  {
    takes: 'starting ENSURE [isAdopting] → ∅',
    proves: 'An ensure waits for an adoption: it starts a server when the adoption finds none.',
    given: to.adopting,
    when: (world) => world.ensure('replace'),
    shows: (t, world) => {
      t.equal(world.state, 'starting.preparing');
      t.match(world.context, { slot: { pending: 1 }, deferredRequest: { type: 'ENSURE', sidecar: 1 } });
    },
  },
  {
    takes: '(any) STOP [not hasExternalServer] → stopping',
    proves: 'A stop releases an external server at once: it is neither signalled nor waited for.',
    given: to.externalProbing,
    when: (world) => world.stop(),
    shows: (t, world) => {
      t.equal(world.state, 'stopped');
      t.same(commands(world), []);
      isClean(t, world);
    },
  },
  {
    takes: '(any) STOP [not hasExternalServer] → stopping',
    proves: 'A stop ends a start and waits for the process that was already requested.',
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
    proves: 'A second ensure shares the pending start.',
    given: to.spawning,
    when: (world) => world.ensure(),
    shows: (t, world) => {
      t.equal(world.state, 'starting.spawning');
      t.equal(world.context.incarnation, 1);
      t.equal(world.os.processes.length, 1);
    },
  },
  {
    takes: '(any) RESTART [not hasExternalServer] → stopping',
    proves: 'A restart while an external server is probed prepares again.',
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
    takes: '(any) RESTART [not hasExternalServer] → stopping',
    proves: 'A restart ends the pending start before it begins another.',
    given: to.probing,
    when: (world) => world.restart('none'),
    shows: (t, world) => {
      t.equal(world.state, 'stopping.terminating');
      t.equal(world.context.stopReason, 'restart');
    },
  },
  {
    takes: 'starting PROCESS.EXITED [lostLockRace] → starting.preparing',
    proves: 'A server that lost the workspace lock prepares again to find the winner, without counting a failure.',
    given: to.probing,
    when: (world) => world.exited(75),
    shows: (t, world) => {
      t.equal(world.state, 'starting.preparing');
      t.match(world.context, { incarnation: 2, lockRaces: 1, hasProcess: false, failures: [] });
      isClean(t, world, ['prepare']);
    },
  },
  {
    takes: '(any) PROCESS.EXITED [isThisProcess] → exited',
    proves: 'A server that ends before it was ready is a failure, emitted with its exit code.',
    given: to.probing,
    when: (world) => world.exited(3),
    shows: (t, world) => {
      t.equal(world.state, 'exited.backingOff');
      t.match(world.emitted.at(-1), { type: 'appserver.exited', exitCode: 3, stopReason: null });
      t.match(world.context, { failureKind: 'crashed', lastError: 'The agent server exited with code 3.' });
      t.match(exitFailure(71, null).message, 'code 71 (no permission, or a full disk: df -h)', 'its log may be lost');
      isClean(t, world);
    },
  },
  {
    takes: 'starting PROCESS.REFUSED [isThisIncarnation] → exited',
    proves: 'A permanent refusal of the operating system is not retried.',
    given: to.spawning,
    when: (world) => world.refused(false),
    shows: (t, world) => {
      t.equal(world.state, 'exited.resting');
      t.match(world.context, { failureKind: 'startFailed', lastError: 'it was refused', pid: null });
      isClean(t, world);
    },
  },
  {
    takes: 'starting after(startDeadline) [hasNothingToEnd] → exited',
    proves: 'A preparation beyond the deadline fails the start without a process to kill.',
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
    takes: 'starting after(startDeadline) [hasNothingToEnd] → exited',
    proves: 'An external server that does not answer is released, not killed.',
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
    takes: 'starting.clearing SLOT.REPLACING → starting.replacingProxy',
    proves: 'A sidecar to be replaced is stopped before the server is prepared.',
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
    takes: 'starting SLOT.CLEARED → starting.preparing',
    proves: 'A restart of the server keeps a sidecar that is not replaced.',
    given: async (world) => {
      await to.runningWithSidecar(world);
      await world.restart();
    },
    when: (world) => world.exited(0),
    shows: (t, world) => {
      t.equal(world.state, 'starting.preparing');
      t.same(sidecarCommands(world), []);
      t.equal(world.context.slot.state, 'running');
    },
  },
  {
    takes: 'starting SLOT.CLEARED → starting.preparing',
    proves: 'The start continues when the old sidecar has stopped.',
    given: async (world) => {
      await to.runningWithSidecar(world);
      await world.restart('replace');
      await world.exited(0);
    },
    when: (world) => world.sidecar('exited'),
    shows: (t, world) => {
      t.equal(world.state, 'starting.preparing');
      t.match(world.context, { slot: { state: 'none', inForce: 2, held: null } });
      t.same(world.os.live('sidecar'), []);
    },
  },
  {
    takes: 'starting.preparing done(prepare) → starting.proxying',
    proves: 'The sidecar is started before the server that uses it (specification §4.2 rule 1).',
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
    takes: 'starting.preparing done(prepare) [mustReadyPlace] → starting.readyingPlace',
    proves: 'A start in a container checks the engine before it requests a process.',
    given: (world) => world.ensure(),
    when: (world) => world.preparedInPlace(),
    shows: (t, world) => {
      t.equal(world.state, 'starting.readyingPlace');
      t.same(world.os.processes, []);
    },
  },
  {
    takes: 'starting.readyingPlace done(readyPlace) → starting.proxying',
    proves: 'The container is requested once the engine has its image.',
    given: to.readyingPlace,
    when: (world) => world.placeReady(),
    shows: (t, world) => {
      t.equal(world.state, 'starting.spawning');
      t.equal(world.os.last('server').mode, 'spawn');
    },
  },
  {
    takes: 'starting.readyingPlace error(readyPlace) → exited',
    proves: 'A missing image ends the start without a restart.',
    given: to.readyingPlace,
    when: (world) => world.placeNotReady(failure('imageMissing', false)),
    shows: (t, world) => {
      t.equal(world.state, 'exited.resting');
      t.equal(world.context.failureKind, 'imageMissing');
      isClean(t, world);
    },
  },
  {
    takes: 'starting.proxying SLOT.READY → starting.spawning',
    proves: 'A running server is adopted at once, in parallel to its sidecar.',
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
    takes: 'starting.preparing done(prepare) → starting.proxying',
    proves: 'Ports are emitted, then the start, then the process is requested; a new policy applies from here on.',
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
    takes: 'starting.preparing error(prepare) [leavesNothing] → stopping.settling',
    proves: 'A workspace of another owner comes to rest with the reason, without an event, and its sidecar is stopped.',
    given: async (world) => {
      await to.runningWithSidecar(world);
      await world.restart('keep');
      await world.exited(0);
      world.emitted.length = 0;
    },
    when: async (world) => {
      await world.notPrepared(failure('workspaceLocked', false, 'Process 7 owns the lock.'));
      await world.sidecar('exited');
    },
    shows: (t, world) => {
      t.equal(world.state, 'stopped');
      t.same(world.emittedTypes, ['apiProxy.exited'], 'no end of an agent server');
      t.match(world.context, { failureKind: 'workspaceLocked', lastError: 'Process 7 owns the lock.' });
      isClean(t, world);
    },
  },
  {
    takes: 'starting.preparing error(prepare) → exited',
    proves: 'A server and a sidecar that ended unseen are emitted with their pids.',
    given: async (world) => {
      world.send({ type: 'ADOPT', sidecar: 4 });
      await flush();
    },
    when: (world) => world.notPrepared(failure('crashed', false, 'It ended.', { pid: 70, lostSidecarPid: 71 })),
    shows: (t, world) => {
      t.equal(world.state, 'exited.resting');
      t.match(world.emitted, [
        { type: 'apiProxy.exited', sidecar: 4, pid: 71, exitCode: null, stopped: false },
        { type: 'appserver.exited', pid: 70, exitCode: null, error: 'It ended.' },
      ]);
      t.match(world.context, { hasProcess: false, failureKind: 'crashed' });
      isClean(t, world);
    },
  },
  {
    takes: 'starting.proxying SLOT.READY → starting.spawning',
    proves: 'The server is requested when the sidecar answers, not before.',
    given: async (world) => {
      await to.proxying(world);
      await world.sidecar('spawned');
    },
    when: (world) => world.sidecar('ready'),
    shows: (t, world) => {
      t.equal(world.state, 'starting.spawning');
      t.equal(world.emittedTypes.at(-1), 'apiProxy.running');
      t.equal(world.context.slot.state, 'running');
    },
  },
  {
    takes: 'starting.proxying SLOT.FAILED → exited',
    proves: 'A start with a dead sidecar fails and leaves no process (specification §4.2 rule 1).',
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
      t.match(world.context, { failureKind: 'apiProxy', lastError: 'no models', slot: { state: 'none' } });
      t.same(world.os.live('sidecar'), []);
      isClean(t, world);
    },
  },
  {
    takes: '(any) SLOT.CHANGED [changesSlot] → ∅',
    proves: 'The restart of a sidecar that served before is awaited.',
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
      t.equal(world.context.slot.state, 'exited');
      t.match(world.emitted.at(-1), { type: 'apiProxy.exited', stopped: false });
    },
  },
  {
    takes: 'starting.spawning PROCESS.SPAWNED [isThisIncarnation] → starting.probing',
    proves: 'The pid of the process is recorded, and the server does not serve yet.',
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
    proves: 'appserver.running is emitted when the server has answered, not before.',
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
    takes: 'starting.probing error(readiness) [hasNothingToEnd] → exited',
    proves: 'An external server that fails the handshake is released and never signalled.',
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
    proves: 'The emitted reason is the cause of the kill, not the kill.',
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
    proves: 'A process that survives SIGKILL is reported as stuck and awaited.',
    given: to.aborting,
    when: (world) => world.pass(policy.killVerifyMs),
    shows: (t, world) => {
      t.equal(world.state, 'starting.aborting.stuck');
      t.ok(world.actor.getSnapshot().hasTag('settled'), 'a waiting caller is answered');
      t.equal(world.context.hasProcess, true);
      t.match(world.context.lastError, 'did not end after SIGKILL');
    },
  },
];

walkEvery(t, agentServerMachine, () => new Workspace(), walks, sources.starting);
