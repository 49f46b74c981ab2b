/**
 * A server of the Model Context Protocol on two streams: lines of JSON-RPC. Written here because the official server library brings
 * 16 MB; the official client checks it in the tests.
 */
import type { Readable, Writable } from 'node:stream';
import * as v from 'valibot';
import { LineSplitter, messageOf } from '../../lib/index.ts';
import { version } from '../../protocol/index.ts';
import { type IncomingRequest, JsonRpcError, Peer, type Reply, rpcCodes } from '../../rpc/index.ts';

export interface McpTool {
  readonly name: string;
  readonly description: string;
  readonly isReadOnly: boolean;
  /** JSON Schema of an object. */
  readonly inputSchema: Readonly<Record<string, unknown>>;
  /** Returns the content of the result; an error becomes a result with `isError`. */
  readonly run: (args: unknown, signal: AbortSignal) => Promise<unknown>;
}

/** Newest first; the answer to a client that requests another version is the first. */
const protocolVersions = ['2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05'] as const;
const maxLineBytes = 1_048_576;
const maxInFlight = 16;

const notARequest = { code: rpcCodes.invalidRequest, message: 'This is not a request.' };
const Params = v.optional(v.record(v.string(), v.unknown()), {});
const Call = v.looseObject({ name: v.string(), arguments: v.optional(v.unknown(), {}) });

/** Serves `tools` until the input ends or `signal` aborts; running calls are aborted then. */
export async function serveMcp(
  tools: readonly McpTool[],
  { input, output, signal }: { readonly input: Readable; readonly output: Writable; readonly signal: AbortSignal },
): Promise<void> {
  const peer = new Peer({
    send: (text) => void output.write(`${text}\n`),
    onRequest: take,
    onInvalid: ({ id }) => peer.refuse(id, notARequest),
    failureOf: (error) => ({ code: rpcCodes.internalError, message: messageOf(error) }),
    cancel: { method: 'notifications/cancelled' },
    isStrict: true,
  });

  async function take({ id, method, params: given, signal: stopped }: IncomingRequest): Promise<Reply> {
    if (peer.isAnswering(id) || peer.answering >= maxInFlight) {
      throw new JsonRpcError({ code: rpcCodes.invalidRequest, message: 'Too many requests at once.' });
    }
    const params = v.safeParse(Params, given);
    if (!params.success) throw new JsonRpcError(notARequest);
    return { result: await answer(method, params.output, stopped) };
  }

  async function answer(method: string, params: Readonly<Record<string, unknown>>, aborted: AbortSignal) {
    switch (method) {
      case 'initialize': {
        const wanted = protocolVersions.find((each) => each === params['protocolVersion']);
        return {
          protocolVersion: wanted ?? protocolVersions[0],
          capabilities: { tools: {} },
          serverInfo: { name: 'oratorio', title: 'Oratorio', version },
        };
      }
      case 'ping':
        return {};
      case 'tools/list':
        return {
          tools: tools.map(({ name, description, inputSchema, isReadOnly }) => ({
            ...{ name, description, inputSchema },
            annotations: { readOnlyHint: isReadOnly, openWorldHint: false },
          })),
        };
      case 'tools/call':
        return call(params, aborted);
      default:
        throw new JsonRpcError({ code: rpcCodes.methodNotFound, message: 'Method not found' });
    }
  }

  async function call(params: Readonly<Record<string, unknown>>, aborted: AbortSignal) {
    const asked = v.safeParse(Call, params);
    const tool = asked.success ? tools.find(({ name }) => name === asked.output.name) : undefined;
    if (!asked.success || !tool) {
      throw new JsonRpcError({ code: rpcCodes.invalidParams, message: 'There is no such tool.' });
    }
    try {
      const value = await tool.run(asked.output.arguments, aborted);
      return { content: [{ type: 'text', text: JSON.stringify(value, null, 2) }] };
    } catch (error) {
      return { content: [{ type: 'text', text: messageOf(error) }], isError: true };
    }
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
