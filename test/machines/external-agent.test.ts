import t, { type Test } from 'tap';
import { type ActorRefFrom, createActor, fromCallback, SimulatedClock } from 'xstate';
import {
  type ExternalAgentCommand,
  type ExternalAgentPolicy,
  type ExternalAgentProcessEvent,
  type ExternalAgentProcessInput,
  externalAgentMachine,
} from '../../machines/index.ts';
import { nodeId } from '../../src/inspect/names.ts';
import { flush, transitionLog, type Walk, walkEvery } from './harness.ts';

const policy: ExternalAgentPolicy = {
  restart: 'onFailure',
  maxRestarts: 3,
  withinMs: 60_000,
  backoffBaseMs: 1_000,
  backoffCapMs: 8_000,
  stableAfterMs: 30_000,
  gracefulStopMs: 1_000,
  killVerifyMs: 5_000,
  handshakeTimeoutMs: 60_000,
  closeGraceMs: 2_500,
  cancelGraceMs: 5_000,
};

interface FakeProcess {
  readonly incarnation: number;
  readonly commands: ExternalAgentCommand['type'][];
  isReleased: boolean;
  send(event: ExternalAgentProcessEvent): void;
}

type WithoutLife<E> = E extends unknown ? Omit<E, 'incarnation'> : never;

/** The machine with processes controlled by the test. */
class World {
  readonly clock = new SimulatedClock();
  readonly taken: string[] = [];
  readonly processes: FakeProcess[] = [];
  readonly actor: ActorRefFrom<typeof externalAgentMachine>;

  constructor(changes: Partial<ExternalAgentPolicy> = {}) {
    const process = fromCallback<ExternalAgentCommand, ExternalAgentProcessInput>(({ input, receive, sendBack }) => {
      const fake: FakeProcess = { incarnation: input.incarnation, commands: [], isReleased: false, send: sendBack };
      this.processes.push(fake);
      receive(({ type }) => {
        fake.commands.push(type);
      });
      return () => {
        fake.isReleased = true;
      };
    });
    this.actor = createActor(externalAgentMachine.provide({ actors: { process } }), {
      clock: this.clock,
      input: { name: 'fake', policy: { ...policy, ...changes }, seed: 1 },
      inspect: transitionLog(this.taken, (actor) => actor === this.actor),
    });
    this.actor.start();
  }

  get context() {
    return this.actor.getSnapshot().context;
  }

  get state(): string {
    const nodes = this.actor.getSnapshot()._nodes.filter((node) => node.type === 'atomic');
    return nodes.map(nodeId).join(', ');
  }

  get last(): FakeProcess {
    const last = this.processes.at(-1);
    if (!last) throw new Error('no process was started');
    return last;
  }

  async send(type: 'AGENT.WANTED' | 'AGENT.UNNEEDED' | 'AGENT.STOP'): Promise<void> {
    this.actor.send({ type });
    await flush();
  }

  /** Has the latest process report. */
  async emit(event: WithoutLife<ExternalAgentProcessEvent>): Promise<void> {
    this.last.send({ ...event, incarnation: this.last.incarnation } as ExternalAgentProcessEvent);
    await flush();
  }

  async pass(ms: number): Promise<void> {
    this.clock.increment(ms);
    await flush();
  }

  exit(isRetryable = true): Promise<void> {
    return this.emit({ type: 'PROCESS.EXITED', error: 'It exited (code 1).', isRetryable, at: this.clock.now() });
  }
}

