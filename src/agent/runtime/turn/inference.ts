import type { AnswerFlaw, Inference, InferenceInput, TurnTokens } from '../../../../machines/index.ts';
import { wellFormedJson } from '../../../lib/index.ts';
import type { InputPart, TokenUsage } from '../../../protocol/index.ts';
import type { ModelEvent, ModelFacts, ModelState, ModelToolCall, ModelUsage, ToolChoice } from '../../model.ts';
import { type ModelUse, streamCounted } from '../../model-call.ts';
import { printedCall } from '../../printed-call.ts';
import { costOf } from '../../providers/index.ts';
import { plainArguments } from './call-review.ts';
import { rejectionOf, type TurnCalls } from './calls.ts';
import type { TurnContext } from './context.ts';
import type { TurnConversation } from './conversation.ts';
import { PromptBlockedError, type TurnHooks } from './hooks.ts';
import { TurnVolume } from './volume.ts';

export interface TurnInferenceOptions {
  readonly turn: TurnContext;
  readonly conversation: TurnConversation;
  readonly calls: TurnCalls;
  readonly hooks: TurnHooks;
  /** Called when a request has ended, also one that was interrupted or failed after its usage was known. */
  readonly onTokensUsed: (tokens: TurnTokens) => void;
}

type AnswerEvent = Exclude<ModelEvent, { type: 'received' }>;

/** Place of a request in its turn. */
interface RequestPlace extends Pick<InferenceInput, 'isFirstRequest' | 'retries'> {
  /** No tool may be called any more. */
  readonly isLast?: boolean;
}

interface Answer {
  text: string;
  readonly calls: ModelToolCall[];
  state: ModelState | undefined;
  finish: Inference['finish'];
  outputTokens: number | undefined;
}

/** Sends the requests of one turn to the model and turns its answers into items, calls and messages. */
export class TurnInference {
  readonly #turn: TurnContext;
  readonly #options: TurnInferenceOptions;
  /** Input of users since the last request. */
  readonly #steered: (readonly InputPart[])[] = [];
  readonly #volume: TurnVolume;
  #outputLimit: number | undefined;
  /** When the latest request failed, by the monotonic clock; undefined: it was answered. */
  #failedAt: number | undefined;
  /** Price of the model of the latest request. */
  #price: ModelFacts['price'];

  constructor(options: TurnInferenceOptions) {
    this.#turn = options.turn;
    this.#options = options;
    this.#volume = new TurnVolume(options.turn.record.items);
  }

  /** Output limit of the latest answer that reached it, in tokens; undefined: unknown. */
  get outputLimit(): number | undefined {
    return this.#outputLimit;
  }

  /** Whether input waits for the next request. */
  get isSteered(): boolean {
    return this.#steered.length > 0;
  }

  /** Input that waits for the next request. */
  get steered(): readonly (readonly InputPart[])[] {
    return this.#steered;
  }

  /** Adds input to the next request. */
  steer(input: readonly InputPart[]): void {
    this.#steered.push(input);
  }

