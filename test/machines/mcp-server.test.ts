import fc from 'fast-check';
import t, { type Test } from 'tap';
import { type ActorRefFrom, createActor, fromCallback, SimulatedClock } from 'xstate';
import {
  type McpConnectionCommand,
  type McpConnectionInput,
  type McpServerEvent,
  type McpServerFacts,
  type McpServerPolicy,
  mcpServerMachine,
} from '../../machines/index.ts';
import { nodeId } from '../../src/inspect/names.ts';
import { flush, transitionLog, type Walk, walkEvery } from './harness.ts';

const policy: McpServerPolicy = {
  restart: 'onFailure',
  maxRestarts: 3,
  withinMs: 60_000,
  backoffBaseMs: 1_000,
  backoffCapMs: 8_000,
  stableAfterMs: 30_000,
  startupTimeoutMs: 20_000,
  closeGraceMs: 500,
  gracefulStopMs: 1_000,
  killVerifyMs: 5_000,
};

const facts: McpServerFacts = {
  toolCount: 3,
  toolProblems: [],
  resourceCount: 0,
  resourceTemplateCount: 0,
  serverName: 'fake',
  serverVersion: '1',
  protocolVersion: '2026-07-28',
};

/** One connection of the fake world, from the request to open it. */
interface FakeConnection {
  readonly incarnation: number;
  readonly commands: McpConnectionCommand['type'][];
  isOpen: boolean;
  isReleased: boolean;
  send(event: McpServerEvent): void;
}

/** The machine with connections controlled by the test. */
class World {
  readonly clock = new SimulatedClock();
  readonly taken: string[] = [];
  readonly errors: unknown[] = [];
  readonly connections: FakeConnection[] = [];
  /** Reports a stored token; undefined while no log-in is watched. */
  storeLogin: (() => void) | undefined;
  readonly actor: ActorRefFrom<typeof mcpServerMachine>;

  constructor(changes: Partial<McpServerPolicy> = {}) {
    const connection = fromCallback<McpConnectionCommand, McpConnectionInput>(({ input, receive, sendBack }) => {
      const fake: FakeConnection = {
        incarnation: input.incarnation,
        commands: [],
        isOpen: true,
        isReleased: false,
        send: (event) => sendBack(event),
      };
      this.connections.push(fake);
      receive((command) => {
        fake.commands.push(command.type);
      });
      return () => {
        fake.isReleased = true;
      };
    });
    const loginWatch = fromCallback(({ sendBack }) => {
      this.storeLogin = () => sendBack({ type: 'LOGIN.STORED' });
      return () => {
        this.storeLogin = undefined;
      };
    });
    this.actor = createActor(mcpServerMachine.provide({ actors: { connection, loginWatch } }), {
      clock: this.clock,
      input: { name: 'fake', transport: 'stdio', policy: { ...policy, ...changes }, seed: 1 },
      inspect: transitionLog(this.taken, (actor) => actor === this.actor),
    });
    this.actor.subscribe({ error: (error) => this.errors.push(error) });
    this.actor.start();
  }

  get context() {
    return this.actor.getSnapshot().context;
  }

  get state(): string {
    const nodes = this.actor.getSnapshot()._nodes.filter((node) => node.type === 'atomic');
    return nodes.map(nodeId).join(', ');
  }

  get last(): FakeConnection {
    const last = this.connections.at(-1);
    if (!last) throw new Error('nothing was connected to');
    return last;
  }

  async send(type: 'SERVER.START' | 'SERVER.STOP'): Promise<void> {
    this.actor.send({ type });
    await flush();
  }

  async pass(ms: number): Promise<void> {
    this.clock.increment(ms);
    await flush();
  }

  async spawned(): Promise<void> {
    this.last.send({ type: 'CONNECTION.SPAWNED', incarnation: this.last.incarnation, pid: 77 });
    await flush();
  }

  async ready(): Promise<void> {
    const { incarnation } = this.last;
    this.last.send({ type: 'CONNECTION.READY', incarnation, facts, at: this.clock.now() });
    await flush();
  }

  async lost(): Promise<void> {
    this.last.send({ type: 'CONNECTION.LOST', incarnation: this.last.incarnation });
    await flush();
  }

  async closed(isRetryable = true, output = '', needsLogin = false): Promise<void> {
    const { last } = this;
    last.isOpen = false;
    const at = this.clock.now();
    const error = 'It ended (code 1).';
    last.send({ type: 'CONNECTION.CLOSED', incarnation: last.incarnation, error, output, isRetryable, needsLogin, at });
    await flush();
  }
}

