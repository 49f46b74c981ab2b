import type { FinishReason, ModelPrice, ReasoningEffort } from '../protocol/index.ts';

/** Parts of a model's answer, in order. */
export type ModelEvent =
  /** Id that the service has given the request, refused or not. At most once, before anything else. */
  | { readonly type: 'received'; readonly requestId: string }
  | { readonly type: 'thinking'; readonly text: string }
  | { readonly type: 'text'; readonly text: string }
  /** All text of the answer so far was a thought: only the end of it was marked. */
  | { readonly type: 'textWasThinking' }
  /** A piece of the growing arguments of call number `index` of this answer. */
  | {
      readonly type: 'toolCallDelta';
      readonly index: number;
      readonly callId: string;
      readonly name: string;
      readonly argumentsDelta: string;
    }
  /** The whole call, after its last piece; `arguments` is the JSON text as the model wrote it, perhaps broken. */
  | { readonly type: 'toolCall'; readonly call: ModelToolCall }
  /** State that the provider wants back, unchanged, with this answer. At most once, before `finish`. */
  | { readonly type: 'state'; readonly state: ModelState }
  /** Token counts, at most once, near the end. */
  | ({ readonly type: 'usage' } & ModelUsage)
  /**
   * Exactly once, last. A provider that does not say why it ended means `stop`, or `toolCalls` when it made some. `toolCalls` without a
   * call: the service announces one that it has not sent.
   */
  | { readonly type: 'finish'; readonly reason: FinishReason };

/** Tokens of one request. */
export interface ModelUsage {
  /** Cache reads and writes included. */
  readonly inputTokens: number;
  /** Reasoning included. */
  readonly outputTokens: number;
  /** Part of `inputTokens` that the provider read from its cache. */
  readonly cachedInputTokens?: number;
  /** Part of `inputTokens` that the provider wrote to its cache. */
  readonly cacheWriteTokens?: number;
  /** Part of `outputTokens`. */
  readonly reasoningTokens?: number;
  /** Cost as the provider reports it, in US dollars. */
  readonly costUsd?: number;
  /** The provider did not count, we did. */
  readonly isEstimated?: boolean;
}

/**
 * Opaque part of an answer that its provider wants back unchanged: reasoning and its signatures, encrypted items, thought
 * signatures. Only the owner can read it.
 */
export interface ModelState {
  /** `<provider>/<model>` that wrote it. */
  readonly owner: string;
  /** JSON. */
  readonly data: unknown;
}

/** The state of an answer for a request to `owner`; undefined when another provider or model wrote it. */
export function stateFor(owner: string, state: ModelState | undefined): unknown {
  return state?.owner === owner ? state.data : undefined;
}

export interface ModelToolCall {
  readonly callId: string;
  readonly name: string;
  readonly arguments: string;
}

export type ContentPart =
  | { readonly type: 'text'; readonly text: string }
  /** `url` is an https or data URL. */
  | { readonly type: 'image'; readonly url: string; readonly detail?: string };

export type ModelMessage =
  | { readonly role: 'system'; readonly text: string }
  /** `itemId`: item of the thread that the message is made of; absent: none. */
  | { readonly role: 'user'; readonly content: readonly ContentPart[]; readonly itemId?: string }
  | {
      readonly role: 'assistant';
      readonly text: string;
      readonly toolCalls: readonly ModelToolCall[];
      readonly state?: ModelState | undefined;
    }
  | { readonly role: 'tool'; readonly callId: string; readonly name: string; readonly content: readonly ContentPart[] };

/** Declaration of a tool for a model. */
export interface ModelTool {
  readonly name: string;
  readonly description: string;
  /** JSON Schema of an object. */
  readonly inputSchema: Readonly<Record<string, unknown>>;
}

export type ToolChoice = 'auto' | 'none' | 'required' | { readonly name: string };

/** Passed on unchanged to a provider that knows them; names of the chat-completions interface. */
export type Sampling = Readonly<Record<string, unknown>>;

export interface ModelRequest {
  /** Absent: the provider's own. */
  readonly model?: string | undefined;
  /** The conversation, oldest first. */
  readonly messages: readonly ModelMessage[];
  readonly tools?: readonly ModelTool[] | undefined;
  readonly toolChoice?: ToolChoice | undefined;
  /** `{type: 'json_object'}` or `{type: 'json_schema', json_schema: {…}}`, as the chat-completions interface has it. */
  readonly responseFormat?: Readonly<Record<string, unknown>> | undefined;
  readonly sampling?: Sampling | undefined;
  /** Limit of the model's reasoning. A model without this effort gets the nearest that it has. */
  readonly effort?: ReasoningEffort | undefined;
  /** Limit of this answer, reasoning included. Absent: the provider's own. */
  readonly maxOutputTokens?: number | undefined;
  /** Requests with the same key share a beginning, which a provider may cache. */
  readonly cacheKey?: string | undefined;
}

/** A model as its provider lists it. */
export interface ModelInfo {
  readonly id: string;
  readonly ownedBy: string;
  readonly createdAt?: string;
  readonly contextWindow?: number | undefined;
  readonly maxOutputTokens?: number | undefined;
  /** Configured name of the provider. */
  readonly provider?: string;
  readonly price?: ModelPrice;
  /** The model can reason before it answers. */
  readonly reasoning?: boolean;
}

