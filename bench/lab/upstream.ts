/**
 * The upstream of a lab run: an OpenAI-compatible endpoint that answers as the scripted model, or hands requests on to a real
 * one. Counts requests and the bytes of their bodies, those of titles and summaries too.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import * as v from 'valibot';
import { usualWork } from './model.ts';
import type { Conversation, Task, Work } from './task.ts';
import { callsFor, OfferedTool } from './toolset.ts';

/** A real endpoint. */
export interface Forward {
  /** Base URL, as `…/v1`. */
  readonly endPoint: string;
  readonly apiKey: string;
  readonly model: string;
}

export interface Counts {
  requests: number;
  bytes: number;
  /** Why the model could not work with this harness, if it could not. */
  trouble?: string;
}

const Content = v.union([
  v.pipe(v.string()),
  v.pipe(
    v.array(v.looseObject({ text: v.optional(v.string(), '') })),
    v.transform((parts) => parts.map(({ text }) => text).join('\n')),
  ),
  v.pipe(
    v.nullish(v.string()),
    v.transform(() => ''),
  ),
]);
const Request = v.object({
  model: v.string(),
  stream: v.optional(v.boolean(), false),
  messages: v.array(
    v.looseObject({ role: v.string(), content: v.optional(Content, ''), tool_call_id: v.optional(v.string()) }),
  ),
  tools: v.optional(v.array(OfferedTool), []),
});
type Request = v.InferOutput<typeof Request>;

interface Answer {
  readonly text: string;
  readonly calls: readonly { id: string; name: string; arguments: string }[];
}

/** No task needs nearly as many. */
const maxRequests = 60;

/** One conversation of the scripted model with a harness. */
class Script implements Conversation {
  readonly #workspace: string;
  readonly #work: Work;
  #shown = '';
  #answer: Answer = { text: '', calls: [] };
  /** Ids of calls, by move. */
  #pending: readonly (readonly string[])[] = [];
  #isStarted = false;
  #ids = 0;

  constructor(task: Task, workspace: string) {
    this.#workspace = workspace;
    this.#work = (task.work ?? usualWork)(this, task);
  }

  saw(pattern: RegExp): boolean {
    return pattern.test(this.#shown);
  }

  last(pattern: RegExp): string | undefined {
    return [...this.#shown.matchAll(new RegExp(pattern, 'g'))].at(-1)?.[1];
  }

  #newId(): string {
    this.#ids += 1;
    return `call_${this.#ids}`;
  }

  answer({ messages, tools }: Request): Answer {
    const results = new Map(messages.map((message) => [message.tool_call_id, message.content]));
    const isComplete = this.#pending.flat().every((id) => results.has(id));
    // Asked again, or asked for more than the task: the answer stays the same.
    if (this.#isStarted && (this.#pending.length === 0 || !isComplete)) return this.#answer;
    this.#shown = messages.map(({ content }) => content).join('\n');
    const answers = this.#pending.map((ids) => ids.map((id) => results.get(id)).join('\n'));
    const step = this.#isStarted ? this.#work.next(answers) : this.#work.next([]);
    this.#isStarted = true;
    if (step.done) {
      this.#pending = [];
      this.#answer = { text: step.value, calls: [] };
      return this.#answer;
    }
    const byMove = step.value.map((move) =>
      callsFor(
        move,
        tools.map((tool) => tool.function),
        this.#workspace,
      ).map((call) => ({
        ...call,
        id: this.#newId(),
        arguments: JSON.stringify(call.arguments),
      })),
    );
    this.#pending = byMove.map((calls) => calls.map(({ id }) => id));
    this.#answer = { text: '', calls: byMove.flat() };
    return this.#answer;
  }
}

function messageOf({ text, calls }: Answer): Record<string, unknown> {
  const toolCalls = calls.map(({ id, name, arguments: args }) => ({
    id,
    type: 'function',
    function: { name, arguments: args },
  }));
  return { role: 'assistant', content: text, ...(calls.length > 0 && { tool_calls: toolCalls }) };
}

function send(response: ServerResponse, request: Request, answer: Answer, bytes: number): void {
  const head = { id: 'chatcmpl-lab', created: 1_790_000_000, model: request.model };
  const finish = answer.calls.length > 0 ? 'tool_calls' : 'stop';
  const usage = { prompt_tokens: Math.ceil(bytes / 4), completion_tokens: 50, total_tokens: Math.ceil(bytes / 4) + 50 };
  if (!request.stream) {
    const choices = [{ index: 0, message: messageOf(answer), finish_reason: finish }];
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify({ ...head, object: 'chat.completion', choices, usage }));
    return;
  }
  const { tool_calls: calls, ...message } = messageOf(answer) as { tool_calls?: object[] };
  const delta = { ...message, ...(calls && { tool_calls: calls.map((call, index) => ({ index, ...call })) }) };
  const chunk = (choices: unknown[], more = {}) =>
    `data: ${JSON.stringify({ ...head, object: 'chat.completion.chunk', choices, ...more })}\n\n`;
  response.setHeader('content-type', 'text/event-stream');
  response.write(chunk([{ index: 0, delta, finish_reason: null }]));
  response.write(chunk([{ index: 0, delta: {}, finish_reason: finish }]));
  response.end(`${chunk([], { usage })}data: [DONE]\n\n`);
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  const parts: Buffer[] = [];
  for await (const part of request) parts.push(part as Buffer);
  return Buffer.concat(parts).toString();
}

async function forward(body: string, { endPoint, apiKey, model }: Forward, response: ServerResponse): Promise<void> {
  const answer = await fetch(`${endPoint}/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${apiKey}` },
    body: JSON.stringify({ ...(JSON.parse(body) as object), model }),
  });
  response.writeHead(answer.status, { 'content-type': answer.headers.get('content-type') ?? 'application/json' });
  for await (const part of answer.body ?? []) response.write(part);
  response.end();
}

export interface Upstream {
  readonly counts: Counts;
  /** Base URL of an OpenAI-compatible service. */
  readonly endPoint: string;
  close(): Promise<void>;
}

interface UpstreamOptions {
  readonly task: Task;
  readonly workspace: string;
  /** Asked in place of the scripted model. */
  readonly real?: Forward | undefined;
  /** Receives every request body, for a record of the conversation. */
  readonly onBody?: (body: string) => void;
}

/** Answers the requests of one harness for one task. */
export async function startUpstream({ task, workspace, real, onBody }: UpstreamOptions): Promise<Upstream> {
  const counts: Counts = { requests: 0, bytes: 0 };
  const script = new Script(task, workspace);

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await bodyOf(request);
    if (!request.url?.endsWith('/chat/completions')) {
      response.setHeader('content-type', 'application/json');
      response.end('{"object":"list","data":[]}');
      return;
    }
    counts.requests += 1;
    counts.bytes += Buffer.byteLength(body);
    onBody?.(body);
    if (counts.requests > maxRequests) throw new Error(`more than ${maxRequests} requests`);
    if (real !== undefined) return forward(body, real, response);
    const asked = v.parse(Request, JSON.parse(body));
    // A title or a summary, asked for without tools.
    const said = asked.tools.length === 0 ? { text: 'A failing test', calls: [] } : script.answer(asked);
    send(response, asked, said, Buffer.byteLength(body));
  }

  const server = createServer((request, response) => {
    answer(request, response).catch((error: unknown) => {
      counts.trouble ??= error instanceof Error ? error.message : String(error);
      if (!response.headersSent) response.statusCode = 400;
      response.end(JSON.stringify({ error: { message: counts.trouble, type: 'invalid_request_error' } }));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    counts,
    endPoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