const to = {
  disabled: flush,
  connecting: (world: World) => world.send('SERVER.START'),
  async aborting(world: World) {
    await to.connecting(world);
    await world.pass(policy.startupTimeoutMs);
  },
  async ready(world: World) {
    await to.connecting(world);
    await world.ready();
  },
  async closing(world: World) {
    await to.ready(world);
    await world.send('SERVER.STOP');
  },
  async terminating(world: World) {
    await to.closing(world);
    await world.pass(policy.closeGraceMs);
  },
  async killing(world: World) {
    await to.terminating(world);
    await world.pass(policy.gracefulStopMs);
  },
  async stopped(world: World) {
    await to.closing(world);
    await world.closed();
  },
  async clearing(world: World) {
    await to.ready(world);
    await world.lost();
  },
  async backingOff(world: World) {
    await to.clearing(world);
    await world.closed();
  },
  async failed(world: World) {
    await to.connecting(world);
    await world.closed(false);
  },
  async needsLogin(world: World) {
    await to.connecting(world);
    await world.closed(false, '', true);
  },
};

function isClean(t: Test, world: World): void {
  t.same(
    world.connections.filter(({ isOpen }) => isOpen),
    [],
    'no connection is open',
  );
  t.same(Object.keys(world.actor.getSnapshot().children), [], 'no actor is left');
  t.equal(world.context.facts, null, 'nothing is said of its tools');
}

