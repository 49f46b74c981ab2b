import t from 'tap';
import { type ActorRefFrom, createActor, SimulatedClock } from 'xstate';
import { type WebhookIngressPhase, webhookIngressMachine } from '../../machines/index.ts';
import { asked, flush, open, type Question, transitionLog, type Walk, walkEvery } from './harness.ts';

const enabling = ['validating', 'secret', 'ports', 'files', 'validate', 'start', 'recreate'] as const;
const disabling = ['stopping', 'removing'] as const;
const portTaken = Object.assign(new Error('port 80 is taken'), { code: 'portTaken' });

/** One ingress whose phases are answered by the test. */
class World {
  readonly taken: string[] = [];
  readonly carryOut: Question<void, { readonly phase: WebhookIngressPhase }>[] = [];
  readonly undo: Question<void, void>[] = [];
  #actor: ActorRefFrom<typeof webhookIngressMachine> | undefined;

  begin(isEnabled: boolean): void {
    this.#actor = createActor(
      webhookIngressMachine.provide({ actors: { carryOut: asked(this.carryOut), undo: asked(this.undo) } }),
      {
        id: 'ingress',
        clock: new SimulatedClock(),
        inspect: transitionLog(this.taken, (actor) => actor.id === 'ingress'),
        input: { isEnabled },
      },
    ).start();
  }

  get actor() {
    if (!this.#actor) throw new Error('it has not begun');
    return this.#actor;
  }
  get snapshot() {
    return this.actor.getSnapshot();
  }
  get phases() {
    return this.carryOut.map(({ input }) => input.phase);
  }
  /** Lets phases end well until it rests or the one that is named is at work. */
  async until(phase?: WebhookIngressPhase): Promise<void> {
    while (!this.snapshot.hasTag('atRest') && open(this.carryOut).input.phase !== phase) {
      open(this.carryOut).answer();
      await flush();
    }
  }
}

const to = {
  async nothing() {},
  async disabled(world: World) {
    world.begin(false);
  },
  async enabled(world: World) {
    world.begin(true);
  },
  async enabling(world: World) {
    world.begin(false);
    world.actor.send({ type: 'ENABLE' });
  },
  async enablingAgain(world: World) {
    world.begin(true);
    world.actor.send({ type: 'ENABLE' });
  },
  async disabling(world: World) {
    world.begin(true);
    world.actor.send({ type: 'DISABLE' });
  },
  async undoing(world: World) {
    await to.enabling(world);
    await world.until('ports');
    open(world.carryOut).fail(portTaken);
    await flush();
  },
  async damaged(world: World) {
    await to.undoing(world);
    open(world.undo).fail(new Error('disk'));
    await flush();
  },
};

const next = (phase: (typeof enabling)[number]): string => {
  const after = enabling[enabling.indexOf(phase) + 1];
  return after === undefined ? 'enabled' : `enabling.${after}`;
};

