import type { AnyActorRef } from 'xstate';
import type { Inference, ToolRun, TurnEmitted, TurnInterrupter } from '../../../machines/index.ts';
import type { ApprovalDecision, ApprovalPolicy, InputPart, Turn, TurnError } from '../../protocol/index.ts';
import { ModelError, type ModelEvent, type ModelToolCall, type ToolChoice } from '../model.ts';
import { StorageError, type StoredTurn } from '../thread-store.ts';
import type { DecidedBy } from './call-review.ts';
import { timestamp } from './clock.ts';
import type { ThreadEvent } from './feed.ts';
import { streamCounted } from './model-call.ts';
import type { startTurnActor as StartTurnActor, TurnWork } from './turn-actor.ts';
import { TurnCalls } from './turn-calls.ts';
import { TurnConversation } from './turn-conversation.ts';
import type { TurnHost } from './turn-host.ts';
import { type ItemWrite, TurnItems } from './turn-items.ts';
import type { TurnOptions } from './types.ts';

export interface TurnRunOptions {
  readonly host: TurnHost;
  readonly turnId: string;
  readonly input: readonly InputPart[];
  readonly options: TurnOptions;
  /** Sees the turn's machine before it starts. */
  readonly observe: ((actor: AnyActorRef) => void) | undefined;
}

let startTurnActor: typeof StartTurnActor | undefined;

type Ending = Pick<Turn, 'status' | 'error' | 'finishReason' | 'interruptedBy'>;

/** One turn from its beginning to its end: the turn machine with a real model and real tools in it. */
export class TurnRun implements TurnWork {
  readonly turnId: string;
  readonly approvalTimeoutMs: number;
  readonly #host: TurnHost;
  readonly #input: readonly InputPart[];
  readonly #options: TurnOptions;
  readonly #observe: TurnRunOptions['observe'];
  readonly #items: TurnItems;
  readonly #calls: TurnCalls;
  readonly #conversation: TurnConversation;
  readonly #startedAt = timestamp();
  readonly #steered: (readonly InputPart[])[] = [];
  readonly #unwritten = new Map<string, string>();
  #status: Turn['status'] = 'running';
  #end: Ending | undefined;
  /** Its end has been published. */
  #isOver = false;
  #completedAt: string | undefined;
  #tokens = { inputTokens: 0, outputTokens: 0 };
  #rounds = 0;
  #send:
    | ((event: { type: 'INTERRUPT'; by: TurnInterrupter } | { type: 'DECIDED'; requestId: string }) => void)
    | undefined;
  #interrupter: TurnInterrupter | undefined;
  #busy: Promise<unknown> = Promise.resolve();

