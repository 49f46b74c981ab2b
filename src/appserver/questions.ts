import * as v from 'valibot';
import { AgentError, type Runtime } from '../agent/index.ts';
import {
  type ApprovalRequest,
  type DynamicToolCall,
  type DynamicToolResult,
  defaults,
  serverRequests,
} from '../protocol/index.ts';
import { type Answer, JsonRpcError, type Peer, type RpcId } from '../rpc/index.ts';

/** The client has gone, or does not answer. */
export class ClientGone extends Error {
  override readonly name = 'ClientGone';
}

/** Requests of the server to one client: approvals and calls of tools that the client brought. */
export class Questions {
  readonly #peer: Peer;
  readonly #respond: Runtime['turns']['respond'];
  /** Id of the request that asks for an approval, by the approval's own id. */
  readonly #approvals = new Map<string, RpcId>();

  constructor(peer: Peer, respond: Runtime['turns']['respond']) {
    this.#peer = peer;
    this.#respond = respond;
  }

  /** Asks for an approval that belongs to the thread: this client may answer it, so may others. */
  askApproval(request: ApprovalRequest): void {
    const { requestId } = request;
    if (this.#approvals.has(requestId) || this.#isFull) return;
    const id = this.#peer.ask('item/approval/request', request, (answer) => {
      this.#approvals.delete(requestId);
      if (!isGone(answer)) this.#decide(requestId, answer);
    });
    this.#approvals.set(requestId, id);
  }

  /** Forgets an approval that has been answered. */
  forgetApproval(requestId: string): void {
    const id = this.#approvals.get(requestId);
    this.#approvals.delete(requestId);
    if (id !== undefined) this.#peer.forget(id);
  }

  /** @throws ClientGone, or the reason of `signal` */
  async callTool(call: DynamicToolCall, signal: AbortSignal): Promise<DynamicToolResult> {
    if (this.#isFull) throw new ClientGone('the client answers too slowly');
    try {
      return resultOf(await this.#peer.request('item/tool/call', call, { signal }));
    } catch (error) {
      if (!(error instanceof JsonRpcError)) throw error;
      return { success: false, errorCode: String(error.code), errorMessage: error.message };
    }
  }

  get #isFull(): boolean {
    return this.#peer.pending >= defaults.jsonRpc.openQuestions;
  }

  /** Declines when the answer is an error or invalid: then no user was asked. */
  #decide(requestId: string, answer: Answer): void {
    const { result } = serverRequests['item/approval/request'];
    const parsed = 'result' in answer ? v.safeParse(result, answer.result) : undefined;
    const { decision, unattended } = parsed?.success
      ? parsed.output
      : { decision: 'decline' as const, unattended: true };
    try {
      this.#respond(requestId, decision, unattended === true && decision === 'decline' ? 'policy' : 'user');
    } catch (error) {
      // Another client was faster.
      if (!(error instanceof AgentError)) throw error;
    }
  }
}

const isGone = (answer: Answer): boolean => 'error' in answer && answer.error instanceof ClientGone;

function resultOf(answer: unknown): DynamicToolResult {
  const result = v.safeParse(serverRequests['item/tool/call'].result, answer);
  if (result.success) return result.output;
  return {
    success: false,
    errorCode: 'invalidResult',
    errorMessage: 'the answer of the client has an unexpected form',
  };
}
