import type { AnyActorRef } from 'xstate';
import type {
  CheckedEnd,
  CheckedTurn,
  Delegated,
  Inference,
  ReviewedCalls,
  ToolRun,
  TurnEmitted,
  TurnInterrupter,
  TurnTokens,
} from '../../../../machines/index.ts';
import type { ApprovalDecision, ApprovalRequest, InputPart, Item, Turn } from '../../../protocol/index.ts';
import { ModelError } from '../../model.ts';
import { printedCallNote } from '../../printed-call.ts';
import type { ThreadEvent } from '../feed.ts';
import type { RunningTurn, TurnOptions } from '../types.ts';
import type { TurnWork } from './actor.ts';
import { TurnApprovals } from './approvals.ts';
import { TurnBudget } from './budget.ts';
import type { Decider } from './call-review.ts';
import { TurnCalls } from './calls.ts';
import { conclude } from './conclusion.ts';
import { TurnConversation } from './conversation.ts';
import { TurnDelegation } from './delegation.ts';
import { TurnDriver } from './driver.ts';
import { TurnEnding } from './ending.ts';
import { bugFailure, codedFailureOf } from './failure.ts';
import { TurnFiles } from './files.ts';
import { TurnHooks } from './hooks.ts';
import type { TurnHost } from './host.ts';
import { type RequestPlace, TurnInference } from './inference.ts';
import { userMessage } from './items.ts';
import { lacksPlan, planMissing } from './plan-mode.ts';
import { TurnRecord } from './record.ts';
import { TurnReports } from './reports.ts';
import { rightsOf } from './rights.ts';

export interface TurnRunOptions {
  readonly host: TurnHost;
  readonly turnId: string;
  readonly input: readonly InputPart[];
  readonly options: TurnOptions;
  /** Receives the turn's machine before it starts. */
  readonly observe: ((actor: AnyActorRef) => void) | undefined;
}

/**
 * One turn from its start to its end. The turn machine decides the steps (`TurnDriver`); this class provides its effects and
 * handles its emitted events.
 */
export class TurnRun implements TurnWork, RunningTurn {
  readonly turnId: string;
  readonly approvalTimeoutMs: number;
  /** Results of the caller's tools, and the prompt. They are stored with the turn's row, before `begin` publishes them. */
  readonly firstItems: readonly Item[];
  readonly #host: TurnHost;
  readonly #input: readonly InputPart[];
  readonly #options: TurnOptions;
  readonly #driver: TurnDriver;
  readonly #record: TurnRecord;
  readonly #approvals: TurnApprovals;
  readonly #calls: TurnCalls;
  /** Absent: the model does the turn. */
  readonly #delegation: TurnDelegation | undefined;
  readonly #budget: TurnBudget;
  readonly #conversation: TurnConversation;
  readonly #inference: TurnInference;
  readonly #reports: TurnReports;
  readonly #hooks: TurnHooks;
  readonly #files: TurnFiles;
  readonly #isPlanning: boolean;
  readonly #ending: TurnEnding;
  /** Called with each cost of this turn, in US dollars; null: unknown. */
  onCost: ((costUsd: number | null) => void) | undefined;
  /** Latest effect, which may outlive the state that invoked it. */
  #work: Promise<unknown> = Promise.resolve();

