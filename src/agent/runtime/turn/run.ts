import type { AnyActorRef } from 'xstate';
import {
  type Delegated,
  noTokens,
  type QuotaInput,
  type Resumption,
  type TurnEmitted,
  type TurnInterrupter,
  type TurnTokens,
} from '../../../../machines/index.ts';
import type {
  ApprovalDecision,
  ApprovalPolicy,
  ApprovalRequest,
  InputPart,
  Item,
  Turn,
} from '../../../protocol/index.ts';
import type { ModelProvider } from '../../model.ts';
import { stepsOf } from '../past-steps.ts';
import type { RuntimeServices } from '../services.ts';
import type { ExpectedChanges, RunningTurn, TurnOptions } from '../types.ts';
import type { TurnWork } from './actor.ts';
import { TurnApprovals } from './approvals.ts';
import { TurnBudget } from './budget.ts';
import type { Decider } from './call-review.ts';
import type { TurnContext } from './context.ts';
import { type SuspendOptions, TurnContinuation } from './continuation.ts';
import { TurnDelegation } from './delegation.ts';
import { bugFailure, codedFailureOf, TurnDriver } from './driver.ts';
import { TurnEnding } from './ending.ts';
import type { ResumedTurn } from './facts.ts';
import { TurnFiles } from './files.ts';
import { TurnHooks } from './hooks.ts';
import { userMessage } from './items.ts';
import { ModelTurn } from './model-turn.ts';
import { asksForQuota, maxQuotaWaitMsOf, TurnQuota } from './quota.ts';
import { TurnRecord } from './record.ts';
import { report } from './reports.ts';
import { ResumeQuestion } from './resume-question.ts';
import type { TurnPlace, TurnThread } from './thread.ts';

export interface TurnRunOptions {
  readonly services: RuntimeServices;
  readonly thread: TurnThread;
  readonly turnId: string;
  readonly input: readonly InputPart[];
  readonly options: TurnOptions;
  /** Present: an earlier process began the turn. */
  readonly resumed?: ResumedTurn | undefined;
}

/**
 * Runs one turn, from its prompt to its end.
 *
 * Follow a turn of the model in this order:
 *
 * - `Turns.start` makes this object, and stores the turn's row and its first items in one commit. `begin` publishes them.
 * - `TurnDriver` loads and starts the turn machine (`machines/turn.ts`), which decides every step. `actor.ts` binds its actors to
 *   the effects below; `#perform` handles the events that it emits.
 * - `ModelTurn` has the effects of the model's turns: `TurnConversation` collects messages and tools, `TurnInference` sends a request
 *   and streams the answer, `TurnCalls` reviews and runs the calls of the answer. Then the machine begins the next request.
 * - `TurnDelegation` takes the place of `ModelTurn` when an external agent does the turn.
 * - `TurnApprovals` has the open questions of both. The machine waits until each is decided.
 * - `TurnItems` makes items of the output. The journal writes each change before the feed publishes it.
 * - `TurnEnding` saves files and row when the machine has an outcome, then publishes the end.
 *
 * A piece of text passes the provider, `streamCounted`, `TurnInference`, `TurnItems.append`, the journal and the feed, in this order.
 */
export class TurnRun implements TurnWork, RunningTurn {
  readonly turnId: string;
  /** Results of the caller's tools, and the prompt. They are stored with the turn's row, before `begin` publishes them. */
  readonly firstItems: readonly Item[];
  /** Called with each cost of this turn, in US dollars; null: unknown. */
  onCost: ((costUsd: number | null) => void) | undefined;
  readonly #turn: TurnContext;
  readonly #continuation: TurnContinuation;
  /** Present: `Turns.Resume` is "ask". */
  #question: ResumeQuestion | undefined;
  #hasBegun = false;
  readonly #driver: TurnDriver;
  readonly #record: TurnRecord;
  readonly #approvals: TurnApprovals;
  readonly #files: TurnFiles;
  readonly #ending: TurnEnding;
  /** Absent: an external agent does the turn. */
  readonly #model: ModelTurn | undefined;
  readonly #budget: TurnBudget | undefined;
  readonly #quota: TurnQuota;
  /** Absent: the model does the turn. */
  readonly #delegation: TurnDelegation | undefined;

