import { DispatchError, type DispatchOptions, type JsonRpcResponse } from '@modelcontextprotocol/ext-tasks/client';
import { defaults } from '../protocol/index.ts';
import type { JSONRPCMessage, Transport } from './library.ts';

type JsonValue = Extract<JsonRpcResponse, { kind: 'result' }>['result'];
type OnProgress = (params: Readonly<Record<string, unknown>>) => void;

/**
 * Sends requests beside those of the library on one connection, because the library refuses a task as a result. Ids and progress
 * tokens begin with `task-`, so they never collide with the numbers of the library.
 */
export class RawRequests {
  readonly #transport: Transport;
  readonly #waiting = new Map<unknown, (response: JsonRpcResponse) => void>();
  readonly #progress = new Map<unknown, OnProgress>();
  #count = 0;

  /** @param transport transport of a connected client */
  constructor(transport: Transport) {
    this.#transport = transport;
    const { onmessage } = transport;
    transport.onmessage = (message, extra) => {
      if (!this.#take(message)) onmessage?.(message, extra);
    };
  }

  /** Registers a progress listener for one call. @returns its token, and the function that removes the listener */
  hearProgress(onProgress: OnProgress): { readonly token: string; readonly end: () => void } {
    const token = this.#next();
    this.#progress.set(token, onProgress);
    return { token, end: () => this.#progress.delete(token) };
  }

  /** Sends a request. Tool calls have no time limit here; other requests have the time limit of task requests. @throws DispatchError */
  readonly dispatch = async (request: JsonValue, { signal }: DispatchOptions = {}): Promise<JsonRpcResponse> => {
    const message = { jsonrpc: '2.0', id: this.#next(), ...Object(request) } as JSONRPCMessage & { id: string };
    const isCall = 'method' in message && message.method === 'tools/call';
    const ending = [...(signal ? [signal] : []), ...(isCall ? [] : [AbortSignal.timeout(defaults.mcp.taskRequestMs)])];
    const requestSignal = AbortSignal.any(ending);
    const settled = Promise.withResolvers<JsonRpcResponse>();
    this.#waiting.set(message.id, settled.resolve);
    const withdraw = () => {
      settled.reject(new DispatchError('The request was cancelled.', false, { cause: requestSignal.reason }));
      if (!this.#transport.hasPerRequestStream) this.#cancel(message.id);
    };
    if (requestSignal.aborted) withdraw();
    requestSignal.addEventListener('abort', withdraw, { once: true });
    try {
      this.#transport
        .send(message, { requestSignal })
        .catch((cause: unknown) =>
          settled.reject(new DispatchError('The request could not be sent.', false, { cause })),
        );
      return await settled.promise;
    } finally {
      requestSignal.removeEventListener('abort', withdraw);
      this.#waiting.delete(message.id);
    }
  };

  #next(): string {
    this.#count += 1;
    return `task-${this.#count}`;
  }

  #cancel(requestId: string): void {
    const params = { requestId };
    // The end of the connection also cancels the request.
    this.#transport.send({ jsonrpc: '2.0', method: 'notifications/cancelled', params }).catch(() => {});
  }

  #take(message: JSONRPCMessage): boolean {
    if ('method' in message) {
      const { progressToken, ...params } = message.params ?? {};
      const onProgress = message.method === 'notifications/progress' && this.#progress.get(progressToken);
      if (!onProgress) return false;
      onProgress(params);
      return true;
    }
    const settle = this.#waiting.get(message.id);
    if (!settle) return false;
    settle(
      'error' in message
        ? { kind: 'error', error: message.error as Extract<JsonRpcResponse, { kind: 'error' }>['error'] }
        : { kind: 'result', result: message.result as JsonValue },
    );
    return true;
  }
}
