import type { FinishReason } from '../../../protocol/index.ts';
import { ModelError, type ModelEvent, type ModelUsage } from '../../model.ts';
import { bytesPerToken } from '../../tokens.ts';
import { type ChatState, mergeDetails } from './dialect.ts';
import { problemIn, reportedFault } from './errors.ts';
import { costOf, countOf, isRecord, type Json, wordOf } from './json.ts';
import type { Spoken } from './text-template.ts';
import { ThoughtFilter } from './thought-filter.ts';
import { ToolCallAssembly } from './tool-calls.ts';

export interface ChatAnswerOptions {
  readonly emit: (event: ModelEvent) => void;
  /** Estimates the tokens of the request, for an upstream that does not count. */
  readonly inputTokens: () => number;
  /** Owner of the state of this answer. */
  readonly owner: string;
  /** Ids of the calls in the conversation so far. */
  readonly takenIds: () => ReadonlySet<string>;
  /** Removes the key from a text of an upstream. */
  readonly clean: (text: string) => string;
  /** Thoughts in the text count as reasoning. Default true. */
  readonly thoughtTags?: boolean | undefined;
}

/**
 * One answer of a chat-completions upstream, from its chunks or from the whole of it. Emits texts and pieces of calls
 * as it reads them; whole calls, usage and the reason at its end.
 */
export class ChatAnswer {
  readonly #options: ChatAnswerOptions;
  readonly #calls: ToolCallAssembly;
  /** Absent: thoughts in the text stay in it. */
  readonly #filter: ThoughtFilter | undefined;
  #outputBytes = 0;
  #finish: string | undefined;
  #usage: Json = {};
  #hasSpoken = false;
  #hasRefused = false;
  #thoughtField: 'reasoning_content' | 'reasoning' | undefined;
  #thoughts = '';
  readonly #details: Record<string, unknown>[] = [];
  #hasChoice = false;
  #index: number | undefined;

  constructor(options: ChatAnswerOptions) {
    this.#options = options;
    if (options.thoughtTags !== false) this.#filter = new ThoughtFilter((piece) => this.#emit(piece));
    this.#calls = new ToolCallAssembly((event) => this.#emit(event), options.takenIds);
  }

  get hasFinishReason(): boolean {
    return this.#finish !== undefined;
  }

  /** Whether the answer so far can be the whole answer of an upstream that never marks its end. */
  get canEndHere(): boolean {
    return this.#hasSpoken && !this.#calls.isTorn;
  }

  /**
   * Reads a chunk, or a whole completion.
   *
   * @returns whether its first choice belongs to the answer
   * @throws ModelError when it reports an error or is neither
   */
  read(value: unknown): boolean {
    if (!isRecord(value)) throw notACompletion();
    const { choices, usage, error } = value;
    const isChoice = Array.isArray(choices) && choices.length > 0;
    if (!isChoice || error) this.#mayBeError(value);
    const choice = isChoice ? this.#chosen(choices) : undefined;
    if (choice !== undefined) this.#choice(choice);
    if (isRecord(usage)) this.#usage = usage;
    return isChoice && choice === choices[0];
  }