const to = {
  absent: flush,
  starting: (world: World) => world.send('AGENT.WANTED'),
  async ready(world: World) {
    await to.starting(world);
    await world.emit({ type: 'HANDSHAKE.DONE', facts: { name: 'fake', version: '1' }, at: world.clock.now() });
  },
  async working(world: World) {
    await to.ready(world);
    await world.emit({ type: 'PROMPT.BEGUN' });
  },
  async cancelling(world: World) {
    await to.working(world);
    await world.emit({ type: 'CANCEL.SENT' });
  },
  async killing(world: World) {
    await to.working(world);
    await world.emit({ type: 'WORKER.LOST', pid: 5 });
  },
  async sweeping(world: World) {
    await to.working(world);
    await world.exit();
  },
  async backingOff(world: World) {
    await to.sweeping(world);
    await world.emit({ type: 'PROCESS.SWEPT' });
  },
  async resting(world: World) {
    await to.starting(world);
    await world.exit(false);
    await world.emit({ type: 'PROCESS.SWEPT' });
  },
  async retiring(world: World) {
    await to.ready(world);
    await world.send('AGENT.UNNEEDED');
  },
  async retireKilling(world: World) {
    await to.retiring(world);
    await world.pass(policy.closeGraceMs);
  },
  async closing(world: World) {
    await to.ready(world);
    await world.send('AGENT.STOP');
  },
  async stopKilling(world: World) {
    await to.closing(world);
    await world.pass(policy.closeGraceMs);
  },
};

const is =
  (state: string, context: object = {}) =>
  (t: Test, world: World) => {
    t.equal(world.state, state);
    t.match(world.context, context);
  };
const flood = { type: 'OUTPUT.FLOODED', error: 'too much' } as const;
const ended = (wasCancelled = false) => ({ type: 'PROMPT.ENDED', wasCancelled }) as const;
const stop = (world: World) => world.send('AGENT.STOP');
const want = (world: World) => world.send('AGENT.WANTED');
const unneed = (world: World) => world.send('AGENT.UNNEEDED');
const stopsFrom = ['starting', 'ready'] as const;

