/** Worlds of the three supervising machines, which record all requests and emitted events. */
import { type ActorRefFrom, createActor, fromCallback, SimulatedClock } from 'xstate';
import {
  type AddressCommand,
  type AgentServerEmitted,
  type AgentServerEvent,
  agentServerMachine,
  apiProxyMachine,
  hubMachine,
  type Ownership,
  type Preparation,
  type PrepareInput,
  type Readiness,
  type SidecarActorInput,
  type SidecarReference,
  type SleepAnswer,
  type SupervisionPolicy,
  sidecarSlotMachine,
} from '../../machines/index.ts';
import { nodeId } from '../../src/inspect/names.ts';
import { asked, FakeOs, failure, flush, open, type Question, transitionLog, Worlds } from './harness.ts';

export const policy: SupervisionPolicy = {
  restart: 'onFailure',
  maxRestarts: 3,
  withinMs: 60_000,
  backoffBaseMs: 1_000,
  backoffCapMs: 8_000,
  stableAfterMs: 30_000,
  startDeadlineMs: 20_000,
  proxyDeadlineMs: 10_000,
  handOverMs: 0,
  gracefulStopMs: 3_000,
  killVerifyMs: 5_000,
  livenessFailures: 3,
  unhealthyGraceMs: 15_000,
  idleStopMs: 0,
};

export type ProxyChoice = 'keep' | 'replace' | 'none' | undefined;

/** One workspace's machine, its real sidecar machine below it, and the world around both. */
export class Workspace {
  readonly clock = new SimulatedClock();
  readonly os = new FakeOs(this.clock);
  readonly preparations: Question<Preparation, PrepareInput>[] = [];
  readonly places: Question<void, { workspacePath: string; incarnation: number }>[] = [];
  readonly readiness: Question<Readiness, { workspacePath: string; incarnation: number; ownership: Ownership }>[] = [];
  readonly sleeps: Question<SleepAnswer, { workspacePath: string; incarnation: number; idleStopMs: number }>[] = [];
  readonly sidecarReadiness: Question<{ at: number }, SidecarActorInput>[] = [];
  readonly emitted: AgentServerEmitted[] = [];
  /** Transitions of the workspace's machine, by name. */
  readonly taken: string[] = [];
  /** Errors of any actor: there must never be one. */
  readonly errors: unknown[] = [];
  readonly actor: ActorRefFrom<typeof agentServerMachine>;

  /** @param isLogged - fills `taken`: an inspector costs a tenth of a long history */
  constructor(changes: Partial<SupervisionPolicy> = {}, isLogged = true) {
    this.actor = createActor(fakeAgentServer, {
      clock: this.clock,
      input: { workspacePath: '/w', policy: { ...policy, ...changes }, seed: 1 },
      ...(isLogged && { inspect: transitionLog(this.taken, (actor) => actor === this.actor) }),
    });
    workspaces.add(this.actor, this);
    this.actor.subscribe({ error: (error) => this.errors.push(error) });
    this.actor.on('*', (event) => this.emitted.push(event));
    this.actor.start();
  }

  get context() {
    return this.actor.getSnapshot().context;
  }

  /** Ids of the actors below the machine and its slot, without the slot. */
  get children(): string[] {
    const { sidecarSlot, ...children } = this.actor.getSnapshot().children;
    return [...Object.keys(children), ...Object.keys(sidecarSlot?.getSnapshot().children ?? {})];
  }

  /** Path of the active leaf, `starting.aborting.killing`. */
  get state(): string {
    const nodes = this.actor.getSnapshot()._nodes.filter((node) => node.type === 'atomic');
    return nodes.map(nodeId).join(', ');
  }

  get emittedTypes(): string[] {
    return this.emitted.map((event) => event.type);
  }

  send(event: AgentServerEvent): void {
    this.actor.send(event);
  }