  /** Emits a text that was read already. */
  speak(spoken: Spoken): void {
    if (spoken.text === '') return;
    this.#outputBytes += Buffer.byteLength(spoken.text);
    if (spoken.type === 'thinking') this.#thoughts += spoken.text;
    if (spoken.type === 'text' && this.#filter) this.#filter.push(spoken.text);
    else this.#emit(spoken);
  }

  /**
   * Emits everything that is known at the end of an answer only.
   * @throws ModelError when there was no answer
   */
  end(): void {
    if (!this.#hasChoice) throw notACompletion();
    this.#filter?.end();
    this.#calls.end();
    this.#reportState();
    this.#emit(this.#counted());
    const reason = finishReason(this.#finish, this.#calls.count > 0);
    this.#emit({ type: 'finish', reason: this.#hasRefused && reason === 'stop' ? 'contentFilter' : reason });
  }

  /** One choice is the answer, from its first chunk on: another one would mix its text and its calls with it. */
  #chosen(choices: readonly unknown[]): unknown {
    this.#index ??= indexOf(choices.find((each) => indexOf(each) === 0) ?? choices[0]);
    return choices.find((each) => (indexOf(each) ?? this.#index) === this.#index);
  }

  #mayBeError(value: Json): void {
    const problem = problemIn(value);
    if (problem) throw reportedFault(problem, this.#options.clean);
    const { choices } = value;
    if (choices !== undefined && choices !== null && !Array.isArray(choices)) throw notACompletion();
  }

  #choice(choice: unknown): void {
    if (!isRecord(choice)) throw notACompletion();
    this.#hasChoice = true;
    const { delta, message, finish_reason: finish } = choice;
    if (isRecord(delta)) this.#said(delta, false);
    else if (isRecord(message)) this.#said(message, true);
    if (finish === 'error' || isRecord(choice['error'])) {
      throw reportedFault(problemIn(choice) ?? { message: 'no reason given' }, this.#options.clean);
    }
    if (typeof finish === 'string' && finish !== '') this.#finish = finish;
  }

  #said(said: Json, isWhole: boolean): void {
    const { content, tool_calls: calls, function_call: call, refusal } = said;
    const thought = thoughtIn(said);
    if (Array.isArray(said['reasoning_details'])) mergeDetails(this.#details, said['reasoning_details']);
    if (thought !== '') this.#thought(said, thought);
    if (typeof content === 'string') this.speak({ type: 'text', text: content });
    else if (Array.isArray(content)) for (const part of content) this.#part(part);
    if (typeof refusal === 'string' && refusal !== '') {
      this.#hasRefused = true;
      this.speak({ type: 'text', text: refusal });
    }
    if (Array.isArray(calls)) this.#calls.add(calls, isWhole);
    else if (isRecord(call)) this.#calls.add([{ index: 0, ...call }], isWhole);
  }

  /** Remembers the name under which thoughts come: the service wants them back so. */
  #thought({ reasoning_content: content, reasoning }: Json, thought: string): void {
    if (wordOf(content) !== undefined) this.#thoughtField = 'reasoning_content';
    else if (wordOf(reasoning) !== undefined) this.#thoughtField = 'reasoning';
    this.speak({ type: 'thinking', text: thought });
  }

  #reportState(): void {
    const extraContent = this.#calls.extraContent;
    const data: ChatState = {
      ...(this.#thoughtField && { [this.#thoughtField]: this.#thoughts }),
      ...(this.#details.length > 0 && { reasoning_details: this.#details }),
      ...(Object.keys(extraContent).length > 0 && { extraContent }),
    };
    if (Object.keys(data).length > 0) this.#emit({ type: 'state', state: { owner: this.#options.owner, data } });
  }

  #part(part: unknown): void {
    if (typeof part === 'string') this.speak({ type: 'text', text: part });
    else if (!isRecord(part)) return;
    else if (part['type'] === 'thinking') this.speak({ type: 'thinking', text: textIn(part['thinking']) });
    else this.speak({ type: 'text', text: textIn(part['text']) });
  }

  #emit(event: ModelEvent): void {
    this.#hasSpoken = true;
    this.#options.emit(event);
  }

  #counted(): ModelEvent {
    const input = countOf(this.#usage['prompt_tokens'] ?? this.#usage['input_tokens']);
    const output = countOf(outputTokensIn(this.#usage));
    return {
      type: 'usage',
      inputTokens: input ?? this.#options.inputTokens(),
      outputTokens: output ?? Math.ceil((this.#outputBytes + this.#calls.outputBytes) / bytesPerToken),
      ...((input === undefined || output === undefined) && { isEstimated: true }),
      ...detailsIn(this.#usage),
    };
  }
}

/** Error for an unreadable answer. */
export function notACompletion(): ModelError {
  return new ModelError('upstreamProtocol', 'The answer of the upstream is not a chat completion.', {
    isRetryable: false,
  });
}

/** Counts that services give under several names; counts of zero are left out. */
function detailsIn(usage: Json): Partial<ModelUsage> {
  const input = recordIn(usage['prompt_tokens_details'] ?? usage['input_tokens_details']);
  const output = recordIn(usage['completion_tokens_details'] ?? usage['output_tokens_details']);
  const cached = countOf(input['cached_tokens'] ?? usage['prompt_cache_hit_tokens'] ?? usage['cached_tokens']) ?? 0;
  const reasoning = countOf(output['reasoning_tokens']) ?? 0;
  const cost = costOf(usage['cost']);
  return {
    ...(cached > 0 && { cachedInputTokens: cached }),
    ...(reasoning > 0 && { reasoningTokens: reasoning }),
    ...(cost !== undefined && { costUsd: cost }),
  };
}

const recordIn = (value: unknown): Json => (isRecord(value) ? value : {});

const outputTokensIn = (usage: Json): unknown => usage['completion_tokens'] ?? usage['output_tokens'];

/** Upstreams that send a thought under two names send the same one twice. */
function thoughtIn({ reasoning_content: content, reasoning, reasoning_details: details }: Json): string {
  return wordOf(content) ?? wordOf(reasoning) ?? (Array.isArray(details) ? textIn(details) : '');
}

/** The words of a text, a part, or a list of parts. */
function textIn(value: unknown): string {
  if (typeof value === 'string') return value;
  if (Array.isArray(value)) return value.map(textIn).join('');
  return isRecord(value) ? (wordOf(value['text']) ?? wordOf(value['summary']) ?? '') : '';
}

const finishReasons: Readonly<Record<string, FinishReason>> = {
  length: 'length',
  max_tokens: 'length',
  model_length: 'length',
  tool_calls: 'toolCalls',
  function_call: 'toolCalls',
  content_filter: 'contentFilter',
  safety: 'contentFilter',
};

/** Upstreams say `stop` after calls, and words of their own. */
function finishReason(said: string | undefined, hasCalls: boolean): FinishReason {
  const known = said === undefined ? undefined : finishReasons[said.toLowerCase()];
  return known ?? (hasCalls ? 'toolCalls' : 'stop');
}

const indexOf = (choice: unknown): number | undefined =>
  isRecord(choice) && typeof choice['index'] === 'number' ? choice['index'] : undefined;
