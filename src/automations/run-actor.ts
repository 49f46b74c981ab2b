import { setImmediate as nextTurn } from 'node:timers/promises';
import { fromCallback } from 'xstate';
import type {
  AutomationOutcome,
  AutomationRunCommand,
  AutomationRunEvent,
  AutomationRunInput,
  Failure,
} from '../../machines/index.ts';
import type { StoredRun } from '../agent/index.ts';
import type { Clock } from './clock.ts';
import { failureOf, leftTurnOf, runPrompt, type TurnEnd, threadFor } from './conversation.ts';
import type { BegunRun, Ledger } from './ledger.ts';
import type { AutomationsOptions } from './options.ts';

export interface RunHost extends Pick<AutomationsOptions, 'runtime' | 'schedules' | 'workspacePath' | 'onFault'> {
  readonly ledger: Ledger;
  readonly clock: Clock;
  readonly turnTimeoutMs: number;
  /** Receives the work of a try: closing waits for it. */
  readonly track: (work: Promise<void>) => void;
  /** The row that is to be written with the machine's next state. */
  readonly ended: (run: StoredRun) => void;
}

/** Reason of our interruption. */
class Interrupted extends Error {
  readonly reason: AutomationRunCommand['reason'] | 'removed';

  constructor(reason: Interrupted['reason']) {
    super(reason);
    this.reason = reason;
  }
}

/** Driver of one try: stores it, sends the prompt, waits for the end. Sends `RUN.ENDED` exactly once, except when its turn is suspended. */
export const runActor = (host: RunHost) =>
  fromCallback<AutomationRunCommand, AutomationRunInput>(({ input, sendBack, receive }) => {
    const interruption = new AbortController();
    receive(({ reason }) => interruption.abort(new Interrupted(reason)));
    const report = (event: AutomationRunEvent) => sendBack(event);
    const one = new Run(host, input, interruption.signal, report);
    // Only after the response to the request that caused the run.
    host.track(nextTurn().then(() => one.drive()));
    return () => {
      if (!one.isOver) interruption.abort(new Interrupted('removed'));
    };
  });

class Run {
  readonly #host: RunHost;
  readonly #input: AutomationRunInput;
  readonly #signal: AbortSignal;
  readonly #report: (event: AutomationRunEvent) => void;
  #begun: BegunRun | undefined;
  isOver = false;

  constructor(
    host: RunHost,
    input: AutomationRunInput,
    signal: AbortSignal,
    report: (event: AutomationRunEvent) => void,
  ) {
    this.#host = host;
    this.#input = input;
    this.#signal = signal;
    this.#report = report;
  }

