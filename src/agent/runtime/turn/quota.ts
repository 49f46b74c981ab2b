import { randomUUID } from 'node:crypto';
import type { HoldAnswer, QuotaWait } from '../../../../machines/index.ts';
import type { ApprovalDecision, ApprovalRequest, ItemOf } from '../../../protocol/index.ts';
import { waitUntil } from '../clock.ts';
import type { RuntimeServices } from '../services.ts';
import { authorOf, type Decider } from './call-review.ts';
import type { TurnContext } from './context.ts';

export interface TurnQuotaOptions {
  readonly turn: TurnContext;
  readonly onAnswered: (answer: HoldAnswer) => void;
  /** Name of the provider or external agent that refused. */
  readonly provider: () => string;
}

/** Call id of a quota request, which belongs to no call. */
export const quotaCall = 'quota';

/**
 * Longest wait of a turn for quotas, in milliseconds; 0: the turn fails at once. A caller that waits for an HTTP response is not kept
 * waiting for hours, and "ask" needs a user who can answer.
 */
export function maxQuotaWaitMsOf({ services, policy, options }: Pick<TurnContext, 'services' | 'policy' | 'options'>) {
  const { wait, maxWaitMs } = services.settings.quota;
  const isOff = wait === 'never' || options.waitsForQuota === false || (wait === 'ask' && policy !== 'default');
  return isOff ? 0 : maxWaitMs;
}

/** Whether a user confirms the first wait of a turn. */
export const asksForQuota = ({ settings }: Pick<RuntimeServices, 'settings'>): boolean => settings.quota.wait === 'ask';

/**
 * Requests and notices of a turn that waits for a quota. A first request asks whether the turn should continue after the reset. While
 * the turn waits, a second request offers to continue at once or to end the turn. Both are approval requests, which every client
 * shows. The machine decides on each answer.
 */
export class TurnQuota {
  readonly #options: TurnQuotaOptions;
  #request: ApprovalRequest | undefined;

  constructor(options: TurnQuotaOptions) {
    this.#options = options;
  }

