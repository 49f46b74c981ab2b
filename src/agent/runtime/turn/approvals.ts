import type { ApprovalDecision, ApprovalRequest, Item, ItemOf } from '../../../protocol/index.ts';
import type { ApprovalNeed } from '../../tool.ts';
import {
  authorOf,
  type DecidedBy,
  type Decider,
  type ReviewedCall,
  refusalOf,
  requestOf,
  shownNeed,
} from './call-review.ts';
import type { TurnContext } from './context.ts';

export interface TurnApprovalsOptions {
  readonly turn: TurnContext;
  readonly onDecided: (requestId: string) => void;
  /** Called when a user answers an approval with `cancel`. */
  readonly onCancel: () => void;
}

interface OpenApproval {
  readonly reviewed: ReviewedCall;
  /** Absent: users have not received it yet. */
  request?: ApprovalRequest;
  /** Receives the decision, for an external agent that waits for it. */
  readonly answer: ((decision: ApprovalDecision) => void) | undefined;
}

/** The approvals of one turn: requests them, takes their decisions, remembers grants and traces both. */
export class TurnApprovals {
  readonly #turn: TurnContext;
  readonly #options: TurnApprovalsOptions;
  readonly #open = new Map<string, OpenApproval>();
  /** Time at which an approval was first needed. */
  readonly #requestedAt = new WeakMap<ReviewedCall, number>();
  /** Calls that an earlier process asked about, by call id. */
  readonly #earlier = new Map<string, ReviewedCall>();

  constructor(options: TurnApprovalsOptions) {
    this.#turn = options.turn;
    this.#options = options;
  }

  /** Approvals without an answer. */
  get pending(): readonly ApprovalRequest[] {
    return [...this.#open.values()].flatMap(({ request }) => request ?? []);
  }

  /** Takes over the questions of an earlier process: they can be answered before `add`. @param now milliseconds since the epoch */
  restore(now: number): void {
    const { record, place, approvalTimeoutMs } = this.#turn;
    const items = record.items.snapshot();
    for (const call of record.items.openCalls) {
      const later = items.slice(items.indexOf(call));
      const asked = later.find(
        (item): item is ItemOf<'approvalRequest'> => item.type === 'approvalRequest' && item.callId === call.callId,
      );
      if (!asked) continue;
      const { requestId, createdAt } = asked;
      const answer = later.find(
        (item): item is ItemOf<'approvalResponse'> => item.type === 'approvalResponse' && item.requestId === requestId,
      );
      const reviewed = askedCall(call, asked, answer);
      this.#earlier.set(call.callId, reviewed);
      this.#requestedAt.set(reviewed, performance.now());
      const about = { ...place, itemId: asked.id, createdAt, expiresAt: expiryOf(createdAt, approvalTimeoutMs, now) };
      const request = answer ? undefined : requestOf(reviewed, about);
      if (request) this.#open.set(requestId, { reviewed, request, answer: undefined });
    }
  }

  /** The reviewed call with the question or the decision of an earlier process; undefined: that process did not ask about it. */
  resumed(reviewed: ReviewedCall): ReviewedCall | undefined {
    const earlier = this.#earlier.get(reviewed.call.callId);
    if (!earlier) return undefined;
    this.#earlier.delete(reviewed.call.callId);
    const { requestId, decision } = earlier;
    const open = this.#open.get(requestId);
    const same = { ...reviewed, requestId };
    if (!open) return { ...same, decision, refusal: reviewed.refusal ?? earlier.refusal };
    // A rule that is new since then decides.
    const isDecided = !reviewed.need || reviewed.decision !== undefined || reviewed.refusal !== undefined;
    if (isDecided) this.#record(open, reviewed.refusal === undefined ? 'accept' : 'decline', { by: 'policy' });
    return same;
  }

  /** Traces that a call needs an approval, and the decision if there is one already. */
  note(reviewed: ReviewedCall): void {
    const { call, need, decision } = reviewed;
    if (need) {
      const { kind, operation, target } = need;
      this.#requestedAt.set(reviewed, performance.now());
      const { services, place } = this.#turn;
      services.tracer?.approvalRequested(place, call.callId, { kind, operation, target });
    }
    if (decision) this.#traceDecision(reviewed);
  }

  /** Adds a call that needs an approval; `ask` requests it, when the machine waits. */
  add(reviewed: ReviewedCall, answer?: OpenApproval['answer']): void {
    const { requestId, need } = reviewed;
    const { request } = this.#open.get(requestId) ?? {};
    const { diff } = need ?? {};
    this.#open.set(requestId, {
      ...{ reviewed, answer },
      ...(request && { request: { ...request, ...(diff !== undefined && { diff }) } }),
    });
  }

  /** Requests the added approvals. */
  ask(): void {
    const { thread, place, record, approvalTimeoutMs } = this.#turn;
    const added = [...this.#open.values()].filter(({ request }) => !request);
    for (const open of added) {
      const { need, call, requestId } = open.reviewed;
      if (!need) continue;
      const item = record.items.add({ type: 'approvalRequest', requestId, callId: call.callId, ...shownNeed(need) });
      const request = requestOf(open.reviewed, {
        ...place,
        itemId: item.id,
        createdAt: item.createdAt,
        expiresAt: expiryOf(item.createdAt, approvalTimeoutMs),
      });
      if (!request) continue;
      open.request = request;
      record.publish({ method: 'item/approval/request', params: request });
    }
    if (added.length > 0) thread.onChange();
  }

  /** False: no approval of this id is pending. */
  decide(requestId: string, decision: ApprovalDecision, decider: Decider): boolean {
    const open = this.#open.get(requestId);
    if (!open?.request) return false;
    this.#record(open, decision, decider);
    open.answer?.(decision);
    this.#options.onDecided(requestId);
    if (decision === 'cancel') this.#options.onCancel();
    return true;
  }

  /** Withdraws the open approval of this id; without an id, all of them. @returns whether there was one */
  withdraw(requestId?: string): boolean {
    const withdrawn = [...this.#open].filter(([id]) => requestId === undefined || id === requestId);
    for (const [id, open] of withdrawn) {
      if (open.request) this.#record(open, 'cancel', { by: 'policy' });
      this.#open.delete(id);
      open.answer?.('cancel');
    }
    return withdrawn.length > 0;
  }

  #record({ reviewed }: OpenApproval, decision: ApprovalDecision, decider: Decider): void {
    const { thread, place, record } = this.#turn;
    const { need, call, requestId } = reviewed;
    this.#open.delete(requestId);
    reviewed.decision = { word: decision, ...decider };
    if (need && (decision === 'decline' || decision === 'cancel')) reviewed.refusal = refusalOf(need, decider.by);
    if (need && decision === 'acceptForSession') thread.grant(need.scopeKey, 'session');
    if (need && decision === 'acceptAlways') this.#grantAlways(need);
    const { callId } = call;
    record.items.add({ type: 'approvalResponse', requestId, callId, decision, ...authorOf(decider) });
    this.#traceDecision(reviewed);
    const params = { ...place, requestId, decision, ...authorOf(decider) };
    record.publish({ method: 'item/approval/resolved', params });
    thread.onChange();
  }

  /** Saves the proposed rule, or else grants exactly this call for good. */
  #grantAlways({ scopeKey, proposedRule }: ApprovalNeed): void {
    const { services, thread } = this.#turn;
    if (!proposedRule || !services.rules) {
      thread.grant(scopeKey, 'always');
      return;
    }
    try {
      services.rules.learn(proposedRule);
    } catch (error) {
      // The call itself is still allowed; the next one needs a new approval.
      services.onBug(error);
    }
  }

  #traceDecision(reviewed: ReviewedCall): void {
    const { call, decision } = reviewed;
    const requestedAt = this.#requestedAt.get(reviewed);
    if (!decision || requestedAt === undefined) return;
    const { services, place } = this.#turn;
    services.tracer?.approvalCompleted(place, call.callId, performance.now() - requestedAt, {
      decision: decision.word,
      ...authorOf(decision),
    });
  }
}

