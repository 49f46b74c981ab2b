import t from 'tap';
import { type ActorRefFrom, createActor, fromCallback, SimulatedClock } from 'xstate';
import {
  type HostDriverEvent,
  type HostEmitted,
  type HostEvent,
  type HostRefusal,
  hostMachine,
  hostRefusals,
  hostStepMs,
} from '../../machines/host.ts';
import { nodeId } from '../../src/inspect/names.ts';
import { transitionLog, type Walk, walkEvery } from './harness.ts';

/** A host whose links the test controls. */
class World {
  readonly clock = new SimulatedClock();
  readonly taken: string[] = [];
  readonly open = new Set<number>();
  readonly emitted: HostEmitted['type'][] = [];
  links = 0;
  report: (event: HostDriverEvent) => void = () => {};
  readonly actor: ActorRefFrom<typeof hostMachine>;

  constructor() {
    const link = fromCallback<{ readonly type: 'NONE' }, { readonly name: string }>(({ sendBack }) => {
      const number = ++this.links;
      this.open.add(number);
      this.report = sendBack;
      return () => this.open.delete(number);
    });
    this.actor = createActor(hostMachine.provide({ actors: { link } }), {
      clock: this.clock,
      input: { name: 'build', seed: 1 },
      inspect: transitionLog(this.taken, (actor) => actor === this.actor),
    });
    this.actor.on('*', ({ type }) => this.emitted.push(type));
    this.actor.start();
  }

  send(type: Exclude<HostEvent['type'], HostDriverEvent['type']>): void {
    this.actor.send({ type });
  }

