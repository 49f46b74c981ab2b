import t from 'tap';
import { type ActorRefFrom, createActor, fromCallback, SimulatedClock } from 'xstate';
import { type InboxFeedDriverEvent, type InboxFeedEvent, inboxFeedMachine } from '../../machines/inbox-feed.ts';
import { nodeId } from '../../src/inspect/names.ts';
import { transitionLog, type Walk, walkEvery } from './harness.ts';

/** A feed whose connections are the test's. */
class World {
  readonly clock = new SimulatedClock();
  readonly taken: string[] = [];
  readonly open = new Set<number>();
  readonly followed = new Set<string>();
  suspensions = 0;
  withdrawals = 0;
  connections = 0;
  report: (event: InboxFeedDriverEvent) => void = () => {};
  readonly actor: ActorRefFrom<typeof inboxFeedMachine>;

  constructor() {
    const feed = fromCallback<{ readonly type: 'NONE' }, { readonly workspacePath: string }>(({ input, sendBack }) => {
      this.followed.add(input.workspacePath);
      const number = ++this.connections;
      this.open.add(number);
      this.report = sendBack;
      return () => this.open.delete(number);
    });
    const machine = inboxFeedMachine.provide({
      actors: { feed },
      actions: {
        suspendRequests: () => {
          this.suspensions += 1;
        },
        withdrawRequests: () => {
          this.withdrawals += 1;
        },
      },
    });
    this.actor = createActor(machine, {
      clock: this.clock,
      input: { workspacePath: '/work', seed: 1 },
      inspect: transitionLog(this.taken, (actor) => actor === this.actor),
    });
    this.actor.start();
  }

  send(type: Exclude<InboxFeedEvent['type'], InboxFeedDriverEvent['type']>): void {
    this.actor.send({ type });
  }

  get state(): string {
    return this.actor
      .getSnapshot()
      ._nodes.filter(({ type }) => type === 'atomic' || type === 'final')
      .map(nodeId)
      .join(', ');
  }

  get context() {
    return this.actor.getSnapshot().context;
  }

  pass(): void {
    this.clock.increment(this.context.delayMs);
  }
}

const to = {
  async connecting(world: World) {
    world.send('FEED.SERVED');
  },
  async following(world: World) {
    await to.connecting(world);
    world.report({ type: 'FEED.STATE' });
  },
  async waiting(world: World) {
    await to.following(world);
    world.report({ type: 'FEED.BROKEN' });
  },
};

const walks: readonly Walk<World>[] = [
  {
    takes: '(any) FEED.SERVED → connected',
    proves: 'an agent server that serves is followed',
    given: async () => {},
    when: (world) => world.send('FEED.SERVED'),
    shows: (t, world) => {
      t.same([world.state, world.open.size], ['connected.connecting', 1]);
      t.same([...world.followed], ['/work']);
    },
  },
  {
    takes: '(any) FEED.EXITED → absent',
    proves: 'the end of an agent server cuts the connection and suspends its requests',
    given: to.following,
    when: (world) => world.send('FEED.EXITED'),
    shows: (t, world) => {
      t.same([world.state, world.open.size], ['absent', 0]);
      t.same([world.suspensions, world.withdrawals], [1, 0]);
    },
  },
  {
    takes: '(any) FEED.RESTED → absent',
    proves: 'a server that no other one follows leaves no request',
    given: async (world) => world.send('FEED.EXITED'),
    when: (world) => world.send('FEED.RESTED'),
    shows: (t, world) => t.same([world.state, world.open.size, world.withdrawals], ['absent', 0, 1]),
  },
  {
    takes: '(any) FEED.RELEASE → released',
    proves: 'the end of the Hub cuts the connection and withdraws nothing',
    given: to.following,
    when: (world) => world.send('FEED.RELEASE'),
    shows: (t, world) => t.same([world.state, world.open.size, world.withdrawals], ['released', 0, 0]),
  },
  {
    takes: 'connected.connecting FEED.STATE → connected.following',
    proves: 'a read state ends the count of failures',
    given: async (world) => {
      await to.waiting(world);
      world.pass();
    },
    when: (world) => world.report({ type: 'FEED.STATE' }),
    shows: (t, world) => t.same([world.state, world.context.failures], ['connected.following', 0]),
  },
  {
    takes: 'connected FEED.BROKEN → waiting',
    proves: 'a broken connection withdraws nothing and is made again after a pause',
    given: to.following,
    when: (world) => world.report({ type: 'FEED.BROKEN' }),
    shows: (t, world) => {
      t.same([world.state, world.open.size, world.withdrawals], ['waiting', 0, 0]);
      t.ok(world.context.delayMs >= 100 && world.context.delayMs <= 300, `${world.context.delayMs} ms`);
    },
  },
  {
    takes: 'connected FEED.UNSUPPORTED → unsupported',
    proves: 'an agent server without an inbox is asked once',
    given: to.connecting,
    when: (world) => world.report({ type: 'FEED.UNSUPPORTED' }),
    shows: (t, world) => t.same([world.state, world.open.size], ['unsupported', 0]),
  },
  {
    takes: 'waiting after(feedPause) → connected',
    proves: 'the next connection follows the pause',
    given: to.waiting,
    when: (world) => world.pass(),
    shows: (t, world) => t.same([world.state, world.connections, world.open.size], ['connected.connecting', 2, 1]),
  },
];

walkEvery(t, inboxFeedMachine, () => new World(), walks);

t.test('a server that serves again replaces the connection, and the pause grows to its cap', async (t) => {
  const world = new World();
  await to.following(world);
  world.send('FEED.SERVED');
  t.same([world.connections, world.open.size, world.state], [2, 1, 'connected.connecting']);
  for (let failures = 0; failures < 10; failures += 1) {
    world.report({ type: 'FEED.BROKEN' });
    world.pass();
  }
  t.ok(world.context.delayMs >= 2_500 && world.context.delayMs <= 7_500, `${world.context.delayMs} ms`);
  t.equal(world.open.size, 1, 'never two connections');
  world.send('FEED.EXITED');
  world.clock.increment(60_000);
  t.equal(world.open.size, 0, 'no connection to a server that has ended');
});
