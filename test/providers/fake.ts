/** Loopback servers that stand in for model services, one dialect each. They enforce the rules of the services. */
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Test } from 'tap';
import { refusalOf } from './strict.ts';

/** One request as a service received it. */
export interface Received {
  readonly method: string;
  /** With its query. */
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  /** Parsed body of a request to a model. */
  readonly body: Readonly<Record<string, unknown>>;
  /** Size of the body. */
  readonly bytes: number;
}

/** Answer of a dialect: a document, or the frames of a stream. */
export type Answer =
  | { readonly status: number; readonly headers?: Readonly<Record<string, string>>; readonly json: unknown }
  | { readonly frames: readonly string[] };

/** Failure of the next request to a model, or of its answer. */
export type Fault =
  | { readonly status: number; readonly headers?: Readonly<Record<string, string>>; readonly body?: string }
  /** The connection is destroyed after so many bytes of the answer. */
  | { readonly cutAfterBytes: number }
  /** The answer ends regularly after so many bytes. */
  | { readonly endAfterBytes: number }
  /** This event is sent in the stream, after so many frames, in place of the rest. */
  | { readonly frame: string; readonly afterFrames: number }
  /** Nothing is sent after the head of the answer. */
  | { readonly isSilent: true };

/** A refusal of a service, in its own form. */
export class Refusal extends Error {
  readonly answer: Extract<Answer, { status: number }>;

  constructor(status: number, json: unknown, headers: Readonly<Record<string, string>> = {}) {
    super(JSON.stringify(json));
    this.answer = { status, json, headers };
  }
}

/** Rules and wire of one service. A new one for each server: it remembers its answers. */
export interface Dialect {
  readonly name: string;
  /** Path of the base URL, e.g. `/v1`. */
  readonly basePath: string;
  /** Models that exist. */
  readonly models: readonly string[];
  /** Headers that may carry the key, and the text before it. */
  readonly keys: readonly { readonly header: string; readonly prefix: string }[];
  /** Whether a path (below the base, without query) asks a model. */
  isQuestion(path: string): boolean;
  /** @throws Refusal */
  answer(received: Received): Answer;
  /** List of models as the service gives it. */
  list(): unknown;
  wrongKey(): Refusal;
}

export interface FakeOptions {
  /** Sizes of the pieces in which answers are sent, so that events are torn anywhere: one size for each answer, in turn. */
  readonly pieceBytes?: readonly number[];
}

export interface Fake {
  /** Base URL as settings name it. */
  readonly endPoint: string;
  readonly apiKey: string;
  /** Requests to a model, oldest first. */
  readonly requests: readonly Received[];
  /** Requests that were answered as the dialect does. */
  readonly answered: readonly Received[];
  /** Faults of the next requests, in order; `undefined` lets one pass. */
  readonly faults: (Fault | undefined)[];
  /** Bytes of the latest whole answer. */
  readonly answerBytes: number;
}

/** Id of every request, in a header of its answer. */
export const requestId = 'req_0123456789';
export const fakeKey = 'sk-fake-key-0123456789abcdef';

/** Starts a server, which ends with the test. */
export async function startFake(t: Pick<Test, 'teardown'>, dialect: Dialect, options: FakeOptions = {}): Promise<Fake> {
  const requests: Received[] = [];
  const answered: Received[] = [];
  const faults: (Fault | undefined)[] = [];
  let answerBytes = 0;
  const server = createServer((request, response) => {
    void (async () => {
      const received = await receive(request);
      const path = received.path.slice(dialect.basePath.length).split('?')[0] ?? '';
      if (!dialect.keys.some(({ header, prefix }) => received.headers[header] === `${prefix}${fakeKey}`))
        return send(response, dialect.wrongKey().answer);
      if (request.method === 'GET') return send(response, { status: 200, json: dialect.list() });
      if (!dialect.isQuestion(path))
        return send(response, { status: 404, json: { error: { message: 'no such path' } } });
      requests.push(received);
      const fault = faults.shift();
      if (fault && 'status' in fault) {
        response.writeHead(fault.status, { 'content-type': 'application/json', ...fault.headers });
        return response.end(fault.body ?? '');
      }
      const answer = answerOf(dialect, received);
      if ('status' in answer) return send(response, answer);
      answered.push(received);
      const bytes = Buffer.from(framesOf(answer.frames, fault).join(''));
      answerBytes = bytes.length;
      const sizes = options.pieceBytes ?? [bytes.length];
      await stream(response, bytes, fault, sizes[(answered.length - 1) % sizes.length] ?? bytes.length);
    })().catch((error: unknown) => {
      response.destroy(error as Error);
      throw error;
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(
    () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  );
  const { port } = server.address() as AddressInfo;
  return {
    endPoint: `http://127.0.0.1:${port}${dialect.basePath}`,
    apiKey: fakeKey,
    requests,
    answered,
    faults,
    get answerBytes() {
      return answerBytes;
    },
  };
}

function answerOf(dialect: Dialect, received: Received): Answer {
  const problem = refusalOf(received.body);
  if (problem !== undefined) {
    return { status: 400, json: { type: 'error', error: { type: 'invalid_request_error', message: problem } } };
  }
  try {
    return dialect.answer(received);
  } catch (error) {
    if (error instanceof Refusal) return error.answer;
    throw error;
  }
}

async function receive(request: IncomingMessage): Promise<Received> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  const bytes = Buffer.concat(chunks);
  return {
    method: request.method ?? '',
    path: request.url ?? '',
    headers: request.headers,
    body: bytes.length === 0 ? {} : (JSON.parse(bytes.toString()) as Record<string, unknown>),
    bytes: bytes.length,
  };
}

function send(response: ServerResponse, { status, json, headers }: Extract<Answer, { status: number }>): void {
  response.writeHead(status, { 'content-type': 'application/json', 'x-request-id': requestId, ...headers });
  response.end(JSON.stringify(json));
}

function framesOf(frames: readonly string[], fault: Fault | undefined): readonly string[] {
  return fault && 'frame' in fault ? [...frames.slice(0, fault.afterFrames), fault.frame] : frames;
}

async function stream(response: ServerResponse, bytes: Buffer, fault: Fault | undefined, size: number): Promise<void> {
  response.writeHead(200, { 'content-type': 'text/event-stream', 'x-request-id': requestId });
  response.flushHeaders();
  if (fault && 'isSilent' in fault) return;
  const cut = fault && 'cutAfterBytes' in fault ? fault.cutAfterBytes : undefined;
  const end = cut ?? (fault && 'endAfterBytes' in fault ? fault.endAfterBytes : bytes.length);
  for (let at = 0; at < end; at += size) {
    await new Promise<void>((resolve) => response.write(bytes.subarray(at, Math.min(end, at + size)), () => resolve()));
  }
  if (cut === undefined) response.end();
  else response.destroy();
}