  refuse(refusal: HostRefusal): void {
    this.report({ type: 'HOST.REFUSED', refusal, reason: 'why' });
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
}

const to = {
  async dialling(world: World) {
    world.send('HOST.ENABLE');
  },
  async proving(world: World) {
    await to.dialling(world);
    world.report({ type: 'HOST.DIALLED' });
  },
  async listing(world: World) {
    await to.proving(world);
    world.report({ type: 'HOST.PROVED' });
  },
  async connected(world: World) {
    await to.listing(world);
    world.report({ type: 'HOST.LISTED' });
  },
  async behind(world: World) {
    await to.connected(world);
    world.report({ type: 'HOST.CHANGED' });
  },
  async waiting(world: World) {
    await to.connected(world);
    world.report({ type: 'HOST.LOST', reason: 'cut' });
  },
};

const refusing: Readonly<Record<HostRefusal, string>> = {
  hostKey: ' [isHostKey]',
  authentication: ' [isAuthentication]',
  noProgram: ' [isProgram]',
  version: ' [isVersion]',
  notProven: '',
};

const silent = (step: 'dialling' | 'proving' | 'listing'): Walk<World> => ({
  takes: `connecting.${step} after(hostStep) → unreachable`,
  proves: `a timeout while ${step} ends ssh and schedules a retry`,
  given: to[step],
  when: (world) => world.clock.increment(hostStepMs),
  shows: (t, world) => {
    t.same([world.state, world.open.size], ['unreachable.waiting', 0]);
    t.match(world.context.reason, /did not answer/);
  },
});

const walks: Walk<World>[] = [
  {
    takes: 'disabled HOST.ENABLE → connecting',
    proves: 'an enabled host starts one link',
    given: async () => {},
    when: (world) => world.send('HOST.ENABLE'),
    shows: (t, world) => t.same([world.state, world.open.size], ['connecting.dialling', 1]),
  },
  {
    takes: 'connecting.dialling HOST.DIALLED → connecting.proving',
    proves: 'a dialled Hub must prove its identity',
    given: to.dialling,
    when: (world) => world.report({ type: 'HOST.DIALLED' }),
    shows: (t, world) => t.same([world.state, world.links], ['connecting.proving', 1]),
  },
  {
    takes: 'connecting.proving HOST.PROVED → connecting.listing',
    proves: 'only a proven Hub is listed',
    given: to.proving,
    when: (world) => world.report({ type: 'HOST.PROVED' }),
    shows: (t, world) => t.same([world.state, world.emitted], ['connecting.listing', []]),
  },
  {
    takes: 'connecting.listing HOST.LISTED → connected',
    proves: 'a listed Hub is connected by the same link',
    given: to.listing,
    when: (world) => world.report({ type: 'HOST.LISTED' }),
    shows: (t, world) => {
      t.same([world.state, world.links, world.open.size], ['connected.current', 1, 1]);
      t.same([world.context.connections, world.emitted], [1, ['host.connected']]);
    },
  },
  silent('dialling'),
  silent('proving'),
  silent('listing'),
  {
    takes: 'connected.current HOST.CHANGED → connected.behind',
    proves: 'an event makes the list outdated',
    given: to.connected,
    when: (world) => world.report({ type: 'HOST.CHANGED' }),
    shows: (t, world) => t.equal(world.state, 'connected.behind'),
  },
  {
    takes: 'connected.behind HOST.LISTED → connected.current',
    proves: 'a list that was read again is current and does not count as a connection',
    given: to.behind,
    when: (world) => world.report({ type: 'HOST.LISTED' }),
    shows: (t, world) => t.same([world.state, world.context.connections], ['connected.current', 1]),
  },
  {
    takes: '(any) HOST.LOST → unreachable',
    proves: 'a lost connection ends ssh, is reported, and is retried after about a second',
    given: to.connected,
    when: (world) => world.report({ type: 'HOST.LOST', reason: 'cut' }),
    shows: (t, world) => {
      t.same([world.state, world.open.size, world.context.reason], ['unreachable.waiting', 0, 'cut']);
      t.same(world.emitted, ['host.connected', 'host.unreachable']);
      t.ok(world.context.delayMs >= 500 && world.context.delayMs <= 1_000, `${world.context.delayMs} ms`);
    },
  },
  {
    takes: 'unreachable.waiting after(hostPause) → connecting',
    proves: 'the next attempt follows the pause',
    given: to.waiting,
    when: (world) => world.clock.increment(world.context.delayMs),
    shows: (t, world) => t.same([world.state, world.links, world.open.size], ['connecting.dialling', 2, 1]),
  },
  {
    takes: 'unreachable HOST.RETRY → connecting',
    proves: 'a user request retries at once',
    given: to.waiting,
    when: (world) => world.send('HOST.RETRY'),
    shows: (t, world) => t.same([world.state, world.open.size], ['connecting.dialling', 1]),
  },
  ...hostRefusals.map(
    (refusal): Walk<World> => ({
      takes: `(any) HOST.REFUSED${refusing[refusal]} → refused.${refusal}`,
      proves: `after the refusal ${refusal} no ssh runs and no retry follows`,
      given: to.dialling,
      when: (world) => {
        world.refuse(refusal);
        world.clock.increment(3_600_000);
      },
      shows: (t, world) => {
        t.same([world.state, world.open.size, world.context.reason], [`refused.${refusal}`, 0, 'why']);
        t.same(world.emitted, ['host.refused']);
      },
    }),
  ),
  {
    takes: 'refused HOST.RETRY → connecting',
    proves: 'a user request connects again after a refusal',
    given: async (world) => {
      await to.dialling(world);
      world.refuse('hostKey');
    },
    when: (world) => world.send('HOST.RETRY'),
    shows: (t, world) => t.same([world.state, world.open.size, world.context.reason], ['connecting.dialling', 1, null]),
  },
  {
    takes: '(any) HOST.DISABLE → disabled',
    proves: 'a disabled host runs no ssh and does not retry',
    given: to.connected,
    when: (world) => {
      world.send('HOST.DISABLE');
      world.clock.increment(3_600_000);
    },
    shows: (t, world) => t.same([world.state, world.open.size, world.links], ['disabled', 0, 1]),
  },
  {
    takes: '(any) HOST.RELEASE → released',
    proves: 'the end of the Hub ends ssh and reports nothing',
    given: to.connected,
    when: (world) => world.send('HOST.RELEASE'),
    shows: (t, world) => t.same([world.state, world.open.size, world.emitted], ['released', 0, ['host.connected']]),
  },
];

walkEvery(t, hostMachine, () => new World(), walks);

t.test('retries continue without a limit, at most a minute apart, and a loss is reported once', async (t) => {
  const world = new World();
  await to.waiting(world);
  const pauses: number[] = [];
  for (let attempt = 0; attempt < 100; attempt += 1) {
    pauses.push(world.context.delayMs);
    world.clock.increment(world.context.delayMs);
    world.report({ type: 'HOST.LOST', reason: 'still cut' });
  }
  t.equal(world.state, 'unreachable.waiting');
  t.ok(Math.max(...pauses) <= 60_000 && Math.min(...pauses.slice(10)) >= 30_000, `${pauses.slice(0, 12)}`);
  t.same(world.emitted, ['host.connected', 'host.unreachable']);
});
