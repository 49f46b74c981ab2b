import type { ClientRequest, IncomingMessage } from 'node:http';
import { defaults } from '../protocol/index.ts';
import { monotonicMs } from './clock.ts';
import { KeptConnection } from './kept-connection.ts';

/** `import … from 'node:http'` would evaluate its `WebSocket` getter, and with it load 10 MiB of a client that is not used here. */
const { request } = process.getBuiltinModule('node:http');

/** Settings of a probe. */
export interface HttpProbeOptions {
  readonly timeoutMs?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
  /** A connection for this and later probes (`keepConnection`), for probes without headers. Default: one for each, closed afterwards. */
  readonly connection?: KeptConnection;
  /** Read the answer's body too, up to so many bytes: to see who answers. Default: the status is enough. */
  readonly bodyBytes?: number;
}

/** `ok`: an answer with a 2xx status came in time. `error` says in words why not. */
export interface HttpProbeResult {
  readonly ok: boolean;
  readonly status?: number;
  readonly body?: string;
  readonly error?: string;
}

/** Takes the result. Only the first call counts. */
type Finish = (result: HttpProbeResult) => void;

/** One connection for many probes of one server. Its owner calls `destroy`. */
export const keepConnection = (): KeptConnection => new KeptConnection();

/**
 * Probes a local HTTP server: one GET, on a connection that is closed afterwards unless one was given. (`fetch` would keep
 * the socket, and its process, for seconds.) Always resolves by the deadline, never rejects.
 */
export async function probeHttp(url: string, options: HttpProbeOptions = {}): Promise<HttpProbeResult> {
  const { timeoutMs = defaults.supervise.probeTimeoutMs, connection, headers, signal, bodyBytes = 0 } = options;
  if (!connection || headers) return probeOnce(url, options);
  const began = monotonicMs();
  const ending = new AbortController();
  const end = () => ending.abort();
  const timer = setTimeout(end, timeoutMs);
  signal?.addEventListener('abort', end, { once: true });
  if (signal?.aborted) end();
  const answer = await connection.ask(url, bodyBytes, ending.signal);
  clearTimeout(timer);
  signal?.removeEventListener('abort', end);
  if (answer) return { ok: true, ...answer };
  if (ending.signal.aborted && !signal?.aborted) return { ok: false, error: lateness(timeoutMs) };
  // The server may just have closed the kept connection, or answers in another way: a new one decides.
  return probeOnce(url, options, timeoutMs - (monotonicMs() - began));
}

const lateness = (timeoutMs: number): string => `no answer within ${timeoutMs} ms`;

/** @param leftMs rest of the deadline */
function probeOnce(url: string, options: HttpProbeOptions, leftMs = options.timeoutMs): Promise<HttpProbeResult> {
  const { timeoutMs = defaults.supervise.probeTimeoutMs, headers = {}, signal, bodyBytes = 0 } = options;
  if (signal?.aborted) return Promise.resolve({ ok: false, error: 'aborted' });
  return new Promise((resolve) => {
    const finish: Finish = (result) => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', abort);
      resolve(result);
      outgoing?.destroy();
    };
    const abort = () => finish({ ok: false, error: 'aborted' });
    const timer = setTimeout(() => finish({ ok: false, error: lateness(timeoutMs) }), leftMs ?? timeoutMs);
    signal?.addEventListener('abort', abort, { once: true });
    const outgoing: ClientRequest | undefined = send(url, headers, finish);
    outgoing?.on('error', (error: NodeJS.ErrnoException) => finish({ ok: false, error: error.code ?? error.message }));
    outgoing?.on('response', (response) => receive(response, bodyBytes, finish));
    outgoing?.end();
  });
}

/** `node:http` throws for a URL, a header name or a protocol it does not take. */
function send(url: string, headers: Readonly<Record<string, string>>, finish: Finish) {
  try {
    return request(url, { headers, agent: false });
  } catch (error) {
    // The message could quote a header, which may be a token.
    queueMicrotask(() => finish({ ok: false, error: (error as NodeJS.ErrnoException).code ?? 'invalid request' }));
    return undefined;
  }
}

function receive(response: IncomingMessage, bodyBytes: number, finish: Finish): void {
  const status = response.statusCode ?? 0;
  const ok = status >= 200 && status < 300;
  const result = ok ? { ok, status } : { ok, status, error: `HTTP ${status}` };
  if (bodyBytes <= 0) {
    finish(result);
    return;
  }
  const chunks: Buffer[] = [];
  let length = 0;
  const done = () => finish({ ...result, body: Buffer.concat(chunks).toString('utf8', 0, bodyBytes) });
  response.on('data', (chunk: Buffer) => {
    chunks.push(chunk);
    length += chunk.length;
    if (length > bodyBytes) done();
  });
  response.on('end', done);
  response.on('error', (error: NodeJS.ErrnoException) => finish({ ok: false, status, error: error.code ?? 'cut off' }));
}
