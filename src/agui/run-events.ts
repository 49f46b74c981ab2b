import type { ThreadEvent } from '../agent/index.ts';
import type { ApprovalRequest, Item, ItemOf, TokenUsage, Turn } from '../protocol/index.ts';
import { CallEvents } from './call-events.ts';
import { type AguiEvent, type AguiInterrupt, type AguiOutcome, type AguiUsage, aguiVersion } from './events.ts';
import type { RunInput } from './input.ts';
import { approvalAnswer, questionAnswer } from './interrupts.ts';
import { CallParents, restated } from './messages.ts';

export interface RunEventsOptions {
  readonly input: RunInput;
  /** Calls that this run itself brings the results of: the client knows them. */
  readonly answeredCalls: ReadonlySet<string>;
  readonly emit: (event: AguiEvent) => void;
}

/** An open item between its start and its end, and the number of its characters that were sent. */
interface Open {
  readonly kind: 'text' | 'reasoning';
  sentChars: number;
}

/**
 * The events of one run, derived from its turn. Of every item only the unsent part is sent, so that an item may come
 * piece by piece, whole, or both.
 */
export class RunEvents {
  readonly #options: RunEventsOptions;
  readonly #open = new Map<string, Open>();
  readonly #done = new Set<string>();
  readonly #calls = new CallEvents((event) => this.#emit(event));
  readonly #parents = new CallParents();
  readonly #usage = { inputTokens: 0, outputTokens: 0, totalTokens: 0 };
  /** The first messages of a turn are the client's own. */
  #isBegun = false;
  /** The client has parts of an answer that was withdrawn. */
  #hasDiscarded = false;

  constructor(options: RunEventsOptions) {
    this.#options = options;
  }

