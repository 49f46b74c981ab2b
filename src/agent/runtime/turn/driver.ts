import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises';
import { type Failure, noTokens, type SavedTurn, type TurnEvent, type TurnState } from '../../../../machines/index.ts';
import { isMissingPart, replacedProgramAdvice } from '../../../lib/index.ts';
import { DelegateError } from '../../delegate.ts';
import { ModelError } from '../../model.ts';
import { type ModelSettings, preloadProviders } from '../../providers/index.ts';
import { StorageError } from '../../thread-store.ts';
import { toolParts } from '../../tools/index.ts';
import type { startTurnActor as StartTurnActor, TurnActor, TurnActorOptions } from './actor.ts';
import { BudgetError } from './budget.ts';
import { PromptBlockedError } from './hooks.ts';

/** The machine is loaded with the first turn: a server without turns runs without XState. */
let startTurnActor: typeof StartTurnActor | undefined;

const loadTurnMachine = async (): Promise<typeof StartTurnActor> => (await import('./actor.ts')).startTurnActor;

/** Pauses before parts that each turn needs, and before the others: the Hub introduces itself to a server that has just started. */
const [firstRestMs, furtherRestMs] = [20, 1_000];

/**
 * Loads the parts that turns otherwise load on first use, one in each turn of the event loop, so that an upgrade in place does not
 * take them away from a running server. The next use reports a part that cannot be loaded.
 *
 * @param settings of the providers that turns use; undefined: an external agent does the turns
 */
export async function preloadTurnParts(settings: ModelSettings | undefined): Promise<void> {
  await sleep(firstRestMs, undefined, { ref: false });
  await loadAll([loadTurnMachine, ...(settings ? preloadProviders(settings) : [])]);
  await sleep(furtherRestMs, undefined, { ref: false });
  await loadAll([() => import('web-tree-sitter'), ...toolParts]);
}

async function loadAll(parts: readonly (() => Promise<unknown>)[]): Promise<void> {
  for (const load of parts) {
    await nextTurn();
    await load().catch(() => undefined);
  }
}

const initialState: TurnState = {
  status: 'running',
  tokens: noTokens,
  isInterrupted: false,
  end: undefined,
};
const faultFailure: Failure = {
  code: 'internalError',
  message: 'The turn failed because of a bug; see the log of the agent server.',
  isRetryable: false,
};

/**
 * Runs the turn machine: `send` passes events in, `onEmitted` receives events, `state` is read from the snapshot. Events that
 * arrive before the machine is loaded are queued. A machine that throws is stopped; its turn fails with `internalError`.
 */
export class TurnDriver {
  readonly #options: TurnActorOptions;
  readonly #queued: TurnEvent[] = [];
  #actor: TurnActor | undefined;
  /** State of the turn after a fault of the machine. */
  #faultState: TurnState | undefined;
  #hasEnded = false;
  #isStopped = false;

  constructor(options: TurnActorOptions) {
    this.#options = options;
  }

  get state(): TurnState {
    return this.#faultState ?? this.#actor?.state ?? this.#initialState;
  }

  /** State for the next process; undefined before the turn runs, and after a fault. */
  get saved(): SavedTurn | undefined {
    return this.#faultState ? undefined : this.#actor?.saved;
  }

  get #initialState(): TurnState {
    const { tokens = noTokens } = this.#options.input.resumed?.context ?? {};
    return { ...initialState, tokens };
  }

  /** Loads and starts the machine, then sends it the queued events. */
  async start(): Promise<void> {
    try {
      startTurnActor ??= await loadTurnMachine();
      if (this.#isStopped) return;
      const { onEmitted } = this.#options;
      this.#actor = startTurnActor({
        ...this.#options,
        onEmitted: (event) => {
          this.#hasEnded ||= event.type === 'turn.ended';
          onEmitted(event);
        },
        onFault: (error) => this.#fault(error),
      });
      for (const event of this.#queued.splice(0)) this.send(event);
    } catch (error) {
      this.#fault(error);
    }
  }

  /** Stops the turn without an end: the next process continues with it. */
  stop(): void {
    this.#isStopped = true;
    this.#actor?.stop();
  }

  send(event: TurnEvent): void {
    if (this.#faultState) this.#endFaulted(event);
    else if (this.#actor) this.#actor.send(event);
    else this.#queued.push(event);
  }

  #fault(error: unknown): void {
    this.#options.onFault(error);
    if (this.#hasEnded || this.#faultState) return;
    this.#faultState = {
      ...this.state,
      status: 'failed',
      end: { status: 'failed', error: codedFailureOf(error) ?? faultFailure },
    };
    this.#actor?.stop();
    this.#options.onEmitted({ type: 'turn.ending' });
    for (const event of this.#queued.splice(0)) this.send(event);
  }

  /** Ends the turn as the machine does in `storing`. */
  #endFaulted({ type }: TurnEvent): void {
    if (this.#hasEnded || (type !== 'END.STORED' && type !== 'STORAGE.FAILED')) return;
    this.#hasEnded = true;
    this.#options.onEmitted({ type: 'turn.ended', isStored: type === 'END.STORED' });
  }
}

/** Failure of a turn that needs a part of the program which an upgrade in place has removed. */
const replacedProgram: Failure = { code: 'programReplaced', message: replacedProgramAdvice, isRetryable: false };

/** Failure for the machine of a turn; undefined for an error without a code. */
export function codedFailureOf(error: unknown): Failure | undefined {
  if (error instanceof StorageError) return { code: 'storageFailed', message: error.message, isRetryable: true };
  if (error instanceof BudgetError) return { code: 'budgetReached', message: error.message, isRetryable: false };
  if (error instanceof PromptBlockedError) return { code: 'promptBlocked', message: error.message, isRetryable: false };
  if (error instanceof DelegateError) {
    const { code, message, resetMs } = error;
    return { code, message, isRetryable: false, ...(resetMs !== undefined && { resetMs }) };
  }
  if (isMissingPart(error)) return replacedProgram;
  if (!(error instanceof ModelError)) return undefined;
  const { code, message, isRetryable, retryAfterMs, resetMs, maxRetries } = error;
  return {
    code,
    message,
    isRetryable,
    ...(retryAfterMs !== undefined && { retryAfterMs }),
    ...(resetMs !== undefined && { resetMs }),
    ...(maxRetries !== undefined && { maxRetries }),
  };
}

/** Failure by a bug, which the log has under this id. */
export const bugFailure = (errorId: string): Failure => ({
  code: 'internalError',
  message: `The turn failed because of a bug; the log has it as ${errorId}.`,
  isRetryable: false,
});
