import type { Agent, ClientRequest, IncomingMessage } from 'node:http';
import { defaults } from '../protocol/index.ts';

/** `import … from 'node:http'` would evaluate its `WebSocket` getter, and with it load 10 MiB of a client nobody uses here. */
const { Agent: KeepAliveAgent, request } = process.getBuiltinModule('node:http');

/** How to ask. */
export interface HttpProbeOptions {
  readonly timeoutMs?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
  /** Keeps a connection for the next question (`keepConnection`). Default: one for each, closed afterwards. */
  readonly connection?: Agent;
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

/** Takes the result, and whether the answer was read to its end. Only the first call counts. */
type Finish = (result: HttpProbeResult, isWhole?: boolean) => void;

/** One connection to be asked on again and again, for whoever probes a server for long. Its owner calls `destroy`. */
export function keepConnection(): Agent {
  return new KeepAliveAgent({ keepAlive: true, maxSockets: 1 });
}

/**
 * Asks a local HTTP server whether it is there: one GET, on a connection that is closed afterwards unless one was given.
 * (`fetch` would keep the socket, and its process, for seconds.) Always answers by the deadline, never rejects.
 */
export function probeHttp(url: string, options: HttpProbeOptions = {}): Promise<HttpProbeResult> {
  const { timeoutMs = defaults.supervise.probeTimeoutMs, headers = {}, signal, bodyBytes = 0, connection } = options;
  if (signal?.aborted) return Promise.resolve({ ok: false, error: 'aborted' });
  return new Promise((resolve) => {
    const finish: Finish = (result, isWhole = false) => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', abort);
      resolve(result);
      // A connection whose answer was read to its end can be kept; any other is of no use any more.
      if (!(connection && isWhole)) outgoing?.destroy();
    };
    const abort = () => finish({ ok: false, error: 'aborted' });
    const timer = setTimeout(() => finish({ ok: false, error: `no answer within ${timeoutMs} ms` }), timeoutMs);
    signal?.addEventListener('abort', abort, { once: true });
    let outgoing: ClientRequest | undefined;
    const ask = (agent: Agent | false) => {
      outgoing = send(url, headers, agent, finish);
      outgoing?.on('error', (error: NodeJS.ErrnoException) => {
        // The server closed the kept connection just now, which says nothing about its health: a new one tells.
        if (outgoing?.reusedSocket && error.code === 'ECONNRESET') return ask(false);
        finish({ ok: false, error: error.code ?? error.message });
      });
      outgoing?.on('response', (response) => receive(response, bodyBytes, finish));
      outgoing?.end();
    };
    ask(connection ?? false);
  });
}

/** `node:http` throws for a URL, a header name or a protocol it does not take. */
function send(url: string, headers: Readonly<Record<string, string>>, agent: Agent | false, finish: Finish) {
  try {
    return request(url, { headers, agent });
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
  const done = (isWhole: boolean) =>
    finish({ ...result, body: Buffer.concat(chunks).toString('utf8', 0, bodyBytes) }, isWhole);
  response.on('data', (chunk: Buffer) => {
    chunks.push(chunk);
    length += chunk.length;
    if (length > bodyBytes) done(false);
  });
  response.on('end', () => done(true));
  response.on('error', (error: NodeJS.ErrnoException) => finish({ ok: false, status, error: error.code ?? 'cut off' }));
}
