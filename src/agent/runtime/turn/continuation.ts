import { setTimeout as wait } from 'node:timers/promises';
import type { SavedTurn } from '../../../../machines/index.ts';
import { timestamp } from '../clock.ts';
import { type PastStep, PastSteps } from '../past-steps.ts';
import type { TurnContext } from './context.ts';
import type { TurnDriver } from './driver.ts';
import { type Suspension, textOfFacts, textOfRequest } from './facts.ts';
import type { ModelTurn } from './model-turn.ts';
import { rulesOf } from './rules.ts';

/** Age in milliseconds after which a resumed turn with a finished step is not the cause of its agent server's end. */
const soundMs = 60_000;

/** States with a running step; a suspension waits for its end. */
const busyStates: ReadonlySet<string> = new Set([
  ...['inferring', 'compacting', 'concluding', 'delegating', 'checkingEnd', 'cancelling', 'storing'],
]);

export interface SuspendOptions {
  readonly reason: Suspension;
  /** Time for the current step, in milliseconds. */
  readonly withinMs: number;
}

export interface ContinuationOptions {
  readonly turn: TurnContext;
  readonly driver: TurnDriver;
  /** Absent: an external agent does the turn. */
  readonly model: ModelTurn | undefined;
  /** Transitions of earlier processes. */
  readonly earlier?: readonly PastStep[] | undefined;
}

/** Facts from which the next process resumes a turn, and the counter that stops a turn that repeatedly ends its process. */
export class TurnContinuation {
  readonly #options: ContinuationOptions;
  readonly #past: PastSteps;
  #saved: SavedTurn;
  #resumedAt = 0;
  #isUnsuspicious = false;
  /** An external agent has finished a call in this process. */
  #hasFinishedCall = false;
  /** Time of the latest facts, by the clock of `performance`. */
  #writtenAt = 0;
  #suspended: Suspension | undefined;
  /** Called after each transition while the turn is being suspended. */
  #onStep: (() => void) | undefined;

  constructor(options: ContinuationOptions) {
    this.#options = options;
    this.#past = new PastSteps(options.earlier);
    const { resumed } = options.turn;
    this.#saved = resumed ? { ...resumed.facts } : { state: 'beginning', context: null };
  }

  /** Facts as JSON; undefined: too long to save with each step. */
  text(): string | undefined {
    const { turn, driver, model } = this.#options;
    const { options, resumed } = turn;
    this.#saved = driver.saved ?? this.#saved;
    this.#writtenAt = performance.now();
    const { steered = [], notes = [] } = model?.unsent ?? {};
    const { services, place } = turn;
    this.#past.add(services.stepsOf?.(place.threadId, place.turnId, this.#past.last) ?? []);
    return textOfFacts({
      ...this.#saved,
      options,
      rules: rulesOf(turn),
      steered: steered.map((input) => [...input]),
      notes: [...notes],
      resumes: this.#resumes,
      awayMs: resumed?.awayMs ?? 0,
      savedAt: timestamp(),
      ...(services.bootId !== undefined && { bootId: services.bootId }),
      past: this.#past.record,
      ...(this.#suspended && { suspended: this.#suspended }),
    });
  }

  /** Long options of the caller as JSON, which never change; undefined: none. */
  request(): string | undefined {
    return textOfRequest(this.#options.turn.options);
  }

  /** Times that the turn continued after a death without a finished step in between. */
  get #resumes(): number {
    const { turn, driver } = this.#options;
    const { resumed } = turn;
    // A turn that waits does nothing that could end the process.
    if (!resumed || this.#isUnsuspicious || driver.saved?.state === 'waitingForQuota') return 0;
    const hasLived = performance.now() - this.#resumedAt > soundMs;
    const rounds = this.#saved.context?.rounds ?? 0;
    if (hasLived && (this.#hasFinishedCall || rounds > (resumed.facts.context?.rounds ?? 0))) return 0;
    return resumed.facts.resumes + (resumed.facts.suspended ? 0 : 1);
  }

  /** Records the time at which the turn continues in this process. */
  begin(): void {
    this.#resumedAt = performance.now();
  }

  /** Resets the counter of resumes: the turn continued alone, and its agent server is still running. */
  clearSuspicion(): void {
    this.#isUnsuspicious = true;
  }

  /**
   * Records work of an external agent, during which the machine stays in one state.
   *
   * @returns whether to save the facts: at the end of each call, and once a minute
   */
  noteWork(isFinishedCall: boolean): boolean {
    this.#hasFinishedCall ||= isFinishedCall;
    return isFinishedCall || performance.now() - this.#writtenAt > soundMs;
  }

  noteTransition(): void {
    this.#onStep?.();
  }

  /** Resolves at the end of the current step, after `withinMs`, or at the end of the turn. */
  async stepEnded(withinMs: number, ended: Promise<unknown>): Promise<void> {
    const { driver, model } = this.#options;
    const step = Promise.withResolvers<void>();
    this.#onStep = () => {
      const { state = '' } = driver.saved ?? {};
      if (state === 'runningTools') void model?.hold().then(step.resolve);
      else if (!busyStates.has(state)) step.resolve();
    };
    this.#onStep();
    const time = new AbortController();
    const isOver = wait(withinMs, undefined, { signal: time.signal }).catch(() => undefined);
    await Promise.race([step.promise, ended, isOver]);
    time.abort();
  }

  /** Adds the reason of the suspension to the facts. */
  noteSuspension(reason: Suspension): void {
    this.#suspended = reason;
  }
}
