import { setTimeout as sleep } from 'node:timers/promises';
import * as v from 'valibot';
import type { ResponseStore } from '../agent/index.ts';
import { empty, json, type Reply, type RequestContext } from '../http/index.ts';
import { Limit } from '../lib/index.ts';
import { version } from '../protocol/index.ts';
import {
  JsonRpcError,
  McpServer,
  type McpTask,
  type McpTool,
  mcpErrorCodes,
  messageText,
  namedProtocol,
  olderProtocols,
  type RpcId,
  readMessage,
  rpcCodes,
} from '../rpc/index.ts';
import { eventReply, readJson } from './answers.ts';
import type { ChatTurn } from './chat-turn.ts';
import { chatError } from './errors.ts';
import type { ResponseState } from './responses/log.ts';
import { parseRequest } from './responses/request.ts';
import type { Responses } from './responses/responses.ts';
import type { Watcher } from './watcher.ts';

const maxWaitSeconds = 600;
const text = v.pipe(v.string('a text'), v.nonEmpty('a text'));
const seconds = v.pipe(v.number('a number'), v.minValue(0, 'at least 0'), v.maxValue(maxWaitSeconds, 'at most 600'));
const Prompt = v.strictObject({ text, threadId: v.optional(text), waitSeconds: v.optional(seconds) });
const Read = v.strictObject({ threadId: text, waitSeconds: v.optional(seconds, 0) });

const threadId = { type: 'string', description: 'Id of a conversation that prompt_agent started.' };
const waitSeconds = { type: 'number', minimum: 0, maximum: maxWaitSeconds };
const promptSchema = {
  type: 'object',
  properties: { text: { type: 'string', description: 'The task.' }, threadId, waitSeconds },
  required: ['text'],
  additionalProperties: false,
};
const readSchema = { ...promptSchema, properties: { threadId, waitSeconds }, required: ['threadId'] };

/** Name of a request that cannot be repeated. */
const unnamed = { name: undefined, hasKey: false, hasCount: false, isRetry: false, fingerprint: '' };

export interface McpEndpointOptions {
  readonly responses: Responses;
  readonly store: ResponseStore;
  /** Time in milliseconds after which an answer becomes a stream. */
  readonly heartbeatMs: number;
}

/**
 * Serves the agent of the workspace as an MCP server over Streamable HTTP, without sessions. Each turn belongs to a stored response,
 * which is also the task. A task has the limits of the chat API, and survives the agent server.
 */
export class McpEndpoint {
  readonly #options: McpEndpointOptions;
  readonly #server: McpServer;
  /** Prompts that begin, by conversation. */
  readonly #beginnings = new Limit();