const walks: Walk<World>[] = [
  {
    takes: 'absent AGENT.WANTED → starting',
    proves: 'an agent is started when a turn wants it',
    given: to.absent,
    when: want,
    shows: (t, world) => t.equal(world.last.incarnation, 1),
  },
  ...stopsFrom.map((state) => ({
    takes: `${state} AGENT.STOP → stopping`,
    proves: `a stop of an agent that is ${state} closes its input first`,
    given: to[state],
    when: stop,
    shows: (t: Test, world: World) => t.same(world.last.commands, ['CLOSE']),
  })),
  {
    takes: 'busy AGENT.STOP → stopping',
    proves: 'a stop of an agent that works closes its input first',
    given: to.working,
    when: stop,
    shows: (t, world) => t.same(world.last.commands, ['CLOSE']),
  },
  {
    takes: 'starting PROCESS.SPAWNED [isThisIncarnation] → ∅',
    proves: 'the process id is known before the agent answers',
    given: to.starting,
    when: (world) => world.emit({ type: 'PROCESS.SPAWNED', pid: 77 }),
    shows: is('starting', { pid: 77 }),
  },
  {
    takes: 'starting HANDSHAKE.DONE [isThisIncarnation] → ready',
    proves: 'an agent that has introduced itself is ready',
    given: to.starting,
    when: (world) => world.emit({ type: 'HANDSHAKE.DONE', facts: { name: 'fake', version: '2' }, at: 5 }),
    shows: is('ready', { facts: { version: '2' }, runningSince: 5 }),
  },
  {
    takes: 'starting HANDSHAKE.FAILED [isThisIncarnation] → unhealthy',
    proves: 'an agent that speaks another protocol is killed, and the reason is kept',
    given: to.starting,
    when: (world) => world.emit({ type: 'HANDSHAKE.FAILED', error: 'It speaks version 99.' }),
    shows: is('unhealthy.killing', { lastError: 'It speaks version 99.' }),
  },
  {
    takes: 'starting after(handshakeTimeout) → unhealthy',
    proves: 'an agent that says nothing is killed',
    given: to.starting,
    when: (world) => world.pass(policy.handshakeTimeoutMs),
    shows: (t, world) => {
      t.match(world.context.lastError, 'within 60 s');
      t.same(world.last.commands, ['KILL']);
    },
  },
  {
    takes: 'starting OUTPUT.FLOODED [isThisIncarnation] → unhealthy',
    proves: 'an agent that floods before it introduces itself is killed',
    given: to.starting,
    when: (world) => world.emit(flood),
    shows: is('unhealthy.killing', { lastError: 'too much' }),
  },
  {
    takes: 'starting PROCESS.EXITED [isThisIncarnation] → exited',
    proves: 'an agent that ends at once is swept',
    given: to.starting,
    when: (world) => world.exit(),
    shows: is('exited.sweeping', { lastError: 'It exited (code 1).', failures: [0] }),
  },
  {
    takes: 'ready PROMPT.BEGUN [isThisIncarnation] → busy',
    proves: 'a prompt makes the agent busy',
    given: to.ready,
    when: (world) => world.emit({ type: 'PROMPT.BEGUN' }),
    shows: is('busy.working', { prompts: 1 }),
  },
  {
    takes: 'ready WORKER.LOST [isThisIncarnation] → unhealthy',
    proves: 'an adapter that ended the prompt of its lost worker by itself is killed, with what the worker has left',
    given: async (world) => {
      await to.working(world);
      await world.emit(ended());
    },
    when: (world) => world.emit({ type: 'WORKER.LOST', pid: 5 }),
    shows: (t, world) => {
      is('unhealthy.killing', { lastError: /process 5/ })(t, world);
      t.same(world.last.commands, ['KILL']);
    },
  },
  {
    takes: 'ready OUTPUT.FLOODED [isThisIncarnation] → unhealthy',
    proves: 'an agent that floods while nobody asks is killed',
    given: to.ready,
    when: (world) => world.emit(flood),
    shows: is('unhealthy.killing'),
  },
  {
    takes: 'ready PROCESS.EXITED [isThisIncarnation] → exited',
    proves: 'an agent that ends while nobody asks is swept',
    given: to.ready,
    when: (world) => world.exit(),
    shows: is('exited.sweeping'),
  },
  {
    takes: 'busy PROMPT.BEGUN [isThisIncarnation] → ∅',
    proves: 'a second session may prompt at the same time',
    given: to.working,
    when: (world) => world.emit({ type: 'PROMPT.BEGUN' }),
    shows: is('busy.working', { prompts: 2 }),
  },
  {
    takes: 'busy AUTH.REQUIRED [isThisIncarnation] → ∅',
    proves: 'an agent that wants a log-in is not restarted for it',
    given: to.working,
    when: (world) => world.emit({ type: 'AUTH.REQUIRED' }),
    shows: is('busy.working', { needsLogin: true }),
  },
  {
    takes: 'busy WORKER.LOST [isThisIncarnation] → unhealthy',
    proves: 'an adapter whose worker has died never answers: it is killed',
    given: to.working,
    when: (world) => world.emit({ type: 'WORKER.LOST', pid: 5 }),
    shows: (t, world) => {
      t.match(world.context.lastError, 'process 5');
      t.same(world.last.commands, ['KILL']);
    },
  },
  {
    takes: 'busy OUTPUT.FLOODED [isThisIncarnation] → unhealthy',
    proves: 'an agent that writes without bound is killed',
    given: to.working,
    when: (world) => world.emit(flood),
    shows: is('unhealthy.killing'),
  },
  {
    takes: 'busy PROCESS.EXITED [isThisIncarnation] → exited',
    proves: 'the death of the process ends its prompts',
    given: to.working,
    when: (world) => world.exit(),
    shows: is('exited.sweeping', { prompts: 0 }),
  },
  {
    takes: 'busy PROMPT.ENDED [isLastPrompt] → ready',
    proves: 'the last prompt makes the agent ready',
    given: to.working,
    when: (world) => world.emit(ended()),
    shows: is('ready', { prompts: 0 }),
  },
  {
    takes: 'busy PROMPT.ENDED [isLastCancelled] → busy.working',
    proves: 'a cancelled prompt that ends stops the clock, while another one runs',
    given: async (world) => {
      await to.cancelling(world);
      await world.emit({ type: 'PROMPT.BEGUN' });
    },
    when: (world) => world.emit(ended(true)),
    shows: (t, world) => {
      world.clock.increment(10 * policy.cancelGraceMs);
      is('busy.working', { prompts: 1, cancelled: 0 })(t, world);
    },
  },
  {
    takes: 'busy PROMPT.ENDED [isThisIncarnation] → ∅',
    proves: 'one of two prompts ends',
    given: async (world) => {
      await to.working(world);
      await world.emit({ type: 'PROMPT.BEGUN' });
    },
    when: (world) => world.emit(ended()),
    shows: is('busy.working', { prompts: 1 }),
  },
  {
    takes: 'busy.working CANCEL.SENT [isThisIncarnation] → busy.cancelling',
    proves: 'a cancelled prompt must end',
    given: to.working,
    when: (world) => world.emit({ type: 'CANCEL.SENT' }),
    shows: is('busy.cancelling', { cancelled: 1 }),
  },
  {
    takes: 'busy.cancelling CANCEL.SENT [isThisIncarnation] → ∅',
    proves: 'a second cancelled prompt is counted',
    given: to.cancelling,
    when: (world) => world.emit({ type: 'CANCEL.SENT' }),
    shows: is('busy.cancelling', { cancelled: 2 }),
  },
  {
    takes: 'busy.cancelling after(cancelGrace) → unhealthy',
    proves: 'an agent that does not end a cancelled prompt is killed',
    given: to.cancelling,
    when: (world) => world.pass(policy.cancelGraceMs),
    shows: (t, world) => {
      t.match(world.context.lastError, 'within 5 s');
      t.same(world.last.commands, ['KILL']);
    },
  },
  {
    takes: 'unhealthy AGENT.WANTED → ∅',
    proves: 'a turn that comes while the agent is killed waits for the next one',
    given: to.killing,
    when: want,
    shows: is('unhealthy.killing', { isWanted: true }),
  },
  {
    takes: 'unhealthy AGENT.STOP → stopping.killing',
    proves: 'a stop of an agent that is killed goes on killing',
    given: to.killing,
    when: stop,
    shows: is('stopping.killing'),
  },
  {
    takes: 'unhealthy PROCESS.EXITED [isThisIncarnation] → exited',
    proves: 'the reason of the kill is kept, not the exit code',
    given: to.killing,
    when: (world) => world.exit(),
    shows: is('exited.sweeping', { lastError: /process 5/ }),
  },
  {
    takes: 'unhealthy.killing after(killVerify) → unhealthy.stuck',
    proves: 'a process that survives SIGKILL is stuck',
    given: to.killing,
    when: (world) => world.pass(policy.killVerifyMs),
    shows: is('unhealthy.stuck'),
  },
  {
    takes: 'exited.sweeping AGENT.WANTED → ∅',
    proves: 'no process is started before the last one is swept',
    given: to.sweeping,
    when: want,
    shows: (t, world) => t.equal(world.processes.length, 1),
  },
  {
    takes: 'exited.sweeping AGENT.STOP → stopping.sweeping',
    proves: 'a stop waits for the sweep',
    given: to.sweeping,
    when: stop,
    shows: is('stopping.sweeping'),
  },
  {
    takes: 'exited.sweeping PROCESS.SWEPT [isWantedAfterSweep] → starting',
    proves: 'a turn that waits gets a new process at once',
    given: async (world) => {
      await to.sweeping(world);
      await want(world);
    },
    when: (world) => world.emit({ type: 'PROCESS.SWEPT' }),
    shows: (t, world) => t.equal(world.last.incarnation, 2),
  },
  {
    takes: 'exited.sweeping PROCESS.SWEPT [isThisIncarnation] → exited.deciding',
    proves: 'without a turn that waits, the next start is decided',
    given: to.sweeping,
    when: (world) => world.emit({ type: 'PROCESS.SWEPT' }),
    shows: (t, world) => t.ok(world.last.isReleased),
  },
  {
    takes: 'exited.deciding always [mustNotRestart] → exited.resting',
    proves: 'what cannot help is not tried again',
    given: async (world) => {
      await to.starting(world);
      await world.exit(false);
    },
    when: (world) => world.emit({ type: 'PROCESS.SWEPT' }),
    shows: is('exited.resting'),
  },
  {
    takes: 'exited.deciding always [exceedsFailureLimit] → exited.resting',
    proves: 'too many failures within the window end the restarts',
    world: () => new World({ maxRestarts: 0 }),
    given: to.sweeping,
    when: (world) => world.emit({ type: 'PROCESS.SWEPT' }),
    shows: is('exited.resting'),
  },
  {
    takes: 'exited.deciding always → exited.backingOff',
    proves: 'a restart waits',
    given: to.sweeping,
    when: (world) => world.emit({ type: 'PROCESS.SWEPT' }),
    shows: (t, world) => t.ok(world.actor.getSnapshot().hasTag('down')),
  },
  {
    takes: 'exited.backingOff after(backoff) → starting',
    proves: 'the restart is a new incarnation',
    given: to.backingOff,
    when: (world) => world.pass(world.context.delayMs ?? 0),
    shows: (t, world) => t.equal(world.last.incarnation, 2),
  },
  {
    takes: 'exited.backingOff AGENT.WANTED → starting',
    proves: 'a turn skips the pause and clears the failures',
    given: to.backingOff,
    when: want,
    shows: is('starting', { failures: [], attempt: 0 }),
  },
  {
    takes: 'exited.backingOff AGENT.STOP → absent',
    proves: 'a stop cancels the restart',
    given: to.backingOff,
    when: stop,
    shows: (t, world) => {
      world.clock.increment(600_000);
      is('absent')(t, world);
    },
  },
  {
    takes: 'exited.resting AGENT.WANTED → starting',
    proves: 'a turn of a person is a manual start',
    given: to.resting,
    when: want,
    shows: (t, world) => t.equal(world.last.incarnation, 2),
  },
  {
    takes: 'exited.resting AGENT.STOP → absent',
    proves: 'an agent at rest is stopped at once',
    given: to.resting,
    when: stop,
    shows: is('absent'),
  },
  ...stopsFrom.map((state) => ({
    takes: `${state} AGENT.UNNEEDED → retiring`,
    proves: `an agent that is ${state} and that no thread needs has its input closed`,
    given: to[state],
    when: unneed,
    shows: (t: Test, world: World) => t.same(world.last.commands, ['CLOSE']),
  })),
  {
    takes: 'unhealthy AGENT.UNNEEDED → retiring.killing',
    proves: 'an agent that is killed and that no thread needs is not started again',
    given: to.killing,
    when: unneed,
    shows: is('retiring.killing'),
  },
  {
    takes: 'exited.sweeping AGENT.UNNEEDED → retiring.sweeping',
    proves: 'an agent that has ended and that no thread needs is swept only',
    given: to.sweeping,
    when: unneed,
    shows: is('retiring.sweeping'),
  },
  {
    takes: 'exited.backingOff AGENT.UNNEEDED → absent',
    proves: 'an agent that no thread needs is not restarted',
    given: to.backingOff,
    when: unneed,
    shows: (t, world) => {
      world.clock.increment(600_000);
      is('absent')(t, world);
    },
  },
  {
    takes: 'retiring AGENT.WANTED → ∅',
    proves: 'a turn that comes while the agent retires waits for the next one',
    given: to.retiring,
    when: want,
    shows: is('retiring.closing', { isWanted: true }),
  },
  {
    takes: 'retiring AGENT.STOP → stopping',
    proves: 'a stop of an agent that retires ends it for good',
    given: to.retiring,
    when: stop,
    shows: is('stopping.closing'),
  },
  {
    takes: 'retiring PROCESS.EXITED [isThisIncarnation] → retiring.sweeping',
    proves: 'the end of an agent that retires is no failure',
    given: to.retiring,
    when: (world) => world.exit(),
    shows: is('retiring.sweeping', { failures: [] }),
  },
  {
    takes: 'retiring PROCESS.SWEPT [isWantedAfterSweep] → starting',
    proves: 'a turn that waits gets a new process at once',
    given: async (world) => {
      await to.retiring(world);
      await want(world);
      await world.exit();
    },
    when: (world) => world.emit({ type: 'PROCESS.SWEPT' }),
    shows: (t, world) => t.equal(world.last.incarnation, 2),
  },
  {
    takes: 'retiring PROCESS.SWEPT [isThisIncarnation] → absent',
    proves: 'an agent that has retired is as one that was never asked for',
    given: async (world) => {
      await to.retiring(world);
      await world.exit();
    },
    when: (world) => world.emit({ type: 'PROCESS.SWEPT' }),
    shows: (t, world) => t.ok(world.last.isReleased),
  },
  {
    takes: 'retiring.closing after(agentCloseGrace) → retiring.killing',
    proves: 'an agent that does not retire with its input is killed',
    given: to.retiring,
    when: (world) => world.pass(policy.closeGraceMs),
    shows: (t, world) => t.same(world.last.commands, ['CLOSE', 'KILL']),
  },
  {
    takes: 'retiring.killing after(killVerify) → retiring.stuck',
    proves: 'a process that survives SIGKILL is stuck, not retired',
    given: to.retireKilling,
    when: (world) => world.pass(policy.killVerifyMs),
    shows: is('retiring.stuck', { lastError: /did not end after SIGKILL/ }),
  },
  {
    takes: 'stopping PROCESS.EXITED [isThisIncarnation] → stopping.sweeping',
    proves: 'the end of the process is not yet the end of the stop',
    given: to.closing,
    when: (world) => world.exit(),
    shows: is('stopping.sweeping', { failures: [] }),
  },
  {
    takes: 'stopping PROCESS.SWEPT [isThisIncarnation] → absent',
    proves: 'the stop is over when nothing is left',
    given: async (world) => {
      await to.closing(world);
      await world.exit();
    },
    when: (world) => world.emit({ type: 'PROCESS.SWEPT' }),
    shows: (t, world) => t.ok(world.last.isReleased),
  },
  {
    takes: 'stopping.closing after(agentCloseGrace) → stopping.killing',
    proves: 'an agent that does not end with its input is killed',
    given: to.closing,
    when: (world) => world.pass(policy.closeGraceMs),
    shows: (t, world) => t.same(world.last.commands, ['CLOSE', 'KILL']),
  },
  {
    takes: 'stopping.killing after(killVerify) → stopping.stuck',
    proves: 'a process that survives SIGKILL is stuck, not stopped',
    given: to.stopKilling,
    when: (world) => world.pass(policy.killVerifyMs),
    shows: is('stopping.stuck', { lastError: /did not end after SIGKILL/ }),
  },
];

walkEvery(t, externalAgentMachine, () => new World(), walks);

t.test('events of an earlier process are ignored', async (t) => {
  const world = new World();
  await to.backingOff(world);
  const [first] = world.processes;
  await want(world);
  first?.send({ type: 'PROCESS.EXITED', incarnation: 1, error: 'late', isRetryable: true, at: 0 });
  first?.send({ type: 'HANDSHAKE.DONE', incarnation: 1, facts: { name: null, version: null }, at: 0 });
  await flush();
  t.equal(world.state, 'starting');
});
