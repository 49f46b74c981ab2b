/**
 * Requests to servers of this machine, for all our programs. `fetch` costs a process 40 ms of processor time at its first use, which is
 * most of a command.
 */
import type { Agent, IncomingMessage } from 'node:http';

/** `import … from 'node:http'` would evaluate its `WebSocket` getter, which loads the same modules as `fetch`. */
const http = process.getBuiltinModule('node:http');

export interface HttpQuestion {
  readonly method?: string | undefined;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  readonly body?: string | undefined;
  readonly signal?: AbortSignal | undefined;
  /** Unix socket to connect to, in place of the host and port of the address. The `Host` header still names them. */
  readonly socketPath?: string | undefined;
  /** Milliseconds for the whole answer. */
  readonly deadlineMs?: number | undefined;
  /** Longest silence of the server, in milliseconds. */
  readonly silenceMs?: number | undefined;
  /**
   * Connection of this and further requests; false: one that is closed afterwards. Absent: an idle connection of this process is used
   * again.
   */
  readonly connection?: LocalConnection | false | undefined;
  /** Returns a redirect as an answer. Default: it is an error. */
  readonly takesRedirect?: boolean;
}

/** An answer with an unread body. One of its functions reads it, once. Each rejects with the reason of the signal. */
export interface HttpAnswer {
  readonly status: number;
  readonly isOk: boolean;
  /** Value of a header; undefined without it. */
  header(name: string): string | undefined;
  /** Chunks of the body as they arrive. Leaving the loop closes the connection. */
  chunks(): AsyncIterable<Uint8Array>;
  /** @param maxBytes beginning of the body to read; the rest is dropped */
  text(maxBytes?: number): Promise<string>;
  json(): Promise<unknown>;
  /** Drops the rest of the body. */
  cancel(): void;
}

/** One connection for requests to one server, one after the other. Its owner calls `destroy`. */
export interface LocalConnection {
  destroy(): void;
}

export const keepConnection = (): LocalConnection => new http.Agent({ keepAlive: true, maxSockets: 1 });

const redirects: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);

/** Closes idle connections before the server does: a request on a connection that the server is closing may be lost. */
const idleMs = 4_000;
let kept: Agent | undefined;

class NoAnswerError extends Error {
  constructor(deadlineMs: number) {
    super(`no answer within ${deadlineMs} ms`);
  }
}

/** Aborts with the reason of `signal`, at the deadline, and by `stop`. */
class Ending {
  readonly #controller = new AbortController();
  readonly #outer: AbortSignal | undefined;
  readonly #timer: NodeJS.Timeout | undefined;
  readonly #onAbort = () => this.stop(this.#outer?.reason);

