import type {
  LanguageModelV4FinishReason,
  LanguageModelV4StreamPart,
  SharedV4ProviderMetadata,
} from '@ai-sdk/provider';
import type { FinishReason } from '../../../protocol/index.ts';
import { ModelError, type ModelEvent, type ModelUsage } from '../../model.ts';
import { bytesPerToken } from '../../tokens.ts';
import { cutFault } from '../upstream/errors.ts';
import { countOf } from '../upstream/json.ts';
import { type Sorted, ThoughtFilter } from '../upstream/thought-filter.ts';
import { libraryFault } from './faults.ts';
import { type AnswerPart, inputOf } from './prompt.ts';

export interface SdkAnswerOptions {
  readonly emit: (event: ModelEvent) => void;
  /** Owner of the state of this answer. */
  readonly owner: string;
  /** Estimates the tokens of the request, for an upstream that does not count. */
  readonly inputTokens: () => number;
  /** Removes the key from a text of an upstream. */
  readonly clean: (text: string) => string;
  /** Thoughts in the text count as reasoning. Default true. */
  readonly thoughtTags?: boolean | undefined;
}

type Finish = Extract<LanguageModelV4StreamPart, { type: 'finish' }>;
type Growing = Extract<AnswerPart, { type: 'text' | 'reasoning' }>;

/**
 * One answer from the stream parts of a library. Emits texts and pieces of calls as they come; state, usage and the reason at
 * the end. Only an answer that the service itself has ended is complete.
 */
export class SdkAnswer {
  readonly #options: SdkAnswerOptions;
  /** Content so far, in order, with the fields that the service wants back. */
  readonly #parts: AnswerPart[] = [];
  readonly #growing = new Map<string, Growing>();
  readonly #indexes = new Map<string, number>();
  readonly #callIds = new Set<string>();
  #finish: Finish | undefined;
  #outputChars = 0;
  readonly #filter: ThoughtFilter;
  /** Receives the text. */
  #textPart: Growing | undefined;

  constructor(options: SdkAnswerOptions) {
    this.#options = options;
    this.#filter = new ThoughtFilter((piece) => this.#sorted(piece));
  }

