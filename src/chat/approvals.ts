import * as v from 'valibot';
import type { Runtime } from '../agent/index.ts';
import { HttpError, json, type Reply, type RequestContext } from '../http/index.ts';
import { type ApprovalDecision, type ApprovalRequest, approvalDecisions } from '../protocol/index.ts';
import { chatError, explained, invalidParameter } from './errors.ts';
import type { ChatTurns } from './turns.ts';

/** `{"approved": true}`, or one of the decisions of the agent server for those who want more. */
const Decision = v.union([v.object({ approved: v.boolean() }), v.object({ decision: v.picklist(approvalDecisions) })]);

/** Interactive approvals of turns that this API has asked for (`Api.ApprovalMode`): an extension. */
export class Approvals {
  readonly #runtime: Runtime;
  readonly #turns: ChatTurns;

  constructor(runtime: Runtime, turns: ChatTurns) {
    this.#runtime = runtime;
    this.#turns = turns;
  }

  /** `GET /v1/approvals`: the waiting approvals, the oldest first. */
  readonly list = (): Reply => {
    const approvals = this.#turns.approvals.toSorted((a, b) => a.createdAt.localeCompare(b.createdAt));
    return json(200, { object: 'list', approvals: approvals.map((each) => this.#shown(each)) });
  };

  /** `POST /v1/approvals/{id}`: the first answer counts. */
  readonly decide = async (context: RequestContext): Promise<Reply> => {
    const id = context.params['id'] ?? '';
    const decision = await this.#read(context);
    if (!this.#turns.approvals.some(({ requestId }) => requestId === id)) {
      throw chatError('approvalNotFound', 'Nothing of this id waits for a decision.');
    }
    try {
      this.#runtime.turns.respond(id, decision);
    } catch (error) {
      throw explained(error);
    }
    return json(200, { object: 'approval.decision', id, decision });
  };

  async #read(context: RequestContext): Promise<ApprovalDecision> {
    const body = await context.json(v.unknown()).catch((error: unknown) => {
      throw error instanceof HttpError && error.code === 'invalidRequest'
        ? chatError('invalidJson', error.message)
        : error;
    });
    const parsed = v.safeParse(Decision, body);
    if (!parsed.success) {
      throw invalidParameter(
        'approved',
        `The body must be {"approved": true}, {"approved": false}, or {"decision": …} with one of ${approvalDecisions.join(', ')}.`,
      );
    }
    if ('decision' in parsed.output) return parsed.output.decision;
    return parsed.output.approved ? 'accept' : 'decline';
  }

  #shown(request: ApprovalRequest): object {
    const { requestId, approvalType, operation, target, tool, callId, createdAt, expiresAt } = request;
    const { workingDirectory, covers, reason, scopeKey } = request;
    return {
      id: requestId,
      type: approvalType,
      operation,
      detail: target,
      tool,
      callId,
      ...(reason !== undefined && { reason }),
      ...(workingDirectory !== undefined && { workingDirectory }),
      scope: scopeKey,
      ...(covers !== undefined && { covers }),
      sessionId: this.#turns.sessionOf(requestId) ?? null,
      createdAt,
      expiresAt,
    };
  }
}
