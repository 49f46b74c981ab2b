/**
 * Workspace whose steps are chosen at random. After every step the invariants of design §3 are checked, with their
 * numbers.
 */
import type { AgentServerEmitted, SupervisionPolicy } from '../../machines/index.ts';
import { type FakeProcess, failure, flush } from './harness.ts';
import { type ProxyChoice, Workspace } from './worlds.ts';

/** A secret that everything outside the machine knows: it must never be seen inside. */
export const secret = 'S3CRET';

/** Possible steps. A step that is impossible in the present state has no effect. */
export type Step =
  | { readonly do: 'ensure' | 'restart' | 'adopt'; readonly proxy: ProxyChoice }
  | { readonly do: 'stop'; readonly reason: 'user' | 'hub' }
  | { readonly do: 'advance'; readonly ms: number }
  | { readonly do: 'prepare'; readonly as: 'managed' | 'adopted' | 'external' | 'locked' | 'noPort' }
  | { readonly do: 'spawn' | 'refuse' | 'ready' | 'notReady'; readonly of: FakeProcess['kind'] }
  | { readonly do: 'exit'; readonly of: FakeProcess['kind']; readonly code: number | null }
  | { readonly do: 'end'; readonly of: FakeProcess['kind'] }
  | { readonly do: 'obey'; readonly of: FakeProcess['kind'] }
  | { readonly do: 'probe'; readonly passes: boolean; readonly idleMs: number }
  | { readonly do: 'decide'; readonly sleeps: boolean }
  | { readonly do: 'probeSidecar'; readonly passes: boolean }
  | { readonly do: 'late'; readonly event: number; readonly age: number };

const restStates = /^(stopped|exited\.(resting|givenUp))$/;

export class Simulation {
  readonly world: Workspace;
  readonly broken: string[] = [];
  /** Incarnations whose readiness was answered with success. */
  readonly #proven = new Set<number>();
  #waiting = false;
  #emittedSeen = 0;

  constructor(policy: Partial<SupervisionPolicy> = {}) {
    this.world = new Workspace(policy);
    this.world.actor.subscribe((snapshot) => {
      if (snapshot.matches('running') && snapshot.context.ownership !== 'external') {
        const { incarnation } = snapshot.context;
        if (!this.#proven.has(incarnation)) this.broken.push(`I2: incarnation ${incarnation} runs without readiness`);
      }
    });
  }

  async take(step: Step): Promise<void> {
    const before = this.world.state;
    const automatic = step.do !== 'ensure' && step.do !== 'restart' && step.do !== 'adopt';
    const spent = this.world.context.failures.length > this.world.context.policy.maxRestarts;
    this.#perform(step);
    await flush();
    if (automatic && spent && /^exited/.test(before) && /^starting/.test(this.world.state)) {
      this.broken.push(`I6: ${before} was left by itself after ${this.world.context.failures.length} failures`);
    }
    this.#check();
  }

  #perform(step: Step): void {
    const { world } = this;
    switch (step.do) {
      case 'ensure':
      case 'restart':
        this.#waiting = true;
        world.send({ type: step.do === 'ensure' ? 'ENSURE' : 'RESTART', ...world.choice(step.proxy) });
        break;
      case 'adopt':
        // A Hub adopts when it starts, before anything else is asked.
        if (world.state === 'stopped') world.send({ type: 'ADOPT', ...world.choice(step.proxy) });
        break;
      case 'stop':
        world.send({ type: 'STOP', reason: step.reason });
        break;
      case 'advance':
        world.clock.increment(step.ms);
        break;
      case 'prepare':
        this.#prepare(step.as);
        break;
      case 'spawn':
      case 'refuse':
        this.#begin(step.of, step.do === 'spawn');
        break;
      case 'ready':
      case 'notReady':
        this.#readiness(step.of, step.do === 'ready');
        break;
      case 'exit':
        this.#exit(step.of, step.code);
        break;
      case 'end':
        this.#end(step.of);
        break;
      case 'obey':
        this.#obey(step.of);
        break;
      case 'probe':
        this.#probe(step.passes, step.idleMs);
        break;
      case 'decide':
        world.sleeps.findLast((each) => each.isOpen)?.answer({ sleeps: step.sleeps });
        break;
      case 'probeSidecar':
        this.#probeSidecar(step.passes);
        break;
      case 'late':
        this.#late(step.event, Math.max(0, world.context.incarnation - step.age));
        break;
    }
  }

