import type { IncomingHttpHeaders } from 'node:http';
import * as v from 'valibot';
import { defaults } from '../../protocol/index.ts';
import { ModelError, type ModelEvent, type ModelInfo, type ModelProvider, type ModelRequest } from '../model.ts';
import { estimateTokens } from '../tokens.ts';
import type { KeySource } from './settings.ts';
import { AnswerBody, TextBody } from './upstream/answer-body.ts';
import { ChatAnswer } from './upstream/chat-answer.ts';
import { type Exchange, Upstream } from './upstream/connection.ts';
import { type Dialect, dialectsOf, learnedFrom } from './upstream/dialect.ts';
import { refusedFault } from './upstream/errors.ts';
import { bodyOf } from './upstream/request-body.ts';
import { emitRequestId } from './upstream/request-id.ts';

export interface OpenAiOptions {
  /** Base URL, e.g. `https://api.openai.com/v1`. */
  readonly endPoint: string;
  /** Empty: no `Authorization` header is sent. */
  readonly apiKey: string;
  readonly model: string;
  /** Configured name of the provider; part of the owner of its state. */
  readonly name?: string;
  /** Further headers of every request. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** False: answers are requested whole, and still emitted as events. Default true. */
  readonly streamUpstream?: boolean;
  /** A silent upstream is given up after this many milliseconds; default five minutes. */
  readonly idleMs?: number;
  /** Address of a proxy, or `none`; empty: the environment decides. */
  readonly proxy?: string | undefined;
  /** Place of the key, for messages. */
  readonly keySource?: KeySource | undefined;
  /** Thoughts in the text of an answer count as reasoning. Default true. */
  readonly thoughtTags?: boolean;
}

/** Any upstream that speaks OpenAI's chat completions (https://platform.openai.com/docs/api-reference/chat), well or badly. */
export class OpenAiProvider implements ModelProvider {
  readonly name = 'openai';
  readonly model: string;
  readonly #name: string;
  readonly #dialectOf: (model: string) => Dialect;
  readonly #upstream: Upstream;
  readonly #isStreaming: boolean;
  readonly #thoughtTags: boolean | undefined;
  /** Deviations that refusals of this upstream have shown. */
  #learned: Dialect = {};
  /** The upstream ends its answers with a finish reason or `[DONE]`. */
  #finishesAnswers = false;