  /** Sidecar of a request: the present one (or a first), another one, or none. */
  choice(proxy?: ProxyChoice): { sidecar?: SidecarReference } {
    if (!proxy) return {};
    if (proxy === 'none') return { sidecar: 'none' };
    const present = this.context.slot.inForce ?? this.context.slot.held;
    return { sidecar: proxy === 'keep' ? (present ?? 1) : (present ?? 0) + 1 };
  }

  async ensure(proxy?: ProxyChoice): Promise<void> {
    this.send({ type: 'ENSURE', ...this.choice(proxy) });
    await flush();
  }

  async restart(proxy?: ProxyChoice): Promise<void> {
    this.send({ type: 'RESTART', ...this.choice(proxy) });
    await flush();
  }

  async stop(reason: 'user' | 'hub' | 'idle' = 'user'): Promise<void> {
    this.send({ type: 'STOP', reason });
    await flush();
  }

  async prepared(ownership: Preparation['ownership'] = 'managed', changed?: SupervisionPolicy): Promise<void> {
    const ports = ownership === 'managed' ? [{ service: 'appServerWebSocket', port: 4000 }] : [];
    open(this.preparations).answer({ ownership, ports, ...(changed && { policy: changed }) });
    await flush();
  }

  /** Preparation of a start in a container. */
  async preparedInPlace(): Promise<void> {
    open(this.preparations).answer({ ownership: 'managed', ports: [], hasPlace: true });
    await flush();
  }

  async placeReady(): Promise<void> {
    open(this.places).answer();
    await flush();
  }

  async placeNotReady(error: unknown): Promise<void> {
    open(this.places).fail(error);
    await flush();
  }

  async place(type: 'PLACE.LOST' | 'PLACE.BACK', incarnation = this.context.incarnation): Promise<void> {
    this.send({ type, incarnation });
    await flush();
  }

  async notPrepared(error: unknown): Promise<void> {
    open(this.preparations).fail(error);
    await flush();
  }

  async spawned(): Promise<void> {
    this.os.spawned(this.os.last('server'));
    await flush();
  }

  async ending(): Promise<void> {
    this.os.ending(this.os.last('server'));
    await flush();
  }

  async exited(exitCode: number | null, signal: string | null = null): Promise<void> {
    this.os.exited(this.os.last('server'), exitCode, signal);
    await flush();
  }

  async refused(isRetryable = true): Promise<void> {
    this.os.refused(this.os.last('server'), isRetryable);
    await flush();
  }

  async ready(ports: Readiness['ports'] = []): Promise<void> {
    open(this.readiness).answer({ serverVersion: '1.0.0', at: this.clock.now(), ports });
    await flush();
  }

  async notReady(error: unknown = failure('unhealthy', true)): Promise<void> {
    open(this.readiness).fail(error);
    await flush();
  }

  /** The sidecar machine's own steps. */
  async sidecar(step: 'spawned' | 'ready' | 'notReady' | 'refused' | 'exited'): Promise<void> {
    const process = this.os.last('sidecar');
    if (step === 'spawned') this.os.spawned(process);
    if (step === 'refused') this.os.refused(process, true);
    if (step === 'exited') this.os.exited(process, 1);
    if (step === 'ready') open(this.sidecarReadiness).answer({ at: this.clock.now() });
    if (step === 'notReady') open(this.sidecarReadiness).fail(new Error('no models'));
    await flush();
  }

  /** Probes of the sidecar, which its own machine receives. */
  async sidecarProbeFailed(times = 1): Promise<void> {
    const sidecar = this.actor.getSnapshot().children['sidecarSlot']?.getSnapshot().children['apiProxy'];
    const { incarnation } = this.os.last('sidecar');
    for (let count = 0; count < times; count++) {
      sidecar?.send({ type: 'PROBE.FAILED', incarnation, error: 'no answer' });
    }
    await flush();
  }

  async probePassed(idleMs = 0, isRestartDue = false): Promise<void> {
    this.send({ type: 'PROBE.PASSED', incarnation: this.context.incarnation, idleMs, isRestartDue });
    await flush();
  }