  /** Probes come from the liveness actor, which exists in these two states only. */
  #probe(passes: boolean, idleMs: number): void {
    const { world } = this;
    const { incarnation } = world.context;
    if (!/^(running|unhealthy)/.test(world.state)) return;
    if (passes) world.send({ type: 'PROBE.PASSED', incarnation, idleMs });
    else world.send({ type: 'PROBE.FAILED', incarnation, error: 'no answer' });
  }

  #probeSidecar(passes: boolean): void {
    const sidecar = this.world.actor.getSnapshot().children['sidecarSlot']?.getSnapshot().children['apiProxy'];
    const process = this.#current('sidecar');
    if (!sidecar || !process) return;
    const { incarnation } = process;
    sidecar.send(
      passes ? { type: 'PROBE.PASSED', incarnation } : { type: 'PROBE.FAILED', incarnation, error: 'no answer' },
    );
  }

  #prepare(as: (Step & { do: 'prepare' })['as']): void {
    const question = this.world.preparations.findLast((each) => each.isOpen);
    if (!question) return;
    if (as === 'locked') question.fail(failure('workspaceLocked', false));
    else if (as === 'noPort') question.fail(failure('portUnavailable', true));
    else if (as === 'managed' && !question.input.mayStart) question.fail(failure('crashed', false));
    else
      question.answer({
        ownership: as,
        ports: as === 'managed' ? [{ service: 'appServerWebSocket', port: 4000 }] : [],
      });
  }

  /** The process that the machine listens to and that has not ended. */
  #current(kind: FakeProcess['kind']): FakeProcess | undefined {
    return this.world.os.processes.find((process) => process.kind === kind && !process.over && !process.released);
  }

  readonly #begun = new Set<FakeProcess>();

  #begin(kind: FakeProcess['kind'], succeeds: boolean): void {
    const process = this.#current(kind);
    if (!process || this.#begun.has(process)) return;
    if (!succeeds) {
      this.world.os.refused(process, true);
      return;
    }
    this.#begun.add(process);
    this.world.os.spawned(process);
  }

  #readiness(kind: FakeProcess['kind'], succeeds: boolean): void {
    const questions = kind === 'server' ? this.world.readiness : this.world.sidecarReadiness;
    const question = questions.findLast((each) => each.isOpen);
    if (!question) return;
    if (!succeeds) {
      question.fail(failure('unhealthy', true));
      return;
    }
    if (kind === 'server') this.#proven.add(question.input.incarnation);
    (question as { answer(value: unknown): void }).answer({
      serverVersion: '1.0.0',
      at: this.world.clock.now(),
      ports: [],
    });
  }

  #exit(kind: FakeProcess['kind'], code: number | null): void {
    const process = this.#current(kind);
    if (process && this.#begun.has(process)) this.world.os.exited(process, code, code === null ? 'SIGKILL' : null);
  }

  /** The process has ended, and its group exists until `exit`. */
  #end(kind: FakeProcess['kind']): void {
    const process = this.#current(kind);
    if (process && this.#begun.has(process) && process.mode !== 'watch') this.world.os.ending(process);
  }

  /** Applies the last command to a process: SIGTERM ends it with success, SIGKILL by the signal. */
  #obey(kind: FakeProcess['kind']): void {
    const process = this.#current(kind);
    const command = process?.commands.at(-1);
    // The driver holds a command until a process exists, and never signals an external one.
    if (!process || !command || !this.#begun.has(process) || process.mode === 'watch') return;
    this.#exit(kind, command === 'TERMINATE' ? 0 : null);
  }

  #late(event: number, incarnation: number): void {
    const { world } = this;
    if (incarnation === world.context.incarnation) return;
    const at = world.clock.now();
    const late = [
      { type: 'PROCESS.SPAWNED', incarnation, pid: 1 },
      { type: 'PROCESS.ENDING', incarnation },
      { type: 'PROCESS.EXITED', incarnation, exitCode: 1, signal: null, at },
      { type: 'PROCESS.EXITED', incarnation, exitCode: 75, signal: null, at },
      { type: 'PROCESS.REFUSED', incarnation, error: secret, isRetryable: true, at },
      { type: 'PROBE.PASSED', incarnation, idleMs: 1e9 },
      { type: 'PROBE.FAILED', incarnation, error: secret },
    ] as const;
    const chosen = late[event % late.length];
    const before = world.actor.getSnapshot();
    if (chosen) world.send(chosen);
    if (world.actor.getSnapshot().context !== before.context) this.broken.push(`late ${chosen?.type} was believed`);
  }

  #check(): void {
    const { world, broken } = this;
    const snapshot = world.actor.getSnapshot();
    const { state } = world;
    for (const kind of ['server', 'sidecar'] as const) {
      if (world.os.live(kind).length > 1) broken.push(`I1: ${world.os.live(kind).length} live ${kind}s in ${state}`);
    }
    if (/^(stopped|exited)/.test(state) && world.os.live('server').length > 0)
      broken.push(`I3: a server lives in ${state}`);
    if (state === 'stopped' && world.os.live('sidecar').length > 0) broken.push('I3: a sidecar lives in stopped');
    for (const process of world.os.processes) {
      if (process.alive && process.released) broken.push(`a live ${process.kind} was released in ${state}`);
      if (process.mode === 'watch' && process.commands.length > 0) broken.push('an external server was signalled');
    }
    if (snapshot.status !== 'active' || world.errors.length > 0)
      broken.push(`status ${snapshot.status}: ${world.errors}`);
    if (snapshot.context.slot.state === 'none' && world.children.includes('apiProxy'))
      broken.push(`a sidecar's actor is left in ${state}`);
    if (restStates.test(state) && 'process' in snapshot.children) broken.push(`a process actor is left in ${state}`);
    this.#checkOrder();
    const seen = JSON.stringify([snapshot.context, world.emitted]);
    if (seen.includes(secret)) broken.push('I7: the secret is inside');
  }

  /** I5: the emitted events are a history that the chart permits. */
  #checkOrder(): void {
    const { emitted } = this.world;
    for (; this.#emittedSeen < emitted.length; this.#emittedSeen++) {
      const index = this.#emittedSeen;
      const type = emitted[index]?.type ?? '';
      const previous = emitted.slice(0, index).findLast((event) => event.type.startsWith('appserver.'))?.type;
      if (type.startsWith('appserver.') && !mayFollow(previous, type)) {
        this.broken.push(`I5: ${type} after ${previous}`);
      }
      this.#checkDeath(emitted[index]);
    }
  }

  /** One event for each death: a process that has been emitted as gone is not emitted again. */
  #checkDeath(event: AgentServerEmitted | undefined): void {
    if (event?.type !== 'appserver.exited' && event?.type !== 'apiProxy.exited') return;
    if (event.type === 'appserver.exited' && event.pid === null && event.error === null && event.stopReason === null) {
      this.broken.push('I5: a failed start lost its reason');
    }
    if (event.pid === null) return;
    if (this.#buried.has(event.pid)) this.broken.push(`I5: ${event.type} twice for process ${event.pid}`);
    this.#buried.add(event.pid);
  }

  readonly #buried = new Set<number>();

  /**
   * Answers every question and lets processes follow their commands until the workspace reaches a state.
   *
   * @param until state to reach; `settled` when no request is pending
   */
  async cooperate(until: RegExp | 'settled'): Promise<void> {
    for (let round = 0; round < 200; round++) {
      const done =
        until === 'settled' ? this.world.actor.getSnapshot().hasTag('settled') : until.test(this.world.state);
      if (done) {
        this.#waiting = false;
        return;
      }
      const kinds = ['sidecar', 'server'] as const;
      const steps: Step[] = [
        { do: 'prepare', as: 'managed' },
        { do: 'decide', sleeps: true },
        ...kinds.flatMap((of): Step[] => [
          { do: 'spawn', of },
          { do: 'obey', of },
          { do: 'ready', of },
        ]),
      ];
      const before = this.world.taken.length;
      for (const step of steps) await this.take(step);
      // Time passes only when no other step is possible.
      if (this.world.taken.length === before) await this.take({ do: 'advance', ms: 1_000 });
    }
    this.broken.push(`I4: ${this.world.state} never became ${until}${this.#waiting ? ', and an ensure waits' : ''}`);
  }
}

const followers: Readonly<Record<string, readonly string[]>> = {
  'appserver.starting': ['appserver.starting', 'appserver.running', 'appserver.exited'],
  'appserver.running': ['appserver.unhealthy', 'appserver.exited'],
  'appserver.unhealthy': ['appserver.running', 'appserver.exited'],
  // A stop after the exit is emitted too, and an adopted or external server runs without `appserver.starting`.
  'appserver.exited': ['appserver.starting', 'appserver.running', 'appserver.exited'],
};

function mayFollow(previous: string | undefined, next: string): boolean {
  return previous === undefined ? next !== 'appserver.unhealthy' : (followers[previous]?.includes(next) ?? false);
}