  /** @throws ModelError when the end point is not an http or https URL */
  constructor({ endPoint, apiKey, model, ...options }: OpenAiOptions) {
    this.model = model;
    this.#thoughtTags = options.thoughtTags;
    this.#isStreaming = options.streamUpstream ?? true;
    this.#dialectOf = dialectsOf(endPoint);
    this.#name = options.name ?? 'openai-compatible';
    const { keyHeader } = this.#dialectOf(model);
    const key = apiKey.trim();
    this.#upstream = new Upstream({
      endPoint,
      apiKey: key,
      keyHeaders: keyHeader === undefined ? undefined : { [keyHeader]: key },
      headers: options.headers,
      idleMs: options.idleMs ?? defaults.upstream.idleMs,
      proxy: options.proxy,
      keySource: options.keySource,
    });
  }

  async stream(request: ModelRequest, emit: (event: ModelEvent) => void, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    const emitUntilAborted = (event: ModelEvent) => {
      // Drops the rest of a chunk after the listener went away.
      if (!signal.aborted) emit(event);
    };
    await this.#answer(request, emitUntilAborted, signal);
  }

  async listModels(signal: AbortSignal): Promise<readonly ModelInfo[]> {
    const body = new TextBody(defaults.upstream.answerBytes);
    await this.#exchange({ method: 'GET', path: '/models', accept: jsonType, signal }, body);
    return modelsIn(body.text);
  }

  close(): void {
    this.#upstream.close();
  }

  async #answer(request: ModelRequest, emit: (event: ModelEvent) => void, signal: AbortSignal): Promise<void> {
    const answer = new ChatAnswer({
      emit,
      owner: this.#owner(request),
      inputTokens: () => estimateTokens(request.messages),
      takenIds: () => callIdsIn(request),
      clean: this.#upstream.clean,
      thoughtTags: this.#thoughtTags,
    });
    const body = new AnswerBody(answer);
    let isMarked = false;
    try {
      isMarked = await this.#exchange(this.#question(request, signal), body, (headers) => emitRequestId(headers, emit));
    } catch (error) {
      if (this.#learn(error, request)) return this.#answer(request, emit, signal);
      // The answer is complete: a connection that breaks or stays open after it does no harm.
      if (!(error instanceof ModelError) || !body.isComplete) throw error;
    }
    body.end(isMarked, this.#finishesAnswers);
    this.#finishesAnswers ||= body.isComplete;
  }

  #owner({ model = this.model }: ModelRequest): string {
    return `${this.#name}/${model}`;
  }

  #question(request: ModelRequest, signal: AbortSignal): Question {
    const isStreaming = this.#isStreaming;
    const model = request.model ?? this.model;
    const payload = bodyOf(request, {
      model,
      isStreaming,
      dialect: this.#dialect(request),
      owner: this.#owner(request),
    });
    return { method: 'POST', path: '/chat/completions', payload, accept: isStreaming ? eitherType : jsonType, signal };
  }

  /** Asks, and pushes a successful answer into `body`. @returns as `Upstream.run` */
  async #exchange(
    question: Question,
    body: { push(chunk: Buffer): boolean },
    onHeaders?: (headers: IncomingHttpHeaders) => void,
  ): Promise<boolean> {
    let refusal: ((text: string) => ModelError) | undefined;
    const reason = new TextBody(defaults.upstream.errorBytes);
    try {
      const isMarked = await this.#upstream.run({
        ...question,
        onHead: (status, headers) => {
          onHeaders?.(headers);
          if (status >= 200 && status < 300) return;
          refusal = (text) =>
            refusedFault(status, headers, text, {
              clean: this.#upstream.clean,
              now: Date.now(),
              place: this.#upstream.place,
            });
        },
        onBytes: (chunk) => (refusal ? reason : body).push(chunk),
      });
      if (!refusal) return isMarked;
    } catch (error) {
      // The status suffices if the reason was cut off.
      if (!refusal || question.signal.aborted) throw error;
    }
    throw refusal(reason.text);
  }

  #dialect({ model = this.model }: ModelRequest): Dialect {
    return { ...this.#dialectOf(model), ...this.#learned };
  }

  /** Whether a refusal names the required form of the request. Each deviation is learned once. */
  #learn(error: unknown, request: ModelRequest): boolean {
    if (!(error instanceof ModelError) || error.code !== 'upstreamRejected') return false;
    const lesson = learnedFrom(error.message, this.#dialect(request));
    if (lesson) this.#learned = { ...this.#learned, ...lesson };
    return lesson !== undefined;
  }
}

type Question = Omit<Exchange, 'onHead' | 'onBytes'>;

const jsonType = 'application/json';
const eitherType = `text/event-stream, ${jsonType}`;

function callIdsIn({ messages }: ModelRequest): ReadonlySet<string> {
  return new Set(
    messages.flatMap((message) => (message.role === 'assistant' ? message.toolCalls.map(({ callId }) => callId) : [])),
  );
}

const ModelList = v.object({
  data: v.array(v.object({ id: v.string(), owned_by: v.nullish(v.string()), created: v.nullish(v.number()) })),
});

function modelsIn(text: string): readonly ModelInfo[] {
  const parsed = v.safeParse(v.pipe(v.string(), v.parseJson(), ModelList), text);
  if (!parsed.success) throw new ModelError('upstreamProtocol', 'The answer of the upstream is not a list of models.');
  return parsed.output.data.map(({ id, owned_by: owner, created }) => ({
    id,
    ownedBy: owner ?? '',
    ...createdAt(created),
  }));
}

function createdAt(seconds: number | null | undefined): Pick<ModelInfo, 'createdAt'> {
  const date = new Date((seconds ?? Number.NaN) * 1000);
  return Number.isNaN(date.getTime()) ? {} : { createdAt: date.toISOString() };
}
