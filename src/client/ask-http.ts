/** Requests to a server of this machine. `fetch` costs a process 40 ms of processor time at its first use, which is most of a command. */
import type { IncomingMessage } from 'node:http';

/** `import … from 'node:http'` would evaluate its `WebSocket` getter, which loads the same modules as `fetch`. */
const http = process.getBuiltinModule('node:http');

export interface HttpQuestion {
  readonly method?: string | undefined;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** An answer with an unread body. One of its functions reads it, once. Each rejects with the reason of the signal. */
export interface HttpAnswer {
  readonly status: number;
  readonly isOk: boolean;
  /** Value of a header; undefined without it. */
  header(name: string): string | undefined;
  /** Chunks of the body as they arrive. Leaving the loop closes the connection. */
  chunks(): AsyncIterable<Uint8Array>;
  text(): Promise<string>;
  json(): Promise<unknown>;
  /** Drops the rest of the body. */
  cancel(): void;
}

const redirects: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);

/** Closes idle connections before the server does: a request on a connection that the server is closing may be lost. */
const idleMs = 4_000;
let kept: InstanceType<typeof http.Agent> | undefined;

/**
 * Sends one request of `http:` and resolves with the head of its answer. An idle connection is used again, and holds no process.
 *
 * @throws the error of the connection, one for a redirect, or the reason of the signal
 */
export function askHttp(url: URL, { method = 'GET', headers = {}, body, signal }: HttpQuestion): Promise<HttpAnswer> {
  kept ??= new http.Agent({ keepAlive: true, timeout: idleMs });
  const agent = kept;
  return new Promise((resolve, reject) => {
    signal?.throwIfAborted();
    const length = body === undefined ? {} : { 'content-length': String(Buffer.byteLength(body)) };
    const outgoing = http.request(url, { method, agent, signal, headers: { accept: '*/*', ...headers, ...length } });
    outgoing.once('error', (error) => reject(signal?.aborted ? signal.reason : error));
    outgoing.once('response', (incoming) => {
      const { statusCode: status = 0 } = incoming;
      if (!redirects.has(status)) return resolve(answerOf(incoming, status, signal));
      incoming.destroy();
      reject(new Error('unexpected redirect'));
    });
    outgoing.end(body);
  });
}

function answerOf(incoming: IncomingMessage, status: number, signal: AbortSignal | undefined): HttpAnswer {
  // An error between two reads reaches the caller at the next one.
  incoming.on('error', () => {});
  async function* chunks(): AsyncGenerator<Uint8Array> {
    try {
      yield* incoming as AsyncIterable<Buffer>;
    } catch (error) {
      signal?.throwIfAborted();
      throw error;
    }
  }
  async function text(): Promise<string> {
    const decoder = new TextDecoder();
    let read = '';
    for await (const chunk of chunks()) read += decoder.decode(chunk, { stream: true });
    return read + decoder.decode();
  }
  return {
    status,
    isOk: status >= 200 && status < 300,
    header(name) {
      const value = incoming.headers[name];
      return Array.isArray(value) ? value.join(', ') : value;
    },
    chunks,
    text,
    json: async () => JSON.parse(await text()),
    cancel: () => void incoming.destroy(),
  };
}
