import t from 'tap';
import { type ActorRefFrom, createActor, fromCallback } from 'xstate';
import {
  type ApiProxyEventToParent,
  type Ownership,
  type SidecarSlotEvent,
  type SidecarSlotEventToParent,
  sidecarSlotMachine,
} from '../../machines/index.ts';
import { transitionLog, type Walk, walkEvery } from './harness.ts';
import { policy } from './worlds.ts';

/** A slot below a parent that records its reports. Its sidecar never leaves `starting`: the test reports for it. */
class World {
  readonly taken: string[] = [];
  readonly reported: SidecarSlotEventToParent[] = [];
  readonly actor: ActorRefFrom<typeof sidecarSlotMachine>;

  constructor() {
    const listener = fromCallback<SidecarSlotEventToParent>(({ receive }) => {
      receive((event) => {
        this.reported.push(event);
      });
    });
    const inspect = transitionLog(this.taken, (actor) => actor === this.actor);
    const parent = createActor(listener, { inspect }).start();
    this.actor = createActor(sidecarSlotMachine, { parent, input: { workspacePath: '/w', seed: 1 } });
    this.actor.start();
  }

  get slot() {
    return this.actor.getSnapshot().context.slot;
  }

  /** Types of the reports since the last call. */
  answers(): string[] {
    return this.reported.splice(0).map(({ type }) => type);
  }

  send(event: SidecarSlotEvent): void {
    this.actor.send(event);
  }

  select(sidecar?: number | 'none', { isProven = false, afterFailure = false } = {}): void {
    this.send({ type: 'SLOT.SELECT', ...(sidecar !== undefined && { sidecar }), isProven, afterFailure });
  }

  start(ownership: Ownership = 'managed'): void {
    this.send({ type: 'SLOT.START', ownership, policy });
  }

  exit(final: boolean, restarts = false): void {
    this.send({ type: 'PROXY.EXITED', pid: 7, exitCode: 1, signal: null, error: 'it ended', final, restarts });
  }
}

const running: ApiProxyEventToParent = { type: 'PROXY.RUNNING', pid: 7 };
const unhealthy: ApiProxyEventToParent = {
  type: 'PROXY.UNHEALTHY',
  pid: 7,
  error: 'no answer',
  consecutiveFailures: 3,
};
const stopped: ApiProxyEventToParent = { type: 'PROXY.STOPPED', pid: 7, exitCode: 0, signal: null };

const nowhere = async () => {};
async function holding(world: World) {
  world.select(1);
  world.start();
  world.answers();
}
async function serving(world: World) {
  await holding(world);
  world.send(running);
  world.answers();
}
async function emptying(world: World) {
  await serving(world);
  world.send({ type: 'SLOT.STOP' });
}

