import {
  type AgentContext,
  type ClientCapabilities,
  RequestError,
  type RequestPermissionRequest,
} from '@agentclientprotocol/sdk';
import * as v from 'valibot';
import { type AppServerClient, JsonRpcError } from '../client/index.ts';
import { messageOf } from '../lib/index.ts';
import type { Logger } from '../log/index.ts';
import { type ApprovalDecision, ApprovalRequest, QuestionRequest, rpcErrors } from '../protocol/index.ts';
import { askedCall, decisionOf, permissionOptions } from './permission.ts';
import { askQuestion } from './questions.ts';
import type { Session } from './session.ts';

export interface UserRequestsOptions {
  readonly log: Logger;
  /** Connection to the editor, and its capabilities; undefined: the editor is not connected. */
  readonly editor: () => { readonly client: AgentContext; readonly capabilities: ClientCapabilities } | undefined;
  /** Session of a thread; for a sub-agent's thread, that of its parent. */
  readonly sessionOf: (threadId: string) => Promise<Session | undefined>;
  readonly serverOf: (workspacePath: string) => Promise<Pick<AppServerClient, 'request'>>;
}

/** A request for approval that the editor shows. */
interface ShownApproval {
  readonly withdrawal: AbortController;
  readonly answer: Promise<ApprovalDecision>;
}

/** Approvals and questions of agent servers, which the user answers in the editor or elsewhere. */
export class UserRequests {
  readonly #options: UserRequestsOptions;
  /** Approvals that the editor shows, by the id of the request. */
  readonly #approvals = new Map<string, ShownApproval>();
  /** Withdrawals of the questions that the editor shows, by the id of the request. */
  readonly #questions = new Map<string, AbortController>();

  constructor(options: UserRequestsOptions) {
    this.#options = options;
  }

  /** Answers a request of an agent server. @throws JsonRpcError for a request that is not an approval */
  async answer(method: string, params: Readonly<Record<string, unknown>>): Promise<unknown> {
    const request = v.safeParse(ApprovalRequest, params);
    if (method !== 'item/approval/request' || !request.success) {
      throw new JsonRpcError({ ...rpcErrors.methodNotFound });
    }
    const session = await this.#options.sessionOf(request.output.threadId);
    if (!session || !this.#options.editor()) return { decision: 'decline' };
    return { decision: await this.#ask(session, request.output) };
  }

  /** Shows and withdraws questions. Ignores other notifications. */
  hear(method: string, params: Readonly<Record<string, unknown>>): void {
    if (method === 'question/asked') void this.#passOnQuestion(params);
    if (method === 'question/resolved') this.#questions.get(String(params['requestId']))?.abort();
  }

  /** Withdraws an approval that has been decided. */
  forgetApproval(requestId: string): void {
    this.#approvals.get(requestId)?.withdrawal.abort();
    this.#approvals.delete(requestId);
  }

  /**
   * Asks the editor once for each request. The next connection to the agent server repeats an open request, even if the user
   * answered it during the interruption.
   */
  #ask(session: Session, request: ApprovalRequest): Promise<ApprovalDecision> {
    const known = this.#approvals.get(request.requestId);
    if (known) return known.answer;
    const withdrawal = new AbortController();
    const answer = this.#askEditor(session, request, withdrawal.signal);
    this.#approvals.set(request.requestId, { withdrawal, answer });
    return answer;
  }

  async #askEditor(session: Session, request: ApprovalRequest, withdrawn: AbortSignal): Promise<ApprovalDecision> {
    try {
      const toolCall = askedCall(request, session.shownCall(request.callId));
      const asked: RequestPermissionRequest = { sessionId: session.id, toolCall, options: permissionOptions };
      const waiting = { cancellationSignal: withdrawn, stopWaitingOnCancel: true };
      const answer = await this.#options.editor()?.client.request('session/request_permission', asked, waiting);
      return answer ? decisionOf(answer) : 'cancel';
    } catch (error) {
      // Decided elsewhere: the answer is dropped. When the editor has gone, or cannot ask, the call is not allowed.
      if (!(error instanceof RequestError)) return 'cancel';
      return 'decline';
    }
  }

  /** Asks the editor a question of the agent, once, and sends the answer. */
  async #passOnQuestion(params: unknown): Promise<void> {
    const { editor, sessionOf, serverOf, log } = this.#options;
    const parsed = v.safeParse(QuestionRequest, params);
    const connected = editor();
    if (!parsed.success || !connected || this.#questions.has(parsed.output.requestId)) return;
    const { requestId, threadId } = parsed.output;
    const withdrawal = new AbortController();
    this.#questions.set(requestId, withdrawal);
    try {
      const session = await sessionOf(threadId);
      if (!session) return;
      const shown = { ...connected, sessionId: session.id, withdrawn: withdrawal.signal };
      const answer = await askQuestion(parsed.output, shown);
      const client = await serverOf(session.workspacePath);
      if (answer && !withdrawal.signal.aborted) await client.request('question/answer', { requestId, ...answer });
    } catch (error) {
      // Answered elsewhere, or the editor has refused: the question waits for other clients.
      if (!withdrawal.signal.aborted) log.warn(`A question was not answered in the editor: ${messageOf(error)}`);
    } finally {
      this.#questions.delete(requestId);
    }
  }
}
