import type { LanguageModelV4CallOptions, LanguageModelV4StreamPart } from '@ai-sdk/provider';
import { defaults } from '../../../protocol/index.ts';
import {
  ModelError,
  type ModelEvent,
  type ModelInfo,
  type ModelProvider,
  type ModelRequest,
  type ModelTool,
} from '../../model.ts';
import { estimateTokens } from '../../tokens.ts';
import type { KeySource } from '../settings.ts';
import { TextBody } from '../upstream/answer-body.ts';
import { Upstream } from '../upstream/connection.ts';
import { refusedFault } from '../upstream/errors.ts';
import { emitRequestId } from '../upstream/request-id.ts';
import { SdkAnswer } from './answer.ts';
import { markCached } from './cache-marks.ts';
import { libraryFault } from './faults.ts';
import { fetchOver } from './fetch.ts';
import { promptOf } from './prompt.ts';
import type { Library, Wire, WireFacts } from './wire.ts';

export interface SdkProviderOptions {
  readonly wire: Wire;
  /** Configured name of the provider; part of the owner of its state. */
  readonly name: string;
  /** Empty: the usual one of the wire. */
  readonly endPoint: string;
  readonly apiKey: string;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** Empty: the usual one of the wire. */
  readonly model: string;
  readonly idleMs?: number | undefined;
  /** Address of a proxy, or `none`; empty: the environment decides. */
  readonly proxy?: string | undefined;
  /** Place of the key, for messages. */
  readonly keySource?: KeySource | undefined;
  /** Thoughts in the text of an answer count as reasoning. Default true. */
  readonly thoughtTags?: boolean;
  /** Known facts of a model. */
  readonly factsOf: (model: string) => Omit<WireFacts, 'model'>;
}

/** A service that speaks a wire of its own, through the library for it and over our own connections. */
export class SdkProvider implements ModelProvider {
  readonly name: string;
  readonly model: string;
  readonly #options: SdkProviderOptions;
  readonly #upstream: Upstream;
  #library: Promise<Library> | undefined;

  /** @throws ModelError when the end point is not an http or https URL */
  constructor(options: SdkProviderOptions) {
    const { wire, headers, idleMs = defaults.upstream.idleMs } = options;
    this.name = options.name;
    this.model = options.model || wire.usualModel;
    this.#options = options;
    const apiKey = options.apiKey.trim();
    this.#upstream = new Upstream({
      endPoint: options.endPoint || wire.usualEndPoint,
      apiKey,
      keyHeaders: wire.keyHeaders(apiKey),
      headers,
      idleMs,
      proxy: options.proxy,
      keySource: options.keySource,
    });
  }

  async stream(request: ModelRequest, emit: (event: ModelEvent) => void, signal: AbortSignal): Promise<void> {
    const model = request.model ?? this.model;
    const owner = `${this.name}/${model}`;
    const answer = new SdkAnswer({
      owner,
      emit: (event) => {
        if (!signal.aborted) emit(event);
      },
      inputTokens: () => estimateTokens(request.messages),
      clean: this.#upstream.clean,
      thoughtTags: this.#options.thoughtTags,
    });
    try {
      this.#library ??= this.#options.wire.load();
      const library = await this.#library;
      const { stream } = await library(model, this.#fetch(emit)).doStream(this.#call(request, model, owner, signal));
      await read(stream, (part) => answer.take(part));
      answer.end();
    } catch (thrown) {
      signal.throwIfAborted();
      throw libraryFault(thrown, this.#upstream.clean);
    }
  }

  async listModels(signal: AbortSignal): Promise<readonly ModelInfo[]> {
    const { wire } = this.#options;
    const body = new TextBody(defaults.upstream.answerBytes);
    let refusal: (() => ModelError) | undefined;
    await this.#upstream.run({
      method: 'GET',
      path: wire.listPath,
      accept: 'application/json',
      signal,
      onHead: (status, headers) => {
        if (status >= 200 && status < 300) return;
        refusal = () =>
          refusedFault(status, headers, body.text, {
            clean: this.#upstream.clean,
            now: Date.now(),
            place: this.#upstream.place,
          });
      },
      onBytes: (chunk) => body.push(chunk),
    });
    if (refusal) throw refusal();
    try {
      return wire.modelsIn(JSON.parse(body.text));
    } catch (error) {
      throw new ModelError('upstreamProtocol', 'The answer of the upstream is not a list of models.', {
        cause: error,
        isRetryable: false,
      });
    }
  }

  close(): void {
    this.#upstream.close();
  }

  /** `fetch` of one request. */
  #fetch(emit: (event: ModelEvent) => void): typeof globalThis.fetch {
    return fetchOver({
      upstream: this.#upstream,
      events: this.#options.wire.events,
      onHeaders: (headers) => emitRequestId(headers, emit),
    });
  }

  #call(request: ModelRequest, model: string, owner: string, signal: AbortSignal): LanguageModelV4CallOptions {
    const { tools = [], toolChoice, responseFormat, sampling = {} } = request;
    const { wire, factsOf } = this.#options;
    const prompt = promptOf(request.messages, owner);
    return {
      prompt: markCached(prompt),
      abortSignal: signal,
      ...samplingOf(sampling),
      ...(tools.length > 0 && { tools: tools.map(functionTool) }),
      ...(tools.length > 0 &&
        toolChoice !== undefined && {
          toolChoice:
            typeof toolChoice === 'string' ? { type: toolChoice } : { type: 'tool', toolName: toolChoice.name },
        }),
      ...(responseFormat && { responseFormat: formatOf(responseFormat) }),
      ...wire.options(request, { model, ...factsOf(model) }),
    };
  }
}

async function read(
  stream: ReadableStream<LanguageModelV4StreamPart>,
  take: (part: LanguageModelV4StreamPart) => void,
): Promise<void> {
  const reader = stream.getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      take(value);
    }
  } catch (error) {
    // Ends the connection of an answer that is not read on.
    await reader.cancel(error).catch(() => undefined);
    throw error;
  }
}

function functionTool({ name, description, inputSchema }: ModelTool) {
  return { type: 'function' as const, name, description, inputSchema, strict: false };
}

/** Sampling fields of the chat-completions interface by their names in the libraries. */
const samplingNames = {
  temperature: 'temperature',
  top_p: 'topP',
  presence_penalty: 'presencePenalty',
  frequency_penalty: 'frequencyPenalty',
  seed: 'seed',
  max_tokens: 'maxOutputTokens',
  max_completion_tokens: 'maxOutputTokens',
} as const;

function samplingOf(sampling: Readonly<Record<string, unknown>>): Partial<LanguageModelV4CallOptions> {
  const numbers = Object.entries(samplingNames).flatMap(([name, known]) =>
    typeof sampling[name] === 'number' ? [[known, sampling[name]]] : [],
  );
  const { stop } = sampling;
  const stops = (Array.isArray(stop) ? stop : [stop]).filter((text) => typeof text === 'string');
  return { ...Object.fromEntries(numbers), ...(stops.length > 0 && { stopSequences: stops }) };
}

/** @param format as the chat-completions interface has it */
function formatOf(
  format: Readonly<Record<string, unknown>>,
): NonNullable<LanguageModelV4CallOptions['responseFormat']> {
  if (format['type'] === 'text') return { type: 'text' };
  const { name, description, schema } = (format['json_schema'] ?? {}) as Readonly<Record<string, unknown>>;
  return {
    type: 'json',
    ...(typeof schema === 'object' && schema !== null && { schema }),
    ...(typeof name === 'string' && { name }),
    ...(typeof description === 'string' && { description }),
  };
}
