/**
 * A server of the Model Context Protocol on two streams: lines of JSON-RPC. Written here because the official server library brings
 * 16 MB; the official client checks it in the tests.
 */
import type { Readable, Writable } from 'node:stream';
import * as v from 'valibot';
import { LineSplitter, messageOf } from '../../lib/index.ts';
import { version } from '../../protocol/index.ts';

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

const Id = v.union([v.string(), v.number()]);
const Message = v.looseObject({
  jsonrpc: v.literal('2.0'),
  id: v.optional(Id),
  method: v.string(),
  params: v.optional(v.record(v.string(), v.unknown()), {}),
});
const Call = v.looseObject({ name: v.string(), arguments: v.optional(v.unknown(), {}) });

class RpcFault extends Error {
  readonly code: number;

  constructor(code: number, message: string) {
    super(message);
    this.code = code;
  }
}

/** Serves `tools` until the input ends or `signal` aborts; running calls are aborted then. */
export async function serveMcp(
  tools: readonly McpTool[],
  { input, output, signal }: { readonly input: Readable; readonly output: Writable; readonly signal: AbortSignal },
): Promise<void> {
  const running = new Map<string | number, AbortController>();
  const send = (message: object) => void output.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
  const fail = (id: string | number | null, code: number, message: string) => send({ id, error: { code, message } });

  function take(line: string): void {
    if (line.trim() === '') return;
    const parsed = v.safeParse(v.pipe(v.string(), v.parseJson(), Message), line);
    if (!parsed.success) {
      fail(null, -32_600, 'This is not a request.');
      return;
    }
    const { id, method, params } = parsed.output;
    if (method === 'notifications/cancelled') {
      const cancelled = v.safeParse(Id, params['requestId']);
      if (cancelled.success) running.get(cancelled.output)?.abort();
    }
    if (id === undefined) return;
    if (running.has(id) || running.size >= maxInFlight) {
      fail(id, -32_600, 'Too many requests at once.');
      return;
    }
    const stop = new AbortController();
    running.set(id, stop);
    answer(method, params, stop.signal)
      .then(
        (result) => !stop.signal.aborted && send({ id, result }),
        (error: unknown) => {
          if (!stop.signal.aborted) fail(id, error instanceof RpcFault ? error.code : -32_603, messageOf(error));
        },
      )
      .finally(() => running.delete(id));
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
        throw new RpcFault(-32_601, 'Method not found');
    }
  }

  async function call(params: Readonly<Record<string, unknown>>, aborted: AbortSignal) {
    const asked = v.safeParse(Call, params);
    const tool = asked.success ? tools.find(({ name }) => name === asked.output.name) : undefined;
    if (!asked.success || !tool) throw new RpcFault(-32_602, 'There is no such tool.');
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
    onLine: (line, isCut) => (isCut ? fail(null, -32_600, 'The message is too long.') : take(line.toString())),
  });
  const end = () => input.destroy();
  signal.addEventListener('abort', end, { once: true });
  try {
    for await (const chunk of input) lines.add(chunk as Buffer);
  } catch (error) {
    if (!signal.aborted) throw error;
  } finally {
    signal.removeEventListener('abort', end);
    for (const stop of running.values()) stop.abort();
  }
}