const walks: readonly Walk<World>[] = [
  {
    takes: 'found always [wasEnabled] → enabled',
    proves: 'existing files make the ingress enabled',
    given: to.nothing,
    when: to.enabled,
    shows: (t, world) => t.same([world.snapshot.value, world.phases], ['enabled', []]),
  },
  {
    takes: 'found always → disabled',
    proves: 'missing files make the ingress disabled',
    given: to.nothing,
    when: to.disabled,
    shows: (t, world) => t.same([world.snapshot.value, world.phases], ['disabled', []]),
  },
  {
    takes: 'disabled ENABLE → enabling',
    proves: 'enabling takes every step in order',
    given: to.disabled,
    async when(world) {
      world.actor.send({ type: 'ENABLE' });
      await world.until();
    },
    shows: (t, world) => t.same([world.phases, world.snapshot.value], [enabling, 'enabled']),
  },
  {
    takes: 'enabled ENABLE → enabling',
    proves: 'enabling an enabled ingress checks every step again',
    given: to.enabled,
    async when(world) {
      world.actor.send({ type: 'ENABLE' });
      await world.until();
    },
    shows: (t, world) => t.same([world.phases, world.snapshot.value], [enabling, 'enabled']),
  },
  {
    takes: 'enabled DISABLE → disabling',
    proves: 'disabling stops the gateway before it removes the files',
    given: to.enabled,
    async when(world) {
      world.actor.send({ type: 'DISABLE' });
      await world.until();
    },
    shows(t, world) {
      t.same([world.phases, world.snapshot.value], [disabling, 'disabled']);
      t.equal(world.snapshot.context.wasEnabled, false);
    },
  },
  {
    takes: 'disabled DISABLE → disabling',
    proves: 'disabling a disabled ingress removes remains of an interrupted command',
    given: to.disabled,
    async when(world) {
      world.actor.send({ type: 'DISABLE' });
      await world.until();
    },
    shows: (t, world) => t.same([world.phases, world.snapshot.value], [disabling, 'disabled']),
  },
  {
    takes: 'enabling CANCEL → undoing',
    proves: 'a cancel aborts the active step and undoes the others',
    given: to.enabling,
    when: (world) => world.actor.send({ type: 'CANCEL' }),
    shows(t, world) {
      t.match(world.snapshot.context.failure, { code: 'cancelled' });
      t.same([world.carryOut[0]?.isOpen, world.undo.length], [false, 1]);
    },
  },
  {
    takes: 'disabling CANCEL → undoing',
    proves: 'a cancelled disabling restores the gateway',
    given: to.disabling,
    when: (world) => world.actor.send({ type: 'CANCEL' }),
    shows: (t, world) => t.equal(world.undo.length, 1),
  },
  ...enabling.flatMap((phase): Walk<World>[] => [
    {
      takes: `enabling.${phase} done(carryOut) → ${next(phase)}`,
      proves: 'the end of a step starts the next one',
      given: async (world) => {
        await to.enabling(world);
        await world.until(phase);
      },
      when: (world) => open(world.carryOut).answer(),
      shows: (t, world) => t.equal(world.phases.at(-1), enabling[enabling.indexOf(phase) + 1] ?? 'recreate'),
    },
    {
      takes: `enabling.${phase} error(carryOut) → undoing`,
      proves: 'a failed step undoes the completed ones',
      given: async (world) => {
        await to.enabling(world);
        await world.until(phase);
      },
      when: (world) => open(world.carryOut).fail(portTaken),
      shows: (t, world) =>
        t.same(world.snapshot.context.failure, { code: 'portTaken', message: 'port 80 is taken', isRetryable: false }),
    },
  ]),
  ...disabling.flatMap((phase): Walk<World>[] => [
    {
      takes: `disabling.${phase} done(carryOut) → ${phase === 'stopping' ? 'disabling.removing' : 'disabled'}`,
      proves: 'the end of a step starts the next one',
      given: async (world) => {
        await to.disabling(world);
        await world.until(phase);
      },
      when: (world) => open(world.carryOut).answer(),
      shows: (t, world) => t.equal(world.snapshot.context.failure, null),
    },
    {
      takes: `disabling.${phase} error(carryOut) → undoing`,
      proves: 'a failed step undoes the completed ones',
      given: async (world) => {
        await to.disabling(world);
        await world.until(phase);
      },
      when: (world) => open(world.carryOut).fail(portTaken),
      shows: (t, world) => t.equal(world.undo.length, 1),
    },
  ]),
  {
    takes: 'undoing done(undo) [wasEnabled] → enabled',
    proves: 'an undone disabling is enabled again, with the reason',
    given: async (world) => {
      await to.enablingAgain(world);
      open(world.carryOut).fail(portTaken);
      await flush();
    },
    when: (world) => open(world.undo).answer(),
    shows: (t, world) => t.same([world.snapshot.value, world.snapshot.context.failure?.code], ['enabled', 'portTaken']),
  },
  {
    takes: 'undoing done(undo) → disabled',
    proves: 'an undone enabling is disabled again, with the reason',
    given: to.undoing,
    when: (world) => open(world.undo).answer(),
    shows: (t, world) =>
      t.same([world.snapshot.value, world.snapshot.context.failure?.code], ['disabled', 'portTaken']),
  },
  {
    takes: 'undoing error(undo) → damaged',
    proves: 'a failed undo reports the first failure',
    given: to.undoing,
    when: (world) => open(world.undo).fail(new Error('disk')),
    shows: (t, world) =>
      t.same([world.snapshot.hasTag('atRest'), world.snapshot.context.failure?.code], [true, 'portTaken']),
  },
  {
    takes: 'damaged ENABLE → enabling',
    proves: 'enabling repairs a damaged ingress',
    given: to.damaged,
    async when(world) {
      world.actor.send({ type: 'ENABLE' });
      await world.until();
    },
    shows: (t, world) => t.same([world.snapshot.value, world.snapshot.context.failure], ['enabled', null]),
  },
  {
    takes: 'damaged DISABLE → disabling',
    proves: 'disabling repairs a damaged ingress',
    given: to.damaged,
    async when(world) {
      world.actor.send({ type: 'DISABLE' });
      await world.until();
    },
    shows: (t, world) => t.same([world.snapshot.value, world.snapshot.context.failure], ['disabled', null]),
  },
];

walkEvery(t, webhookIngressMachine, () => new World(), walks);
