import { Agent, type ClientRequestArgs, type IncomingMessage, request } from 'node:http';
import { bytes, empty, HttpError, pipe, type Reply, type RequestContext } from '../../http/index.ts';
import { messageOf } from '../../lib/index.ts';
import { hubError } from '../errors.ts';
import { inertType, innerHeaders, outerHeaders } from './headers.ts';
import type { Target } from './target.ts';

/** Below the 8 seconds after which a uWebSockets.js server closes an idle connection. */
const idleMs = 4_000;
/** An answer up to this size is gathered and leaves in one piece; a longer one is passed on as it comes. */
const gatheredBytes = 262_144;

export interface Forwarder {
  /**
   * Asks the Dashboard of a workspace for `path` and passes the answer on as it comes. The end of the client ends the inner
   * request, and so does the deadline of the route.
   *
   * @throws HttpError 502 `badGateway` when the agent server breaks off or its answer must not pass
   */
  forward(context: RequestContext<never>, target: Target, path: string): Promise<Reply>;
  close(): void;
}

interface Asked extends ClientRequestArgs {
  readonly confirm: Target['confirm'];
}

/** Connections to all agent servers. None is opened before the process at its other end has been confirmed. */
class ConfirmingAgent extends Agent {
  override createConnection(options: Asked, callback?: Parameters<Agent['createConnection']>[1]) {
    options.confirm();
    return super.createConnection(options, callback);
  }
}

export function createForwarder(): Forwarder {
  const agent = new ConfirmingAgent({ keepAlive: true, timeout: idleMs });
  return {
    async forward(context, target, path) {
      const body = context.method === 'GET' ? undefined : await context.bytes();
      const answer = await ask(context, { agent, target, path, body }).catch((error: unknown) => {
        target.doubt();
        context.signal.throwIfAborted();
        if (error instanceof HttpError) throw error;
        throw hubError('badGateway', `The agent server did not answer: ${messageOf(error)}`);
      });
      return replyOf(context, answer, target);
    },
    close: () => agent.destroy(),
  };
}

interface Question {
  readonly agent: Agent;
  readonly target: Target;
  readonly path: string;
  readonly body: Uint8Array | undefined;
}

/** A connection that the server closed while it was idle costs a second try, where that is harmless. */
async function ask(context: RequestContext<never>, question: Question): Promise<IncomingMessage> {
  for (;;) {
    const { answer, isReused } = send(context, question);
    try {
      return await answer;
    } catch (error) {
      const isStale = isReused() && (error as NodeJS.ErrnoException).code === 'ECONNRESET';
      if (!isStale || context.method !== 'GET' || context.signal.aborted) throw error;
    }
  }
}

function send(context: RequestContext<never>, { agent, target, path, body }: Question) {
  const { method, signal } = context;
  const { host, port, socketPath, confirm } = target;
  const headers = innerHeaders(context, target.token);
  if (body) headers['content-length'] = String(body.byteLength);
  const asked: Asked = { agent, host, port, socketPath, method, path, headers, confirm };
  const outgoing = request(asked);
  const answer = new Promise<IncomingMessage>((resolve, reject) => {
    outgoing.once('response', resolve);
    outgoing.on('error', reject);
    outgoing.once('upgrade', (_, socket) => {
      socket.destroy();
      reject(new Error('it switched to another protocol'));
    });
  });
  // The option `signal` does the same, and also watches the stream for its end, which costs as much as all of the above.
  const abort = () => outgoing.destroy(signal.reason instanceof Error ? signal.reason : undefined);
  signal.addEventListener('abort', abort, { once: true });
  if (signal.aborted) abort();
  else outgoing.end(body);
  return { answer, isReused: () => outgoing.reusedSocket };
}

async function replyOf(context: RequestContext<never>, answer: IncomingMessage, target: Target): Promise<Reply> {
  const status = answer.statusCode ?? 0;
  const headers = outerHeaders(answer.headers);
  if (status === 204 || status === 304) {
    answer.resume();
    return empty(status, headers);
  }
  // A 401 is about the token of the Hub, not about that of the page, which would be forgotten.
  if (status === 401 || status < 200 || (status >= 300 && status < 400)) {
    answer.destroy();
    if (status === 401) target.doubt();
    throw hubError('badGateway', `The agent server gave an answer that is not passed on (${status}).`);
  }
  const { type, headers: more } = inertType(answer.headers['content-type']);
  const length = Number(answer.headers['content-length'] ?? Number.NaN);
  if (!(length <= gatheredBytes)) return pipe(status, type, answer, [...headers, ...more]);
  const body = await gathered(answer, length).catch((error: unknown) => {
    context.signal.throwIfAborted();
    throw hubError('badGateway', `The agent server broke off its answer: ${messageOf(error)}`);
  });
  return bytes(status, type, body, [...headers, ...more]);
}

/** The whole body, whose length is known. @throws Error when it breaks off */
function gathered(answer: IncomingMessage, length: number): Promise<Uint8Array> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    answer.on('data', (chunk: Buffer) => chunks.push(chunk));
    answer.once('end', () => resolve(chunks.length === 1 && chunks[0] ? chunks[0] : Buffer.concat(chunks, length)));
    answer.once('error', reject);
    // Follows every end as well: an error that is not needed costs a stack trace.
    answer.once('close', () => {
      if (!answer.readableEnded) reject(new Error('the connection was closed'));
    });
  });
}