  /**
   * Sends one request and streams its answer.
   * @throws ModelError; the reason of `signal` when it aborts
   */
  async infer(signal: AbortSignal, { isFirstRequest, retries, isLast = false }: RequestPlace): Promise<Inference> {
    const { conversation, calls: turnCalls } = this.#options;
    const { services, thread, place, record } = this.#turn;
    conversation.addUnsaid();
    for (let input = this.#steered.shift(); input; input = this.#steered.shift()) await this.#addSteered(input, signal);
    const answer: Answer = { text: '', calls: [], state: undefined, finish: 'stop', outputTokens: undefined };
    const provider = await services.provider();
    const request = conversation.request(isLast ? 'none' : this.#toolChoice(isFirstRequest));
    record.items.beginAnswer();
    this.#volume.beginAnswer();
    this.#price = provider.facts?.(request.model)?.price;
    // Results that the model has seen must survive a kill.
    const committed = thread.journal.committed(record);
    if (committed) await Promise.race([committed, rejectionOf(signal)]);
    const pausedMs = this.#failedAt === undefined ? 0 : Math.round(performance.now() - this.#failedAt);
    this.#failedAt = undefined;
    const answered = streamCounted(provider, request, (event) => this.#take(event, answer, signal), signal, {
      onUsed: (use) => {
        // The trace has the answer before its usage.
        record.items.close();
        services.tracer?.tokensUsed(place, use, { retries, pausedMs });
        this.#options.onTokensUsed(tokensOf(use));
        conversation.noteUsage(use, request);
      },
      onFailed: (call, error) => {
        record.items.close();
        services.tracer?.modelFailed(place, call, { error, retries, pausedMs });
      },
    });
    try {
      await answered;
    } catch (error) {
      this.#failedAt = performance.now();
      throw error;
    }
    signal.throwIfAborted();
    record.items.close();
    const { finish, state } = answer;
    const calls = answer.calls.map((call) => ({
      ...call,
      name: conversation.tools.nameFor(call.name),
      arguments: plainArguments(call.arguments),
    }));
    const flaw = isLast ? emptinessOf(answer) : flawOf(answer, conversation.tools.names);
    this.#outputLimit = request.maxOutputTokens ?? answer.outputTokens ?? this.#outputLimit;
    // Only now: no call of an answer that breaks off is shown as one.
    for (const call of calls) this.#addCall(call);
    const lastItemId = record.items.lastId;
    if (state && lastItemId !== undefined) record.saveAnswerState(lastItemId, state);
    // Services refuse an empty message; one that lost its call is asked for again.
    if (flaw !== 'empty' && flaw !== 'lostCall')
      conversation.addAnswer(answer.text.toWellFormed(), calls, state, lastItemId);
    const own = calls.filter(({ name }) => !conversation.tools.isClientTool(name));
    const lastCallId = finish === 'length' ? own.at(-1)?.callId : undefined;
    turnCalls.take(own, (name) => conversation.tools.toolOf(name), conversation.tools.names, {
      ...{ lastCallId, limit: this.#outputLimit },
    });
    const clientCalls = calls.length - own.length;
    return {
      calls: own.length,
      clientCalls,
      isSteered: this.isSteered,
      finish: clientCalls > 0 ? 'toolCalls' : flaw === 'lostCall' ? 'stop' : finish,
      flaw,
    };
  }

  /** A prompt that a hook blocks is left out; the turn continues. */
  async #addSteered(input: readonly InputPart[], signal: AbortSignal): Promise<void> {
    const { conversation, hooks } = this.#options;
    const { record } = this.#turn;
    record.noteChange();
    const item = record.items.addUserMessage(input);
    try {
      const context = await hooks.submitPrompt(input, signal);
      await conversation.addUser(item);
      if (context !== '') conversation.addHookText(context);
    } catch (error) {
      if (!(error instanceof PromptBlockedError)) throw error;
    }
  }

  /** A forced choice holds for the first request only: forced each time the turn would never end. */
  #toolChoice(isFirstRequest: boolean): ToolChoice | undefined {
    const { toolChoice } = this.#turn.options;
    return isFirstRequest || toolChoice === 'none' ? toolChoice : undefined;
  }