  constructor({ services, thread, turnId, input, options, resumed }: TurnRunOptions) {
    const { settings, hooks: userHooks, observe, onBug } = services;
    const { config, delegate } = thread;
    const asked = options.approvalPolicy ?? config.approvalPolicy ?? settings.approvalPolicy;
    const isPlanning = (options.mode ?? config.mode) === 'plan';
    const place = { threadId: thread.id, turnId };
    // A read-only thread declines calls that need approval, even if its caller requests otherwise.
    const policy = config.readOnly ? 'interrupt' : asked;
    this.turnId = turnId;
    const earlier = resumed?.facts.past && stepsOf(resumed.facts.past);
    const past = resumed && earlier && { steps: earlier, endedAt: resumed.endedAt };
    this.#driver = new TurnDriver({
      input: {
        ...place,
        maxRounds: thread.maxRounds,
        maxRetries: settings.maxRetries,
        fallbackModels: settings.fallbackModels.length,
        endChecks: (userHooks?.has('TurnEnd') ? maxHeldUp : 0) + (isPlanning ? 1 : 0),
        isDelegated: delegate !== undefined,
        maxQuotaWaitMs: maxQuotaWaitMsOf({ services, policy, options }),
        asksForQuota: asksForQuota(services),
        seed: Math.floor(Math.random() * maxSeed),
        resumed: resumed?.facts,
      },
      work: this,
      onTransition: () => {
        this.#record.noteChange();
        this.#continuation.noteTransition();
      },
      onEmitted: (event) => this.#perform(event),
      onFault: onBug,
      observe: observe && ((actor: AnyActorRef) => observe(actor, thread.id, turnId, input, past)),
    });
    const record = new TurnRecord({
      ...{ services, thread, turnId },
      stateOf: () => this.#driver.state,
      onStorageFailed: (message) => this.#driver.send({ type: 'STORAGE.FAILED', message }),
      facts: thread.isResumable
        ? { text: () => this.#continuation.text(), request: () => this.#continuation.request() }
        : undefined,
      resumed,
    });
    this.#record = record;
    const turn: TurnContext = {
      ...{ services, thread, place, input, options, isPlanning, record, policy },
      canAsk: policy !== 'interrupt' && options.isUnattended !== true,
      approvalTimeoutMs: options.approvalTimeoutMs ?? settings.approvalTimeoutMs,
      resumed,
    };
    this.#turn = turn;
    this.#files = new TurnFiles(turn);
    const hooks = new TurnHooks(turn);
    const onCancel = () => this.interrupt('approval');
    const onDecided = (requestId: string) => this.#driver.send({ type: 'DECIDED', requestId });
    const onTokensUsed = (tokens: TurnTokens) => this.#countTokens(tokens);
    this.#quota = new TurnQuota({
      turn,
      provider: () => delegate?.name ?? this.#serviceName(services.loadedProvider()) ?? 'the provider',
      onAnswered: (answer) => this.#driver.send({ type: 'HOLD.ANSWERED', answer }),
    });
    this.#approvals = new TurnApprovals({ turn, onDecided, onCancel });
    const approvals = this.#approvals;
    if (delegate) {
      this.#delegation = new TurnDelegation({
        ...{ turn, delegate, approvals, hooks, onTokensUsed },
        onAsked: (requestId) => this.#driver.send({ type: 'APPROVAL.NEEDED', requestId }),
        onWithdrawn: onDecided,
        onWorked: (isFinishedCall) => {
          if (this.#continuation.noteWork(isFinishedCall)) this.#record.saveFacts();
        },
      });
    } else {
      this.#budget = new TurnBudget({
        ...{ turn, onCancel },
        costUsd: () => this.#driver.state.tokens.costUsd,
        onRaised: () => this.#driver.send({ type: 'BUDGET.RAISED' }),
        onRefused: () => this.#driver.send({ type: 'HOLD.ANSWERED', answer: 'refused' }),
      });
      this.#model = new ModelTurn({
        ...{ turn, approvals, hooks, onTokensUsed, budget: this.#budget, files: this.#files },
        onSummaryUsed: (use) => {
          services.tracer?.tokensUsed(place, use, { purpose: 'compaction' });
          this.addCost(use.costUsd ?? null);
        },
      });
    }
    this.#continuation = new TurnContinuation({ turn, driver: this.#driver, model: this.#model, earlier });
    this.#ending = new TurnEnding({
      ...{ driver: this.#driver, record, files: this.#files, onBug },
      askers: this.#askers,
    });
    this.firstItems = resumed ? [] : this.#makeFirstItems();
    if (!resumed) return;
    for (const asker of this.#askers) asker.restore(resumed.at);
    // The external agent, which waited for the answers, has ended.
    if (delegate) this.#approvals.withdraw();
    if (settings.turns.resume !== 'ask') return;
    this.#question = new ResumeQuestion(turn, resumed.at, (isAccepted) => {
      if (!isAccepted) this.#driver.send({ type: 'INTERRUPT', by: 'user' });
      if (this.#hasBegun) void this.#resume();
    });
  }

  /** Name of the current model's service, shown to users. */
  #serviceName(provider: ModelProvider | undefined): string | undefined {
    return provider?.serviceOf?.(this.#model?.modelName) ?? provider?.name;
  }

  get #askers(): readonly (TurnApprovals | TurnBudget | TurnQuota)[] {
    const all = [this.#approvals, this.#quota];
    return this.#budget ? [...all, this.#budget] : all;
  }

  /** Time for the answers of users; the questions of an earlier process have the rest of theirs. */
  get approvalTimeoutMs(): number {
    const { resumed, approvalTimeoutMs } = this.#turn;
    const ends = this.approvals.map(({ expiresAt }) => Date.parse(expiresAt));
    return resumed && ends.length > 0 ? Math.max(0, Math.min(...ends) - Date.now()) : approvalTimeoutMs;
  }

  #makeFirstItems(): Item[] {
    const { thread, input, options } = this.#turn;
    const { items } = this.#record;
    const results = (options.toolResults ?? []).map(({ callId, text, isError }) => {
      const outcome = isError ? ('failed' as const) : ('completed' as const);
      return items.make<'toolResult'>({ type: 'toolResult', callId, tool: toolOfCall(thread, callId), outcome, text });
    });
    return input.length > 0 ? [...results, items.make(userMessage(input, options.messageId))] : results;
  }

  get policy(): ApprovalPolicy {
    return this.#turn.policy;
  }

  get place(): TurnPlace {
    return this.#turn.place;
  }

  /** Current state of the turn. */
  snapshot(): Turn {
    return this.#record.snapshot();
  }

  /** Resolves after the last event of the turn, when its thread can start another one. Never rejects. */
  get ended(): Promise<Turn> {
    return this.#ending.ended;
  }

  get approvals(): readonly ApprovalRequest[] {
    return [...this.#askers, ...(this.#question ? [this.#question] : [])].flatMap(({ pending }) => pending);
  }

  /** Publishes the start of the turn and runs it. */
  begin(): void {
    const { services, place, input, resumed } = this.#turn;
    const { items } = this.#record;
    if (!resumed) this.#record.publishStart(input);
    for (const item of this.firstItems) {
      items.addStored(item);
      if (item.type === 'toolResult') services.tracer?.toolEnded(place.threadId, item);
    }
    if (resumed) {
      this.#hasBegun = true;
      if (!this.#question?.pending.length) void this.#resume();
      return;
    }
    this.#files.begin(this.#expectedChanges);
    void this.#driver.start();
  }

  /** The turn could not be stored, and never begins. */
  abandon(): void {
    this.#ending.abandon();
  }

  /** Continues the files' checkpoint of a turn that an earlier process began. Call it before any turn works. */
  resumeFiles(): void {
    this.#files.resume(this.#expectedChanges);
  }

  /** An external agent always waits for the saved files: the sooner they are saved, the sooner it begins. */
  get #expectedChanges(): ExpectedChanges {
    const { thread, options, isPlanning } = this.#turn;
    const isReading = isPlanning || thread.config.readOnly === true || options.tools === 'none';
    return isReading ? 'none' : this.#delegation ? 'certain' : 'possible';
  }

  /**
   * Leaves the turn to the next process, at the end of its present step or after a time. A turn that needs this process is interrupted.
   * Resolves when it is stored.
   */
  async suspend({ reason, withinMs }: SuspendOptions): Promise<void> {
    const { thread } = this.#turn;
    if (!thread.isResumable || this.#driver.state.end || this.#driver.state.isInterrupted) {
      this.interrupt('shutdown');
      await this.ended;
      return;
    }
    await this.#continuation.stepEnded(withinMs, this.ended);
    if (this.#driver.state.end) {
      await this.ended;
      return;
    }
    this.#question?.leave();
    this.#continuation.noteSuspension(reason);
    this.#record.suspend(reason);
    this.#driver.stop();
  }

  /** A turn that ends its agent server each time is counted before it does anything. */
  async #resume(): Promise<void> {
    this.#continuation.begin();
    this.#record.saveStatus();
    await this.#record.secureFacts();
    await this.#driver.start();
  }

  /** Saves the facts of the turn in the present transaction. */
  putFacts(): void {
    this.#record.putFacts();
  }

  /** Counts no resume so far: the turn continued alone, and its agent server lives. */
  clearSuspicion(): void {
    this.#continuation.clearSuspicion();
    this.#record.saveFacts();
  }

  /** Ends the turn early. Repeated calls have no effect. */
  interrupt(by: TurnInterrupter): void {
    this.#driver.send({ type: 'INTERRUPT', by });
    this.#question?.decline();
    this.#record.saveFacts();
    this.#turn.thread.journal.flush();
  }

  /** External agent that does the turn and cannot be steered; undefined: the model does it. */
  get delegateName(): string | undefined {
    return this.#turn.thread.delegate?.name;
  }

  /** Adds input to the next request to the model. False: the turn has ended, or an external agent does it. */
  steer(input: readonly InputPart[]): boolean {
    if (this.#driver.state.end || !this.#model) return false;
    this.#model.steer(input);
    this.#record.saveFacts();
    this.#turn.thread.journal.flush();
    return true;
  }

  /** False: no approval of this id is pending. */
  decide(requestId: string, decision: ApprovalDecision, decider: Decider): boolean {
    if (this.#quota.decide(requestId, decision, decider)) return true;
    // Only a turn that waits for a time can continue early.
    if (decision === 'now') return false;
    return (
      this.#question?.decide(requestId, decision, decider) ||
      this.#approvals.decide(requestId, decision, decider) ||
      this.#budget?.decide(requestId, decision, decider) === true
    );
  }

  /** Adds the cost of a summary, in US dollars; null: unknown. */
  addCost(costUsd: number | null): void {
    this.#turn.services.spending.add(costUsd ?? 0);
    this.addSubagentCost(costUsd);
  }

  /** Adds the cost of a sub-agent, which has counted it for the day already. */
  addSubagentCost(costUsd: number | null): void {
    this.#driver.send({ type: 'TOKENS.USED', tokens: { ...noTokens, costUsd } });
    this.#record.saveUsage();
    this.onCost?.(costUsd);
  }

  /** Adds the tokens of an answer, and stores the sum with it. */
  #countTokens(tokens: TurnTokens): void {
    this.#turn.services.spending.add(tokens.costUsd ?? 0);
    this.#driver.send({ type: 'TOKENS.USED', tokens });
    this.#record.saveUsage();
    this.onCost?.(tokens.costUsd);
  }

  // Effects of the machine.

  get model(): ModelTurn {
    if (!this.#model) throw new Error(`${this.#turn.thread.id}/${this.turnId} is a turn of an external agent`);
    return this.#model;
  }

  async resume(signal: AbortSignal): Promise<Resumption> {
    const { options, thread } = this.#turn;
    await this.#files.recovered;
    signal.throwIfAborted();
    if (options.hasDynamicTools) await thread.dynamicTools(signal);
    return (this.#delegation ?? this.model).resume(signal);
  }

  async prepare(signal: AbortSignal): Promise<void> {
    await this.#files.recovered;
    await (this.#delegation ?? this.model).prepare(signal);
  }

  secure(): Promise<void> {
    return this.#model ? this.#model.secure() : this.#files.secure();
  }

  awaitReset(signal: AbortSignal, wait: QuotaInput): Promise<void> {
    return this.#quota.awaitReset(wait, signal);
  }

  async delegate(signal: AbortSignal): Promise<Delegated> {
    const { thread } = this.#turn;
    const delegation = this.#delegation;
    if (!delegation) throw new Error(`${thread.id}/${this.turnId} has no agent to delegate to`);
    return this.#files.during(() => delegation.run(signal));
  }

  /** Failure for the machine. An error without a code is logged as a bug, and clients get its id. Errors of aborted work are ignored. */
  failureOf(error: unknown): unknown {
    const { isInterrupted, end } = this.#driver.state;
    if (isInterrupted || end) return error;
    const { clean, onBug, waitClock } = this.#turn.services;
    const failure = codedFailureOf(error) ?? bugFailure(onBug(error));
    const leftOut = this.#model?.noteFailure(error);
    const message = clean(failure.message);
    return { ...failure, at: waitClock.now(), message, ...(leftOut !== undefined && { leftOut }) };
  }

  #perform(event: TurnEmitted): void {
    switch (event.type) {
      case 'turn.waiting':
        this.#record.saveStatus();
        this.#approvals.ask();
        return;
      case 'turn.resumed':
        // When a failed write ended the turn, its end follows at once and is reported without being stored.
        if (!this.#driver.state.end) this.#record.saveStatus();
        return;
      case 'turn.approvalsExpired':
        for (const requestId of event.requestIds) this.#approvals.decide(requestId, 'decline', { by: 'timeout' });
        return;
      case 'turn.quotaReached':
        this.#quota.reach(event);
        return;
      case 'turn.quotaAsked':
        this.#quota.ask(event);
        return;
      case 'turn.holdExpired':
        this.#budget?.expire();
        this.#quota.expire();
        return;
      case 'turn.ending':
        this.#record.saveFacts();
        this.#ending.begin();
        return;
      case 'turn.ended':
        this.#ending.publish(event.isStored);
        return;
      default:
        report(this.#turn, event, this.#model?.outputLimit);
    }
    if (event.type === 'turn.callPrinted') this.#model?.notePrintedCall();
    if (event.type !== 'turn.budgetReached') return;
    this.#record.saveStatus();
    this.#budget?.ask(event.budget);
  }
}

/** Largest seed of the machine's pauses. */
const maxSeed = 2 ** 31;

/** Times that hooks may have one turn continue, after which it ends. */
const maxHeldUp = 3;

/** Tool of a call of an earlier turn, which the caller has run since. */
function toolOfCall({ id, store }: TurnThread, callId: string): string {
  const items = store.turns(id, { limit: 5 }).flatMap((turn) => turn.items);
  const call = items.find((item) => item.type === 'toolCall' && item.callId === callId);
  return call?.type === 'toolCall' ? call.tool : 'unknown';
}