  /** Takes in one part. @throws ModelError when it reports an error */
  take(part: LanguageModelV4StreamPart): void {
    const { emit } = this.#options;
    switch (part.type) {
      case 'text-start':
        this.#begin(part.id, { type: 'text', text: '' }, part.providerMetadata);
        return;
      case 'reasoning-start':
        this.#begin(part.id, { type: 'reasoning', text: '' }, part.providerMetadata);
        return;
      case 'text-delta':
        this.#text(part);
        return;
      case 'reasoning-delta':
        this.#grow(part.id, part.delta, part.providerMetadata);
        if (part.delta !== '') emit({ type: 'thinking', text: part.delta });
        return;
      case 'text-end':
      case 'reasoning-end':
        this.#grow(part.id, '', part.providerMetadata);
        this.#growing.delete(part.id);
        return;
      case 'tool-input-start':
        this.#callDelta(part.id, part.toolName, '');
        return;
      case 'tool-input-delta':
        this.#callDelta(part.id, '', part.delta);
        return;
      case 'tool-call':
        this.#call(part);
        return;
      case 'finish':
        this.#finish = part;
        return;
      case 'error':
        throw libraryFault(part.error, this.#options.clean);
      default:
      // Sources, files and metadata have no place in a conversation.
    }
  }

  /** Ends the answer. @throws ModelError when the stream ended before the service had ended its answer */
  end(): void {
    const finish = this.#finish;
    if (!finish) throw cutFault();
    this.#filter.end();
    const parts = this.#parts.filter((part) => part.type !== 'text' || part.text !== '');
    const reason = finishReason(finish.finishReason, this.#callIds.size > 0);
    const { emit, owner } = this.#options;
    const hasState = parts.some((part) => part.type === 'reasoning' || part.providerOptions !== undefined);
    if (hasState) emit({ type: 'state', state: { owner, data: parts } });
    emit({ type: 'usage', ...this.#usage(finish) });
    emit({ type: 'finish', reason });
  }

  #text({ id, delta, providerMetadata }: Extract<LanguageModelV4StreamPart, { type: 'text-delta' }>): void {
    this.#grow(id, '', providerMetadata);
    this.#outputChars += delta.length;
    this.#textPart = this.#growing.get(id);
    if (this.#options.thoughtTags !== false) this.#filter.push(delta);
    else if (delta !== '') this.#sorted({ type: 'text', text: delta });
  }

  /** Thoughts in a text are not sent back with it. */
  #sorted(piece: Sorted): void {
    if (piece.type === 'text' && this.#textPart) this.#textPart.text += piece.text;
    if (piece.type === 'textWasThinking') for (const part of this.#parts) if (part.type === 'text') part.text = '';
    this.#options.emit(piece);
  }

  #begin(id: string, part: Growing, metadata: SharedV4ProviderMetadata | undefined): void {
    this.#growing.set(id, part);
    this.#parts.push(part);
    addMetadata(part, metadata);
  }

  #grow(id: string, delta: string, metadata: SharedV4ProviderMetadata | undefined): void {
    this.#outputChars += delta.length;
    const part = this.#growing.get(id);
    if (!part) return;
    part.text += delta;
    addMetadata(part, metadata);
  }

  #callDelta(callId: string, name: string, argumentsDelta: string): void {
    let index = this.#indexes.get(callId);
    if (index === undefined) {
      index = this.#indexes.size;
      this.#indexes.set(callId, index);
    }
    this.#outputChars += argumentsDelta.length;
    this.#options.emit({ type: 'toolCallDelta', index, callId, name, argumentsDelta });
  }

  #call({
    toolCallId,
    toolName: name,
    input,
    providerMetadata,
  }: Extract<LanguageModelV4StreamPart, { type: 'tool-call' }>) {
    // Two calls with one id could not be answered apart.
    if (this.#callIds.has(toolCallId)) {
      throw new ModelError('upstreamProtocol', `The upstream used the call id ${toolCallId.slice(0, 64)} twice.`);
    }
    this.#callIds.add(toolCallId);
    const part: AnswerPart = { type: 'tool-call', toolCallId, toolName: name, input: inputOf(input) };
    if (providerMetadata) part.providerOptions = providerMetadata;
    this.#parts.push(part);
    this.#options.emit({ type: 'toolCall', call: { callId: toolCallId, name, arguments: input } });
  }

  #usage({ usage: { inputTokens: input, outputTokens: output } }: Finish): ModelUsage {
    const optional = {
      cachedInputTokens: countOf(input.cacheRead),
      cacheWriteTokens: countOf(input.cacheWrite),
      reasoningTokens: countOf(output.reasoning),
    };
    const [read, written] = [countOf(input.total), countOf(output.total)];
    const isEstimated = read === undefined || written === undefined;
    return {
      inputTokens: read ?? this.#options.inputTokens(),
      outputTokens: written ?? Math.ceil(this.#outputChars / bytesPerToken),
      ...Object.fromEntries(Object.entries(optional).filter(([, count]) => count !== undefined && count > 0)),
      ...(isEstimated && { isEstimated }),
    };
  }
}

/** Metadata of later pieces, e.g. a signature, completes the metadata of earlier ones. */
function addMetadata(part: Growing, metadata: SharedV4ProviderMetadata | undefined): void {
  if (!metadata) return;
  const known = part.providerOptions ?? {};
  const merged = Object.entries(metadata).map(([owner, fields]) => [owner, { ...known[owner], ...fields }]);
  part.providerOptions = { ...known, ...Object.fromEntries(merged) };
}

/** @throws ModelError for an answer that the service did not end */
function finishReason({ unified, raw }: LanguageModelV4FinishReason, hasCalls: boolean): FinishReason {
  switch (unified) {
    case 'tool-calls':
      return 'toolCalls';
    case 'stop':
      return hasCalls ? 'toolCalls' : 'stop';
    case 'length':
      return 'length';
    case 'content-filter':
      return 'contentFilter';
    case 'interrupted':
      throw cutFault();
    case 'error':
      throw new ModelError(
        'upstreamFailed',
        `The upstream ended its answer with an error: ${raw ?? 'no reason given'}.`,
      );
    case 'other':
      if (raw === undefined) throw cutFault();
      return hasCalls ? 'toolCalls' : 'stop';
  }
}
