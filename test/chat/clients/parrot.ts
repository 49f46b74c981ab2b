/**
 * A model for tests of client libraries: the last message of the user is its script. It comes as a provider, for a
 * server in this process, and as an upstream of its own that speaks chat completions, for servers in other processes
 * (`EndPoint`).
 *
 *     say <words>        says them, word by word
 *     think <words>      thinks them, then says "thought"
 *     call <tool> <json> calls that tool; when the result is there it says "result: <result>"
 *     form               says {"answer":42}
 *     see                says the media type and the first bytes of each picture
 *     wait               says "waiting", then nothing until it is interrupted
 *     fail <status>      fails as an upstream that answers with that status
 */
import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { ModelError, type ModelErrorCode, type ModelProvider, type ModelRequest } from '../../../src/agent/index.ts';

interface Asked {
  readonly words: string;
  /** Addresses of the pictures in the last message of the user. */
  readonly pictures: readonly string[];
  /** Result of a tool, when that was the last message. */
  readonly result: string | undefined;
}

type Deed =
  | { readonly kind: 'say'; readonly pieces: readonly string[] }
  | { readonly kind: 'think'; readonly thought: string }
  | { readonly kind: 'call'; readonly name: string; readonly args: string }
  | { readonly kind: 'wait' }
  | { readonly kind: 'fail'; readonly status: number };

export const parrotModel = 'parrot';

function deedOf({ words, pictures, result }: Asked): Deed {
  if (result !== undefined) return { kind: 'say', pieces: ['result: ', result] };
  const [, verb = '', rest = ''] = /^(\w+) ?(.*)$/s.exec(words) ?? [];
  switch (verb) {
    case 'think':
      return { kind: 'think', thought: rest };
    case 'call': {
      const [name = '', ...args] = rest.split(' ');
      return { kind: 'call', name, args: args.join(' ') || '{}' };
    }
    case 'see':
      return { kind: 'say', pieces: pictures.map((url) => url.slice(0, 'data:image/png;base64,iVBORw0K'.length)) };
    case 'form':
      return { kind: 'say', pieces: ['{"answer"', ':42}'] };
    case 'wait':
      return { kind: 'wait' };
    case 'fail':
      return { kind: 'fail', status: Number(rest) };
    default:
      return { kind: 'say', pieces: (verb === 'say' ? rest : words).match(/\S+\s*/g) ?? [''] };
  }
}

const codes: Readonly<Record<number, ModelErrorCode>> = {
  401: 'upstreamUnauthorized',
  429: 'upstreamRateLimited',
  400: 'upstreamRejected',
};

function askedOf({ messages }: ModelRequest): Asked {
  const textsOf = (message: (typeof messages)[number] | undefined) =>
    message && 'content' in message ? message.content.flatMap((part) => (part.type === 'text' ? [part.text] : [])) : [];
  const last = messages.at(-1);
  if (last?.role === 'tool') return { words: '', pictures: [], result: textsOf(last).join('') };
  const { content } = messages.findLast((message) => message.role === 'user') ?? { content: [] };
  const pictures = content.flatMap((part) => (part.type === 'image' ? [part.url] : []));
  // Agents put a text of their own before the prompt.
  return { words: textsOf({ role: 'user', content }).at(-1) ?? '', pictures, result: undefined };
}

export function parrot(): ModelProvider & { readonly requests: ModelRequest[] } {
  const requests: ModelRequest[] = [];
  return {
    requests,
    name: 'scripted',
    model: parrotModel,
    async stream(request, emit, signal) {
      requests.push(request);
      const deed = deedOf(askedOf(request));
      const text = (words: string) => emit({ type: 'text', text: words });
      if (deed.kind === 'fail') throw new ModelError(codes[deed.status] ?? 'upstreamFailed', 'The parrot is unwell.');
      if (deed.kind === 'say') for (const piece of deed.pieces) text(piece);
      if (deed.kind === 'think') {
        emit({ type: 'thinking', text: deed.thought });
        text('thought');
      }
      if (deed.kind === 'call') {
        emit({ type: 'toolCall', call: { callId: `call_${requests.length}`, name: deed.name, arguments: deed.args } });
      }
      if (deed.kind === 'wait') {
        text('waiting');
        await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason), { once: true }));
      }
      emit({ type: 'usage', inputTokens: 3, outputTokens: 2 });
      emit({ type: 'finish', reason: deed.kind === 'call' ? 'toolCalls' : 'stop' });
    },
    listModels: async () => [{ id: parrotModel, ownedBy: 'test' }],
    close: () => undefined,
  };
}

