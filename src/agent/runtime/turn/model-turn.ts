import { setTimeout as sleep } from 'node:timers/promises';
import type {
  CheckedEnd,
  CheckedTurn,
  FallbackInput,
  Inference,
  InferenceInput,
  Resumption,
  ReviewedCalls,
  ToolRun,
  TurnTokens,
} from '../../../../machines/index.ts';
import type { InputPart } from '../../../protocol/index.ts';
import { ModelError } from '../../model.ts';
import type { ModelUse } from '../../model-call.ts';
import { printedCallNote } from '../../printed-call.ts';
import type { ModelEffects } from './actor.ts';
import type { TurnApprovals } from './approvals.ts';
import { BudgetError, type TurnBudget } from './budget.ts';
import { rejectionOf, TurnCalls } from './calls.ts';
import type { TurnContext } from './context.ts';
import { TurnConversation } from './conversation.ts';
import type { TurnFiles } from './files.ts';
import type { TurnHooks } from './hooks.ts';
import { TurnInference } from './inference.ts';
import { lacksPlan, planMissing } from './plan-mode.ts';
import { addKnownResults, announceResumption, resumedCalls } from './resumption.ts';

export interface ModelTurnOptions {
  readonly turn: TurnContext;
  readonly approvals: TurnApprovals;
  readonly budget: TurnBudget;
  readonly hooks: TurnHooks;
  readonly files: TurnFiles;
  readonly onTokensUsed: (tokens: TurnTokens) => void;
  /** Called with the usage of a summary. */
  readonly onSummaryUsed: (use: ModelUse) => void;
}

const notRun = 'Error: not run, because the turn has reached its limit.';
/** Last words of the server to a model that is at its limit. */
const lastNote =
  'This turn has reached its limit, and no tool can be called any more. Answer now: report your findings and your work so far, ' +
  'and the open tasks.';

/** A turn of the model: its conversation, requests and tool calls, as effects of the turn machine. */
export class ModelTurn implements ModelEffects {
  readonly #turn: TurnContext;
  readonly #options: ModelTurnOptions;
  readonly #conversation: TurnConversation;
  readonly #calls: TurnCalls;
  readonly #inference: TurnInference;

  constructor(options: ModelTurnOptions) {
    const { turn, approvals, hooks, onTokensUsed, onSummaryUsed } = options;
    this.#turn = turn;
    this.#options = options;
    const conversation = new TurnConversation({ turn, hooks, onSummaryUsed });
    this.#conversation = conversation;
    this.#calls = new TurnCalls({ turn, approvals, hooks, results: () => conversation.results() });
    this.#inference = new TurnInference({ turn, conversation, calls: this.#calls, hooks, onTokensUsed });
    for (const input of turn.resumed?.facts.steered ?? []) this.#inference.steer(input);
  }

  /** Model of the requests; undefined: the default one. */
  get modelName(): string | undefined {
    return this.#conversation.modelName;
  }

  /** Output limit of the latest answer that reached it, in tokens; undefined: unknown. */
  get outputLimit(): number | undefined {
    return this.#inference.outputLimit;
  }

  /** Adds input to the next request. */
  steer(input: readonly InputPart[]): void {
    this.#inference.steer(input);
  }

  /** Asks the model to call tools in place of printing a call. */
  notePrintedCall(): void {
    this.#conversation.addNote(printedCallNote);
  }

  /**
   * Prepares the repetition of a request that failed.
   *
   * @returns the part in words that the next request leaves out; undefined: nothing can be left out
   */
  noteFailure(error: unknown): string | undefined {
    if (!(error instanceof ModelError)) return undefined;
    const leftOut = this.#conversation.leaveOut(error);
    if (leftOut === undefined && error.code === 'contextTooLong') this.#conversation.room.noteTooLong(error);
    return leftOut;
  }

