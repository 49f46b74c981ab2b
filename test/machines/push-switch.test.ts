import fc from 'fast-check';
import t from 'tap';
import { type ActorRefFrom, createActor } from 'xstate';
import { type PushOutcome, type PushSwitchEvent, pushSwitchMachine } from '../../machines/index.ts';
import { asked, flush, type Question, transitionLog, type Walk, walkEvery } from './harness.ts';

/** A switch whose browser is the test. */
class World {
  readonly taken: string[] = [];
  readonly checks: Question<PushOutcome, unknown>[] = [];
  readonly subscriptions: Question<PushOutcome, unknown>[] = [];
  readonly ends: Question<PushOutcome, unknown>[] = [];
  readonly actor: ActorRefFrom<typeof pushSwitchMachine>;

  constructor() {
    const machine = pushSwitchMachine.provide({
      actors: { check: asked(this.checks), subscribe: asked(this.subscriptions), unsubscribe: asked(this.ends) },
    });
    this.actor = createActor(machine, { inspect: transitionLog(this.taken, (actor) => actor === this.actor) });
    this.actor.start();
  }

  async send(type: PushSwitchEvent['type']): Promise<void> {
    this.actor.send({ type });
    await flush();
  }

  /** The browser answers the step that is under way. */
  async answer(outcome: PushOutcome | Error): Promise<void> {
    const open = [...this.checks, ...this.subscriptions, ...this.ends].find(({ isOpen }) => isOpen);
    if (outcome instanceof Error) open?.fail(outcome);
    else open?.answer(outcome);
    await flush();
  }

  get state() {
    return this.actor.getSnapshot().value;
  }

  get context() {
    return this.actor.getSnapshot().context;
  }
}

const unsupported: PushOutcome = { kind: 'unsupported', obstacle: 'insecureAddress' };
const [denied, off, on]: PushOutcome[] = [{ kind: 'denied' }, { kind: 'off' }, { kind: 'on' }];
const broken = new Error('push service not available');

/** Leads a new world to a state by the answers of its browser and the events of its person. */
const led =
  (...steps: readonly (PushOutcome | Error | PushSwitchEvent['type'] | undefined)[]) =>
  async (world: World) => {
    for (const step of steps) {
      if (typeof step === 'string') await world.send(step);
      else if (step) await world.answer(step);
    }
  };

const to = {
  checking: led(),
  denied: led(denied),
  off: led(off),
  on: led(on),
  subscribing: led(off, 'TURN.ON'),
  unsubscribing: led(on, 'TURN.OFF'),
  failed: led(broken),
};

function walk(
  takes: string,
  proves: string,
  given: (world: World) => Promise<void>,
  when: (world: World) => Promise<void>,
  shows: (world: World) => unknown = () => ({}),
): Walk<World> {
  const target = takes.split(' → ')[1];
  return {
    ...{ takes, proves, given, when },
    shows: (t, world) => t.match([world.state, world.context], [target, shows(world)]),
  };
}

const clear = () => ({ lastError: null });
const reason = () => ({ lastError: 'push service not available' });

const walks: readonly Walk<World>[] = [
  walk(
    'checking done(check) [isUnsupported] → unsupported',
    'a browser that cannot show notices says why',
    to.checking,
    led(unsupported),
    () => ({ obstacle: 'insecureAddress' }),
  ),
  walk('checking done(check) [isDenied] → denied', 'a refusal of the person is shown as one', to.checking, led(denied)),
  walk('checking done(check) [isOn] → on', 'a browser that is subscribed stays so', to.checking, led(on)),
  walk('checking done(check) → off', 'a browser without a subscription gets no notices', to.checking, led(off)),
  walk('checking error(check) → failed', 'a Hub that does not answer is a failure', to.checking, led(broken), reason),
  walk('denied CHECK → checking', 'a changed permission is read', to.denied, led('CHECK')),
  walk('off TURN.ON → subscribing', 'the person turns notices on', to.off, led('TURN.ON')),
  walk('off CHECK → checking', 'a permission that is taken away is read', to.off, led('CHECK')),
  walk('subscribing done(subscribe) [isDenied] → denied', 'the person may refuse', to.subscribing, led(denied)),
  walk('subscribing done(subscribe) [isOn] → on', 'the Hub has the subscription', to.subscribing, led(on)),
  walk('subscribing done(subscribe) → off', 'a closed question changes nothing', to.subscribing, led(off)),
  walk('subscribing error(subscribe) → failed', 'the reason is shown', to.subscribing, led(broken), reason),
  walk('on TURN.OFF → unsubscribing', 'the person turns notices off', to.on, led('TURN.OFF')),
  walk('on CHECK → checking', 'a permission that is taken away is read', to.on, led('CHECK')),
  walk('unsubscribing done(unsubscribe) → off', 'no notice comes any more', to.unsubscribing, led(off)),
  walk('unsubscribing error(unsubscribe) → failed', 'the reason is shown', to.unsubscribing, led(broken), reason),
  walk('failed CHECK → checking', 'another try begins with what is true', to.failed, led('CHECK'), clear),
];

walkEvery(t, pushSwitchMachine, () => new World(), walks);

t.test('after any events at most one step runs, and only the state failed has an error', async (t) => {
  const happening = fc.oneof(
    fc.constantFrom<PushSwitchEvent['type'][]>('TURN.ON', 'TURN.OFF', 'CHECK'),
    fc.constantFrom<(PushOutcome | Error | undefined)[]>(unsupported, denied, off, on, broken),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(happening, { maxLength: 20 }), async (history) => {
      const world = new World();
      for (const step of history) {
        await led(step)(world);
        const open = [...world.checks, ...world.subscriptions, ...world.ends].filter(({ isOpen }) => isOpen);
        const isBusy = ['checking', 'subscribing', 'unsubscribing'].includes(world.state);
        if (open.length !== (isBusy ? 1 : 0)) return false;
        if ((world.context.lastError !== null) !== (world.state === 'failed')) return false;
      }
      return true;
    }),
    { numRuns: 50, ...(process.env['ORATORIO_TEST_SEED'] === 'random' ? {} : { seed: 7 }) },
  );
  t.pass();
});