  async probeFailed(times = 1): Promise<void> {
    for (let count = 0; count < times; count++) {
      this.send({ type: 'PROBE.FAILED', incarnation: this.context.incarnation, error: 'no answer' });
    }
    await flush();
  }

  /** Decision of the idle server. */
  async decided(sleeps: boolean): Promise<void> {
    open(this.sleeps).answer({ sleeps });
    await flush();
  }

  async undecided(): Promise<void> {
    open(this.sleeps).fail(new Error('no answer'));
    await flush();
  }

  async pass(milliseconds: number): Promise<void> {
    this.clock.increment(milliseconds);
    await flush();
  }

  /** From rest to `running`, with a sidecar when it is asked for. */
  async run(proxy?: 'keep'): Promise<void> {
    await this.ensure(proxy);
    await this.prepared();
    if (proxy) {
      await this.sidecar('spawned');
      await this.sidecar('ready');
    }
    await this.spawned();
    await this.ready();
  }
}

const workspaces = new Worlds<Workspace>();
const fakeAgentServer = agentServerMachine.provide({
  actors: {
    prepare: asked((scope) => workspaces.of(scope).preparations),
    readyPlace: asked((scope) => workspaces.of(scope).places),
    askToSleep: asked((scope) => workspaces.of(scope).sleeps),
    process: FakeOs.driver('server', (scope) => workspaces.of(scope).os),
    readiness: asked((scope) => workspaces.of(scope).readiness),
    sidecarSlot: sidecarSlotMachine.provide({
      actors: {
        apiProxy: apiProxyMachine.provide({
          actors: {
            process: FakeOs.driver('sidecar', (scope) => workspaces.of(scope).os),
            readiness: asked((scope) => workspaces.of(scope).sidecarReadiness),
          },
        }),
      },
    }),
  },
});

/** The machine of a sidecar alone, below a parent that records its notifications. */
export class SidecarWorld {
  readonly clock = new SimulatedClock();
  readonly os = new FakeOs(this.clock);
  readonly readiness: Question<{ at: number }, SidecarActorInput>[] = [];
  readonly reported: { readonly type: string; readonly [key: string]: unknown }[] = [];
  readonly taken: string[] = [];
  readonly actor: ActorRefFrom<typeof apiProxyMachine>;

  /** @param isLogged - fills `taken` */
  constructor(changes: Partial<SupervisionPolicy> = {}, adopt = false, isLogged = true) {
    const listener = fromCallback<{ readonly type: string }>(({ receive }) => {
      receive((event) => {
        this.reported.push(event);
      });
    });
    // A child shares the clock and the inspector of the system above it.
    const inspect = transitionLog(this.taken, (actor) => actor === this.actor);
    const parent = createActor(listener, { clock: this.clock, ...(isLogged && { inspect }) }).start();
    sidecars.add(parent, this);
    this.actor = createActor(fakeSidecar, {
      parent,
      input: { workspacePath: '/w', policy: { ...policy, ...changes }, seed: 1, adopt, sidecar: 7 },
    });
    this.actor.start();
  }

  get context() {
    return this.actor.getSnapshot().context;
  }

  get state(): string {
    return this.actor
      .getSnapshot()
      ._nodes.filter((node) => node.type === 'atomic')
      .map(nodeId)
      .join(', ');
  }

  async send(type: 'PROXY.START' | 'PROXY.STOP'): Promise<void> {
    this.actor.send({ type });
    await flush();
  }

  async spawned(): Promise<void> {
    this.os.spawned(this.os.last('sidecar'));
    await flush();
  }

  async refused(): Promise<void> {
    this.os.refused(this.os.last('sidecar'), true);
    await flush();
  }

  async exited(exitCode: number | null = 1, signal: string | null = null): Promise<void> {
    this.os.exited(this.os.last('sidecar'), exitCode, signal);
    await flush();
  }

  async ready(): Promise<void> {
    open(this.readiness).answer({ at: this.clock.now() });
    await flush();
  }

  async notReady(): Promise<void> {
    open(this.readiness).fail(new Error('no models'));
    await flush();
  }