interface WireMessage {
  readonly role: string;
  readonly content?: unknown;
}

function askedOnWire(messages: readonly WireMessage[]): Asked {
  const textOf = (content: unknown): string => {
    if (typeof content === 'string') return content;
    return Array.isArray(content) ? content.map((part: { text?: string }) => part.text ?? '').join('') : '';
  };
  const last = messages.at(-1);
  if (last?.role === 'tool') return { words: '', pictures: [], result: textOf(last.content) };
  const content = messages.findLast(({ role }) => role === 'user')?.content;
  const parts: readonly { image_url?: { url: string } }[] = Array.isArray(content) ? content : [];
  return {
    words: textOf(content),
    pictures: parts.flatMap(({ image_url }) => image_url?.url ?? []),
    result: undefined,
  };
}

/** Serves the model as an upstream. Resolves with its base URL; `close` when the test is over. */
export async function parrotUpstream(): Promise<{ readonly endPoint: string; readonly close: () => void }> {
  const server = createServer((req, res) => {
    if (req.url?.endsWith('/models')) {
      res.setHeader('content-type', 'application/json');
      res.end(
        JSON.stringify({ object: 'list', data: [{ id: parrotModel, object: 'model', created: 0, owned_by: 'test' }] }),
      );
      return;
    }
    let body = '';
    req.setEncoding('utf8').on('data', (chunk) => {
      body += chunk;
    });
    req.on('end', () => respond(res, JSON.parse(body) as { messages: WireMessage[] }));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const close = () => {
    server.close();
    server.closeAllConnections();
  };
  return { endPoint: `http://127.0.0.1:${port}/v1`, close };
}

function respond(res: ServerResponse, { messages }: { readonly messages: readonly WireMessage[] }): void {
  const deed = deedOf(askedOnWire(messages));
  if (deed.kind === 'fail') {
    res.writeHead(deed.status, { 'content-type': 'application/json' });
    res.end(JSON.stringify({ error: { message: 'The parrot is unwell.', type: 'x', param: null, code: null } }));
    return;
  }
  res.writeHead(200, { 'content-type': 'text/event-stream' });
  const frame = (choices: unknown[], more: object = {}) => {
    const chunk = { id: 'x', object: 'chat.completion.chunk', created: 0, model: parrotModel, choices, ...more };
    res.write(`data: ${JSON.stringify(chunk)}\n\n`);
  };
  const delta = (delta: object, finish_reason: string | null = null) => frame([{ index: 0, delta, finish_reason }]);
  delta({ role: 'assistant', content: '' });
  if (deed.kind === 'say') for (const content of deed.pieces) delta({ content });
  if (deed.kind === 'think') {
    delta({ reasoning_content: deed.thought });
    delta({ content: 'thought' });
  }
  if (deed.kind === 'call') {
    const half = Math.ceil(deed.args.length / 2);
    const call = {
      index: 0,
      id: 'call_1',
      type: 'function',
      function: { name: deed.name, arguments: deed.args.slice(0, half) },
    };
    delta({ tool_calls: [call] });
    delta({ tool_calls: [{ index: 0, function: { arguments: deed.args.slice(half) } }] });
  }
  if (deed.kind === 'wait') {
    delta({ content: 'waiting' });
    return;
  }
  delta({}, deed.kind === 'call' ? 'tool_calls' : 'stop');
  frame([], { usage: { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 } });
  res.end('data: [DONE]\n\n');
}