/** Shortest time for an answer after a start, in milliseconds: a machine may have slept for a day. */
const leastAnswerMs = 30_000;

/** End of the time for an answer. @param now start of this process, when an earlier one has asked */
export const expiryOf = (createdAt: string, timeoutMs: number, now = 0): string =>
  new Date(Math.max(Date.parse(createdAt) + timeoutMs, now === 0 ? 0 : now + leastAnswerMs)).toISOString();

/** A call as an earlier process has asked about it. */
function askedCall(
  { callId, tool: name, arguments: args }: ItemOf<'toolCall'>,
  { requestId, approvalType: kind, operation, target, scopeKey, covers = '', ...asked }: ItemOf<'approvalRequest'>,
  answer: ItemOf<'approvalResponse'> | undefined,
): ReviewedCall {
  const { workingDirectory, reason, proposedRule } = asked;
  const need: ApprovalNeed = {
    ...{ kind, operation, target, scopeKey, covers },
    ...(workingDirectory !== undefined && { workingDirectory }),
    ...(reason !== undefined && { reason }),
    ...(proposedRule && { proposedRule }),
  };
  const isRefused = answer?.decision === 'decline' || answer?.decision === 'cancel';
  return {
    ...{ call: { callId, name, arguments: args }, tool: undefined, args: undefined, need, requestId },
    refusal: isRefused ? refusalOf(need, answer.decidedBy) : undefined,
    decision: answer && { word: answer.decision, by: answer.decidedBy, client: answer.client },
  };
}

/** Number of decided approvals that are remembered for late answers. */
const maxDecisions = 1_000;

/** Decision about an approval, and its author. */
export interface MadeDecision {
  readonly decision: ApprovalDecision;
  readonly decidedBy: DecidedBy;
  /** Program through which a user decided, by the name that it introduced itself with. */
  readonly client?: string | undefined;
}

/** The latest decisions about approvals: a late answer gets the decision that was first. */
export class ApprovalDecisions {
  readonly #made = new Map<string, MadeDecision>();

  of(requestId: string): MadeDecision | undefined {
    return this.#made.get(requestId);
  }

  /** Remembers a published decision, unless a client made it, which is remembered already. */
  note({ requestId, decision, decidedBy, client }: MadeDecision & { readonly requestId: string }): void {
    if (!this.#made.has(requestId)) this.remember(requestId, { decision, decidedBy, client });
  }

  /** Remembers the decisions of an earlier process, from the items of its turn. */
  restore(items: readonly Item[]): void {
    for (const item of items) {
      if (item.type === 'approvalResponse') this.note(item);
    }
  }

  remember(requestId: string, made: MadeDecision): void {
    this.#made.set(requestId, made);
    const [oldest] = this.#made.keys();
    if (this.#made.size > maxDecisions && oldest !== undefined) this.#made.delete(oldest);
  }
}
