import * as v from 'valibot';
import { AgentError, type Runtime } from '../agent/index.ts';
import {
  type ApprovalRequest,
  type DynamicToolCall,
  type DynamicToolResult,
  defaults,
  type RpcResponse,
  type ServerRequestMethod,
  serverRequests,
} from '../protocol/index.ts';
import { requestFrame } from './frames.ts';

/** The client has gone, or will not answer. */
export class ClientGone extends Error {
  override readonly name = 'ClientGone';
}

type Settle = (response: RpcResponse | undefined) => void;

/**
 * Requests of the server to one client: approvals and calls of tools that the client brought. Ids are ours and never
 * reused; an answer to a request that has ended is dropped.
 */
export class Questions {
  readonly #send: (frame: string) => void;
  readonly #respond: Runtime['respond'];
  readonly #open = new Map<string, Settle>();
  readonly #approvals = new Map<string, string>();
  #number = 0;
  #isClosed = false;

  constructor(send: (frame: string) => void, respond: Runtime['respond']) {
    this.#send = send;
    this.#respond = respond;
  }

  /** Asks for an approval that belongs to the thread: this client may answer it, so may others. */
  askApproval(request: ApprovalRequest): void {
    if (this.#approvals.has(request.requestId) || this.#open.size >= defaults.jsonRpc.openQuestions) return;
    const id = this.#ask('item/approval/request', request, (response) => {
      this.#approvals.delete(request.requestId);
      if (response) this.#decide(request.requestId, response);
    });
    this.#approvals.set(request.requestId, id);
  }

  /** Forgets an approval that has been answered. */
  forgetApproval(requestId: string): void {
    const id = this.#approvals.get(requestId);
    this.#approvals.delete(requestId);
    if (id !== undefined) this.#open.delete(id);
  }

  /** @throws ClientGone, or the reason of `signal` */
  callTool(call: DynamicToolCall, signal: AbortSignal): Promise<DynamicToolResult> {
    return new Promise((resolve, reject) => {
      if (this.#isClosed) return reject(new ClientGone('the client that brought the tool has gone'));
      if (this.#open.size >= defaults.jsonRpc.openQuestions)
        return reject(new ClientGone('the client answers too slowly'));
      const stop = () => {
        this.#open.delete(id);
        reject(signal.reason);
      };
      const id = this.#ask('item/tool/call', call, (response) => {
        signal.removeEventListener('abort', stop);
        if (response) resolve(resultOf(response));
        else reject(new ClientGone('the client that brought the tool has gone'));
      });
      signal.addEventListener('abort', stop, { once: true });
      if (signal.aborted) stop();
    });
  }

  answered(response: RpcResponse): void {
    const id = String(response.id);
    const settle = this.#open.get(id);
    this.#open.delete(id);
    settle?.(response);
  }

  close(): void {
    this.#isClosed = true;
    const open = [...this.#open.values()];
    this.#open.clear();
    for (const settle of open) settle(undefined);
  }

  #ask(method: ServerRequestMethod, params: ApprovalRequest | DynamicToolCall, settle: Settle): string {
    this.#number += 1;
    const id = `server-${this.#number}`;
    this.#open.set(id, settle);
    this.#send(requestFrame(id, method, params));
    return id;
  }

  /** Declines when the answer is an error or invalid: then no user was asked. */
  #decide(requestId: string, response: RpcResponse): void {
    const { result } = serverRequests['item/approval/request'];
    const answer = 'result' in response ? v.safeParse(result, response.result) : undefined;
    const { decision, unattended } = answer?.success
      ? answer.output
      : { decision: 'decline' as const, unattended: true };
    try {
      this.#respond(requestId, decision, unattended === true && decision === 'decline' ? 'policy' : 'user');
    } catch (error) {
      // Another client was faster.
      if (!(error instanceof AgentError)) throw error;
    }
  }
}

function resultOf(response: RpcResponse): DynamicToolResult {
  if ('error' in response) {
    return { success: false, errorCode: String(response.error.code), errorMessage: response.error.message };
  }
  const result = v.safeParse(serverRequests['item/tool/call'].result, response.result);
  if (result.success) return result.output;
  return { success: false, errorCode: 'invalidResult', errorMessage: 'the client answered with something else' };
}