  constructor(options: McpEndpointOptions) {
    this.#options = options;
    this.#server = new McpServer({
      version,
      tools: this.#tools(),
      tasks: {
        get: (id) => this.#task(id),
        ended: (id, signal) => this.#ended(id, signal),
        cancel: async (id) => void (await options.responses.stop(id)),
      },
    });
  }

  /** `POST /v1/mcp` */
  readonly post = async (context: RequestContext): Promise<Reply> => {
    await readJson(context);
    const message = readMessage(new TextDecoder().decode(await context.bytes()));
    if (message.kind === 'invalid') {
      return refusal(400, message.id, new JsonRpcError({ code: rpcCodes.invalidRequest, message: message.reason }));
    }
    // A server without sessions ignores notifications and responses.
    if (message.kind !== 'request') return empty(202);
    const { id, method, params } = message;
    const mismatch = mismatchOf(context, method, params);
    if (mismatch) return refusal(400, id, mismatch);
    const answered = this.#server.answer(method, params, context.signal).then(
      (result): Answered => ({ result }),
      (error: unknown): Answered => {
        if (error instanceof JsonRpcError) return { error };
        throw error;
      },
    );
    const first = await Promise.race([answered, sleep(this.#options.heartbeatMs, undefined, { ref: false })]);
    if (!first) return this.#streamed(context, id, params, answered);
    if ('error' in first) return refusal(statusOf(first.error, params), id, first.error);
    return json(200, { jsonrpc: '2.0', id, ...first });
  };

  /** Answers a slow request with a stream. Heartbeats report progress if the client requests it. */
  #streamed(context: RequestContext, id: RpcId, params: unknown, answered: Promise<Answered>): Reply {
    const token = progressTokenOf(params);
    let progress = 0;
    return eventReply((stream) => {
      const beat = () => {
        progress += 1;
        const method = 'notifications/progress';
        const note = messageText({ method, params: { progressToken: token, progress } });
        stream.write(token === undefined ? ':\n\n' : `data: ${note}\n\n`);
      };
      const timer = setInterval(beat, this.#options.heartbeatMs);
      context.signal.addEventListener('abort', () => clearInterval(timer), { once: true });
      beat();
      void answered
        .then(
          (last) =>
            stream.write(
              `data: ${messageText({ id, ...('error' in last ? { error: bodyOf(last.error) } : last) })}\n\n`,
            ),
          // An internal error: the client receives a stream without an answer.
          () => stream.cut(),
        )
        .finally(() => {
          clearInterval(timer);
          stream.end();
        });
    });
  }

  #tools(): readonly McpTool[] {
    return [
      {
        name: 'prompt_agent',
        description:
          'Gives the agent of this workspace a task, in a new or an existing conversation. Waits for the answer, at most waitSeconds if given. If the time is over, read the answer with read_conversation.',
        isReadOnly: false,
        inputSchema: promptSchema,
        run: (args, signal) => this.#prompt(args, signal),
        start: async (args) => {
          const { waitSeconds: _, ...prompt } = parse(Prompt, args);
          return this.#known((await this.#begin(prompt, true)).id);
        },
      },
      {
        name: 'read_conversation',
        description: 'Reads the last answer of a conversation. Waits for a running turn, at most waitSeconds.',
        isReadOnly: true,
        inputSchema: readSchema,
        run: async (args, signal) => {
          const { threadId, waitSeconds } = parse(Read, args);
          const id = this.#latest(threadId);
          await this.#endedWithin(id, waitSeconds, signal);
          return this.#known(id).output.value;
        },
      },
    ];
  }

  async #prompt(args: unknown, signal: AbortSignal): Promise<unknown> {
    const { waitSeconds, ...prompt } = parse(Prompt, args);
    const turn = await this.#begin(prompt, waitSeconds !== undefined);
    if (waitSeconds === undefined) await watched(turn, signal);
    else await this.#endedWithin(turn.id, waitSeconds, signal);
    const { output } = this.#known(turn.id);
    if (output.isError) throw new Error(JSON.stringify(output.value));
    return output.value;
  }

  /** @param background whether the turn survives its client. @throws HttpError */
  #begin(
    { text: input, threadId }: { readonly text: string; readonly threadId?: string | undefined },
    background: boolean,
  ) {
    const { responses } = this.#options;
    const begin = (previous?: string) =>
      responses.begin(parseRequest({ input, background, previous_response_id: previous }), unnamed);
    // At once, all prompts but one would continue a copy of the conversation.
    return threadId === undefined ? begin() : this.#beginnings.run(threadId, async () => begin(this.#latest(threadId)));
  }

  #latest(id: string): string {
    const latest = this.#options.store.latest(id);
    if (latest) return latest.id;
    throw chatError('responseNotFound', `This API has no conversation ${id.slice(0, 100)}.`);
  }

  async #ended(id: string, signal: AbortSignal): Promise<void> {
    const turn = this.#options.responses.runningTurn(id);
    if (turn) await Promise.race([turn.ended, aborted(signal)]);
  }

  async #endedWithin(id: string, waitSeconds: number, signal: AbortSignal): Promise<void> {
    await this.#ended(id, AbortSignal.any([signal, AbortSignal.timeout(waitSeconds * 1000)]));
  }

  #known(id: string): McpTask {
    const task = this.#task(id);
    if (!task) throw chatError('responseNotFound', 'The conversation was deleted.');
    return task;
  }

  #task(id: string): McpTask | undefined {
    const { store, responses } = this.#options;
    const stored = store.get(id);
    if (!stored) return undefined;
    const turn = responses.runningTurn(id);
    const state = responses.stateOf(id);
    const { created } = state.head;
    const status = taskStatuses[state.status];
    const isAsking = (turn?.approvals.size ?? 0) > 0;
    const statusMessage = state.error?.message ?? (isAsking ? 'The agent waits for an approval.' : undefined);
    return {
      ...{ taskId: id, status, createdAt: isoOf(created), lastUpdatedAt: isoOf(state.completed ?? created) },
      ...(statusMessage !== undefined && { statusMessage }),
      output: { value: shown(stored.threadId, state), isError: status === 'failed' || status === 'cancelled' },
    };
  }
}

