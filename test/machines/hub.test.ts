import t, { type Test } from 'tap';
import { hubMachine } from '../../machines/index.ts';
import { flush, open, type Walk, walkEvery } from './harness.ts';
import { HubWorld } from './worlds.ts';

const listening = (world: HubWorld) => world.listening();
const serving = (world: HubWorld) => world.serve();
const fails = (t: Test, world: HubWorld) => {
  t.equal(world.state, 'failed');
  t.equal(world.actor.getSnapshot().status, 'done');
  t.equal(world.context.lastError, 'disk full');
};
const draining = async (world: HubWorld) => {
  await world.serve();
  await world.shutDown();
};
const closing = async (world: HubWorld) => {
  await draining(world);
  open(world.drain).answer();
  await flush();
};

const claiming = async (world: HubWorld) => {
  open(world.boot).answer();
  await flush();
};
const stays = (state: string) => (t: Test, world: HubWorld) => {
  t.equal(world.state, state);
  t.ok(world.context.isShutdownRequested);
};

const walks: Walk<HubWorld>[] = [
  {
    takes: 'booting SHUTDOWN → ∅',
    proves: 'A shutdown during the boot is deferred.',
    given: flush,
    when: (world) => world.actor.send({ type: 'SHUTDOWN', mode: 'stop' }),
    shows: stays('booting'),
  },
  {
    takes: 'claiming SHUTDOWN → ∅',
    proves: 'A shutdown during the claim of the lock is deferred.',
    given: claiming,
    when: (world) => world.actor.send({ type: 'SHUTDOWN', mode: 'stop' }),
    shows: stays('claiming'),
  },
  {
    takes: 'listening SHUTDOWN → ∅',
    proves: 'A shutdown during the bind of the address is deferred.',
    given: listening,
    when: (world) => world.actor.send({ type: 'SHUTDOWN', mode: 'detach' }),
    shows: stays('listening'),
  },
  {
    takes: 'serving always [shutdownIsRequested] → draining',
    proves: 'A deferred shutdown drains the Hub as soon as it serves.',
    given: async (world) => {
      world.actor.send({ type: 'SHUTDOWN', mode: 'detach' });
      await listening(world);
    },
    when: (world) => open(world.listen).answer({ apiBaseUrl: 'http://127.0.0.1:1' }),
    shows: (t, world) => {
      t.equal(world.state, 'draining');
      t.equal(world.context.mode, 'detach');
    },
  },
  {
    takes: 'booting done(boot) → claiming',
    proves: 'The lock is claimed after the private directories exist.',
    given: flush,
    when: (world) => open(world.boot).answer(),
    shows: (t, world) => {
      t.equal(world.state, 'claiming');
      t.equal(world.claim.length, 1);
    },
  },
  {
    takes: 'booting error(boot) → failed',
    proves: 'A Hub that cannot create its directories ends and reports the reason.',
    given: flush,
    when: (world) => world.fail(world.boot),
    shows: fails,
  },
  {
    takes: 'claiming done(claim) [won] → listening',
    proves: 'The owner of the lock binds its address.',
    given: async (world) => {
      open(world.boot).answer();
      await flush();
    },
    when: (world) => open(world.claim).answer({ won: true }),
    shows: (t, world) => t.equal(world.state, 'listening'),
  },
  {
    takes: 'claiming done(claim) → yielded',
    proves: 'A Hub without the lock ends with success and never listens or recovers servers.',
    given: async (world) => {
      open(world.boot).answer();
      await flush();
    },
    when: (world) => open(world.claim).answer({ won: false }),
    shows: (t, world) => {
      t.equal(world.state, 'yielded');
      t.equal(world.context.lastError, null);
      t.equal(world.listen.length + world.recover.length, 0);
    },
  },
  {
    takes: 'claiming error(claim) → failed',
    proves: 'A failed claim ends the Hub with an error.',
    given: async (world) => {
      open(world.boot).answer();
      await flush();
    },
    when: (world) => world.fail(world.claim),
    shows: fails,
  },
  {
    takes: 'listening done(listen) → serving',
    proves: 'hub.started has the bound address.',
    given: listening,
    when: (world) => open(world.listen).answer({ apiBaseUrl: 'http://127.0.0.1:1' }),
    shows: (t, world) => {
      t.equal(world.state, 'serving.recovering');
      t.same(world.emitted, [{ type: 'hub.started', apiBaseUrl: 'http://127.0.0.1:1' }]);
    },
  },
  {
    takes: 'listening error(listen) → failed',
    proves: 'A port that cannot be bound ends the Hub before hub.started is emitted.',
    given: listening,
    when: (world) => world.fail(world.listen),
    shows: (t, world) => {
      fails(t, world);
      t.same(world.emitted, []);
    },
  },
  {
    takes: 'serving.recovering done(recover) → serving.steady',
    proves: 'The adopted servers are counted.',
    given: serving,
    when: (world) => open(world.recover).answer({ adopted: 3 }),
    shows: (t, world) => {
      t.equal(world.state, 'serving.steady');
      t.equal(world.context.adopted, 3);
    },
  },
  {
    takes: 'serving.recovering error(recover) → serving.steady',
    proves: 'A Hub serves after a failed recovery.',
    given: serving,
    when: (world) => world.fail(world.recover),
    shows: (t, world) => {
      t.equal(world.state, 'serving.steady');
      t.equal(world.context.lastError, 'disk full');
    },
  },
  {
    takes: 'serving ADDRESS.LOST → ∅',
    proves: 'A damaged lock file is published again.',
    given: serving,
    when: (world) => world.actor.send({ type: 'ADDRESS.LOST', problem: 'it is missing' }),
    shows: (t, world) => {
      t.equal(world.context.addressProblem, 'it is missing');
      t.same(world.addressCommands, ['PUBLISH']);
      t.equal(world.state, 'serving.recovering');
    },
  },
  {
    takes: 'serving ADDRESS.PUBLISHED → ∅',
    proves: 'A published lock file has no problem.',
    given: async (world) => {
      await serving(world);
      world.actor.send({ type: 'ADDRESS.LOST', problem: 'it is missing' });
    },
    when: (world) => world.actor.send({ type: 'ADDRESS.PUBLISHED' }),
    shows: (t, world) => t.match(world.context, { addressProblem: null, republished: 1 }),
  },
  {
    takes: 'serving ADDRESS.UNPUBLISHED → ∅',
    proves: 'A lock file that cannot be written is recorded, and the Hub keeps serving.',
    given: serving,
    when: (world) => world.actor.send({ type: 'ADDRESS.UNPUBLISHED', error: 'disk full' }),
    shows: (t, world) => {
      t.match(world.context, { addressProblem: 'disk full', republished: 0 });
      t.equal(world.state, 'serving.recovering');
    },
  },
  {
    takes: 'serving CLAIM.LOST → draining',
    proves: 'A Hub whose home another Hub has taken ends and leaves its agent servers running.',
    given: serving,
    when: (world) => world.actor.send({ type: 'CLAIM.LOST' }),
    shows: (t, world) => {
      t.match(world.emitted.slice(-2), [{ type: 'hub.displaced' }, { type: 'hub.stopping' }]);
      t.same(open(world.drain).input, { mode: 'detach' });
      t.match(world.context.lastError, 'Another Hub');
    },
  },
  {
    takes: 'serving SHUTDOWN → draining',
    proves: 'Agent servers are drained in the requested mode, after hub.stopping is emitted.',
    given: serving,
    when: (world) => world.shutDown('detach'),
    shows: (t, world) => {
      t.same(world.emitted.at(-1), { type: 'hub.stopping' });
      t.same(open(world.drain).input, { mode: 'detach' });
      t.equal(world.recover[0]?.isOpen, false, 'the pending recovery is aborted');
    },
  },
  {
    takes: 'draining done(drain) → closing',
    proves: 'Streams are closed after the last agent server has ended.',
    given: draining,
    when: (world) => open(world.drain).answer(),
    shows: (t, world) => {
      t.equal(world.state, 'closing');
      t.equal(world.close.length, 1);
    },
  },
  {
    takes: 'draining error(drain) → closing',
    proves: 'A Hub ends after a failed drain.',
    given: draining,
    when: (world) => world.fail(world.drain),
    shows: (t, world) => {
      t.equal(world.state, 'closing');
      t.equal(world.context.lastError, 'disk full');
    },
  },
  {
    takes: 'draining after(drainDeadline) → closing',
    proves: 'A Hub ends at its deadline, also with a running agent server.',
    given: draining,
    when: (world) => world.clock.increment(10_000),
    shows: (t, world) => {
      t.equal(world.state, 'closing');
      t.match(world.context.lastError, 'did not stop in time');
    },
  },
  {
    takes: 'closing done(close) → stopped',
    proves: 'The machine stops when everything is closed.',
    given: closing,
    when: (world) => open(world.close).answer(),
    shows: (t, world) => {
      t.equal(world.state, 'stopped');
      t.equal(world.actor.getSnapshot().status, 'done');
    },
  },
  {
    takes: 'closing error(close) → stopped',
    proves: 'The machine stops when closing fails.',
    given: closing,
    when: (world) => world.fail(world.close),
    shows: (t, world) => {
      t.equal(world.state, 'stopped');
      t.equal(world.context.lastError, 'disk full');
    },
  },
];

walkEvery(t, hubMachine, () => new HubWorld(), walks);

t.test('a second shutdown does not change the mode of the first', async (t) => {
  const world = new HubWorld();
  await world.serve();
  await world.shutDown('detach');
  await world.shutDown('stop');
  t.equal(world.context.mode, 'detach');
  t.equal(world.drain.length, 1);
});

t.test('regression: edge 1 a stopping Hub does not change the lock file of its successor', async (t) => {
  const world = new HubWorld();
  await world.serve();
  await world.shutDown();
  world.actor.send({ type: 'ADDRESS.LOST', problem: 'its content is not ours' });
  t.same(world.addressCommands, [], 'nothing is published');
  t.ok(world.isAddressReleased, 'nothing is watched');
});