  constructor({ host, turnId, input, options, observe }: TurnRunOptions) {
    this.#host = host;
    this.turnId = turnId;
    this.#input = input;
    this.#options = options;
    this.approvalTimeoutMs = options.approvalTimeoutMs ?? host.settings.approvalTimeoutMs;
    const { policy, mode } = rightsOf(host, options);
    this.#isPlanning = mode === 'plan';
    this.#driver = new TurnDriver({
      input: {
        threadId: host.threadId,
        turnId,
        maxRounds: host.maxRounds,
        maxRetries: host.settings.maxRetries,
        fallbackModels: host.settings.fallbackModels.length,
        endChecks: (host.hooks?.has('TurnEnd') ? maxHeldUp : 0) + (this.#isPlanning ? 1 : 0),
        isDelegated: host.delegate !== undefined,
        seed: Math.floor(Math.random() * maxSeed),
      },
      work: this,
      onEmitted: (event) => this.#perform(event),
      onFault: (error) => host.onBug(error),
      observe,
    });
    this.#record = new TurnRecord({
      host,
      turnId,
      stateOf: () => this.#driver.state,
      onStorageFailed: (message) => this.#driver.send({ type: 'STORAGE.FAILED', message }),
    });
    this.#reports = new TurnReports({ threadId: host.threadId, turnId, record: this.#record });
    const publish = (event: ThreadEvent) => this.#record.add(undefined, event);
    const { items } = this.#record;
    this.#hooks = new TurnHooks({ host, turnId, items, publish });
    this.#files = new TurnFiles({ host, turnId, publish });
    this.#conversation = new TurnConversation({
      host,
      turnId,
      options,
      items,
      ...{ policy, isPlanning: this.#isPlanning },
      input,
      hooks: this.#hooks,
      publish,
      onSummaryUsed: (use) => {
        host.tracer?.tokensUsed({ threadId: host.threadId, turnId }, use, { purpose: 'compaction' });
        this.addCost(use.costUsd ?? null);
      },
    });
    this.#budget = new TurnBudget({
      host,
      turnId,
      items,
      policy,
      expiresInMs: this.approvalTimeoutMs,
      costUsd: () => this.#driver.state.tokens.costUsd,
      publish,
      onDecided: (isRaised) => this.#driver.send({ type: 'BUDGET.DECIDED', isRaised }),
      onCancel: () => this.interrupt('approval'),
    });
    this.#approvals = new TurnApprovals({
      ...{ host, turnId, items, publish },
      expiresInMs: this.approvalTimeoutMs,
      onDecided: (requestId) => {
        this.#delegation?.decided(requestId);
        this.#driver.send({ type: 'DECIDED', requestId });
      },
      onCancel: () => this.interrupt('approval'),
    });
    this.#calls = new TurnCalls({
      ...{ host, turnId, items, publish },
      ...{ policy, isPlanning: this.#isPlanning },
      approvals: this.#approvals,
      hooks: this.#hooks,
      results: () => this.#conversation.results(),
    });
    this.#delegation =
      host.delegate &&
      new TurnDelegation({
        ...{ host, turnId, items, input, options, publish },
        ...{ delegate: host.delegate, policy, isPlanning: this.#isPlanning },
        approvals: this.#approvals,
        hooks: this.#hooks,
        onAsked: (requestId) => this.#driver.send({ type: 'APPROVAL.NEEDED', requestId }),
        onWithdrawn: (requestId) => this.#driver.send({ type: 'DECIDED', requestId }),
        onTokensUsed: (tokens) => this.#countTokens(tokens),
      });
    this.#ending = new TurnEnding({
      driver: this.#driver,
      record: this.#record,
      files: this.#files,
      askers: [this.#approvals, this.#budget],
      onBug: (error) => host.onBug(error),
    });
    this.#inference = new TurnInference({
      host,
      turnId,
      options,
      record: this.#record,
      conversation: this.#conversation,
      calls: this.#calls,
      hooks: this.#hooks,
      onTokensUsed: (tokens) => this.#countTokens(tokens),
    });
    this.firstItems = this.#makeFirstItems();
  }

  #makeFirstItems(): Item[] {
    const { items } = this.#record;
    const results = (this.#options.toolResults ?? []).map(({ callId, text, isError }) => {
      const tool = this.#conversation.nameOfCall(callId);
      const outcome = isError ? ('failed' as const) : ('completed' as const);
      return items.make<'toolResult'>({ type: 'toolResult', callId, tool, outcome, text });
    });
    return this.#input.length > 0 ? [...results, items.make(userMessage(this.#input))] : results;
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
    return [...this.#approvals.pending, ...this.#budget.pending];
  }

  /** Publishes the start of the turn and runs it. */
  begin(): void {
    const { threadId, tracer } = this.#host;
    const { items } = this.#record;
    this.#record.publishStart(this.#input);
    for (const item of this.firstItems) {
      items.addStored(item);
      if (item.type === 'toolResult') tracer?.toolEnded(threadId, item);
    }
    const isReading = this.#isPlanning || this.#host.config.readOnly === true || this.#options.tools === 'none';
    // An external agent always waits for the saved files: the sooner they are saved, the sooner it begins.
    this.#files.begin(isReading ? 'none' : this.#delegation ? 'certain' : 'possible');
    void this.#driver.start();
  }

  /** Ends the turn early. Repeated calls have no effect. */
  interrupt(by: TurnInterrupter): void {
    this.#driver.send({ type: 'INTERRUPT', by });
  }

  /** External agent that does the turn and cannot be steered; undefined: the model does it. */
  get delegateName(): string | undefined {
    return this.#host.delegate?.name;
  }

  /** Adds input to the next request to the model. False: the turn has ended. */
  steer(input: readonly InputPart[]): boolean {
    if (this.#driver.state.end || this.#delegation) return false;
    this.#inference.steer(input);
    return true;
  }

  /** False: no approval of this id is pending. */
  decide(requestId: string, decision: ApprovalDecision, decider: Decider): boolean {
    return this.#approvals.decide(requestId, decision, decider) || this.#budget.decide(requestId, decision, decider);
  }

  /** Adds the cost of a summary, in US dollars; null: unknown. */
  addCost(costUsd: number | null): void {
    this.#host.spending.add(costUsd ?? 0);
    this.addSubagentCost(costUsd);
  }

  /** Adds the cost of a sub-agent, which has counted it for the day already. */
  addSubagentCost(costUsd: number | null): void {
    this.#driver.send({ type: 'COST.ADDED', costUsd });
    this.#record.saveUsage();
    this.onCost?.(costUsd);
  }

  /** Adds the tokens of an answer, and stores the sum with it. */
  #countTokens(tokens: TurnTokens): void {
    this.#host.spending.add(tokens.costUsd ?? 0);
    this.#driver.send({ type: 'TOKENS.USED', tokens });
    this.#record.saveUsage();
    this.onCost?.(tokens.costUsd);
  }

  // Effects of the machine.

  prepare(signal: AbortSignal): Promise<void> {
    const { recovered } = this.#files;
    const prepare = () => (this.#delegation ?? this.#conversation).prepare(signal);
    return this.#track(recovered ? recovered.then(prepare) : prepare());
  }

  async check(): Promise<CheckedTurn> {
    return { usedUpBudget: this.#budget.check(), isTooLong: this.#conversation.room.check() };
  }

  fallBack(_signal: AbortSignal, index: number): Promise<void> {
    return this.#track(this.#fallBack(index));
  }

  compact(signal: AbortSignal): Promise<void> {
    return this.#track(this.#conversation.room.compact(signal));
  }

  infer(signal: AbortSignal, request: RequestPlace): Promise<Inference> {
    return this.#track(this.#inference.infer(signal, request));
  }

  review(signal: AbortSignal): Promise<ReviewedCalls> {
    return this.#track(this.#calls.review(signal));
  }

  secure(_signal: AbortSignal): Promise<void> {
    return this.#track(this.#delegation || this.#calls.mayChangeFiles ? this.#files.secure() : Promise.resolve());
  }

  async delegate(signal: AbortSignal): Promise<Delegated> {
    const { threadId } = this.#host;
    if (!this.#delegation) throw new Error(`${threadId}/${this.turnId} has no agent to delegate to`);
    const delegation = this.#delegation;
    return this.#track(this.#files.during(() => delegation.run(signal)));
  }

  runTools(signal: AbortSignal): Promise<ToolRun> {
    return this.#track(this.#runTools(signal));
  }

  checkEnd(signal: AbortSignal): Promise<CheckedEnd> {
    return this.#track(this.#checkEnd(signal));
  }

  conclude(signal: AbortSignal): Promise<void> {
    const parts = {
      budget: this.#budget,
      calls: this.#calls,
      conversation: this.#conversation,
      inference: this.#inference,
    };
    return this.#track(conclude(parts, signal));
  }

  async settle(): Promise<void> {
    await this.#work.catch(() => undefined);
  }

  #track<T>(work: Promise<T>): Promise<T> {
    this.#work = work;
    return work.catch((error: unknown) => {
      throw this.#failureOf(error);
    });
  }

  /** Failure for the machine. An error without a code is logged as a bug, and clients get its id. Errors of aborted work are ignored. */
  #failureOf(error: unknown): unknown {
    const { isInterrupted, end } = this.#driver.state;
    if (isInterrupted || end) return error;
    const failure = codedFailureOf(error) ?? bugFailure(this.#host.onBug(error));
    const leftOut = error instanceof ModelError ? this.#conversation.leaveOut(error) : undefined;
    if (leftOut !== undefined) return { ...failure, message: this.#host.clean(failure.message), leftOut };
    if (failure.code === 'contextTooLong' && error instanceof Error) this.#conversation.room.noteTooLong(error);
    return { ...failure, message: this.#host.clean(failure.message) };
  }

  /** Continues with the fallback model that the machine has chosen. */
  async #fallBack(index: number): Promise<void> {
    const { settings, threadId, tracer } = this.#host;
    const model = settings.fallbackModels[index];
    if (model === undefined) throw new Error(`there is no fallback model ${index}`);
    await this.#conversation.useModel(model);
    const { foreignStates } = this.#conversation;
    tracer?.modelReplaced({ threadId, turnId: this.turnId }, model, foreignStates);
  }

  async #runTools(signal: AbortSignal): Promise<ToolRun> {
    const { firstWithEffects } = this.#calls;
    if (firstWithEffects !== undefined) this.#options.beforeEffects?.(firstWithEffects);
    const run = () => this.#calls.run(signal);
    const { results, repeated, isCut } = await (this.#calls.mayChangeFiles ? this.#files.during(run) : run());
    this.#conversation.addResults(results);
    return { repeated, isCut };
  }

  async #checkEnd(signal: AbortSignal): Promise<CheckedEnd> {
    const { items } = this.#record;
    if (this.#isPlanning && lacksPlan(items.snapshot(), this.#conversation.tools.serverNames)) {
      this.#conversation.addModeText(planMissing);
      return { continues: true };
    }
    const reason = await this.#hooks.endTurn(items.lastMessage, signal);
    if (reason !== '') this.#conversation.addHookText(reason);
    return { continues: reason !== '' || this.#inference.isSteered };
  }

  #perform(event: TurnEmitted): void {
    switch (event.type) {
      case 'turn.waiting':
        this.#record.saveStatus();
        if (this.#delegation) this.#delegation.ask();
        else this.#calls.ask();
        return;
      case 'turn.resumed':
        // When a failed write ended the turn, its end follows at once and is reported without being stored.
        if (!this.#driver.state.end) this.#record.saveStatus();
        return;
      case 'turn.approvalsExpired':
        for (const requestId of event.requestIds) this.#approvals.decide(requestId, 'decline', { by: 'timeout' });
        return;
      case 'turn.limitReached':
        this.#reports.callLimitReached(event.rounds);
        return;
      case 'turn.stuck':
        this.#reports.stuck(event.rounds, event.tool);
        return;
      case 'turn.cutOff':
        this.#reports.cutOff(event.answers, this.#inference.outputLimit);
        return;
      case 'turn.callPrinted':
        this.#reports.callPrinted();
        this.#conversation.addNote(printedCallNote);
        return;
      case 'turn.endedSilently':
        this.#reports.endedSilently();
        return;
      case 'turn.notConcluded':
        this.#reports.notConcluded(event.reason);
        return;
      case 'turn.retrying':
        this.#reports.retry(event);
        return;
      case 'turn.leavingOut':
        this.#reports.leaveOut(event);
        return;
      case 'turn.fallingBack':
        this.#reports.fallback(event.reason, this.#host.settings.fallbackModels[event.index] ?? '');
        return;
      case 'turn.budgetReached':
        this.#reports.budgetReached(event.budget);
        this.#budget.ask(event.budget);
        return;
      case 'turn.budgetExpired':
        this.#budget.expire();
        return;
      case 'turn.ending':
        this.#ending.begin();
        return;
      case 'turn.ended':
        this.#ending.publish(event.isStored);
    }
  }
}

/** Largest seed of the machine's pauses. */
const maxSeed = 2 ** 31;

/** Times that hooks may have one turn continue, after which it ends. */
const maxHeldUp = 3;