const walks: Walk<World>[] = [
  {
    takes: 'disabled SERVER.START → starting',
    proves: 'A start opens the first connection.',
    given: to.disabled,
    when: (world) => world.send('SERVER.START'),
    shows: (t, world) => {
      t.equal(world.state, 'starting.connecting');
      t.same(
        world.connections.map(({ incarnation }) => incarnation),
        [1],
      );
    },
  },
  {
    takes: 'starting SERVER.STOP → stopping',
    proves: 'A stop ends a start and waits for its connection.',
    given: to.connecting,
    when: (world) => world.send('SERVER.STOP'),
    shows: (t, world) => {
      t.equal(world.state, 'stopping.closing');
      t.same(world.last.commands, ['CLOSE']);
    },
  },
  {
    takes: 'starting CONNECTION.SPAWNED [isThisIncarnation] → ∅',
    proves: 'The pid of a starting process is recorded.',
    given: to.connecting,
    when: (world) => world.spawned(),
    shows: (t, world) => t.match(world.context, { pid: 77 }),
  },
  {
    takes: 'starting CONNECTION.CLOSED [isThisIncarnation] → down',
    proves: 'A failed start is retried, and the end of its output recorded.',
    given: to.connecting,
    when: (world) => world.closed(true, 'no such module'),
    shows: (t, world) => {
      t.equal(world.state, 'down.backingOff');
      t.equal(world.context.lastError, 'It ended (code 1).\nno such module');
      isClean(t, world);
    },
  },
  {
    takes: 'starting CONNECTION.CLOSED [lacksLogin] → needsLogin',
    proves: 'A start that lacks a log-in is not a failure, and waits for a token.',
    given: to.connecting,
    when: (world) => world.closed(false, '', true),
    shows: (t, world) => {
      t.match(world.context, { failures: [], lastError: 'It ended (code 1).' });
      t.ok(world.actor.getSnapshot().hasTag('needsLogin'));
      t.ok(world.storeLogin, 'log-ins are watched');
      t.notOk(world.last.isOpen);
    },
  },
  {
    takes: 'starting.connecting after(startupTimeout) → starting.aborting',
    proves: 'A server that is not ready in time is killed before its start counts as failed.',
    given: to.connecting,
    when: (world) => world.pass(policy.startupTimeoutMs),
    shows: (t, world) => {
      t.equal(world.state, 'starting.aborting.killing');
      t.same(world.last.commands, ['KILL']);
      t.equal(world.context.lastError, 'It was not ready within 20 s.');
    },
  },
  {
    takes: 'starting.connecting CONNECTION.READY [isThisIncarnation] → ready',
    proves: 'A server is ready when it has listed its tools.',
    given: to.connecting,
    when: (world) => world.ready(),
    shows: (t, world) => {
      t.equal(world.state, 'ready');
      t.same(world.context.facts, facts);
      t.ok(world.actor.getSnapshot().hasTag('ready'));
    },
  },
  {
    takes: 'starting.aborting.killing after(killVerify) → starting.aborting.stuck',
    proves: 'A process that survives SIGKILL during the abort is awaited.',
    given: to.aborting,
    when: (world) => world.pass(policy.killVerifyMs),
    shows: (t, world) => {
      t.equal(world.state, 'starting.aborting.stuck');
      t.match(world.context.lastError, 'did not end after SIGKILL');
    },
  },
  {
    takes: 'ready SERVER.STOP → stopping',
    proves: 'A stop closes the connection first, and removes the tools at once.',
    given: to.ready,
    when: (world) => world.send('SERVER.STOP'),
    shows: (t, world) => {
      t.same(world.last.commands, ['CLOSE']);
      t.equal(world.context.facts, null);
    },
  },
  {
    takes: 'ready CONNECTION.CHANGED [isThisIncarnation] → ∅',
    proves: 'A ready server may change its tools.',
    given: to.ready,
    when: (world) => {
      const { incarnation } = world.last;
      world.last.send({ type: 'CONNECTION.CHANGED', incarnation, facts: { ...facts, toolCount: 4 } });
    },
    shows: (t, world) => t.equal(world.context.facts?.toolCount, 4),
  },
  {
    takes: 'ready CONNECTION.LOST [isThisIncarnation] → clearing',
    proves: 'The tools of a lost server are removed at once.',
    given: to.ready,
    when: (world) => world.lost(),
    shows: (t, world) => {
      t.equal(world.context.facts, null);
      t.ok(world.actor.getSnapshot().hasTag('restarting'));
      t.same(world.last.commands, []);
    },
  },
  {
    takes: 'clearing SERVER.STOP → stopping',
    proves: 'A stop cancels the restart.',
    given: to.clearing,
    when: (world) => world.send('SERVER.STOP'),
    shows: (t, world) => t.same(world.last.commands, ['CLOSE']),
  },
  {
    takes: 'clearing CONNECTION.CLOSED [isThisIncarnation] → down',
    proves: 'A lost server is restarted after its processes have ended.',
    given: to.clearing,
    when: (world) => world.closed(),
    shows: (t, world) => {
      t.equal(world.state, 'down.backingOff');
      t.ok(world.actor.getSnapshot().hasTag('restarting'));
      isClean(t, world);
    },
  },
  {
    takes: 'clearing CONNECTION.CLOSED [lacksLogin] → needsLogin',
    proves: 'A server that refuses its token while it is used waits for a log-in.',
    given: to.clearing,
    when: (world) => world.closed(false, '', true),
    shows: (t, world) => t.match(world.context, { failures: [], hasProcess: false }),
  },
  {
    takes: 'needsLogin LOGIN.STORED → starting',
    proves: 'A stored token starts the server again.',
    given: to.needsLogin,
    when: (world) => {
      world.storeLogin?.();
      return flush();
    },
    shows: (t, world) => {
      t.equal(world.state, 'starting.connecting');
      t.match(world.context, { lastError: null });
      t.equal(world.storeLogin, undefined, 'log-ins are not watched');
    },
  },
  {
    takes: 'needsLogin SERVER.START → starting',
    proves: 'A start tries without a log-in.',
    given: to.needsLogin,
    when: (world) => world.send('SERVER.START'),
    shows: (t, world) => t.equal(world.last.incarnation, 2),
  },
  {
    takes: 'needsLogin SERVER.STOP → stopped',
    proves: 'A stop ends the watch for a log-in.',
    given: to.needsLogin,
    when: (world) => world.send('SERVER.STOP'),
    shows: (t, world) => isClean(t, world),
  },
  {
    takes: 'stopping CONNECTION.CLOSED [isThisIncarnation] → stopped',
    proves: 'A closed connection completes the stop, which is not a failure.',
    given: to.closing,
    when: (world) => world.closed(),
    shows: (t, world) => {
      t.equal(world.state, 'stopped');
      t.match(world.context, { failures: [], lastError: null });
      isClean(t, world);
    },
  },
  {
    takes: 'stopping.closing after(closeGrace) → stopping.terminating',
    proves: 'A process that does not end with its input gets SIGTERM.',
    given: to.closing,
    when: (world) => world.pass(policy.closeGraceMs),
    shows: (t, world) => t.same(world.last.commands, ['CLOSE', 'TERMINATE']),
  },
  {
    takes: 'stopping.terminating after(gracefulStop) → stopping.killing',
    proves: 'A process that ignores SIGTERM gets SIGKILL after the grace period.',
    given: to.terminating,
    when: (world) => world.pass(policy.gracefulStopMs),
    shows: (t, world) => t.same(world.last.commands, ['CLOSE', 'TERMINATE', 'KILL']),
  },
  {
    takes: 'stopping.killing after(killVerify) → stopping.stuck',
    proves: 'A process that survives SIGKILL is stuck, not stopped.',
    given: to.killing,
    when: (world) => world.pass(policy.killVerifyMs),
    shows: (t, world) => {
      t.equal(world.state, 'stopping.stuck');
      t.match(world.context.lastError, 'did not end after SIGKILL');
    },
  },
  {
    takes: 'stopped SERVER.START → starting',
    proves: 'A stopped server can be started as a new incarnation.',
    given: to.stopped,
    when: (world) => world.send('SERVER.START'),
    shows: (t, world) => t.equal(world.last.incarnation, 2),
  },
  {
    takes: 'down SERVER.START → starting',
    proves: 'A start skips the back-off and clears the failures.',
    given: to.backingOff,
    when: (world) => world.send('SERVER.START'),
    shows: (t, world) => {
      t.equal(world.state, 'starting.connecting');
      t.match(world.context, { failures: [], attempt: 0, lastError: null });
    },
  },
  {
    takes: 'down SERVER.STOP → stopped',
    proves: 'A stop cancels the pending restart.',
    given: to.backingOff,
    when: (world) => world.send('SERVER.STOP'),
    shows: (t, world) => {
      world.clock.increment(600_000);
      t.equal(world.state, 'stopped');
      t.equal(world.connections.length, 1);
    },
  },
  {
    takes: 'down.deciding always [mustNotRestart] → down.failed',
    proves: 'A permanent failure is not retried.',
    given: to.connecting,
    when: (world) => world.closed(false),
    shows: (t, world) => {
      world.clock.increment(600_000);
      t.equal(world.state, 'down.failed');
      t.ok(world.actor.getSnapshot().hasTag('failed'));
      isClean(t, world);
    },
  },
  {
    takes: 'down.deciding always [exceedsFailureLimit] → down.failed',
    proves: 'Too many failures within the window end the restarts.',
    world: () => new World({ maxRestarts: 1 }),
    given: async (world) => {
      await to.backingOff(world);
      await world.pass(1_000);
    },
    when: (world) => world.closed(),
    shows: (t, world) => {
      t.equal(world.state, 'down.failed');
      isClean(t, world);
    },
  },
  {
    takes: 'down.deciding always → down.backingOff',
    proves: 'A restart waits for a jittered pause.',
    given: to.clearing,
    when: (world) => world.closed(),
    shows: (t, world) => {
      const { delayMs } = world.context;
      t.ok(delayMs >= 500 && delayMs <= 1_000, String(delayMs));
    },
  },
  {
    takes: 'down.backingOff after(backoff) → starting',
    proves: 'The restart is a new incarnation.',
    given: to.backingOff,
    when: (world) => world.pass(world.context.delayMs),
    shows: (t, world) => {
      t.equal(world.state, 'starting.connecting');
      t.equal(world.last.incarnation, 2);
    },
  },
];