  async drive(): Promise<void> {
    const end = this.#explained(await this.#attempt().catch((error: unknown) => this.#failed(error)));
    this.isOver = true;
    // The row stays, so that the next process continues with the run.
    if (end?.status === 'suspended') return;
    const at = this.#host.clock.now();
    if (this.#begun && end) this.#host.ended({ ...this.#begun.run, ...rowOf(end), finishedAt: at });
    this.#report({ type: 'RUN.ENDED', outcome: outcomeOf(end), at });
  }

  /** @returns undefined when the run is not ours */
  async #attempt(): Promise<TurnEnd | undefined> {
    if (this.#input.isResumed) return this.#resume();
    const { runtime, ledger, clock, workspacePath } = this.#host;
    this.#begun = ledger.begin(this.#input, clock.now());
    if (!this.#begun) return undefined;
    const { row } = this.#begun;
    const threadId = threadFor(runtime, row, workspacePath);
    if (row.binding.mode === 'own' && threadId !== row.progress.threadId) this.#keepThread(threadId);
    const end = await runPrompt(runtime, threadId, row, {
      saveStart: (turnId) => this.#save({ threadId, turnId }),
      onStarted: () => this.#started(0),
      beforeEffects: (tool) => this.#recordEffect(tool),
      signal: this.#signal,
    });
    return end.status === 'cancelled' ? this.#interrupted(end.result) : end;
  }

  /** Waits for a turn that an earlier process began. @returns undefined when its automation was removed */
  async #resume(): Promise<TurnEnd | undefined> {
    const { runtime, ledger, clock } = this.#host;
    this.#begun = ledger.running(this.#input);
    const turn = this.#begun && leftTurnOf(runtime, this.#begun.run);
    if (!turn) return undefined;
    this.#started(Math.max(0, clock.now() - turn.startedAt));
    const end = await turn.ended;
    // The turn has stored the effect that it began since.
    this.#begun = ledger.running(this.#input);
    return end.status === 'cancelled' ? this.#interrupted(end.result) : end;
  }

  /** Stores facts of the run. @throws StorageError */
  #save(facts: Partial<StoredRun>): void {
    if (!this.#begun) return;
    const run = { ...this.#begun.run, ...facts };
    this.#host.schedules.updateRun(run);
    this.#begun = { ...this.#begun, run };
  }

  #started(ageMs: number): void {
    const { threadId, turnId, effect } = this.#begun?.run ?? {};
    if (threadId === undefined || turnId === undefined) return;
    this.#report({ type: 'RUN.STARTED', threadId, turnId, ageMs });
    if (effect !== undefined) this.#report({ type: 'RUN.EFFECT', tool: effect });
    const stop = () => this.#stop(threadId, turnId);
    if (this.#signal.aborted) setImmediate(stop);
    else this.#signal.addEventListener('abort', stop, { once: true });
  }

  /** @throws StorageError: the fact must be stored before the effect */
  #recordEffect(tool: string): void {
    if (!this.#begun || this.#begun.run.effect !== undefined) return;
    this.#save({ effect: tool });
    this.#report({ type: 'RUN.EFFECT', tool });
  }

  /** Adds to a failure the reason that the run is not tried again, where another try could help otherwise. */
  #explained(end: TurnEnd | undefined): TurnEnd | undefined {
    const effect = this.#begun?.run.effect;
    if (effect === undefined || end?.status !== 'failed' || !end.failure.isRetryable) return end;
    return { ...end, failure: { ...end.failure, message: notRepeated(end.failure.message, effect) } };
  }

  #stop(threadId: string, turnId: string): void {
    const { runtime, onFault } = this.#host;
    try {
      runtime.turns.interrupt(threadId, turnId)();
    } catch (error) {
      // The turn has just ended, or its thread is gone: then there is nothing to stop.
      if (!failureOf(error)) onFault(error);
    }
  }

  #keepThread(threadId: string): void {
    const { schedules } = this.#host;
    const row = schedules.automation(this.#input.automationId);
    if (row) schedules.put({ ...row, progress: { ...row.progress, threadId } });
  }

  /** End of an interrupted turn, or of the wait for one. This server, which knows the reason, or a user has interrupted it. */
  #interrupted(result?: string): TurnEnd {
    const { reason } = this.#signal;
    if (!(reason instanceof Interrupted) || reason.reason !== 'timeout') return { status: 'cancelled', result };
    const minutes = Math.round(this.#host.turnTimeoutMs / 60_000);
    const message = `It took longer than ${minutes} minutes (Automations.TurnTimeoutMinutes).`;
    return { status: 'failed', failure: { code: 'timeout', message, isRetryable: true }, result };
  }

  #failed(error: unknown): TurnEnd {
    if (error instanceof Interrupted) return this.#interrupted();
    const known = failureOf(error);
    if (!known) this.#host.onFault(error);
    const failure: Failure = known ?? {
      code: 'internalError',
      message: 'It failed because of a bug, which is in the log.',
      isRetryable: false,
    };
    return { status: 'failed', failure, result: undefined };
  }
}

/** Reason of a failure, with the reason that the run is not tried again. */
export const notRepeated = (message: string, effect: string): string =>
  `${message} The run is not repeated, because ${effect} had begun and may have had effects: check them, then run the automation again.`;

type FinalEnd = Exclude<TurnEnd, { readonly status: 'suspended' }>;

function rowOf(end: FinalEnd): Pick<StoredRun, 'status' | 'result' | 'error'> {
  const { status, result } = end;
  const kept = { status, ...(result !== undefined && { result }) };
  if (end.status !== 'failed') return kept;
  const { code, message } = end.failure;
  return { ...kept, error: { code, message } };
}

function outcomeOf(end: FinalEnd | undefined): AutomationOutcome {
  if (!end) return { status: 'skipped' };
  return end.status === 'failed' ? { status: 'failed', failure: end.failure } : { status: end.status };
}
