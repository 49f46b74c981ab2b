import { setTimeout as sleep } from 'node:timers/promises';
import * as v from 'valibot';
import { AppServerClient, JsonRpcError, type RequestOptions, type RpcNotification } from '../../client/index.ts';
import { DynamicToolCall, type DynamicToolResult, version } from '../../protocol/index.ts';
import { ReviewAgentError } from './errors.ts';

/** Identity of the backend as a client of Hubs and agent servers. */
export const backendClient = { name: 'oratorio-backend', version } as const;

/** Callbacks of a participant in one of our threads. */
export interface Participant {
  readonly onNotification: (notification: RpcNotification) => void;
  readonly onTool: (call: DynamicToolCall) => Promise<DynamicToolResult>;
}

/** One connection to an agent server, for all its reviews. */
export class AgentConnection {
  /** Resolves with the reason when the connection ends. */
  readonly closed: Promise<Error>;
  readonly dashboardUrl: string | undefined;
  readonly #client: AppServerClient;
  readonly #participants: Map<string, Participant>;
  readonly #requestMs: number;
  readonly #whenLost = new Set<(error: Error) => void>();

  private constructor(client: AppServerClient, participants: Map<string, Participant>, requestMs: number) {
    this.#client = client;
    this.#requestMs = requestMs;
    this.#participants = participants;
    this.closed = client.closed;
    void client.closed.then((error) => {
      for (const listener of [...this.#whenLost]) listener(error);
    });
    const { dashboardUrl } = client.server as { readonly dashboardUrl?: unknown };
    this.dashboardUrl = typeof dashboardUrl === 'string' ? dashboardUrl : undefined;
    client.onNotification((notification) => {
      const { threadId } = notification.params;
      if (typeof threadId === 'string') participants.get(threadId)?.onNotification(notification);
    });
  }

  /**
   * @param connectMs time for opening
   * @param requestMs time for every later request
   * @throws AppServerConnectionError, JsonRpcError
   */
  static async open(url: string, connectMs: number, requestMs: number): Promise<AgentConnection> {
    const participants = new Map<string, Participant>();
    const client = await AppServerClient.connect(url, {
      clientInfo: { ...backendClient, title: 'Oratorio review backend' },
      onRequest: (method, params) => answer(participants, method, params),
      timeoutMs: connectMs,
    });
    return new AgentConnection(client, participants, requestMs);
  }

  /** @throws JsonRpcError, AppServerConnectionError */
  request(method: string, params: Readonly<Record<string, unknown>>, options?: RequestOptions): Promise<unknown> {
    return this.#client.request(method, params, { timeoutMs: this.#requestMs, ...options });
  }

  /** Delivers the notifications and tool calls of the thread to `participant`. Returns a function that ends this. */
  join(threadId: string, participant: Participant): () => void {
    this.#participants.set(threadId, participant);
    return () => this.#participants.delete(threadId);
  }

  /**
   * Rejects when the connection ends; `stop` ends the wait. A connection outlives many reviews: a handler on `closed`
   * itself would stay in memory as long as the connection.
   */
  lost(): { readonly promise: Promise<never>; readonly stop: () => void } {
    const { promise, reject } = Promise.withResolvers<never>();
    promise.catch(() => undefined);
    this.#whenLost.add(reject);
    return { promise, stop: () => this.#whenLost.delete(reject) };
  }

  /** Subscribes to every notification of the connection. Returns a function that ends the subscription. */
  listen(listener: (notification: RpcNotification) => void): () => void {
    return this.#client.onNotification(listener);
  }

  close(): void {
    this.#client.close();
  }
}

/** Answers requests of the server: a review never grants a permission. */
async function answer(
  participants: ReadonlyMap<string, Participant>,
  method: string,
  params: Readonly<Record<string, unknown>>,
): Promise<unknown> {
  if (method === 'item/approval/request') return { decision: 'decline', unattended: true };
  if (method !== 'item/tool/call') throw new Error(`${method} is not answered by the review backend.`);
  const call = v.parse(DynamicToolCall, params);
  const participant = participants.get(call.threadId);
  if (participant) return participant.onTool(call);
  return { success: false, errorCode: 'reviewOver', errorMessage: 'This review is over. End your answer.' };
}

/** Pause between two attempts, in milliseconds. */
const pauseMs = 250;

/** Repeats `attempt` until the agent server answers. @throws a refusal; the last error when `signal` aborts */
export async function untilReached<T>(attempt: () => Promise<T>, signal: AbortSignal): Promise<T> {
  for (;;) {
    try {
      return await attempt();
    } catch (error) {
      const isFinal = error instanceof JsonRpcError || (error instanceof ReviewAgentError && !error.isRetryable);
      if (isFinal || signal.aborted) throw error;
      await sleep(pauseMs, undefined, { signal });
    }
  }
}