type Answered = { readonly result: unknown } | { readonly error: JsonRpcError };

const taskStatuses = {
  in_progress: 'working',
  completed: 'completed',
  incomplete: 'completed',
  failed: 'failed',
  cancelled: 'cancelled',
} as const;

const isoOf = (epochSeconds: number): string => new Date(epochSeconds * 1000).toISOString();

function shown(threadId: string, { status, items, activities, error }: ResponseState): unknown {
  const messages = items.filter(({ kind, isDropped }) => kind === 'message' && !isDropped);
  return {
    ...{ threadId, status, answer: messages.map((item) => item.text).join('\n\n') },
    calls: activities.flatMap(({ event, tool }) => (event === 'tool.started' && tool !== undefined ? [tool] : [])),
    ...(error && { error: error.message }),
  };
}

const aborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });

/** Token for reports of progress. Another value than a text or a number is ignored: it may be too deep to write. */
function progressTokenOf(params: unknown): string | number | undefined {
  const token = (params as { _meta?: { progressToken?: unknown } } | undefined)?._meta?.progressToken;
  return typeof token === 'string' || typeof token === 'number' ? token : undefined;
}

/** Waits for the end of a turn on behalf of its client. When `signal` aborts, `Api.OnDisconnect` applies. */
async function watched(turn: ChatTurn, signal: AbortSignal): Promise<void> {
  const ignore = () => {};
  const watcher: Watcher = {
    ...{ isStream: false, onText: ignore, onReasoning: ignore, onCall: ignore, onActivity: ignore, onEnd: ignore },
  };
  if (!turn.outcome) turn.watch(watcher);
  await Promise.race([turn.ended, aborted(signal)]);
  turn.unwatch(watcher);
}

function parse<S extends v.GenericSchema>(schema: S, args: unknown): v.InferOutput<S> {
  const parsed = v.safeParse(schema, args);
  if (parsed.success) return parsed.output;
  const [issue] = parsed.issues;
  const isMember = issue.type === 'strict_object' && issue.path !== undefined;
  const words = isMember ? (issue.received === 'undefined' ? 'given' : 'left out') : issue.message;
  throw new Error(`${v.getDotPath(issue) ?? 'arguments'} must be ${words}.`);
}

/** Headers must match the body, because proxies route by them (2026-07-28, section *Standard request headers*). */
function mismatchOf(context: RequestContext, method: string, params: unknown): JsonRpcError | undefined {
  const inHeader = context.header('mcp-protocol-version');
  const inBody = namedProtocol(params);
  if (inBody === undefined) {
    if (inHeader === undefined || olderProtocols.includes(inHeader)) return undefined;
    return new JsonRpcError({ code: rpcCodes.invalidRequest, message: 'Unsupported protocol version' });
  }
  if (inHeader === inBody && context.header('mcp-method') === method) return undefined;
  return new JsonRpcError({
    code: mcpErrorCodes.headerMismatch,
    message: 'MCP-Protocol-Version and Mcp-Method must match the body.',
  });
}

/** In the newer protocol, an unknown method and an unsupported version have specific statuses. */
function statusOf({ code }: JsonRpcError, params: unknown): number {
  if (namedProtocol(params) === undefined) return 200;
  if (code === mcpErrorCodes.unsupportedVersion) return 400;
  return code === rpcCodes.methodNotFound ? 404 : 200;
}

const bodyOf = ({ code, message, data }: JsonRpcError) => ({ code, message, ...(data !== undefined && { data }) });

const refusal = (status: number, id: RpcId | null, error: JsonRpcError): Reply =>
  json(status, { jsonrpc: '2.0', id, error: bodyOf(error) });