  constructor({ host, turnId, input, options, observe }: TurnRunOptions) {
    this.#host = host;
    this.turnId = turnId;
    this.#input = input;
    this.#options = options;
    this.#observe = observe;
    this.approvalTimeoutMs = options.approvalTimeoutMs ?? host.settings.approvalTimeoutMs;
    this.#items = new TurnItems({
      turn: { threadId: host.threadId, id: turnId },
      firstNumber: host.store.nextItemNumber(host.threadId),
      keep: (write, event) => this.#keep(write, event),
      onCompleted: (item, durationMs) => host.tracer?.segment(host.threadId, item, durationMs),
    });
    this.#conversation = new TurnConversation({ host, turnId, options, items: this.#items });
    this.#calls = new TurnCalls({
      host,
      turnId,
      items: this.#items,
      policy: policyOf(host, options),
      expiresInMs: this.approvalTimeoutMs,
      keepTold: (event) => this.#keep(undefined, event),
      onDecided: (requestId) => this.#send?.({ type: 'DECIDED', requestId }),
      onCancel: () => this.interrupt('approval'),
    });
  }

  /** The turn as it stands. */
  snapshot(): Turn {
    return { ...this.#stored(), items: this.#items.snapshot() };
  }

  get approvals() {
    return this.#calls.pending;
  }

  /** Publishes the start of the turn, and runs it. */
  begin(): void {
    const { threadId, journal, publish, tracer, onChange } = this.#host;
    const turn = this.snapshot();
    tracer?.turnStarted(turn, this.#input);
    onChange();
    journal.add(this, undefined, () => publish({ method: 'turn/started', params: { threadId, turn } }));
    for (const { callId, text, isError } of this.#options.toolResults ?? []) {
      const tool = this.#conversation.nameOfCall(callId);
      const outcome = isError ? 'failed' : 'completed';
      const item = this.#items.add<'toolResult'>({ type: 'toolResult', callId, tool, outcome, text });
      tracer?.toolEnded(threadId, item);
    }
    if (this.#input.length > 0) this.#items.addUserMessage(this.#input);
    this.#drive().catch((error: unknown) => this.#fault(error));
  }

  /** Ends the turn early. Asked twice, it ends once. */
  interrupt(by: TurnInterrupter): void {
    this.#interrupter ??= by;
    this.#send?.({ type: 'INTERRUPT', by });
  }

  /** More to think of, heard before the next request to the model. False: too late, the turn has ended. */
  steer(input: readonly InputPart[]): boolean {
    if (this.#end) return false;
    this.#steered.push(input);
    return true;
  }

  /** False: it waits for no such thing. */
  decide(requestId: string, decision: ApprovalDecision, by: DecidedBy): boolean {
    return this.#calls.decide(requestId, decision, by);
  }

  onStorageFault(error: unknown): void {
    if (this.#isOver) return;
    const message = error instanceof StorageError ? error.message : 'The turn could not be saved.';
    if (!(error instanceof StorageError)) this.#host.onBug(error);
    // An end that was not stored does not count.
    this.#end = undefined;
    this.#finish({ status: 'failed', error: { code: 'storageFailed', message } }, { isKept: false });
    this.interrupt('shutdown');
  }

  // Effects of the machine.

  prepare(signal: AbortSignal) {
    return this.#track(this.#conversation.prepare(signal));
  }

  compact(signal: AbortSignal): Promise<void> {
    return this.#track(this.#conversation.compact(signal));
  }

  infer(signal: AbortSignal): Promise<Inference> {
    return this.#track(this.#infer(signal));
  }

  review(): Promise<{ readonly pending: readonly string[] }> {
    return this.#track(this.#calls.review());
  }

  runTools(signal: AbortSignal): Promise<ToolRun> {
    return this.#track(this.#runTools(signal));
  }

  async settle(): Promise<void> {
    await this.#busy.catch(() => undefined);
  }

  #track<T>(work: Promise<T>): Promise<T> {
    this.#busy = work;
    return work.catch((error: unknown) => {
      throw this.#typed(error);
    });
  }

  /** An error without a code is a bug: the log gets all of it, clients only its id. */
  #typed(error: unknown): unknown {
    if (error instanceof StorageError) return { code: 'storageFailed', message: error.message };
    if (error instanceof ModelError || this.#interrupter !== undefined || this.#end) return error;
    const errorId = this.#host.onBug(error);
    return { code: 'internalError', message: `The turn failed because of a bug; the log has it as ${errorId}.` };
  }

  /** The machine is loaded with the first turn: a server that only waits needs none. */
  async #drive(): Promise<void> {
    startTurnActor ??= (await import('./turn-actor.ts')).startTurnActor;
    if (this.#end) return;
    const { threadId, maxRounds } = this.#host;
    const actor = startTurnActor({
      input: { threadId, turnId: this.turnId, maxRounds },
      work: this,
      onEmitted: (event) => this.#hear(event),
      onError: (error) => this.#fault(error),
      observe: this.#observe,
    });
    // A machine that has ended takes no events, and would complain.
    this.#send = (event) => {
      if (actor.getSnapshot().status === 'active') actor.send(event);
    };
    if (this.#interrupter) this.#send({ type: 'INTERRUPT', by: this.#interrupter });
  }

  async #infer(signal: AbortSignal): Promise<Inference> {
    for (const input of this.#steered.splice(0)) {
      this.#items.addUserMessage(input);
      await this.#conversation.addUser(input);
    }
    const answer: Answer = { text: '', calls: [], finish: 'stop', tokens: { inputTokens: 0, outputTokens: 0 } };
    const provider = await this.#host.provider();
    const request = this.#conversation.request(this.#toolChoice());
    this.#rounds += 1;
    const take = (event: ModelEvent) => this.#take(event, answer, signal);
    await streamCounted(provider, request, take, signal, (use) => {
      // The answer comes before its usage.
      this.#items.close();
      this.#host.tracer?.tokensUsed(this.#place, use);
    });
    signal.throwIfAborted();
    this.#items.close();
    const { calls, finish, tokens } = answer;
    this.#tokens = {
      inputTokens: this.#tokens.inputTokens + tokens.inputTokens,
      outputTokens: this.#tokens.outputTokens + tokens.outputTokens,
    };
    this.#conversation.addAnswer(answer.text, calls);
    const own = calls.filter(({ name }) => !this.#conversation.isClientTool(name));
    this.#calls.take(own, (name) => this.#conversation.toolOf(name), this.#conversation.toolNames);
    const clientCalls = calls.length - own.length;
    return {
      tokens,
      calls: own.length,
      clientCalls,
      isSteered: this.#steered.length > 0,
      finish: clientCalls > 0 ? 'toolCalls' : finish,
    };
  }

  /** A forced choice holds for the first request only: forced again and again the turn would never end. */
  #toolChoice(): ToolChoice | undefined {
    const { toolChoice } = this.#options;
    return this.#rounds === 0 || toolChoice === 'none' ? toolChoice : undefined;
  }

  #take(event: ModelEvent, answer: Answer, signal: AbortSignal): void {
    // A provider that does not listen must not talk into a turn that is over.
    if (signal.aborted || this.#end) return;
    switch (event.type) {
      case 'text':
        answer.text += event.text;
        this.#items.append('agentMessage', event.text);
        return;
      case 'thinking':
        this.#items.append('reasoningContent', event.text);
        return;
      case 'toolCallDelta':
        // A call ends what was being said when it begins, not when it is whole.
        this.#items.close();
        if (event.argumentsDelta !== '') this.#items.tellArguments(event.callId, event.name, event.argumentsDelta);
        return;
      case 'toolCall': {
        const { callId, name, arguments: args } = event.call;
        const { tracer } = this.#host;
        answer.calls.push(event.call);
        const source = this.#conversation.isClientTool(name)
          ? 'client'
          : (this.#conversation.toolOf(name)?.source ?? 'builtin');
        this.#items.add({ type: 'toolCall', callId, tool: name, source, arguments: args });
        // Our own calls begin later, after approval.
        if (source === 'client') tracer?.toolStarted(this.#place, { callId, tool: name, arguments: args, source });
        return;
      }
      case 'usage':
        this.#count(event, answer);
        return;
      case 'finish':
        answer.finish = event.reason === 'toolCalls' ? 'stop' : event.reason;
    }
  }

  get #place() {
    return { threadId: this.#host.threadId, turnId: this.turnId };
  }

  #count({ inputTokens, outputTokens }: Extract<ModelEvent, { type: 'usage' }>, answer: Answer): void {
    const { threadId } = this.#host;
    answer.tokens = { inputTokens, outputTokens };
    const usage = { inputTokens, outputTokens, totalTokens: inputTokens + outputTokens };
    this.#keep(undefined, { method: 'item/usage/delta', params: { threadId, turnId: this.turnId, usage } });
  }

  async #runTools(signal: AbortSignal): Promise<ToolRun> {
    const { results, isLooping } = await this.#calls.run(signal);
    this.#conversation.addResults(results);
    return { isLooping };
  }

  #hear(event: TurnEmitted): void {
    switch (event.type) {
      case 'turn.waiting':
        this.#become('waitingApproval');
        this.#calls.ask();
        return;
      case 'turn.resumed':
        this.#become('running');
        return;
      case 'turn.approvalsExpired':
        for (const requestId of event.requestIds) this.#calls.decide(requestId, 'decline', 'timeout');
        return;
      case 'turn.limitReached': {
        const text = `The turn was ended after ${event.rounds} requests to the model: tools were called again and again.`;
        this.#items.add({ type: 'systemNotice', kind: 'callLimitReached', text });
        return;
      }
      case 'turn.completed':
        this.#finish({ status: 'completed', finishReason: event.finish });
        return;
      case 'turn.failed':
        this.#fail(event.failure);
        return;
      case 'turn.cancelled':
        this.#finish({ status: 'cancelled', interruptedBy: event.by });
        return;
    }
  }

  #become(status: Turn['status']): void {
    if (this.#end) return;
    this.#status = status;
    this.#host.journal.add(this, () => this.#host.store.putTurn(this.#stored()), undefined);
    this.#host.onChange();
  }

  #fault(error: unknown): void {
    this.#host.onBug(error);
    this.#fail({
      code: 'internalError',
      message: 'The turn failed because of a bug; see the log of the agent server.',
    });
  }

  #fail(failure: TurnError): void {
    if (this.#end) return;
    const error = { ...failure, message: this.#host.clean(failure.message) };
    this.#items.addError(error);
    this.#finish({ status: 'failed', error });
  }

  /** A turn ends once, whatever comes later. */
  #finish(end: Ending, { isKept = true } = {}): void {
    if (this.#end) return;
    // Writes that the disk refuses are not reported one by one: the end of the turn reports them.
    if (!isKept) this.#end = end;
    this.#calls.withdraw();
    this.#items.closeAll();
    this.#end = end;
    const completedAt = timestamp();
    this.#completedAt = completedAt;
    const { journal, store, publish, tracer, touch, onEnd } = this.#host;
    const turn = this.snapshot();
    const tell = () => {
      this.#isOver = true;
      tracer?.turnEnded(turn);
      publish(this.#endEvent(turn));
      onEnd(turn, isKept);
    };
    const write = () => {
      store.putTurn(this.#stored());
      touch(completedAt);
    };
    if (isKept) journal.add(this, write, tell);
    else tell();
  }

  #endEvent(turn: Turn): ThreadEvent {
    const { threadId } = turn;
    if (turn.status === 'failed') {
      const error = turn.error ?? { code: 'internalError', message: 'The turn failed.' };
      return { method: 'turn/failed', params: { threadId, turn, error } };
    }
    if (turn.status === 'cancelled') return { method: 'turn/cancelled', params: { threadId, turn } };
    return { method: 'turn/completed', params: { threadId, turn, tokenUsage: this.#usage() } };
  }

  #usage() {
    const { inputTokens, outputTokens } = this.#tokens;
    return { inputTokens, outputTokens, totalTokens: inputTokens + outputTokens };
  }

  #stored(): StoredTurn {
    return {
      id: this.turnId,
      threadId: this.#host.threadId,
      startedAt: this.#startedAt,
      status: this.#status,
      ...(this.#completedAt !== undefined && { completedAt: this.#completedAt }),
      ...(this.#tokens.inputTokens + this.#tokens.outputTokens > 0 && { tokenUsage: this.#usage() }),
      ...this.#end,
    };
  }

  #keep(write: ItemWrite, event: ThreadEvent): void {
    if (this.#end) return;
    const { journal, publish } = this.#host;
    journal.add(this, write && this.#writing(write), () => publish(event));
  }

  /** Pieces of one item that come in the same turn of the event loop are written as one. */
  #writing(write: NonNullable<ItemWrite>): (() => void) | undefined {
    const { store, threadId, journal } = this.#host;
    if ('put' in write) return () => store.putItem(threadId, write.put);
    if (!journal.keepsPieces) return undefined;
    const { append: itemId, text } = write;
    const waiting = this.#unwritten.get(itemId);
    this.#unwritten.set(itemId, (waiting ?? '') + text);
    if (waiting !== undefined) return undefined;
    return () => {
      store.appendItemText(threadId, itemId, this.#unwritten.get(itemId) ?? '');
      this.#unwritten.delete(itemId);
    };
  }
}

interface Answer {
  text: string;
  readonly calls: ModelToolCall[];
  finish: Inference['finish'];
  tokens: { readonly inputTokens: number; readonly outputTokens: number };
}

/** A read-only thread requests no approval, whatever its caller wants. */
function policyOf({ config, settings }: TurnHost, options: TurnOptions): ApprovalPolicy {
  return config.readOnly ? 'interrupt' : (options.approvalPolicy ?? config.approvalPolicy ?? settings.approvalPolicy);
}