  constructor({ signal, deadlineMs: ms }: HttpQuestion) {
    signal?.throwIfAborted();
    this.#outer = signal;
    signal?.addEventListener('abort', this.#onAbort, { once: true });
    if (ms !== undefined) this.#timer = setTimeout(() => this.stop(new NoAnswerError(ms)), ms);
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  stop(reason: unknown): void {
    this.#controller.abort(reason);
  }

  /** Cause of an error of the connection. */
  causeOf(error: unknown): unknown {
    return this.signal.aborted ? this.signal.reason : error;
  }

  /** Must be called when the exchange is over. */
  release(): void {
    clearTimeout(this.#timer);
    this.#outer?.removeEventListener('abort', this.#onAbort);
  }
}

/**
 * Sends one request of `http:` and resolves with the head of its answer. An idle connection holds no process.
 *
 * @throws the error of the connection, one for a redirect, for the deadline or for silence, or the reason of the signal
 */
export function askLocal(url: URL | string, question: HttpQuestion = {}): Promise<HttpAnswer> {
  const { method = 'GET', headers, body, socketPath, silenceMs, connection, takesRedirect = false } = question;
  kept ??= new http.Agent({ keepAlive: true, timeout: idleMs });
  const agent = connection === false ? false : ((connection as Agent | undefined) ?? kept);
  return new Promise((resolve, reject) => {
    const ending = new Ending(question);
    const fail = (error: unknown) => {
      ending.release();
      reject(ending.causeOf(error));
    };
    try {
      const length = body === undefined ? {} : { 'content-length': String(Buffer.byteLength(body)) };
      const { signal } = ending;
      const outgoing = http.request(url, {
        ...{ method, agent, signal, headers: { accept: '*/*', ...headers, ...length } },
        ...(socketPath !== undefined && { socketPath }),
      });
      if (silenceMs !== undefined) {
        outgoing.setTimeout(silenceMs, () => ending.stop(new Error('the server is silent')));
      }
      outgoing.on('error', fail);
      // Node ends a request without an error when the server switches protocols.
      outgoing.once('upgrade', (_, socket) => {
        socket.destroy();
        fail(new Error('the server switched to another protocol'));
      });
      outgoing.once('response', (incoming) => {
        const { statusCode: status = 0 } = incoming;
        incoming.once('close', () => ending.release());
        if (takesRedirect || !redirects.has(status)) return resolve(answerOf(incoming, status, ending));
        incoming.destroy();
        reject(new Error('unexpected redirect'));
      });
      outgoing.end(body);
    } catch (error) {
      fail(error);
    }
  });
}

function answerOf(incoming: IncomingMessage, status: number, ending: Ending): HttpAnswer {
  // An error between two reads reaches the caller at the next one.
  incoming.on('error', () => {});
  async function* chunks(): AsyncGenerator<Uint8Array> {
    try {
      yield* incoming as AsyncIterable<Buffer>;
    } catch (error) {
      throw ending.causeOf(error);
    }
  }
  async function text(maxBytes = Number.POSITIVE_INFINITY): Promise<string> {
    const decoder = new TextDecoder();
    let read = '';
    let left = maxBytes;
    for await (const chunk of chunks()) {
      read += decoder.decode(chunk.subarray(0, left), { stream: true });
      left -= chunk.byteLength;
      if (left < 0) break;
    }
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

export interface HttpProbeOptions {
  readonly timeoutMs: number;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  readonly signal?: AbortSignal | undefined;
  /** Default: a connection that is closed afterwards. */
  readonly connection?: LocalConnection | undefined;
  /** Longest beginning of the body to read. Default: the status is enough. */
  readonly bodyBytes?: number | undefined;
}

/** `ok`: an answer with a 2xx status came in time. `error` gives the reason in words. */
export interface HttpProbeResult {
  readonly ok: boolean;
  readonly status?: number;
  readonly body?: string;
  readonly error?: string;
}

/** Probes a local HTTP server by one GET. Always resolves by the deadline, never rejects. */
export async function probeHttp(url: string, options: HttpProbeOptions): Promise<HttpProbeResult> {
  const { timeoutMs, headers, signal, connection = false, bodyBytes = 0 } = options;
  const deadlineAt = performance.now() + timeoutMs;
  const ask = async () => {
    const deadlineMs = Math.max(0, deadlineAt - performance.now());
    const answer = await askLocal(url, { headers, signal, connection, deadlineMs, takesRedirect: true });
    return read(answer, bodyBytes);
  };
  const failed = (error: unknown): HttpProbeResult => {
    if (signal?.aborted) return { ok: false, error: 'aborted' };
    // The second request of a probe has only the rest of its time.
    if (error instanceof NoAnswerError) return { ok: false, error: new NoAnswerError(timeoutMs).message };
    const { code, message } = error as NodeJS.ErrnoException;
    return { ok: false, error: code ?? message };
  };
  return ask()
    .catch((error: NodeJS.ErrnoException) => {
      // The server may just have closed the idle connection: a new one decides.
      if (connection === false || !lost.has(error.code ?? '')) throw error;
      connection.destroy();
      return ask();
    })
    .catch(failed);
}

const lost: ReadonlySet<string> = new Set(['ECONNRESET', 'EPIPE']);

async function read(answer: HttpAnswer, bodyBytes: number): Promise<HttpProbeResult> {
  const { status, isOk: ok } = answer;
  const result = ok ? { ok, status } : { ok, status, error: `HTTP ${status}` };
  if (bodyBytes > 0) return { ...result, body: await answer.text(bodyBytes) };
  answer.cancel();
  return result;
}