  start(): void {
    const { threadId, runId, parentRunId } = this.#options.input;
    this.#emit({
      type: 'RUN_STARTED',
      threadId,
      runId,
      protocolVersion: aguiVersion,
      ...(typeof parentRunId === 'string' && { parentRunId }),
    });
  }

  /** Sends all current messages of a turn that was under way before. Later events continue them. */
  restate(turn: Pick<Turn, 'id' | 'items'>): void {
    const { items } = turn;
    this.#sendMessages(turn);
    this.#calls.restate(items.flatMap((item) => (item.type === 'toolCall' ? [item.callId] : [])));
    for (const item of items) {
      this.#parents.of(item);
      this.#isBegun ||= item.type !== 'userMessage' && item.type !== 'toolResult';
      const isGrowing =
        item.status !== 'completed' && (item.type === 'agentMessage' || item.type === 'reasoningContent');
      if (!isGrowing) this.#done.add(item.id);
      else if (item.type === 'agentMessage') this.#openText(item.id, 'assistant').sentChars = item.text.length;
      else this.#openReasoning(item.id).sentChars = item.text.length;
    }
  }

  hear(event: ThreadEvent): void {
    switch (event.method) {
      case 'item/started':
        this.#begun(event.params.item);
        return;
      case 'item/completed':
        this.#completed(event.params.item);
        return;
      case 'item/agentMessage/delta':
        this.#grow(this.#openText(event.params.itemId, 'assistant'), event.params.itemId, event.params.delta);
        return;
      case 'item/reasoning/delta':
        this.#grow(this.#openReasoning(event.params.itemId), event.params.itemId, event.params.delta);
        return;
      case 'item/toolCall/argumentsDelta': {
        this.#isBegun = true;
        const { turnId, itemId } = event.params;
        this.#calls.write(event.params, () => this.#parents.ofCall(turnId, itemId));
        return;
      }
      case 'item/commandExecution/outputDelta':
        this.#custom('oratorio.commandOutput', { itemId: event.params.itemId, delta: event.params.delta });
        return;
      case 'item/discarded':
        this.#hasDiscarded = true;
        this.#custom('oratorio.discarded', { itemIds: event.params.itemIds });
        return;
      case 'item/usage/delta':
        this.#count(event.params.usage);
        return;
      case 'item/approval/request':
        this.#custom('oratorio.approvalRequest', event.params);
        return;
      case 'question/asked':
        this.#custom('oratorio.questionAsked', event.params);
        return;
      case 'question/resolved':
        this.#custom('oratorio.questionResolved', event.params);
        return;
      case 'item/approval/resolved':
        this.#custom('oratorio.approvalResolved', event.params);
        return;
      case 'system/event':
        this.#custom('oratorio.systemEvent', { kind: event.params.kind, message: event.params.message });
        return;
      // Others belong to the thread, not to the run; `end` sends the end of the turn.
    }
  }

  /** The turn has ended. Its missed part is sent first. */
  end(turn: Turn): void {
    for (const item of turn.items) if (!this.#done.has(item.id)) this.#completed(item);
    this.#close();
    if (this.#calls.isAstray || this.#hasDiscarded) this.#sendMessages(turn);
    const usage = this.#usageOf();
    if (turn.status === 'failed') {
      const { code, message } = turn.error ?? { code: 'internalError', message: 'The turn failed.' };
      this.#emit({ type: 'RUN_ERROR', code, message, ...usage });
      return;
    }
    if (turn.status === 'cancelled') {
      this.#finish({ type: 'cancelled' });
      return;
    }
    const pendingToolCallIds = leftToClient(turn.items);
    this.#finish(
      { type: 'success', ...(pendingToolCallIds.length > 0 && { pendingToolCallIds }) },
      { turnId: turn.id, finishReason: turn.finishReason ?? 'stop' },
    );
  }

  /** The turn waits for a decision: the run ends, and another one continues it. */
  interrupt(approvals: readonly ApprovalRequest[]): void {
    this.#close();
    this.#finish({ type: 'interrupt', interrupts: approvals.map((request) => this.#interruptOf(request)) });
  }

  #begun(item: Item): void {
    if (item.type === 'agentMessage') this.#openText(item.id, 'assistant');
    else if (item.type === 'reasoningContent') this.#openReasoning(item.id);
    else if (item.type === 'commandExecution') {
      this.#custom('oratorio.command', { itemId: item.id, toolCallId: item.callId, command: item.command });
    }
  }

  #completed(item: Item): void {
    if (this.#done.has(item.id)) return;
    this.#done.add(item.id);
    const parentMessageId = this.#parents.of(item);
    switch (item.type) {
      case 'userMessage':
        if (this.#isBegun) this.#userMessage(item);
        return;
      case 'agentMessage':
        this.#rest(this.#openText(item.id, 'assistant'), item.id, item.text);
        this.#closeItem(item.id);
        return;
      case 'reasoningContent':
        this.#rest(this.#openReasoning(item.id), item.id, item.text);
        this.#closeItem(item.id);
        return;
      case 'toolCall':
        this.#isBegun = true;
        this.#calls.complete(item, parentMessageId);
        return;
      case 'toolResult':
        if (!this.#options.answeredCalls.has(item.callId)) this.#calls.result(item);
        return;
      case 'systemNotice':
        this.#custom('oratorio.notice', { kind: item.kind, text: item.text });
        return;
      case 'plan':
        this.#custom('oratorio.plan', { itemId: item.id, toolCallId: item.callId, steps: item.steps });
        return;
      // Approvals and errors have events of their own; a command's result is that of its call.
    }
  }

  /** Another client has added a message to this thread. */
  #userMessage(item: ItemOf<'userMessage'>): void {
    const text = item.input.map((part) => (part.type === 'text' ? part.text : `[${part.type}]`)).join('\n');
    this.#rest(this.#openText(item.id, 'user'), item.id, text);
    this.#closeItem(item.id);
  }

  #openText(messageId: string, role: 'assistant' | 'user'): Open {
    const known = this.#open.get(messageId);
    if (known) return known;
    this.#isBegun = true;
    this.#parents.follow(role === 'assistant' ? 'agentMessage' : 'userMessage', messageId);
    this.#emit({ type: 'TEXT_MESSAGE_START', messageId, role });
    return this.#remember(messageId, 'text');
  }

  #openReasoning(messageId: string): Open {
    const known = this.#open.get(messageId);
    if (known) return known;
    this.#isBegun = true;
    this.#parents.follow('reasoningContent', messageId);
    this.#emit({ type: 'REASONING_START', messageId });
    this.#emit({ type: 'REASONING_MESSAGE_START', messageId, role: 'reasoning' });
    return this.#remember(messageId, 'reasoning');
  }

  #remember(id: string, kind: Open['kind']): Open {
    const open = { kind, sentChars: 0 };
    this.#open.set(id, open);
    return open;
  }

  #rest(open: Open, id: string, text: string): void {
    this.#grow(open, id, text.slice(open.sentChars));
  }

  #grow(open: Open, messageId: string, delta: string): void {
    if (delta === '') return;
    open.sentChars += delta.length;
    const type = open.kind === 'text' ? 'TEXT_MESSAGE_CONTENT' : 'REASONING_MESSAGE_CONTENT';
    this.#emit({ type, messageId, delta });
  }

  #closeItem(messageId: string): void {
    const open = this.#open.get(messageId);
    if (!open) return;
    this.#open.delete(messageId);
    if (open.kind === 'text') {
      this.#emit({ type: 'TEXT_MESSAGE_END', messageId });
      return;
    }
    this.#emit({ type: 'REASONING_MESSAGE_END', messageId });
    this.#emit({ type: 'REASONING_END', messageId });
  }

  /** Nothing may be open when a run ends. */
  #close(): void {
    for (const id of [...this.#open.keys()]) this.#closeItem(id);
    this.#calls.close();
  }

  #count({ inputTokens, outputTokens, totalTokens }: TokenUsage): void {
    this.#usage.inputTokens += inputTokens;
    this.#usage.outputTokens += outputTokens;
    this.#usage.totalTokens += totalTokens;
  }

  /** Tokens of this run's requests to the model. */
  #usageOf(): { readonly usage?: AguiUsage[] } {
    return this.#usage.totalTokens > 0 ? { usage: [{ ...this.#usage }] } : {};
  }

  #finish(outcome: AguiOutcome, result?: Readonly<Record<string, unknown>>): void {
    const { threadId, runId } = this.#options.input;
    this.#emit({ type: 'RUN_FINISHED', threadId, runId, outcome, ...(result && { result }), ...this.#usageOf() });
  }

  #interruptOf(request: ApprovalRequest): AguiInterrupt {
    const { requestId, callId, operation, target, reason, expiresAt, question } = request;
    const asked = `May the agent ${operation} ${target}?${reason === undefined ? '' : ` ${reason}`}`;
    return {
      id: requestId,
      ...(question ? { reason: 'question', message: target } : { reason: 'approval', message: asked }),
      // The client does not know calls of a sub-agent.
      ...(this.#calls.has(callId) && { toolCallId: callId }),
      responseSchema: question ? questionAnswer : approvalAnswer,
      expiresAt,
      metadata: { oratorio: request },
    };
  }

  /** All current messages of the turn, which replace those of the client. */
  #sendMessages({ id, items }: Pick<Turn, 'id' | 'items'>): void {
    this.#emit({ type: 'MESSAGES_SNAPSHOT', messages: restated(this.#options.input.messages, id, items) });
  }

  #custom(name: string, value: unknown): void {
    this.#emit({ type: 'CUSTOM', name, value });
  }

  #emit(event: AguiEvent): void {
    this.#options.emit(event);
  }
}

/** Unanswered calls of the client's own tools. */
function leftToClient(items: readonly Item[]): string[] {
  const answered = new Set(items.flatMap((item) => (item.type === 'toolResult' ? [item.callId] : [])));
  return items.flatMap((item) =>
    item.type === 'toolCall' && item.source === 'client' && !answered.has(item.callId) ? [item.callId] : [],
  );
}