  #take(event: AnswerEvent, answer: Answer, signal: AbortSignal): void {
    // A provider that ignores the signal must not change an interrupted turn.
    if (signal.aborted) return;
    const { place, record } = this.#turn;
    const { items } = record;
    this.#volume.take(event);
    switch (event.type) {
      case 'text':
        answer.text += event.text;
        items.append('agentMessage', event.text);
        return;
      case 'thinking':
        items.append('reasoningContent', event.text);
        return;
      case 'textWasThinking':
        answer.text = '';
        items.closeAsThought();
        return;
      case 'toolCallDelta':
        // The first piece of a call ends the text before it.
        items.close();
        if (event.argumentsDelta !== '') items.publishArguments(event.callId, event.name, event.argumentsDelta);
        return;
      case 'toolCall':
        // Text after a call is another item than the text before it.
        items.close();
        answer.calls.push(wellFormedCall(event.call));
        return;
      case 'state':
        answer.state = event.state;
        return;
      case 'usage': {
        answer.outputTokens = event.isEstimated ? undefined : event.outputTokens;
        const usage = { ...usageOf(event), ...this.#costOf(event) };
        record.publish({ method: 'item/usage/delta', params: { ...place, usage } });
        return;
      }
      case 'finish':
        answer.finish = event.reason;
    }
  }

  #addCall({ callId, name, arguments: args }: ModelToolCall): void {
    const { conversation } = this.#options;
    const { services, place, record } = this.#turn;
    const source = conversation.tools.isClientTool(name)
      ? 'client'
      : (conversation.tools.toolOf(name)?.source ?? 'builtin');
    record.items.add({ type: 'toolCall', callId, tool: name, source, arguments: args });
    // The start of a server call is traced later, after its approval.
    if (source === 'client') services.tracer?.toolStarted(place, { callId, tool: name, arguments: args, source });
  }

  /** Cost of one request; absent: the price is unknown. */
  #costOf(usage: ModelUsage): Pick<TokenUsage, 'costUsd'> {
    const costUsd = usage.costUsd ?? (this.#price && costOf(usage, this.#price));
    return costUsd === undefined ? {} : { costUsd };
  }
}

/** A call whose arguments every strict reader of JSON accepts, the tool and later requests among them. */
function wellFormedCall({ callId, name, arguments: args }: ModelToolCall): ModelToolCall {
  return { callId: callId.toWellFormed(), name: name.toWellFormed(), arguments: wellFormedJson(args) };
}

/** Usage of one request for clients: the fields of `TokenUsage`. */
function usageOf({ inputTokens, outputTokens, cachedInputTokens, reasoningTokens }: ModelUsage): TokenUsage {
  return {
    ...{ inputTokens, outputTokens, totalTokens: inputTokens + outputTokens },
    ...(cachedInputTokens !== undefined && { cachedInputTokens }),
    ...(reasoningTokens !== undefined && { reasoningTokens }),
  };
}

function emptinessOf({ text, calls, finish }: Answer): AnswerFlaw | null {
  if (calls.length > 0 || finish === 'contentFilter') return null;
  if (isWithoutWords(text)) return 'empty';
  return finish === 'toolCalls' ? 'lostCall' : null;
}

function flawOf(answer: Answer, toolNames: readonly string[]): AnswerFlaw | null {
  const flaw = emptinessOf(answer);
  if (flaw === 'empty' || answer.calls.length > 0 || answer.finish === 'contentFilter') return flaw;
  return printedCall(answer.text, toolNames) === undefined ? flaw : 'printedCall';
}

function tokensOf(use: ModelUse): TurnTokens {
  const { inputTokens, outputTokens, cachedInputTokens = 0, reasoningTokens = 0, costUsd = null } = use;
  return { inputTokens, outputTokens, cachedInputTokens, reasoningTokens, costUsd };
}

/** Ends of a turn in chat templates, which some servers send as text. */
const templateEnds =
  /<\|(?:im_end|eot_id|eom_id|end|endoftext|end_of_turn|end_of_text)\|>|<\/s>|<(?:end_of_turn|eos)>/g;

/** Longer texts are judged by their blanks only. */
const shortChars = 200;

/** Whether an answer shows nothing: blanks only or, when it is short, also invisible characters and ends of a chat template. */
function isWithoutWords(text: string): boolean {
  if (text.trim() === '') return true;
  return text.length <= shortChars && text.replaceAll(templateEnds, '').replaceAll(/[\p{Cc}\p{Cf}\s]/gu, '') === '';
}