walkEvery(t, mcpServerMachine, () => new World(), walks);

t.test('the policy never prevents a restart', async (t) => {
  const world = new World({ restart: 'never' });
  await to.backingOff(world);
  t.equal(world.state, 'down.failed');
});

t.test('a failure after stable service counts as the first', async (t) => {
  const world = new World();
  await to.backingOff(world);
  await world.pass(world.context.delayMs);
  await world.ready();
  await world.pass(policy.stableAfterMs);
  await world.lost();
  await world.closed();
  t.equal(world.context.attempt, 1);
});

t.test('an event of an earlier incarnation is ignored', async (t) => {
  for (const [name, lead] of Object.entries(to)) {
    const world = new World();
    await lead(world);
    const before = world.actor.getSnapshot();
    world.actor.send({ type: 'CONNECTION.SPAWNED', incarnation: 0, pid: 1 });
    world.actor.send({ type: 'CONNECTION.READY', incarnation: 0, facts, at: 0 });
    world.actor.send({ type: 'CONNECTION.CHANGED', incarnation: 0, facts });
    world.actor.send({ type: 'CONNECTION.LOST', incarnation: 0 });
    const end = { error: 'no', output: '', isRetryable: false, needsLogin: true, at: 0 };
    world.actor.send({ type: 'CONNECTION.CLOSED', incarnation: 0, ...end });
    t.equal(world.actor.getSnapshot().context, before.context, name);
    t.same(world.actor.getSnapshot().value, before.value, name);
  }
});

type Step =
  | { readonly do: 'start' | 'stop' | 'spawn' | 'ready' | 'lose' | 'obey' | 'login' }
  | { readonly do: 'close'; readonly isRetryable: boolean; readonly needsLogin: boolean }
  | { readonly do: 'advance'; readonly ms: number };

