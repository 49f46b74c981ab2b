import * as v from 'valibot';
import type { ApprovalPolicy, InputPart, TurnMode } from '../protocol/index.ts';
import { type AppServerClient, Queue, type RequestOptions, type RpcNotification } from './app-server-client.ts';
import { AppServerConnectionError, TurnFailedError } from './errors.ts';

const Named = v.looseObject({ id: v.string() });
const ThreadResult = v.looseObject({ thread: Named });
const TurnResult = v.looseObject({ turn: v.looseObject({ ...Named.entries, status: v.optional(v.string()) }) });
const About = v.looseObject({
  threadId: v.optional(v.string()),
  turnId: v.optional(v.string()),
  turn: v.optional(Named),
  itemId: v.optional(v.string(), ''),
  delta: v.optional(v.string(), ''),
  error: v.optional(v.unknown()),
});
type About = v.InferOutput<typeof About>;

/** End of a turn; `tokenUsage` and the rest are the agent server's. */
export type FinishedTurn = Readonly<Record<string, unknown>> & { readonly id: string };

/** Events of a turn, in order. The last one is `completed` or `cancelled`. */
export type TurnEvent =
  | { readonly type: 'message' | 'reasoning'; readonly itemId: string; readonly text: string }
  /** Anything else of this turn: items, tools, usage. */
  | { readonly type: 'other'; readonly method: string; readonly params: Readonly<Record<string, unknown>> }
  | { readonly type: 'completed' | 'cancelled'; readonly turn: FinishedTurn };

/** A turn under way: iterate it. Leaving the iteration early does not end the turn; `interrupt` does. */
export interface RunningTurn extends AsyncIterable<TurnEvent> {
  readonly threadId: string;
  readonly turnId: string;
  interrupt(): Promise<void>;
}

export interface StartThreadOptions extends RequestOptions {
  readonly workspacePath: string;
  /** Name of the client in the protocol; default `cli`. */
  readonly channelName?: string;
  readonly userId?: string;
  readonly displayName?: string;
  readonly config?: Readonly<Record<string, unknown>>;
}

export interface StartTurnOptions extends RequestOptions {
  /** Policy of this turn only; default: the policy of the thread. */
  readonly approvalPolicy?: ApprovalPolicy;
  /** Mode of this turn only; default: the mode of the thread. */
  readonly mode?: TurnMode;
  /** No user can answer questions of the turn. */
  readonly unattended?: boolean;
}

/**
 * Begins a conversation; returns its id.
 *
 * @example const threadId = await startThread(server, { workspacePath });
 */
export async function startThread(server: AppServerClient, options: StartThreadOptions): Promise<string> {
  const { workspacePath, channelName = 'cli', userId = 'local', displayName, config, ...request } = options;
  const identity = { channelName, userId, channelContext: `${channelName}:${userId}`, workspacePath };
  const params = { identity, ...(displayName !== undefined && { displayName }), ...(config && { config }) };
  const answer = v.safeParse(ThreadResult, await server.request('thread/start', params, request));
  if (!answer.success) throw new AppServerConnectionError('The answer to thread/start has an unexpected form.');
  return answer.output.thread.id;
}

/**
 * Sends a prompt to a thread and follows the answer. @throws JsonRpcError when the thread is unknown or busy
 *
 * @example for await (const event of await startTurn(server, threadId, 'hello')) console.log(event.type);
 */
export async function startTurn(
  server: AppServerClient,
  threadId: string,
  prompt: string | readonly InputPart[],
  { approvalPolicy, mode, unattended, ...options }: StartTurnOptions = {},
): Promise<RunningTurn> {
  // Before the request, so that no notification is missed.
  const { queue, leave } = listenTo(server);
  try {
    const params = {
      threadId,
      input: typeof prompt === 'string' ? [{ type: 'text', text: prompt }] : prompt,
      ...(approvalPolicy !== undefined && { approvalPolicy }),
      ...(mode !== undefined && { mode }),
      ...(unattended !== undefined && { unattended }),
    };
    const answer = await server.request('turn/start', params, options);
    const parsed = v.safeParse(TurnResult, answer);
    if (!parsed.success) throw new AppServerConnectionError('The answer to turn/start has an unexpected form.');
    const turnId = parsed.output.turn.id;
    return {
      threadId,
      turnId,
      async interrupt() {
        await server.request('turn/interrupt', { threadId, turnId });
      },
      [Symbol.asyncIterator]: () => follow(queue, threadId, turnId, leave),
    };
  } catch (error) {
    leave();
    throw error;
  }
}

/** Listens to a turn from now on. Only the caller knows whether it runs. */
export function followTurn(server: AppServerClient, threadId: string, turnId: string) {
  const { queue, leave } = listenTo(server);
  const turn: RunningTurn = {
    threadId,
    turnId,
    async interrupt() {
      await server.request('turn/interrupt', { threadId, turnId });
    },
    [Symbol.asyncIterator]: () => follow(queue, threadId, turnId, leave),
  };
  return { turn, queue, leave };
}

function listenTo(server: AppServerClient) {
  const queue = new Queue<RpcNotification>();
  const leave = server.onNotification((notification) => queue.push(notification));
  void server.closed.then((error) => queue.end(error));
  return { queue, leave };
}

async function* follow(
  queue: Queue<RpcNotification>,
  threadId: string,
  turnId: string,
  off: () => void,
): AsyncGenerator<TurnEvent, void, undefined> {
  for await (const { method, params } of queue.read(off)) {
    const about = v.safeParse(About, params);
    if (!about.success || !concerns(about.output, threadId, turnId)) continue;
    const event = read(method, params, about.output, turnId);
    yield event;
    if (event.type === 'completed' || event.type === 'cancelled') return;
  }
}

/** Turn ids are unique in their thread only. */
const concerns = (about: About, threadId: string, turnId: string): boolean =>
  (about.threadId === undefined || about.threadId === threadId) && (about.turnId ?? about.turn?.id) === turnId;

function read(method: string, params: RpcNotification['params'], about: About, turnId: string): TurnEvent {
  switch (method) {
    case 'item/agentMessage/delta':
      return { type: 'message', itemId: about.itemId, text: about.delta };
    case 'item/reasoning/delta':
      return { type: 'reasoning', itemId: about.itemId, text: about.delta };
    case 'turn/completed':
      return { type: 'completed', turn: { ...params, ...about.turn, id: turnId } };
    case 'turn/cancelled':
      return { type: 'cancelled', turn: { ...params, ...about.turn, id: turnId } };
    case 'turn/failed':
      throw failureOf(about.error ?? about.turn?.['error']);
    default:
      return { type: 'other', method, params };
  }
}

const TurnError = v.looseObject({
  message: v.string(),
  code: v.optional(v.string()),
  retryAfterMs: v.optional(v.number()),
});

function failureOf(error: unknown): TurnFailedError {
  if (typeof error === 'string') return new TurnFailedError(error);
  const parsed = v.safeParse(TurnError, error);
  if (!parsed.success) return new TurnFailedError('The turn failed.');
  const { message, code, retryAfterMs } = parsed.output;
  return new TurnFailedError(message, {
    ...(code !== undefined && { code }),
    ...(retryAfterMs !== undefined && { retryAfterMs }),
  });
}
