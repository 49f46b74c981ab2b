import { type ActorRefFrom, createActor, fromPromise, waitFor } from 'xstate';
import { stackChangeMachine, type WebhookIngressPhase, webhookIngressMachine } from '../../../machines/index.ts';
import { redactorFor } from '../../lib/index.ts';
import { monotonicMs } from '../../supervise/index.ts';
import { DeployError } from '../errors.ts';
import { layoutOf, stackFiles } from '../layout.ts';
import { secretsOfStack } from '../stack/index.ts';
import type { Plan, StackCommand, Step } from '../stack-plan.ts';
import { carryOut, type Tools } from './carry-out.ts';
import type { ChangeLog } from './change-log.ts';
import { cancelled, secretsIn, stepFailure } from './failures.ts';
import type { ObserveChange } from './progress.ts';
import type { StepEffects } from './step-effects.ts';
import { type KeyedPhase, type KeyedStep, keyed } from './step-keys.ts';
import { undoFailure, undoSteps } from './undo.ts';

export type RunEnd = 'done' | 'undone' | 'kept' | 'undoFailed';

export interface RunOptions {
  readonly plan: Plan;
  readonly effects: StepEffects;
  readonly observe: ObserveChange;
  readonly signal: AbortSignal;
}

/** One attempt at a plan: carries out the requests of its machine, phase by phase. */
export class ChangeRun {
  readonly #options: RunOptions;
  readonly #log: ChangeLog;
  readonly #phases: readonly KeyedPhase[];
  readonly #redact: (text: string) => string;
  #next = 0;
  #work: Promise<void> = Promise.resolve();
  #failure: DeployError | null = null;
  #isUndoing = false;

  constructor(options: RunOptions, log: ChangeLog) {
    this.#options = options;
    this.#log = log;
    this.#phases = keyed(options.plan);
    this.#redact = redactorFor([...secretsIn(options.plan), ...secretsOfStack(layoutOf(options.plan.directory))]);
  }

  /** Failure that has stopped it. */
  get failure(): DeployError | null {
    return this.#failure;
  }

  /** Resolves when nothing is at work any more. */
  async run(): Promise<RunEnd> {
    const { command } = this.#options.plan;
    const end = isIngress(command) ? await this.#runIngress(command) : await this.#runPhases();
    // A change that stays for a later attempt is left at once; its last step may still be ending.
    await this.#work.catch(() => {});
    if (end !== 'done') this.#failure ??= cancelled();
    return end;
  }

  /** Actors of the machine; its phases have the names of the plan's. */
  #actors<P extends string>() {
    return {
      carryOut: fromPromise<void, { readonly phase: P }>(({ input }) => {
        this.#work = this.#carryOut(input.phase);
        return this.#work;
      }),
      undo: fromPromise<void, void>(() => this.#undo()),
    };
  }