const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 3, arbitrary: fc.record({ do: fc.constantFrom('start' as const, 'stop' as const, 'login' as const) }) },
  {
    weight: 6,
    arbitrary: fc.record({ do: fc.constantFrom('spawn' as const, 'ready' as const, 'lose' as const, 'obey' as const) }),
  },
  {
    weight: 3,
    arbitrary: fc.record({ do: fc.constant('close' as const), isRetryable: fc.boolean(), needsLogin: fc.boolean() }),
  },
  {
    weight: 4,
    arbitrary: fc.record({ do: fc.constant('advance' as const), ms: fc.constantFrom(100, 1_000, 5_000, 30_000) }),
  },
);

/** Performs a step if it is possible now: a closed connection reports nothing. */
async function take(world: World, step: Step): Promise<void> {
  const open = world.connections.find(({ isOpen, isReleased }) => isOpen && !isReleased);
  if (step.do === 'start') await world.send('SERVER.START');
  if (step.do === 'stop') await world.send('SERVER.STOP');
  if (step.do === 'advance') await world.pass(step.ms);
  if (step.do === 'login') world.storeLogin?.();
  await flush();
  if (!open) return;
  if (step.do === 'spawn') await world.spawned();
  if (step.do === 'ready') await world.ready();
  if (step.do === 'lose' && world.state === 'ready') await world.lost();
  if (step.do === 'close' && world.state !== 'ready') await world.closed(step.isRetryable, '', step.needsLogin);
  if (step.do === 'obey' && open.commands.length > 0) await world.closed();
}

function broken(world: World): string[] {
  const snapshot = world.actor.getSnapshot();
  const { state } = world;
  const problems: string[] = [];
  const open = world.connections.filter(({ isOpen }) => isOpen);
  if (open.length > 1) problems.push(`${open.length} connections in ${state}`);
  if (/^(disabled|stopped|down|needsLogin)/.test(state) && open.length > 0)
    problems.push(`a connection is open in ${state}`);
  if (open.some(({ isReleased }) => isReleased)) problems.push(`an open connection was released in ${state}`);
  if (/^(disabled|stopped|down|needsLogin)/.test(state) && 'connection' in snapshot.children)
    problems.push(`an actor in ${state}`);
  if ((snapshot.context.facts !== null) !== (state === 'ready')) problems.push(`facts in ${state}`);
  if (snapshot.context.hasProcess !== open.length > 0) problems.push(`hasProcess lies in ${state}`);
  const tags = ['disabled', 'starting', 'ready', 'needsLogin', 'failed', 'restarting', 'stopped'] as const;
  if ((world.storeLogin !== undefined) !== (state === 'needsLogin')) problems.push(`log-ins and ${state}`);
  const shown = tags.filter((tag) => snapshot.hasTag(tag));
  if (shown.length !== 1) problems.push(`${state} is shown as ${shown.join(' and ') || 'nothing'}`);
  if (snapshot.status !== 'active' || world.errors.length > 0) problems.push(`status ${snapshot.status}`);
  return problems;
}

t.test('through any history at most one connection is open, none at rest, and every stop completes', async (t) => {
  const changes = fc.record({
    restart: fc.constantFrom('never' as const, 'onFailure' as const, 'always' as const),
    maxRestarts: fc.nat(3),
  });
  const history = fc.array(step, { minLength: 1, maxLength: 60, size: 'max' });
  const check = async (policyChanges: Partial<McpServerPolicy>, steps: readonly Step[]) => {
    const world = new World(policyChanges);
    const problems: string[] = [];
    for (const each of steps) {
      const before = { state: world.state, spent: world.context.failures.length > world.context.policy.maxRestarts };
      await take(world, each);
      problems.push(...broken(world));
      if (each.do !== 'start' && before.spent && before.state.startsWith('down') && world.state.startsWith('starting'))
        problems.push(`${before.state} was left by itself after too many failures`);
    }
    const wasDisabled = world.state === 'disabled';
    await take(world, { do: 'stop' });
    await take(world, { do: 'obey' });
    if (world.state !== (wasDisabled ? 'disabled' : 'stopped')) problems.push(`${world.state} after a stop`);
    world.actor.stop();
    if (problems.length > 0) throw new Error(problems.slice(0, 3).join('\n'));
  };
  const seed = process.env['ORATORIO_TEST_SEED'];
  await fc.assert(fc.asyncProperty(changes, history, check), {
    numRuns: 300,
    ...(seed !== 'random' && { seed: Number(seed ?? 20_261_121) }),
  });
  t.pass();
});
