import { randomUUID } from 'node:crypto';
import type { TurnEmitted } from '../../../../machines/index.ts';
import type { ApprovalDecision, ApprovalRequest, ItemOf } from '../../../protocol/index.ts';
import { waitUntil } from '../clock.ts';
import { authorOf, type Decider } from './call-review.ts';
import type { TurnContext } from './context.ts';

export interface TurnQuotaOptions {
  readonly turn: TurnContext;
  /** The turn continues at this time, in milliseconds since the epoch. */
  readonly onAccepted: (until: number) => void;
  readonly onRefused: () => void;
  /** Name of the provider or external agent that refused. */
  readonly provider: () => string;
}

/** Call id of a quota request, which belongs to no call. */
export const quotaCall = 'quota';

type Reached = Extract<TurnEmitted, { type: 'turn.quotaReached' }>;

/**
 * Longest wait of a turn for quotas, in milliseconds; 0: the turn fails at once. A caller that waits for an HTTP response is not kept
 * waiting for hours, and "ask" needs a user who can answer.
 */
export function maxQuotaWaitMsOf({ services, policy, options }: Pick<TurnContext, 'services' | 'policy' | 'options'>) {
  const { wait, maxWaitMs } = services.settings.quota;
  const isOff = wait === 'never' || options.waitsForQuota === false || (wait === 'ask' && policy !== 'default');
  return isOff ? 0 : maxWaitMs;
}

/**
 * Wait of one turn for a quota. With `Quota.Wait` "ask", a first request asks whether the turn should continue after the reset. While the
 * turn waits, a second request offers to continue at once or to end the turn. Both are approval requests, which every client shows.
 */
export class TurnQuota {
  readonly #options: TurnQuotaOptions;
  #reached: Reached | undefined;
  #request: ApprovalRequest | undefined;
  /** An earlier process reported the wait, and this process has not taken it over yet. */
  #isEarlier: boolean;
  /** Answer given to the earlier process, or to this one before it took over the wait. */
  #earlierAnswer: 'accepted' | 'refused' | undefined;
  /** A user has ended the wait. */
  #isHurried = false;

  constructor(options: TurnQuotaOptions) {
    this.#options = options;
    this.#isEarlier = options.turn.resumed?.facts.state === 'waitingForQuota';
  }

  get #now(): number {
    return this.#options.turn.services.waitClock.now();
  }

  get pending(): readonly ApprovalRequest[] {
    return this.#request ? [this.#request] : [];
  }

  /** Takes over the request of an earlier process. */
  restore(): void {
    const { record } = this.#options.turn;
    const asked = record.items.last('approvalRequest', ({ callId }) => callId === quotaCall);
    if (!this.#isEarlier || !asked) return;
    const answer = record.items.last('approvalResponse', ({ requestId }) => requestId === asked.requestId);
    const isScheduled = asked.operation === operations.continue;
    if (answer) this.#earlierAnswer = isRefusal(answer.decision) ? 'refused' : 'accepted';
    else if (isScheduled) this.#earlierAnswer = 'accepted';
    this.#isHurried = answer !== undefined && (isScheduled || answer.decision === 'now');
    if (!answer) this.#request = this.#requestOf(asked);
  }

  /** Reports that the turn waits, and asks whether it should, unless the setting or an earlier answer decides. */
  reach(reached: Reached): void {
    const { turn, onAccepted, onRefused, provider } = this.#options;
    const { record, services, place } = turn;
    const { isKnown, reason, waits, pauseMs } = reached;
    // After the clock was set back, the wait of an earlier process does not begin again with more than its length.
    const until = this.#isEarlier ? Math.min(reached.until, this.#now + pauseMs) : reached.until;
    this.#reached = { ...reached, until };
    if (!this.#isEarlier) {
      const text = `${reason} ${isKnown ? 'The quota resets' : 'The time of the reset is unknown; the next try is'} at ${timeOf(until)}.`;
      record.items.discardAnswer();
      record.items.add({ type: 'systemNotice', kind: 'quotaWaiting', text });
      const about = { until: isKnown ? iso(until) : null, provider: provider(), reason };
      record.publish({ method: 'system/event', params: { ...place, kind: 'quotaWaiting', message: text, ...about } });
    }
    record.saveStatus();
    const isAccepted = services.settings.quota.wait === 'auto' || waits > 1 || this.#earlierAnswer === 'accepted';
    const isRefused = this.#earlierAnswer === 'refused';
    this.#isEarlier = false;
    this.#earlierAnswer = undefined;
    if (isRefused) onRefused();
    else if (isAccepted) onAccepted(this.#isHurried ? this.#now : until);
    else if (!this.#request) this.#ask('wait', place.turnId);
  }

  /** Resolves when the turn continues: at the time of the reset, even if the machine slept, or earlier if a user asks for it. */
  async awaitReset(until: number, signal: AbortSignal): Promise<void> {
    const { record, place, policy, services } = this.#options.turn;
    if (policy === 'default' && !this.#isHurried && !this.#request) this.#ask('continue', place.turnId);
    await waitUntil(until, signal, services.waitClock);
    this.#isHurried = false;
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
    const isScheduled = request.operation === operations.continue;
    const isRefused = isRefusal(decision);
    // A client without a user declines every request, but this one needs no answer.
    if (isScheduled && isRefused && decider.by === 'policy') return true;
    this.#resolve(decision, decider);
    this.#isHurried = !isRefused && (decision === 'now' || isScheduled);
    if (!this.#reached) this.#earlierAnswer = isRefused ? 'refused' : 'accepted';
    else if (isRefused) this.#options.onRefused();
    else this.#options.onAccepted(this.#isHurried ? this.#now : this.#reached.until);
    return true;
  }

  /** Declines the pending request: no user answered in time. */
  expire(): void {
    if (this.#request) this.#resolve('decline', { by: 'timeout' });
  }

  /** Withdraws the pending request at the end of the turn. */
  withdraw(): void {
    if (this.#request) this.#resolve('cancel', { by: 'policy' });
  }

  #ask(operation: keyof typeof operations, turnId: string): void {
    const { turn, provider } = this.#options;
    const { thread, record } = turn;
    const { until = 0, isKnown = false, reason = '' } = this.#reached ?? {};
    const of = provider();
    const item = record.items.add<'approvalRequest'>({
      ...{ type: 'approvalRequest', requestId: `approval_${randomUUID()}`, callId: quotaCall },
      ...{ approvalType: 'remoteResource', operation: operations[operation] },
      target: `at ${timeOf(until)}, when ${isKnown ? `the quota of ${of} resets` : `${of} may answer again (its reset is unknown)`}`,
      ...{ scopeKey: `quota:${turnId}`, covers: 'this turn', reason },
      ...{ until: isKnown ? iso(until) : null, provider: of },
    });
    this.#request = this.#requestOf(item);
    record.publish({ method: 'item/approval/request', params: this.#request });
    thread.onChange();
  }

  #requestOf({ id: itemId, turnId: _, status: __, type: ___, ...asked }: ItemOf<'approvalRequest'>): ApprovalRequest {
    const { place } = this.#options.turn;
    const { until } = this.#reached ?? {};
    const isScheduled = asked.operation === operations.continue;
    const limit = Date.parse(asked.createdAt) + maxQuotaWaitMsOf(this.#options.turn);
    const expiresAt = iso(isScheduled && until !== undefined ? Math.max(until, Date.parse(asked.createdAt)) : limit);
    return { ...asked, ...place, itemId, tool: 'Quota', expiresAt };
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