  async probePassed(): Promise<void> {
    this.actor.send({ type: 'PROBE.PASSED', incarnation: this.context.incarnation });
    await flush();
  }

  async probeFailed(times = 1): Promise<void> {
    const { incarnation } = this.context;
    for (let count = 0; count < times; count++) {
      this.actor.send({ type: 'PROBE.FAILED', incarnation, error: 'no answer' });
    }
    await flush();
  }

  async pass(milliseconds: number): Promise<void> {
    this.clock.increment(milliseconds);
    await flush();
  }

  async run(): Promise<void> {
    await this.spawned();
    await this.ready();
  }
}

const sidecars = new Worlds<SidecarWorld>();
const fakeSidecar = apiProxyMachine.provide({
  actors: {
    process: FakeOs.driver('sidecar', (scope) => sidecars.of(scope).os),
    readiness: asked((scope) => sidecars.of(scope).readiness),
  },
});

/** The Hub's machine, every step of which is answered by the test. */
export class HubWorld {
  readonly clock = new SimulatedClock();
  readonly boot: Question<void, unknown>[] = [];
  readonly claim: Question<{ won: boolean }, unknown>[] = [];
  readonly listen: Question<{ apiBaseUrl: string }, unknown>[] = [];
  readonly recover: Question<{ adopted: number }, unknown>[] = [];
  readonly drain: Question<void, { mode: 'stop' | 'detach' }>[] = [];
  readonly close: Question<void, unknown>[] = [];
  /** Commands that the watcher of the lock file got. */
  readonly addressCommands: string[] = [];
  isAddressReleased = false;
  readonly emitted: { readonly type: string }[] = [];
  readonly taken: string[] = [];
  readonly actor: ActorRefFrom<typeof hubMachine>;

  constructor() {
    this.actor = createActor(fakeHub, {
      clock: this.clock,
      input: { drainDeadlineMs: 10_000 },
      inspect: transitionLog(this.taken, (actor) => actor === this.actor),
    });
    hubs.add(this.actor, this);
    this.actor.on('*', (event) => this.emitted.push(event));
    this.actor.start();
  }

  get context() {
    return this.actor.getSnapshot().context;
  }

  get state(): string {
    const nodes = this.actor.getSnapshot()._nodes.filter((node) => node.type === 'atomic' || node.type === 'final');
    return nodes.map(nodeId).join(', ');
  }

  async fail(questions: readonly { readonly isOpen: boolean; fail(error: unknown): void }[]): Promise<void> {
    const question = questions.findLast((each) => each.isOpen);
    if (!question) throw new Error('nothing was asked');
    question.fail(new Error('disk full'));
    await flush();
  }

  /** From boot to `serving.steady`. */
  async serve(): Promise<void> {
    await this.listening();
    open(this.listen).answer({ apiBaseUrl: 'http://127.0.0.1:1' });
    await flush();
  }

  async listening(): Promise<void> {
    open(this.boot).answer();
    await flush();
    open(this.claim).answer({ won: true });
    await flush();
  }

  async shutDown(mode: 'stop' | 'detach' = 'stop'): Promise<void> {
    this.actor.send({ type: 'SHUTDOWN', mode });
    await flush();
  }
}

const hubs = new Worlds<HubWorld>();
const fakeHub = hubMachine.provide({
  actors: {
    boot: asked((scope) => hubs.of(scope).boot),
    claim: asked((scope) => hubs.of(scope).claim),
    listen: asked((scope) => hubs.of(scope).listen),
    recover: asked((scope) => hubs.of(scope).recover),
    watchAddress: fromCallback<AddressCommand>(({ receive, system }) => {
      const hub = hubs.of({ system });
      receive(({ type }) => {
        hub.addressCommands.push(type);
      });
      return () => {
        hub.isAddressReleased = true;
      };
    }),
    drain: asked((scope) => hubs.of(scope).drain),
    close: asked((scope) => hubs.of(scope).close),
  },
});