  async prepare(signal: AbortSignal): Promise<void> {
    if (this.#turn.resumed) announceResumption(this.#turn, []);
    const missing = this.#turn.resumed ? await this.#missingServers(signal) : [];
    await this.#conversation.prepare(signal);
    for (const note of missing) this.#conversation.addNote(note);
  }

  /** Restores the conversation and the calls of a turn that an earlier process began. */
  async resume(signal: AbortSignal): Promise<Resumption> {
    const { services, resumed } = this.#turn;
    const { context, state, notes = [] } = resumed?.facts ?? {};
    const calls = await resumedCalls(this.#turn);
    signal.throwIfAborted();
    const resumption = announceResumption(this.#turn, calls);
    if (resumption.next === 'storing') {
      addKnownResults(this.#turn, calls);
      return resumption;
    }
    const { fallbacks = 0, retryMs = 0 } = context?.patience ?? {};
    // A turn that was about to use the next model uses it.
    const model = services.settings.fallbackModels[state === 'fallingBack' ? fallbacks : fallbacks - 1];
    // The last request adds its own note.
    const earlier = resumption.next === 'concluding' ? [] : notes;
    await this.#conversation.restore(signal, model, [...earlier, ...(await this.#missingServers(signal))]);
    const { tools } = this.#conversation;
    this.#calls.restore(calls, (name) => tools.toolOf(name), tools.names);
    const pauseMs = retryMs - Math.max(0, Date.now() - Date.parse(resumed?.facts.savedAt ?? ''));
    if (state === 'retrying' && pauseMs > 0) await sleep(pauseMs, undefined, { signal });
    return resumption;
  }

  /** Waits for the tool servers. @returns text for the model that names the servers that are not ready */
  async #missingServers(signal: AbortSignal): Promise<readonly string[]> {
    const { toolServers } = this.#turn.services;
    const missing = toolServers ? await Promise.race([toolServers(), rejectionOf(signal)]) : [];
    return missing.length === 0 ? [] : [`MCP servers without tools since the restart: ${missing.join(', ')}.`];
  }

  /** See `TurnCalls.hold`. */
  hold(): Promise<void> {
    return this.#calls.hold();
  }

  /** Input that waits for the next request, and words for the model that are not items. */
  get unsent() {
    return { steered: this.#inference.steered, notes: this.#conversation.notes };
  }

  async check(): Promise<CheckedTurn> {
    return { usedUpBudget: this.#options.budget.check(), isTooLong: this.#conversation.room.check() };
  }

  compact(signal: AbortSignal): Promise<void> {
    return this.#conversation.room.compact(signal);
  }

  infer(signal: AbortSignal, request: InferenceInput): Promise<Inference> {
    return this.#inference.infer(signal, request);
  }

  /** Continues with the fallback model that the machine has chosen. */
  async fallBack(_signal: AbortSignal, { index }: FallbackInput): Promise<void> {
    const { services, place } = this.#turn;
    const model = services.settings.fallbackModels[index];
    if (model === undefined) throw new Error(`there is no fallback model ${index}`);
    await this.#conversation.useModel(model);
    services.tracer?.modelReplaced(place, model, this.#conversation.foreignStates);
  }

  review(signal: AbortSignal): Promise<ReviewedCalls> {
    return this.#calls.review(signal);
  }

  /** Saves the files that the calls may change. */
  async secure(): Promise<void> {
    if (this.#calls.mayChangeFiles) await this.#options.files.secure();
  }

  async runTools(signal: AbortSignal): Promise<ToolRun> {
    const { firstWithEffects } = this.#calls;
    if (firstWithEffects !== undefined) this.#turn.thread.beforeEffects(firstWithEffects);
    const run = () => this.#calls.run(signal);
    const { results, repeated, isCut } = await (this.#calls.mayChangeFiles ? this.#options.files.during(run) : run());
    this.#conversation.addResults(results);
    return { repeated, isCut };
  }

  async checkEnd(signal: AbortSignal): Promise<CheckedEnd> {
    const { isPlanning, record } = this.#turn;
    if (isPlanning && lacksPlan(record.items.snapshot(), this.#conversation.tools.serverNames)) {
      this.#conversation.addModeText(planMissing);
      return { continues: true };
    }
    const reason = await this.#options.hooks.endTurn(record.items.lastMessage, signal);
    if (reason !== '') this.#conversation.addHookText(reason);
    return { continues: reason !== '' || this.#inference.isSteered };
  }

  /**
   * Asks the model of a turn at its limit for an answer without tools. Calls that were not run, and calls that the
   * model still makes, end without having run.
   *
   * @throws ModelError; BudgetError when a budget is used up; the reason of `signal` when it aborts
   */
  async conclude(signal: AbortSignal): Promise<void> {
    this.#conversation.addResults(this.#calls.skip(notRun));
    const usedUp = this.#options.budget.check();
    if (usedUp !== null) throw new BudgetError(usedUp);
    this.#conversation.addNote(lastNote);
    const { flaw } = await this.#inference.infer(signal, { isFirstRequest: false, retries: 0, isLast: true });
    this.#calls.skip(notRun);
    if (flaw === 'empty') throw new ModelError('upstreamEmptyAnswer', 'The model ended its answer without a text.');
  }
}
