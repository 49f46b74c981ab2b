import { randomUUID } from 'node:crypto';
import {
  type ApprovalDecision,
  type ApprovalRequest,
  checkContent,
  defaults,
  firstWords,
  type QuestionAnswer,
  type QuestionContent,
  type QuestionForm,
  writtenIn,
} from '../../../protocol/index.ts';
import { AgentError } from '../../errors.ts';
import { needOfQuestion } from '../../question.ts';
import type { ApprovalNeed } from '../../tool.ts';
import { askedEvent } from '../feed.ts';
import { authorOf, type Decider, type ReviewedCall, refusalOf, requestOf, shownNeed } from './call-review.ts';
import type { TurnContext } from './context.ts';
import { stateOf } from './decisions.ts';
import { earlierRequest, expiryOf } from './earlier-request.ts';

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
  readonly answer: ((decision: ApprovalDecision, content?: QuestionContent) => void) | undefined;
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
  /** Number of questions of servers and agents so far. */
  #elicited = 0;

  constructor(options: TurnApprovalsOptions) {
    this.#turn = options.turn;
    this.#options = options;
  }

  /** Approvals without an answer. */
  get pending(): readonly ApprovalRequest[] {
    return [...this.#open.values()].flatMap(({ request }) => request ?? []);
  }

  /** First words of the prompt of the turn. */
  get #asked(): string {
    return firstWords(writtenIn(this.#turn.input));
  }

  /** Takes over the questions of an earlier process: they can be answered before `add`. @param now milliseconds since the epoch */
  restore(now: number): void {
    const { record, place, approvalTimeoutMs } = this.#turn;
    const items = record.items.snapshot();
    for (const call of record.items.openCalls) {
      const earlier = earlierRequest(items, call);
      // The call of the server or agent that asked has ended.
      if (!earlier || isForeign(earlier.reviewed)) continue;
      const { reviewed, asked } = earlier;
      this.#earlier.set(call.callId, reviewed);
      this.#requestedAt.set(reviewed, performance.now());
      const { id: itemId, createdAt } = asked;
      const expiresAt = expiryOf(createdAt, approvalTimeoutMs, now);
      const about = { ...place, itemId, createdAt, expiresAt, asked: this.#asked };
      const request = reviewed.decision ? undefined : requestOf(reviewed, about);
      if (request) this.#open.set(reviewed.requestId, { reviewed, request, answer: undefined });
    }
    for (const item of items) {
      const isLost = item.type === 'question' && item.state === 'open' && !this.#open.has(item.requestId);
      if (isLost) record.items.finish({ ...item, state: 'cancelled', decidedBy: 'policy' });
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
      const { callId } = call;
      const item = need.question
        ? record.items.begin<'question'>({ type: 'question', requestId, callId, ...need.question, state: 'open' })
        : record.items.add<'approvalRequest'>({ type: 'approvalRequest', requestId, callId, ...shownNeed(need) });
      const request = requestOf(open.reviewed, {
        ...place,
        itemId: item.id,
        createdAt: item.createdAt,
        expiresAt: expiryOf(item.createdAt, approvalTimeoutMs),
        asked: this.#asked,
      });
      if (!request) continue;
      open.request = request;
      record.publish(askedEvent(request));
    }
    if (added.length > 0) thread.onChange();
  }

  /** False: no approval of this id is pending. @throws AgentError questionInvalid, which leaves the question open */
  decide(requestId: string, decision: ApprovalDecision, decider: Decider): boolean {
    const open = this.#open.get(requestId);
    if (!open?.request) return false;
    const { question } = open.request;
    const isAnswer = question !== undefined && decision.startsWith('accept');
    const content = isAnswer ? checkedContent(requestId, question, decider.content) : undefined;
    this.#record(open, isAnswer ? 'accept' : decision, { ...decider, content });
    open.answer?.(decision, content);
    this.#options.onDecided(requestId);
    // Closing a question does not end the turn.
    if (decision === 'cancel' && !question) this.#options.onCancel();
    return true;
  }

  /**
   * Asks a question of an MCP server or an external agent, until its signal aborts. Resolves with `cancel` at once when no user can
   * answer, or when the turn has asked too often.
   *
   * @param onAsked makes the machine wait and ask; absent: the question is asked at once, with a deadline of its own
   */
  async elicit(
    question: QuestionForm,
    call: ReviewedCall['call'],
    signal: AbortSignal,
    onAsked?: (requestId: string) => void,
  ): Promise<QuestionAnswer> {
    const { canAsk, approvalTimeoutMs } = this.#turn;
    const { openPerTurn, perTurn } = defaults.questions;
    const isFull = this.#open.size >= openPerTurn || this.#elicited >= perTurn;
    if (!canAsk || isFull || signal.aborted) return { action: 'cancel' };
    this.#elicited += 1;
    const requestId = `question_${randomUUID()}`;
    const answered = Promise.withResolvers<QuestionAnswer>();
    const reviewed = { ...{ call, requestId, need: needOfQuestion(question) }, ...unreviewed };
    this.note(reviewed);
    this.add(reviewed, (decision, content) => answered.resolve(answerOf(decision, content)));
    if (onAsked) onAsked(requestId);
    else this.ask();
    const expire = () => void this.decide(requestId, 'decline', { by: 'timeout' });
    const timer = onAsked ? undefined : setTimeout(expire, approvalTimeoutMs).unref();
    const withdraw = () => {
      if (this.withdraw(requestId)) this.#options.onDecided(requestId);
    };
    signal.addEventListener('abort', withdraw, { once: true });
    try {
      return await answered.promise;
    } finally {
      clearTimeout(timer);
      signal.removeEventListener('abort', withdraw);
    }
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
    const params = { ...place, requestId, decision, ...authorOf(decider) };
    const asked = record.items.last('question', (item) => item.requestId === requestId);
    if (asked) {
      const { content } = decider;
      const state = stateOf(decision, decider.by);
      record.items.finish({ ...asked, ...{ state, ...(content && { answers: content }) }, ...authorOf(decider) });
      record.publish({ method: 'question/resolved', params: { ...params, state } });
    } else {
      record.items.add({ type: 'approvalResponse', requestId, callId, decision, ...authorOf(decider) });
      record.publish({ method: 'item/approval/resolved', params });
    }
    this.#traceDecision(reviewed);
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

const unreviewed = { tool: undefined, args: undefined, refusal: undefined, decision: undefined };

/** A question of an MCP server or an external agent. */
const isForeign = ({ need }: ReviewedCall): boolean => need?.question !== undefined && need.question.source !== 'agent';

const answerOf = (decision: ApprovalDecision, content: QuestionContent | undefined): QuestionAnswer => {
  if (decision === 'decline' || decision === 'cancel') return { action: decision };
  return { action: 'accept', ...(content && { content }) };
};

/** @throws AgentError questionInvalid */
function checkedContent(requestId: string, question: QuestionForm, content: QuestionContent = {}): QuestionContent {
  const checked = checkContent(question, content);
  if (checked.ok) return checked.content;
  const { field, problem } = checked;
  throw new AgentError('questionInvalid', { requestId, field }, `${field}: ${problem}`);
}