  async #runPhases(): Promise<RunEnd> {
    const { command, onFailure } = this.#options.plan;
    const phases = this.#phases.map(({ phase }) => phase.name);
    const machine = stackChangeMachine.provide({ actors: this.#actors<string>() });
    const actor = createActor(machine, { input: { command, phases, onFailure } });
    const stopListening = this.#cancelWith(actor);
    actor.start();
    try {
      return ends[(await waitFor(actor, ({ status }) => status === 'done', forever)).value as keyof typeof ends];
    } finally {
      stopListening();
      actor.stop();
    }
  }

  async #runIngress(command: keyof typeof ingress): Promise<RunEnd> {
    const machine = webhookIngressMachine.provide({ actors: this.#actors<WebhookIngressPhase>() });
    const actor = createActor(machine, { input: { isEnabled: this.#wasEnabled() } });
    const stopListening = this.#cancelWith(actor);
    actor.start();
    actor.send({ type: ingress[command].event });
    try {
      const { value } = await waitFor(actor, (snapshot) => snapshot.hasTag('atRest'), forever);
      if (value === 'damaged') return 'undoFailed';
      return this.#isUndoing ? 'undone' : 'done';
    } finally {
      stopListening();
      actor.stop();
    }
  }

  /** Before the change, also when an earlier attempt has made the overlay. */
  #wasEnabled(): boolean {
    const known = [...this.#log.state.steps.values()].find(
      ({ step }) => 'path' in step && step.path === stackFiles.overlay,
    );
    return (known?.former ?? this.#log.files.find(stackFiles.overlay)).kind === 'file';
  }

  #cancelWith(actor: ActorRefFrom<typeof stackChangeMachine> | ActorRefFrom<typeof webhookIngressMachine>): () => void {
    const { signal } = this.#options;
    const cancel = () => {
      this.#failure ??= cancelled();
      actor.send({ type: 'CANCEL' });
    };
    signal.addEventListener('abort', cancel, { once: true });
    return () => signal.removeEventListener('abort', cancel);
  }

  /** The next phase of this name. A machine may pass through phases for which a plan has nothing to do. */
  async #carryOut(name: string): Promise<void> {
    const at = this.#phases.findIndex(({ phase }, index) => index >= this.#next && phase.name === name);
    const found = this.#phases[at];
    if (!found) return;
    this.#next = at + 1;
    const { phase, steps } = found;
    const { observe } = this.#options;
    const event = { type: 'phase', phase: phase.name, title: phase.title } as const;
    const begunMs = monotonicMs();
    observe({ ...event, state: 'begun' });
    try {
      for (const step of steps) await this.#step(step);
      observe({ ...event, state: 'done', elapsedMs: monotonicMs() - begunMs });
    } catch (error) {
      observe({ ...event, state: 'failed', elapsedMs: monotonicMs() - begunMs });
      throw error;
    }
  }

  async #step({ key, step }: KeyedStep): Promise<void> {
    const { observe, signal } = this.#options;
    try {
      if (signal.aborted) throw cancelled();
      observe({ type: 'step', key, step: step.do, state: 'begun' });
      observe({ type: 'step', key, step: step.do, state: await carryOut(step, key, this.#tools(signal)) });
    } catch (error) {
      this.#failure ??= signal.aborted ? cancelled() : this.#failureOf(error, step, key);
      throw this.#failure;
    }
  }

  #failureOf(error: unknown, step: Step, key: string): DeployError {
    const failure = stepFailure(error, step.do, key);
    const message = this.#redact(failure.message);
    // Without the cause, which says it too.
    return message === failure.message ? failure : new DeployError(failure.code, message, failure.hint);
  }

  #tools(signal: AbortSignal): Tools {
    const { effects, observe } = this.#options;
    const onLine = (line: string) => observe({ type: 'output', line: this.#redact(line) });
    return { log: this.#log, effects, options: { signal, onLine } };
  }

  async #undo(): Promise<void> {
    this.#isUndoing = true;
    // The cancelled step ends first: nothing is undone while it still works.
    await this.#work.catch(() => {});
    const failure = this.#failure ?? cancelled();
    try {
      await undoAll(this.#tools(new AbortController().signal), failure, this.#options.observe);
    } catch (error) {
      this.#failure = stepFailure(error, 'start', 'undo');
      throw error;
    }
  }
}

/**
 * Reverts a change and reports it.
 *
 * @throws DeployError undoFailed, when all that could be put back is
 */
export async function undoAll(tools: Tools, failure: DeployError, observe: ObserveChange): Promise<void> {
  const { log } = tools;
  observe({ type: 'undoing', reason: failure.message });
  const problems = await undoSteps(tools, failure);
  if (problems.length > 0) throw undoFailure(problems, failure.message, log.backup.directory);
  observe({ type: 'undone' });
}

const ends = { done: 'done', undone: 'undone', kept: 'kept', damaged: 'undoFailed' } as const;
const forever = { timeout: Number.POSITIVE_INFINITY };
const ingress = {
  'webhook enable': { event: 'ENABLE', through: webhookIngressMachine.states['enabling'] },
  'webhook disable': { event: 'DISABLE', through: webhookIngressMachine.states['disabling'] },
} as const;

function isIngress(command: StackCommand): command is keyof typeof ingress {
  return command in ingress;
}

/** A plan whose machine would pass one of its phases by must not be begun. @throws TypeError */
export function checkPhases({ command, phases }: Plan): void {
  if (!isIngress(command)) return;
  const states = Object.keys(ingress[command].through?.states ?? {});
  const places = phases.map(({ name }) => states.indexOf(name));
  const isInOrder = places.every((place, index) => place > (places[index - 1] ?? -1));
  if (!isInOrder)
    throw new TypeError(`The machine of ${command} passes through ${states.join(', ')}, and its plan does not`);
}
