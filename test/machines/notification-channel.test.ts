import t from 'tap';
import { type ActorRefFrom, createActor, SimulatedClock } from 'xstate';
import {
  type DeliveryFailure,
  maxNoticeTries,
  maxWaitingNotices,
  notificationChannelMachine,
} from '../../machines/index.ts';
import { asked, flush, type Question, transitionLog, type Walk, walkEvery } from './harness.ts';

/** A channel whose service is the test. */
class World {
  readonly clock = new SimulatedClock();
  readonly taken: string[] = [];
  readonly deliveries: Question<void, { readonly id: string; readonly name: string }>[] = [];
  forgotten = 0;
  readonly actor: ActorRefFrom<typeof notificationChannelMachine>;

  constructor() {
    const machine = notificationChannelMachine.provide({
      actors: { deliver: asked(this.deliveries) },
      actions: {
        forgetChannel: () => {
          this.forgotten += 1;
        },
      },
    });
    this.actor = createActor(machine, {
      clock: this.clock,
      input: { name: 'ntfy', seed: 1 },
      inspect: transitionLog(this.taken, (actor) => actor === this.actor),
    });
    this.actor.start();
  }

  async add(...ids: string[]): Promise<void> {
    for (const id of ids) this.actor.send({ type: 'NOTICE.ADDED', id });
    await flush();
  }

  async withdraw(id: string): Promise<void> {
    this.actor.send({ type: 'NOTICE.WITHDRAWN', id });
    await flush();
  }

  async answer(failure?: DeliveryFailure): Promise<void> {
    const last = this.deliveries.at(-1);
    if (failure) last?.fail(Object.assign(new Error(failure.message), { failure }));
    else last?.answer();
    await flush();
  }

  async pass(): Promise<void> {
    this.clock.increment(this.context.delayMs);
    await flush();
  }

  get sent(): string[] {
    return this.deliveries.map(({ input }) => input.id);
  }

  get state() {
    return this.actor.getSnapshot().value;
  }

  get context() {
    return this.actor.getSnapshot().context;
  }
}

const busy: DeliveryFailure = { kind: 'retryable', message: 'The service answered 503.' };
const refused: DeliveryFailure = { kind: 'refused', message: 'The service answered 403.' };
const gone: DeliveryFailure = { kind: 'gone', message: 'The service answered 410.' };

const to = {
  idle: flush,
  sending: (world: World) => world.add('a'),
  async backingOff(world: World) {
    await to.sending(world);
    await world.answer(busy);
  },
};

const walks: readonly Walk<World>[] = [
  {
    takes: '(any) NOTICE.ADDED → ∅',
    proves: 'a notice waits while another one is being sent',
    given: to.sending,
    when: (world) => world.add('b'),
    shows: (t, world) => t.match(world.context, { current: 'a', waiting: ['b'] }),
  },
  {
    takes: '(any) NOTICE.WITHDRAWN → ∅',
    proves: 'a waiting notice whose request was decided is not sent',
    given: (world) => world.add('a', 'b'),
    when: (world) => world.withdraw('b'),
    shows: (t, world) => t.match(world.context, { current: 'a', waiting: [] }),
  },
  {
    takes: '(any) CHANNEL.CLOSE → closed',
    proves: 'a channel that is no longer wanted drops everything',
    given: (world) => world.add('a', 'b'),
    when: (world) => world.actor.send({ type: 'CHANNEL.CLOSE' }),
    shows: (t, world) => t.match([world.state, world.context.dropped], ['closed', 2]),
  },
  {
    takes: 'idle always [hasNotices] → sending',
    proves: 'a notice is sent at once',
    given: to.idle,
    when: (world) => world.add('a'),
    shows: (t, world) => t.same([world.state, world.sent], ['sending', ['a']]),
  },
  {
    takes: 'sending done(deliver) → idle',
    proves: 'the next notice follows a sent one',
    given: (world) => world.add('a', 'b'),
    when: (world) => world.answer(),
    shows: (t, world) => t.same([world.sent, world.context.delivered], [['a', 'b'], 1]),
  },
  {
    takes: 'sending error(deliver) [isLost] → closed',
    proves: 'a channel that its service no longer knows is forgotten',
    given: to.sending,
    when: (world) => world.answer(gone),
    shows: (t, world) => t.same([world.state, world.forgotten, world.context.dropped], ['closed', 1, 1]),
  },
  {
    takes: 'sending error(deliver) [mayTryAgain] → backingOff',
    proves: 'a failure that may pass keeps the notice',
    given: to.sending,
    when: (world) => world.answer(busy),
    shows: (t, world) => {
      t.match([world.state, world.context.current, world.context.lastError], ['backingOff', 'a', busy.message]);
      t.ok(world.context.delayMs >= 500 && world.context.delayMs <= 1_000, `${world.context.delayMs} ms`);
    },
  },
  {
    takes: 'sending error(deliver) → idle',
    proves: 'a refused notice is dropped and the next one sent',
    given: (world) => world.add('a', 'b'),
    when: (world) => world.answer(refused),
    shows: (t, world) => t.same([world.sent, world.context.dropped], [['a', 'b'], 1]),
  },
  {
    takes: 'backingOff NOTICE.WITHDRAWN [isCurrent] → idle',
    proves: 'a notice whose request was decided is not tried again',
    given: to.backingOff,
    when: (world) => world.withdraw('a'),
    shows: (t, world) => t.match([world.state, world.context.current], ['idle', null]),
  },
  {
    takes: 'backingOff after(noticeRetry) → sending',
    proves: 'the notice is tried again after the pause',
    given: to.backingOff,
    when: (world) => world.pass(),
    shows: (t, world) => t.same([world.state, world.sent], ['sending', ['a', 'a']]),
  },
];

walkEvery(t, notificationChannelMachine, () => new World(), walks);

t.test('a notice is given up after the last try', async (t) => {
  const world = new World();
  await to.sending(world);
  for (let tries = 1; tries <= maxNoticeTries; tries += 1) {
    await world.answer(busy);
    await world.pass();
  }
  t.same([world.sent.length, world.state, world.context.dropped], [maxNoticeTries, 'idle', 1]);
});

t.test('the pause that a service asks for counts, up to five minutes', async (t) => {
  const world = new World();
  await to.sending(world);
  await world.answer({ ...busy, retryAfterMs: 7_000 });
  t.equal(world.context.delayMs, 7_000);
  await world.pass();
  await world.answer({ ...busy, retryAfterMs: 86_400_000 });
  t.equal(world.context.delayMs, 300_000);
});

t.test('a full queue loses its oldest notice, and no id twice', async (t) => {
  const world = new World();
  await world.add('current', ...Array.from({ length: maxWaitingNotices + 3 }, (_, index) => `n${index}`));
  await world.add('n50');
  t.equal(world.context.waiting.length, maxWaitingNotices);
  t.same([world.context.waiting[0], world.context.dropped, world.context.current], ['n3', 3, 'current']);
});
