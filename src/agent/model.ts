/** What a model says, in order. Usage comes last and at most once. Tool calls join here later. */
export type ModelEvent =
  | { readonly type: 'thinking'; readonly text: string }
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'usage'; readonly inputTokens: number; readonly outputTokens: number };

export interface ModelMessage {
  readonly role: 'user' | 'assistant';
  readonly text: string;
}

export interface ModelRequest {
  /** Absent: the provider's own. */
  readonly model?: string | undefined;
  /** The conversation, oldest first; the last one is what is to be answered. */
  readonly messages: readonly ModelMessage[];
}

export interface ModelInfo {
  readonly id: string;
  readonly ownedBy: string;
  readonly createdAt?: string;
}

/** Something that answers. One of them serves a whole agent server. */
export interface ModelProvider {
  readonly name: string;
  /** The model used when a request names none. */
  readonly model: string;
  /**
   * Streams one answer. Ends soon after `signal` aborts, by returning or by throwing, whichever is easier.
   * @throws ModelError for everything that can be wrong with a provider
   */
  stream(request: ModelRequest, signal: AbortSignal): AsyncIterable<ModelEvent>;
  /** @throws ModelError */
  listModels(signal: AbortSignal): Promise<readonly ModelInfo[]>;
}

/** A provider did not do its part. The message is for people and holds no secret. */
export class ModelError extends Error {
  override readonly name = 'ModelError';
  readonly code:
    | 'upstreamUnreachable'
    | 'upstreamUnauthorized'
    | 'upstreamRejected'
    | 'upstreamFailed'
    | 'upstreamProtocol';

  constructor(code: ModelError['code'], message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}