/** Known facts of one model. */
export interface ModelFacts {
  /** Configured name of the provider. */
  readonly provider: string;
  /** `<provider>/<model>`: owner of the state that its answers carry. */
  readonly owner: string;
  /** Tokens of input and output together. */
  readonly contextWindow: number;
  /** Absent: unknown. */
  readonly maxOutputTokens?: number | undefined;
  /** Absent: unknown, which is not free. */
  readonly price?: ModelPrice | undefined;
  readonly reasoning: boolean;
}

/** Something that answers. One of them serves a whole agent server. */
export interface ModelProvider {
  /** Kind of provider: `openai` (any compatible upstream), `demo`, `scripted`. */
  readonly name: string;
  /** The model used when a request names none. */
  readonly model: string;
  /**
   * Streams one answer into `emit`, which is called synchronously as bytes arrive (no promise per piece: this is the hot
   * path), and resolves after `finish` was emitted. Ends soon after `signal` aborts, by resolving or by rejecting,
   * whichever is easier; it emits nothing after that.
   * @throws ModelError for everything that can be wrong with a provider
   */
  stream(request: ModelRequest, emit: (event: ModelEvent) => void, signal: AbortSignal): Promise<void>;
  /** @throws ModelError */
  listModels(signal: AbortSignal): Promise<readonly ModelInfo[]>;
  /** Facts of a model, of the default one without a name. Absent: the provider knows none. */
  facts?(model?: string): ModelFacts;
  /** Name that users see for the service of a model; without an argument, of the default model. Absent: `name`. */
  serviceOf?(model?: string): string;
  /** Closes kept connections. */
  close(): void;
}

/** Why a provider failed, for programs. */
export type ModelErrorCode =
  | 'upstreamUnreachable'
  | 'upstreamUnauthorized'
  | 'upstreamRateLimited'
  | 'upstreamRejected'
  | 'upstreamFailed'
  | 'upstreamProtocol'
  /** The account has no credit or quota left. */
  | 'upstreamQuotaExceeded'
  /** The answer has neither text nor call. */
  | 'upstreamEmptyAnswer'
  /** The answers of a turn exceed its budget in bytes, items or calls. */
  | 'answerTooLong'
  /** The conversation does not fit into the model's context. */
  | 'contextTooLong';

/** Codes of failures after which the same request may succeed later. */
const retryableCodes: ReadonlySet<ModelErrorCode> = new Set([
  'upstreamUnreachable',
  'upstreamRateLimited',
  'upstreamFailed',
  'upstreamProtocol',
]);

export interface ModelErrorOptions extends ErrorOptions {
  /** Pause that the upstream asked for, in milliseconds. */
  readonly retryAfterMs?: number | undefined;
  /** Time until the exceeded limit is reset, in milliseconds, as far as the upstream states it. */
  readonly resetMs?: number | undefined;
  /** Whether a repeat may succeed. Default: the value for the code. */
  readonly isRetryable?: boolean | undefined;
  /** Repetitions that are enough for this failure; default: the turn's. */
  readonly maxRetries?: number | undefined;
  /** The service does not accept the state of an earlier answer. */
  readonly refusesState?: boolean;
  /** HTTP status of the answer; absent: no answer came. */
  readonly status?: number | undefined;
  /** Parts of the request that the service refuses, as its error names them beside the message. */
  readonly refusedFields?: readonly string[] | undefined;
}

/** A failed request to a provider. The message is for people and holds no secret. */
export class ModelError extends Error {
  override readonly name = 'ModelError';
  readonly code: ModelErrorCode;
  /** Pause that the upstream asked for, in milliseconds. */
  readonly retryAfterMs: number | undefined;
  /** Time until the exceeded limit is reset, in milliseconds; undefined: unknown. */
  readonly resetMs: number | undefined;
  /** A repeat of this request may succeed later. */
  readonly isRetryable: boolean;
  readonly maxRetries: number | undefined;
  /** The request may succeed without the state of earlier answers. */
  readonly refusesState: boolean;
  /** HTTP status of the answer, or the one that an error inside it stands for; undefined: no answer came. */
  readonly status: number | undefined;
  /** Parts of the request that the service refuses, as its error names them beside the message. */
  readonly refusedFields: readonly string[];

  constructor(code: ModelErrorCode, message: string, options: ModelErrorOptions = {}) {
    super(message, options);
    this.code = code;
    this.retryAfterMs = options.retryAfterMs;
    this.resetMs = options.resetMs;
    this.isRetryable = options.isRetryable ?? retryableCodes.has(code);
    this.maxRetries = options.maxRetries;
    this.refusesState = options.refusesState ?? false;
    this.status = options.status;
    this.refusedFields = options.refusedFields ?? [];
  }
}

/** Converts the error of a request that was given `ms` milliseconds. An error that is not the provider's is thrown on. */
export function modelFailure(error: unknown, ms: number): { readonly code: string; readonly message: string } {
  if (error instanceof ModelError) return error;
  if ((error as Error).name !== 'TimeoutError') throw error;
  return { code: 'upstreamUnreachable', message: `The upstream did not answer within ${ms} ms.` };
}
