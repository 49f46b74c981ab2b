/**
 * A server of the Model Context Protocol on two streams: lines of JSON-RPC. Written here because the official server library brings
 * 16 MB; the official client checks it in the tests.
 */
import type { Readable, Writable } from 'node:stream';
import { LineSplitter, messageOf } from '../../lib/index.ts';
import { version } from '../../protocol/index.ts';
import {
  type IncomingRequest,
  JsonRpcError,
  McpServer,
  type McpServerOptions,
  Peer,
  type Reply,
  rpcCodes,
} from '../../rpc/index.ts';

const maxLineBytes = 1_048_576;
const maxInFlight = 16;

const notARequest = { code: rpcCodes.invalidRequest, message: 'This is not a request.' };

/** Serves tools and tasks until the input ends or `signal` aborts; running calls are aborted then. */
export async function serveMcp(
  offer: Pick<McpServerOptions, 'tools' | 'tasks'>,
  { input, output, signal }: { readonly input: Readable; readonly output: Writable; readonly signal: AbortSignal },
): Promise<void> {
  const server = new McpServer({ ...offer, version });
  const peer = new Peer({
    send: (text) => void output.write(`${text}\n`),
    onRequest: take,
    onInvalid: ({ id }) => peer.refuse(id, notARequest),
    failureOf: (error) => ({ code: rpcCodes.internalError, message: messageOf(error) }),
    cancel: { method: 'notifications/cancelled' },
    isStrict: true,
  });

  async function take({ id, method, params, signal: stopped }: IncomingRequest): Promise<Reply> {
    if (peer.isAnswering(id) || peer.answering >= maxInFlight) {
      throw new JsonRpcError({ code: rpcCodes.invalidRequest, message: 'Too many requests at once.' });
    }
    return { result: await server.answer(method, params, stopped) };
  }

  const lines = new LineSplitter({
    maxBytes: maxLineBytes,
    longer: 'cut',
    onLine: (line, isCut) => {
      const text = line.toString();
      if (isCut) peer.refuse(null, { code: rpcCodes.invalidRequest, message: 'The message is too long.' });
      else if (text.trim() !== '') peer.receive(text);
    },
  });
  const end = () => input.destroy();
  signal.addEventListener('abort', end, { once: true });
  try {
    for await (const chunk of input) lines.add(chunk as Buffer);
  } catch (error) {
    if (!signal.aborted) throw error;
  } finally {
    signal.removeEventListener('abort', end);
    peer.close(new Error('The client has gone.'));
  }
}
