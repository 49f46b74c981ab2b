/** The chat API on a real runtime, with a model whose every word the test decides. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Test } from 'tap';
import * as v from 'valibot';
import { type ModelProvider, openStore, type RuntimeOptions, type Store } from '../../src/agent/index.ts';
import { type ChatOptions, type ChatTiming, openChatServer } from '../../src/chat/index.ts';
import { Config } from '../../src/config/index.ts';
import type { HttpServer } from '../../src/http/index.ts';
import { createLogger } from '../../src/log/index.ts';
import { service } from '../agent/helpers.ts';

type ApiInput = NonNullable<v.InferInput<typeof Config>['Api']>;

export interface ChatSetup {
  readonly api?: ApiInput;
  readonly timing?: Partial<ChatTiming>;
  readonly runtime?: Partial<RuntimeOptions>;
  readonly isPublic?: boolean;
  readonly health?: ChatOptions['health'];
  /** Called before the server opens. */
  readonly before?: (runtime: Running['runtime']) => void;
  /** Default: a database of its own. */
  readonly store?: Pick<Store, 'chatRequests' | 'responses'>;
}

/** Long enough that nothing of it happens unless a test wants it to. */
const patient = { heartbeatMs: 120_000, trickleAfterMs: 120_000, trickleMs: 120_000 };

export interface Running {
  readonly server: HttpServer;
  readonly runtime: ReturnType<typeof service>['runtime'];
  readonly bugs: unknown[];
  readonly port: number;
  readonly url: string;
  readonly log: string[];
  /** Sends a body to `/v1/chat/completions`. */
  post(body: unknown, headers?: Readonly<Record<string, string>>, signal?: AbortSignal): Promise<Response>;
  /** Sends one user message, and reads the answer. */
  ask(words: string, more?: object, headers?: Readonly<Record<string, string>>): Promise<Answer>;
}

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  // The tests are about the shape.
  // biome-ignore lint/suspicious/noExplicitAny: any response of the server
  readonly body: any;
}

/** A database of its own. */
export function requestStore(t: Test): Store {
  const directory = mkdtempSync(join(tmpdir(), 'oratorio-chat-'));
  const store = openStore(directory);
  t.teardown(() => {
    store.close();
    rmSync(directory, { recursive: true, force: true });
  });
  return store;
}

export const user = (content: unknown) => ({ role: 'user', content });

export async function chat(t: Test, provider: ModelProvider, setup: ChatSetup = {}): Promise<Running> {
  const { runtime, bugs } = service(provider, setup.runtime);
  const { Api: api } = v.parse(Config, { Api: setup.api ?? {} });
  setup.before?.(runtime);
  const log: string[] = [];
  const logger = createLogger({
    name: 'chat',
    level: 'debug',
    pretty: false,
    stream: { write: (line) => log.push(String(line)) },
  });
  const { chatRequests, responses } = setup.store ?? requestStore(t);
  const server = await openChatServer({
    runtime,
    requests: chatRequests,
    responses,
    api,
    isPublic: setup.isPublic ?? false,
    version: '9.9.9',
    mode: 'api',
    logger,
    timing: { ...patient, ...setup.timing },
    ...(setup.health && { health: setup.health }),
  });
  const { port } = await server.listen({ host: '127.0.0.1', port: 0 });
  const url = `http://127.0.0.1:${port}`;
  t.teardown(async () => {
    await runtime.close();
    await server.close(0);
  });
  const post: Running['post'] = (body, headers = {}, signal) =>
    fetch(`${url}/v1/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: typeof body === 'string' ? body : JSON.stringify(body),
      ...(signal && { signal }),
    });
  return {
    server,
    runtime,
    bugs,
    port,
    url,
    log,
    post,
    async ask(words, more = {}, headers = {}) {
      const answer = await post({ model: 'scripted', messages: [user(words)], ...more }, headers);
      return { status: answer.status, headers: answer.headers, body: await answer.json() };
    },
  };
}

/** The events of a stream; every frame must be `data: <one line>` and an empty line. */
export function framesOf(text: string): string[] {
  const frames = text.split('\n\n');
  if (frames.pop() !== '') throw new Error(`the stream does not end with an empty line: ${text.slice(-100)}`);
  return frames.map((frame) => {
    const match = /^\n*data: ([^\n]+)$/.exec(frame);
    if (!match?.[1]) throw new Error(`not a frame: ${JSON.stringify(frame)}`);
    return match[1];
  });
}

// biome-ignore lint/suspicious/noExplicitAny: chunks are read without a schema
export type Chunk = any;

/** Chunks of a stream; the `[DONE]` at its end is checked and left out. */
export function chunksOf(text: string): Chunk[] {
  const frames = framesOf(text);
  if (frames.pop() !== '[DONE]') throw new Error(`the stream is not done: ${text.slice(-200)}`);
  return frames.map((frame) => JSON.parse(frame) as Chunk);
}

export const contentOf = (chunks: Chunk[]): string =>
  chunks.map(({ choices }) => choices[0]?.delta.content ?? '').join('');

export const reasoningOf = (chunks: Chunk[]): string =>
  chunks.map(({ choices }) => choices[0]?.delta.reasoning_content ?? '').join('');

/** Reads a body piece by piece. */
export function reading(answer: Response) {
  const reader = answer.body?.pipeThrough(new TextDecoderStream()).getReader();
  let text = '';
  async function until(isEnough: (text: string) => boolean): Promise<string> {
    while (!isEnough(text)) {
      const piece = await reader?.read();
      if (!piece || piece.done) throw new Error(`the body ended early: ${text}`);
      text += piece.value;
    }
    return text;
  }
  async function rest(): Promise<string> {
    for (let piece = await reader?.read(); piece && !piece.done; piece = await reader?.read()) text += piece.value;
    return text;
  }
  return { until, rest };
}

/** Resolves once `condition` holds. */
export async function eventually(condition: () => boolean, what: string): Promise<void> {
  const deadline = Date.now() + 120_000;
  while (!condition()) {
    if (Date.now() > deadline) throw new Error(`never happened: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}
