import type { ApprovalDecision, ApprovalRequest } from '../../../protocol/index.ts';
import type { ApprovalNeed } from '../../tool.ts';
import type { ThreadEvent } from '../feed.ts';
import { authorOf, type Decider, type ReviewedCall, refusalOf, requestOf, shownNeed } from './call-review.ts';
import type { TurnHost } from './host.ts';
import type { TurnItems } from './items.ts';

export interface TurnApprovalsOptions {
  readonly host: TurnHost;
  readonly turnId: string;
  readonly items: TurnItems;
  readonly expiresInMs: number;
  /** Publishes an event of the turn after its earlier writes. */
  readonly publish: (event: ThreadEvent) => void;
  readonly onDecided: (requestId: string) => void;
  /** Called when a user answers an approval with `cancel`. */
  readonly onCancel: () => void;
}

/** The approvals of one turn: requests them, takes their decisions, remembers grants and traces both. */
export class TurnApprovals {
  readonly #options: TurnApprovalsOptions;
  readonly #asked = new Map<string, { readonly reviewed: ReviewedCall; readonly request: ApprovalRequest }>();
  /** Time at which an approval was first needed. */
  readonly #requestedAt = new WeakMap<ReviewedCall, number>();

  constructor(options: TurnApprovalsOptions) {
    this.#options = options;
  }

  /** Approvals without an answer. */
  get pending(): readonly ApprovalRequest[] {
    return Array.from(this.#asked.values(), ({ request }) => request);
  }

  /** Traces that a call needs an approval, and the decision if there is one already. */
  note(reviewed: ReviewedCall): void {
    const { call, need, decision } = reviewed;
    if (need) {
      const { kind, operation, target } = need;
      this.#requestedAt.set(reviewed, performance.now());
      this.#options.host.tracer?.approvalRequested(this.#place, call.callId, { kind, operation, target });
    }
    if (decision) this.#traceDecision(reviewed);
  }

  /** Requests the approvals of calls that need one. */
  ask(calls: readonly ReviewedCall[]): void {
    const { host, turnId, items, expiresInMs, publish } = this.#options;
    const now = Date.now();
    for (const reviewed of calls) {
      const { need, call, requestId } = reviewed;
      if (!need) continue;
      const item = items.add({ type: 'approvalRequest', requestId, callId: call.callId, ...shownNeed(need) });
      const request = requestOf(reviewed, {
        threadId: host.threadId,
        turnId,
        itemId: item.id,
        createdAt: new Date(now).toISOString(),
        expiresAt: new Date(now + expiresInMs).toISOString(),
      });
      if (!request) continue;
      this.#asked.set(requestId, { reviewed, request });
      publish({ method: 'item/approval/request', params: request });
    }
    host.onChange();
  }

  /** False: no approval of this id is pending. */
  decide(requestId: string, decision: ApprovalDecision, decider: Decider): boolean {
    const asked = this.#asked.get(requestId);
    if (!asked) return false;
    this.#record(asked.reviewed, decision, decider);
    this.#options.onDecided(requestId);
    if (decision === 'cancel') this.#options.onCancel();
    return true;
  }

  /** Withdraws the pending approval of this id; without an id, all of them. */
  withdraw(requestId?: string): void {
    for (const [id, { reviewed }] of [...this.#asked])
      if (requestId === undefined || id === requestId) this.#record(reviewed, 'cancel', { by: 'policy' });
  }

  #record(reviewed: ReviewedCall, decision: ApprovalDecision, decider: Decider): void {
    const { host, turnId, items, publish } = this.#options;
    const { need, call, requestId } = reviewed;
    this.#asked.delete(requestId);
    reviewed.decision = { word: decision, ...decider };
    if (need && (decision === 'decline' || decision === 'cancel')) reviewed.refusal = refusalOf(need, decider.by);
    if (need && decision === 'acceptForSession') host.grant(need.scopeKey, 'session');
    if (need && decision === 'acceptAlways') this.#grantAlways(need);
    items.add({ type: 'approvalResponse', requestId, callId: call.callId, decision, ...authorOf(decider) });
    this.#traceDecision(reviewed);
    const params = { threadId: host.threadId, turnId, requestId, decision, ...authorOf(decider) };
    publish({ method: 'item/approval/resolved', params });
    host.onChange();
  }

  /** Saves the proposed rule, or else grants exactly this call for good. */
  #grantAlways({ scopeKey, proposedRule }: ApprovalNeed): void {
    const { host } = this.#options;
    if (!proposedRule || !host.rules) {
      host.grant(scopeKey, 'always');
      return;
    }
    try {
      host.rules.learn(proposedRule);
    } catch (error) {
      // The call itself is still allowed; the next one needs a new approval.
      host.onBug(error);
    }
  }

  #traceDecision(reviewed: ReviewedCall): void {
    const { call, decision } = reviewed;
    const requestedAt = this.#requestedAt.get(reviewed);
    if (!decision || requestedAt === undefined) return;
    const waitedMs = performance.now() - requestedAt;
    this.#options.host.tracer?.approvalCompleted(this.#place, call.callId, waitedMs, {
      decision: decision.word,
      ...authorOf(decision),
    });
  }

  get #place() {
    return { threadId: this.#options.host.threadId, turnId: this.#options.turnId };
  }
}