const walks: readonly Walk<World>[] = [
  {
    takes: '(any) SLOT.SELECT → ∅',
    proves:
      'A request without a sidecar returns to the proven one after a failure, and keeps the one in force otherwise.',
    given: serving,
    when(world) {
      world.send({ type: 'SLOT.REQUEST', sidecar: 3 });
      world.select(2);
      world.select();
    },
    shows(t, world) {
      t.match(world.slot, { inForce: 2, proven: 1, pending: null });
      world.select(undefined, { afterFailure: true });
      t.equal(world.slot.inForce, 1);
      world.select('none');
      t.equal(world.slot.inForce, null);
      world.select(4, { isProven: true });
      t.match(world.slot, { inForce: 4, proven: 4 });
    },
  },
  {
    takes: '(any) SLOT.REQUEST → ∅',
    proves: 'Another sidecar is pending; a request for the present one withdraws it.',
    given: serving,
    when: (world) => world.send({ type: 'SLOT.REQUEST', sidecar: 2 }),
    shows(t, world) {
      t.match(world.slot, { inForce: 1, pending: 2 });
      world.send({ type: 'SLOT.REQUEST', sidecar: 1 });
      t.equal(world.slot.pending, null);
      world.send({ type: 'SLOT.REQUEST', sidecar: 'none' });
      t.equal(world.slot.pending, 'none');
    },
  },
  {
    takes: '(any) SLOT.PROVE → ∅',
    proves: 'The request of a ready server is proven.',
    given: nowhere,
    when(world) {
      world.select(1);
      world.send({ type: 'SLOT.PROVE' });
    },
    shows: (t, world) => t.match(world.slot, { inForce: 1, proven: 1 }),
  },
  {
    takes: '(any) SLOT.RESET → ∅',
    proves: 'A stopped workspace has no request.',
    given: serving,
    when: (world) => world.send({ type: 'SLOT.RESET' }),
    shows: (t, world) => t.match(world.slot, { inForce: null, proven: null, pending: null }),
  },
  {
    takes: 'empty SLOT.CLEAR → ∅',
    proves: 'Nothing is in the way of a first start.',
    given: nowhere,
    when: (world) => world.send({ type: 'SLOT.CLEAR' }),
    shows: (t, world) => t.same(world.answers(), ['SLOT.CLEARED']),
  },
  {
    takes: 'empty SLOT.STOP → ∅',
    proves: 'A stop without a sidecar is answered at once.',
    given: nowhere,
    when: (world) => world.send({ type: 'SLOT.STOP' }),
    shows: (t, world) => t.same(world.answers(), ['SLOT.EMPTIED']),
  },
  {
    takes: 'empty SLOT.START [needsSidecar] → held',
    proves: 'The server waits for the sidecar that it uses.',
    given: async (world) => world.select(1),
    when: (world) => world.start(),
    shows(t, world) {
      t.match(world.slot, { state: 'starting', held: 1 });
      t.notOk(world.answers().includes('SLOT.READY'));
    },
  },
  {
    takes: 'empty SLOT.START [adoptsSidecar] → held',
    proves: 'An adopted server does not wait for its sidecar, and a replacement is pending.',
    given: async (world) => {
      world.select(1, { isProven: true });
      world.select(2);
      world.answers();
    },
    when: (world) => world.start('adopted'),
    shows(t, world) {
      t.match(world.slot, { state: 'starting', held: 1, inForce: 1, pending: 2 });
      t.same(world.answers(), ['SLOT.CHANGED', 'SLOT.READY']);
    },
  },
  {
    takes: 'empty SLOT.START → ∅',
    proves: 'Without a sidecar the server starts at once; that of an external server is never ours.',
    given: async (world) => world.select(1),
    when: (world) => world.start('external'),
    shows(t, world) {
      t.match(world.slot, { state: 'none', inForce: null, pending: 1 });
      t.equal(world.answers().at(-1), 'SLOT.READY');
    },
  },
  {
    takes: 'held SLOT.CLEAR [isInTheWay] → emptying',
    proves: 'A sidecar that is not in force is stopped first.',
    given: async (world) => {
      await serving(world);
      world.select(2);
      world.answers();
    },
    when: (world) => world.send({ type: 'SLOT.CLEAR' }),
    shows: (t, world) => t.same(world.answers(), ['SLOT.REPLACING']),
  },
  {
    takes: 'held SLOT.CLEAR → ∅',
    proves: 'The sidecar in force stays.',
    given: serving,
    when: (world) => world.send({ type: 'SLOT.CLEAR' }),
    shows: (t, world) => t.same(world.answers(), ['SLOT.CLEARED']),
  },
  {
    takes: 'held SLOT.START [isRunning] → ∅',
    proves: 'A sidecar that runs serves the next server.',
    given: serving,
    when: (world) => world.start(),
    shows: (t, world) => t.same(world.answers(), ['SLOT.CHANGED', 'SLOT.READY']),
  },
  {
    takes: 'held SLOT.START [needsSidecar] → ∅',
    proves: 'A sidecar that ended is started again before its server.',
    given: async (world) => {
      await serving(world);
      world.exit(false);
      world.answers();
    },
    when: (world) => world.start(),
    shows(t, world) {
      t.equal(world.slot.state, 'starting');
      t.same(world.answers(), ['SLOT.CHANGED']);
    },
  },
  {
    takes: 'held SLOT.START [adoptsSidecar] → ∅',
    proves: 'An adopted server does not wait for a sidecar that is started again.',
    given: async (world) => {
      await serving(world);
      world.exit(false);
      world.answers();
    },
    when: (world) => world.start('adopted'),
    shows(t, world) {
      t.equal(world.slot.state, 'starting');
      t.same(world.answers(), ['SLOT.CHANGED', 'SLOT.READY']);
    },
  },
  {
    takes: 'held SLOT.START → ∅',
    proves: 'An external server does not start the sidecar of its workspace.',
    given: async (world) => {
      await serving(world);
      world.exit(false);
      world.answers();
    },
    when: (world) => world.start('external'),
    shows(t, world) {
      t.match(world.slot, { state: 'exited', inForce: null, pending: 1 });
      t.same(world.answers(), ['SLOT.CHANGED', 'SLOT.READY']);
    },
  },
  {
    takes: 'held SLOT.RESTART [hasFailed] → ∅',
    proves: 'A sidecar that does not answer is started again, and a healthy one is not.',
    given: serving,
    when(world) {
      world.send({ type: 'SLOT.RESTART' });
      world.send(unhealthy);
      world.answers();
      world.send({ type: 'SLOT.RESTART' });
    },
    shows: (t, world) => t.equal(world.slot.state, 'starting'),
  },
  {
    takes: 'held SLOT.STOP → emptying',
    proves: 'A stop waits for the end of the sidecar, which stays visible.',
    given: serving,
    when: (world) => world.send({ type: 'SLOT.STOP' }),
    shows(t, world) {
      t.same(world.answers(), []);
      t.equal(world.slot.state, 'running');
    },
  },
  {
    takes: 'held PROXY.RUNNING → ∅',
    proves: 'A ready sidecar is proven, reported and announced.',
    given: holding,
    when: (world) => world.send(running),
    shows(t, world) {
      t.match(world.slot, { state: 'running', pid: 7, error: null, proven: 1 });
      t.match(world.reported[0], {
        slot: { state: 'running' },
        emitted: { type: 'apiProxy.running', sidecar: 1, pid: 7 },
      });
      t.same(world.answers(), ['SLOT.CHANGED', 'SLOT.READY']);
    },
  },
  {
    takes: 'held PROXY.UNHEALTHY → ∅',
    proves: 'A sidecar that stops answering is reported.',
    given: serving,
    when: (world) => world.send(unhealthy),
    shows(t, world) {
      t.match(world.slot, { state: 'unhealthy', error: 'no answer' });
      t.match(world.reported[0], { emitted: { type: 'apiProxy.unhealthy', consecutiveFailures: 3 } });
    },
  },
  {
    takes: 'held PROXY.EXITED [gaveUp] → ∅',
    proves: 'A sidecar that gave up fails the start that waits for it.',
    given: holding,
    when: (world) => world.exit(true),
    shows(t, world) {
      t.match(world.slot, { state: 'exited', pid: null, error: 'it ended' });
      t.match(world.reported, [{ emitted: { type: 'apiProxy.exited' } }, { type: 'SLOT.FAILED', error: 'it ended' }]);
    },
  },
  {
    takes: 'held PROXY.EXITED → ∅',
    proves: 'A sidecar that is restarted is starting again.',
    given: serving,
    when: (world) => world.exit(false, true),
    shows(t, world) {
      t.equal(world.slot.state, 'starting');
      t.same(world.answers(), ['SLOT.CHANGED']);
    },
  },
  {
    takes: 'emptying SLOT.CLEAR → ∅',
    proves: 'A start waits for a sidecar that is stopping, also when it is in force.',
    given: emptying,
    when: (world) => world.send({ type: 'SLOT.CLEAR' }),
    shows: (t, world) => t.same(world.answers(), ['SLOT.REPLACING']),
  },
  {
    takes: 'emptying PROXY.RUNNING → ∅',
    proves: 'A sidecar that becomes ready while it is stopped starts no server.',
    given: emptying,
    when: (world) => world.send(running),
    shows: (t, world) => t.same(world.answers(), ['SLOT.CHANGED']),
  },
  {
    takes: 'emptying PROXY.UNHEALTHY → ∅',
    proves: 'A stopping sidecar that does not answer is reported.',
    given: emptying,
    when: (world) => world.send(unhealthy),
    shows: (t, world) => t.equal(world.slot.state, 'unhealthy'),
  },
  {
    takes: 'emptying PROXY.EXITED → ∅',
    proves: 'An end during a stop fails no start.',
    given: emptying,
    when: (world) => world.exit(true),
    shows: (t, world) => t.same(world.answers(), ['SLOT.CHANGED']),
  },
  {
    takes: 'emptying PROXY.STOPPED → empty',
    proves: 'The end is emitted once, the actor is released, and both kinds of waiting are over.',
    given: emptying,
    when: (world) => world.send(stopped),
    shows(t, world) {
      t.match(world.slot, { state: 'none', held: null, pid: null });
      t.match(world.reported[0], { emitted: { type: 'apiProxy.exited', sidecar: 1, stopped: true } });
      t.same(world.answers(), ['SLOT.CHANGED', 'SLOT.CLEARED', 'SLOT.EMPTIED']);
      t.same(Object.keys(world.actor.getSnapshot().children), []);
    },
  },
];

walkEvery(t, sidecarSlotMachine, () => new World(), walks);
