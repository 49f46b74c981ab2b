import { Agent, type IncomingMessage, request } from 'node:http';
import { empty, pipe, type Reply, type RequestContext } from '../../http/index.ts';
import { messageOf } from '../../lib/index.ts';
import { hubError } from '../errors.ts';
import { inertType, innerHeaders, outerHeaders } from './headers.ts';
import type { Target } from './target.ts';

/** Below the 8 seconds after which a uWebSockets.js server closes an idle connection. */
const idleMs = 4_000;

export interface Forwarder {
  /**
   * Asks the Dashboard of a workspace for `path` and passes the answer on as it comes. The end of the client ends the inner
   * request, and so does the deadline of the route.
   *
   * @throws HttpError 502 `badGateway` when the agent server breaks off or answers with what does not pass
   */
  forward(context: RequestContext<never>, target: Target, path: string): Promise<Reply>;
  close(): void;
}

export function createForwarder(): Forwarder {
  const agent = new Agent({ keepAlive: true, timeout: idleMs });
  return {
    async forward(context, target, path) {
      const body = context.method === 'GET' ? undefined : await context.bytes();
      const answer = await ask(context, { agent, target, path, body }).catch((error: unknown) => {
        target.doubt();
        context.signal.throwIfAborted();
        throw hubError('badGateway', `The agent server did not answer: ${messageOf(error)}`);
      });
      return replyOf(answer, target);
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
  const outgoing = request(new URL(target.origin), {
    agent,
    method: context.method,
    path,
    signal: context.signal,
    headers: {
      ...innerHeaders(context, target.token),
      ...(body && { 'content-length': body.byteLength }),
    },
  });
  const answer = new Promise<IncomingMessage>((resolve, reject) => {
    outgoing.once('response', resolve);
    outgoing.on('error', reject);
  });
  outgoing.end(body);
  return { answer, isReused: () => outgoing.reusedSocket };
}

function replyOf(answer: IncomingMessage, target: Target): Reply {
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
  return pipe(status, type, answer, [...headers, ...more]);
}