  get #now(): number {
    return this.#options.turn.services.waitClock.now();
  }

  get pending(): readonly ApprovalRequest[] {
    return this.#request ? [this.#request] : [];
  }

  /** Takes over the request of an earlier process, or its answer. */
  restore(): void {
    const { record, resumed } = this.#options.turn;
    if (resumed?.facts.state !== 'waitingForQuota') return;
    const asked = record.items.last('approvalRequest', ({ callId }) => callId === quotaCall);
    const began = record.items.last('systemNotice', ({ kind }) => kind === 'quotaWaiting')?.createdAt ?? '';
    // An older request belongs to an earlier wait.
    if (!asked || asked.createdAt < began) return;
    const answer = record.items.last('approvalResponse', ({ requestId }) => requestId === asked.requestId);
    if (answer) this.#answer(asked.operation, answer.decision);
    else {
      this.#request = this.#requestOf(asked);
      if (asked.operation === operations.continue) this.#options.onAnswered('accepted');
    }
  }

  /** Reports that the turn waits. */
  reach({ isKnown, reason, until }: QuotaWait): void {
    const { turn, provider } = this.#options;
    const { record, place } = turn;
    const text = `${reason} ${isKnown ? 'The quota resets' : 'The time of the reset is unknown; the next try is'} at ${timeOf(until)}.`;
    record.items.discardAnswer();
    record.items.add({ type: 'systemNotice', kind: 'quotaWaiting', text });
    const about = { until: isKnown ? iso(until) : null, provider: provider(), reason };
    record.publish({ method: 'system/event', params: { ...place, kind: 'quotaWaiting', message: text, ...about } });
    record.saveStatus();
  }

  /** Asks whether the turn waits, unless the request of an earlier process is pending. */
  ask(wait: QuotaWait): void {
    this.#options.turn.record.saveStatus();
    if (!this.#request) this.#ask('wait', wait);
  }

  /** Resolves when the turn continues: at the time of the reset, even if the machine slept. */
  async awaitReset(wait: QuotaWait, signal: AbortSignal): Promise<void> {
    const { record, place, policy, services } = this.#options.turn;
    record.saveStatus();
    // After the clock was set back, a restored wait is not longer than a whole one.
    const until = Math.min(wait.until, this.#now + wait.pauseMs);
    const asks = policy === 'default' && until > this.#now && !this.#request;
    if (asks) this.#ask('continue', { ...wait, until });
    await waitUntil(until, signal, services.waitClock);
    if (this.#request) this.#resolve('accept', { by: 'policy' });
    const since = record.items.last('systemNotice', ({ kind }) => kind === 'quotaWaiting')?.createdAt;
    const waited = since === undefined ? '' : ` since ${timeOf(Date.parse(since))}`;
    const text = `The turn waited${waited} for the quota of ${this.#options.provider()} and continues at ${timeOf(this.#now)}.`;
    record.items.add({ type: 'systemNotice', kind: 'quotaResumed', text });
    record.publish({ method: 'system/event', params: { ...place, kind: 'quotaResumed', message: text } });
  }

  /** False: no request of this id is pending. */
  decide(requestId: string, decision: ApprovalDecision, decider: Decider): boolean {
    const request = this.#request;
    if (request?.requestId !== requestId) return false;
    // A client without a user declines every request, but this one needs no answer.
    if (request.operation === operations.continue && isRefusal(decision) && decider.by === 'policy') return true;
    this.#resolve(decision, decider);
    this.#answer(request.operation, decision);
    return true;
  }

  #answer(operation: string, decision: ApprovalDecision): void {
    const isHurried = decision === 'now' || operation === operations.continue;
    this.#options.onAnswered(isRefusal(decision) ? 'refused' : isHurried ? 'hurried' : 'accepted');
  }

  /** Declines the pending request: no user answered in time. */
  expire(): void {
    if (this.#request) this.#resolve('decline', { by: 'timeout' });
  }

  /** Withdraws the pending request at the end of the turn. */
  withdraw(): void {
    if (this.#request) this.#resolve('cancel', { by: 'policy' });
  }

  #ask(operation: keyof typeof operations, { until, isKnown, reason }: QuotaWait): void {
    const { turn, provider } = this.#options;
    const { thread, record, place } = turn;
    const of = provider();
    const item = record.items.add<'approvalRequest'>({
      ...{ type: 'approvalRequest', requestId: `approval_${randomUUID()}`, callId: quotaCall },
      ...{ approvalType: 'remoteResource', operation: operations[operation] },
      target: `at ${timeOf(until)}, when ${isKnown ? `the quota of ${of} resets` : `${of} may answer again (its reset is unknown)`}`,
      ...{ scopeKey: `quota:${place.turnId}`, covers: 'this turn', reason },
      ...{ until: isKnown ? iso(until) : null, provider: of },
    });
    this.#request = this.#requestOf(item, until);
    record.publish({ method: 'item/approval/request', params: this.#request });
    thread.onChange();
  }

  /** @param resetAt end of the wait, in milliseconds since the epoch; default: the item states it, if it is known */
  #requestOf(item: ItemOf<'approvalRequest'>, resetAt = Date.parse(item.until ?? '')): ApprovalRequest {
    const { turn } = this.#options;
    const { id: itemId, turnId: _, status: __, type: ___, ...asked } = item;
    const createdAt = Date.parse(asked.createdAt);
    const isScheduled = asked.operation === operations.continue && !Number.isNaN(resetAt);
    const ends = isScheduled ? Math.max(resetAt, createdAt) : createdAt + maxQuotaWaitMsOf(turn);
    return { ...asked, ...turn.place, itemId, tool: 'Quota', expiresAt: iso(ends) };
  }

  #resolve(decision: ApprovalDecision, decider: Decider): void {
    const { thread, place, record } = this.#options.turn;
    const request = this.#request;
    this.#request = undefined;
    if (!request) return;
    const { requestId, callId } = request;
    const about = { requestId, decision, ...authorOf(decider) };
    record.items.add({ type: 'approvalResponse', callId, ...about });
    record.publish({ method: 'item/approval/resolved', params: { ...place, ...about } });
    thread.onChange();
  }
}

/** `wait`: asks whether the turn waits and then continues. `continue`: the turn waits, and a user may continue it at once. */
const operations = { wait: 'wait and continue', continue: 'continue' } as const;

const isRefusal = (decision: ApprovalDecision): boolean => decision === 'decline' || decision === 'cancel';

const iso = (at: number): string => new Date(at).toISOString();

/** Local time such as 18:40, with the day if it is not today: 2 Dec 18:40. */
function timeOf(at: number): string {
  const time = new Date(at).toLocaleTimeString('en-GB', { hour: '2-digit', minute: '2-digit' });
  const isToday = new Date(at).toDateString() === new Date().toDateString();
  return isToday ? time : `${new Date(at).toLocaleDateString('en-GB', { day: 'numeric', month: 'short' })} ${time}`;
}
