import { randomUUID } from 'node:crypto';
import { dollars } from '../../../lib/index.ts';
import type { ApprovalDecision, ApprovalRequest } from '../../../protocol/index.ts';
import { authorOf, type Decider } from './call-review.ts';
import type { TurnContext } from './context.ts';
import { expiryOf } from './earlier-request.ts';

export interface TurnBudgetOptions {
  readonly turn: TurnContext;
  /** Cost of this turn so far, in US dollars; null: unknown. */
  readonly costUsd: () => number | null;
  readonly onRaised: () => void;
  readonly onRefused: () => void;
  /** Called when a user answers with `cancel`. */
  readonly onCancel: () => void;
}

type Limit = 'TurnUsd' | 'SessionUsd' | 'DayUsd';

const scopes: Readonly<Record<Limit, string>> = { TurnUsd: 'this turn', SessionUsd: 'this thread', DayUsd: 'today' };

/** Stands for the call that a budget has none of. */
const budgetCall = 'budget';

const isRaise = (decision: ApprovalDecision): boolean => decision !== 'decline' && decision !== 'cancel';

const limitOf = (scopeKey: string): Limit | undefined =>
  (Object.keys(scopes) as Limit[]).find((limit) => scopeKey === `budget:${limit}`);

/** Error of a used-up budget; the message names the budget. */
export class BudgetError extends Error {}

/**
 * Budgets of one turn. A used-up budget is put to the user as a request for approval, which every client shows; accepting it
 * grants the same amount once more. Policies answer without a user: the turn ends.
 */
export class TurnBudget {
  readonly #options: TurnBudgetOptions;
  /** Times that each budget was granted again. */
  readonly #raised = new Map<Limit, number>();
  #reached: Limit | undefined;
  #request: ApprovalRequest | undefined;

  constructor(options: TurnBudgetOptions) {
    this.#options = options;
  }

  /** Takes over the raised budgets and the question of an earlier process. @param now milliseconds since the epoch */
  restore(now: number): void {
    const { place, record, approvalTimeoutMs } = this.#options.turn;
    for (const item of record.items.snapshot()) {
      if (item.type === 'approvalRequest' && item.callId === budgetCall) {
        const { id: itemId, turnId: _, status: __, type: ___, createdAt, covers = '', ...asked } = item;
        const expiresAt = expiryOf(createdAt, approvalTimeoutMs, now);
        this.#request = { ...asked, ...place, covers, itemId, tool: 'Budget', createdAt, expiresAt };
        this.#reached = limitOf(item.scopeKey);
      }
      if (item.type !== 'approvalResponse' || item.requestId !== this.#request?.requestId) continue;
      if (isRaise(item.decision)) this.#raise();
      this.#request = undefined;
    }
  }

  #raise(): void {
    if (this.#reached) this.#raised.set(this.#reached, (this.#raised.get(this.#reached) ?? 0) + 1);
  }

  /** The request for approval without an answer. */
  get pending(): readonly ApprovalRequest[] {
    return this.#request ? [this.#request] : [];
  }

  /** The budget that is used up, in words for people; null: none. */
  check(): string | null {
    const { turn, costUsd } = this.#options;
    const { settings, spending } = turn.services;
    const { turnUsd, sessionUsd, dayUsd } = settings.budget;
    if (turnUsd + sessionUsd + dayUsd === 0) return null;
    const own = costUsd();
    if (own === null) {
      return 'Budget cannot be checked: the price of the model is unknown. Set Models."<name>".Price, or remove Budget.';
    }
    const spent: readonly (readonly [Limit, number, () => number])[] = [
      ['TurnUsd', turnUsd, () => own],
      ['SessionUsd', sessionUsd, () => turn.thread.store.threadCost(turn.place.threadId) + own],
      ['DayUsd', dayUsd, () => spending.today()],
    ];
    for (const [limit, usd, total] of spent) {
      const allowed = usd * (1 + (this.#raised.get(limit) ?? 0));
      if (usd === 0 || total() < allowed) continue;
      this.#reached = limit;
      return `Budget.${limit} is used up: ${dollars(total())} of ${dollars(allowed)} spent by ${scopes[limit]}.`;
    }
    return null;
  }

  /** Asks whether the turn may continue, or answers by policy. @param budget as `check` described it */
  ask(budget: string): void {
    const { turn, onRefused } = this.#options;
    const { thread, place, record, approvalTimeoutMs } = turn;
    if (turn.policy !== 'default') {
      onRefused();
      return;
    }
    // An earlier process has asked.
    if (this.#request) return;
    const shown = {
      callId: budgetCall,
      approvalType: 'remoteResource' as const,
      operation: 'continue',
      target: budget,
      scopeKey: `budget:${this.#reached}`,
      covers: 'the same amount once more, in this turn',
    };
    const requestId = `approval_${randomUUID()}`;
    const item = record.items.add({ type: 'approvalRequest', requestId, ...shown });
    this.#request = {
      ...place,
      itemId: item.id,
      requestId,
      tool: 'Budget',
      ...shown,
      createdAt: item.createdAt,
      expiresAt: expiryOf(item.createdAt, approvalTimeoutMs),
    };
    record.publish({ method: 'item/approval/request', params: this.#request });
    thread.onChange();
  }

  /** False: no approval of this id is pending. */
  decide(requestId: string, decision: ApprovalDecision, decider: Decider): boolean {
    if (this.#request?.requestId !== requestId) return false;
    const isRaised = isRaise(decision);
    this.#record(decision, decider);
    if (isRaised) this.#raise();
    if (isRaised) this.#options.onRaised();
    else if (decider.by !== 'timeout') this.#options.onRefused();
    if (decision === 'cancel') this.#options.onCancel();
    return true;
  }

  /** Declines the pending request: no user answered in time. */
  expire(): void {
    if (this.#request) this.decide(this.#request.requestId, 'decline', { by: 'timeout' });
  }

  /** Withdraws the pending request at the end of the turn. */
  withdraw(): void {
    if (this.#request) this.#record('cancel', { by: 'policy' });
  }

  #record(decision: ApprovalDecision, decider: Decider): void {
    const { thread, place, record } = this.#options.turn;
    const request = this.#request;
    this.#request = undefined;
    if (!request) return;
    const { requestId, callId } = request;
    record.items.add({ type: 'approvalResponse', requestId, callId, decision, ...authorOf(decider) });
    const params = { ...place, requestId, decision, ...authorOf(decider) };
    record.publish({ method: 'item/approval/resolved', params });
    thread.onChange();
  }
}
