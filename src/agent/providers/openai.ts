import type { IncomingMessage } from 'node:http';
import * as v from 'valibot';
import { ModelError, type ModelEvent, type ModelInfo, type ModelProvider, type ModelRequest } from '../model.ts';
import { sseData } from './sse-lines.ts';

export interface OpenAiOptions {
  /** Base URL, e.g. `https://api.openai.com/v1`. */
  readonly endPoint: string;
  /** Empty: no `Authorization` header is sent. */
  readonly apiKey: string;
  readonly model: string;
  /** A silent upstream is given up after this many milliseconds; default two minutes. */
  readonly idleMs?: number;
}

const Usage = v.object({ prompt_tokens: v.optional(v.number(), 0), completion_tokens: v.optional(v.number(), 0) });
const Problem = v.object({ message: v.optional(v.string()) });
const words = v.nullish(v.string());
const Said = v.object({ content: words, reasoning_content: words, reasoning: words });
/** A chunk of a stream (`delta`) and a whole answer (`message`) in one: some upstreams do not stream. */
const Completion = v.object({
  error: v.nullish(v.union([Problem, v.string()])),
  choices: v.optional(
    v.array(v.object({ delta: v.nullish(Said), message: v.nullish(Said), finish_reason: words })),
    [],
  ),
  usage: v.nullish(Usage),
});
const ModelList = v.object({
  data: v.array(v.object({ id: v.string(), owned_by: v.optional(v.string(), ''), created: v.optional(v.number()) })),
});

const defaultIdleMs = 120_000;
const errorBytes = 65_536;
const answerBytes = 32 * 1_048_576;

/** Any upstream that speaks OpenAI's chat completions (https://platform.openai.com/docs/api-reference/chat). Redirects are not followed: the key would travel with them. */
export class OpenAiProvider implements ModelProvider {
  readonly name = 'openai';
  readonly model: string;
  readonly #options: OpenAiOptions;

  constructor(options: OpenAiOptions) {
    this.model = options.model;
    this.#options = options;
  }

  async *stream({ model = this.model, messages }: ModelRequest, signal: AbortSignal): AsyncIterable<ModelEvent> {
    const body = {
      model,
      messages: messages.map(({ role, text }) => ({ role, content: text })),
      stream: true,
      stream_options: { include_usage: true },
    };
    const response = await this.#ask('POST', '/chat/completions', body, signal);
    try {
      if (response.headers['content-type']?.startsWith('application/json')) {
        yield* eventsOf(parse(Completion, await readText(response, answerBytes)));
        return;
      }
      yield* readStream(response);
    } catch (error) {
      throw this.#explained(error, signal);
    } finally {
      response.destroy();
    }
  }

  async listModels(signal: AbortSignal): Promise<readonly ModelInfo[]> {
    const response = await this.#ask('GET', '/models', undefined, signal);
    try {
      const { data } = parse(ModelList, await readText(response, answerBytes));
      return data.map(({ id, owned_by, created }) => ({
        id,
        ownedBy: owned_by,
        ...(created !== undefined && { createdAt: new Date(created * 1000).toISOString() }),
      }));
    } catch (error) {
      throw this.#explained(error, signal);
    } finally {
      response.destroy();
    }
  }

  /** Sends one request; resolves with a successful answer whose body is still to be read. */
  async #ask(method: string, path: string, body: unknown, signal: AbortSignal): Promise<IncomingMessage> {
    const { endPoint, apiKey, idleMs = defaultIdleMs } = this.#options;
    const url = new URL(`${endPoint.replace(/\/+$/, '')}${path}`);
    const { request } = url.protocol === 'https:' ? await import('node:https') : await import('node:http');
    const payload = body === undefined ? '' : JSON.stringify(body);
    const response = await new Promise<IncomingMessage>((resolve, reject) => {
      const outgoing = request(url, {
        method,
        signal,
        timeout: idleMs,
        headers: {
          accept: 'text/event-stream, application/json',
          ...(apiKey !== '' && { authorization: `Bearer ${apiKey}` }),
          ...(payload !== '' && { 'content-type': 'application/json', 'content-length': Buffer.byteLength(payload) }),
        },
      });
      outgoing.on('timeout', () => outgoing.destroy(new Error(`it was silent for ${idleMs} ms`)));
      outgoing.on('error', reject);
      outgoing.on('response', resolve);
      outgoing.end(payload);
    }).catch((error: unknown) => {
      throw this.#explained(error, signal);
    });
    const status = response.statusCode ?? 0;
    if (status >= 200 && status < 300) return response;
    const text = await readText(response, errorBytes).catch(() => '');
    response.destroy();
    throw new ModelError(codeOf(status), `The upstream answered ${status}${this.#reasonIn(text)}.`);
  }

  #explained(error: unknown, signal: AbortSignal): unknown {
    if (error instanceof ModelError || signal.aborted) return error;
    const reason = this.#clean(error instanceof Error ? error.message || error.name : String(error));
    return new ModelError('upstreamUnreachable', `The upstream cannot be reached or broke off: ${reason}`, {
      cause: error,
    });
  }

  #reasonIn(text: string): string {
    const parsed = v.safeParse(v.pipe(v.string(), v.parseJson(), Completion), text);
    const problem = parsed.success ? parsed.output.error : undefined;
    const reason = typeof problem === 'string' ? problem : problem?.message;
    return reason ? `: ${this.#clean(reason).slice(0, 500).replace(/\.$/, '')}` : '';
  }

  /** Upstreams like to quote the key they did not like. */
  #clean(text: string): string {
    const { apiKey } = this.#options;
    return apiKey === '' ? text : text.replaceAll(apiKey, '[redacted]');
  }
}

function codeOf(status: number): ModelError['code'] {
  if (status === 401 || status === 403) return 'upstreamUnauthorized';
  return status >= 500 ? 'upstreamFailed' : 'upstreamRejected';
}

type Completion = v.InferOutput<typeof Completion>;

function parse<S extends v.GenericSchema>(schema: S, text: string): v.InferOutput<S> {
  const parsed = v.safeParse(v.pipe(v.string(), v.parseJson(), schema), text);
  if (parsed.success) return parsed.output;
  throw new ModelError('upstreamProtocol', 'The upstream answered with something that is no chat completion.');
}

async function* readStream(response: IncomingMessage): AsyncIterable<ModelEvent> {
  let hasFinished = false;
  for await (const data of sseData(response)) {
    if (data === '[DONE]') return;
    const chunk = parse(Completion, data);
    yield* eventsOf(chunk);
    hasFinished ||= chunk.choices.some(({ finish_reason }) => typeof finish_reason === 'string');
  }
  if (!hasFinished) throw new ModelError('upstreamProtocol', 'The upstream broke off in the middle of its answer.');
}

function* eventsOf({ error, choices, usage }: Completion): Iterable<ModelEvent> {
  if (error) {
    const reason = typeof error === 'string' ? error : (error.message ?? 'no reason given');
    throw new ModelError('upstreamFailed', `The upstream reported an error: ${reason.slice(0, 500)}`);
  }
  const said = choices[0]?.delta ?? choices[0]?.message;
  const thought = said?.reasoning_content ?? said?.reasoning;
  if (thought) yield { type: 'thinking', text: thought };
  if (said?.content) yield { type: 'text', text: said.content };
  if (usage) yield { type: 'usage', inputTokens: usage.prompt_tokens, outputTokens: usage.completion_tokens };
}

async function readText(response: IncomingMessage, limit: number): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of response as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > limit) throw new ModelError('upstreamProtocol', 'The answer of the upstream is too long.');
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}
