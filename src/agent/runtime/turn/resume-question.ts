import { randomUUID } from 'node:crypto';
import type { ApprovalDecision, ApprovalRequest } from '../../../protocol/index.ts';
import { authorOf, type Decider } from './call-review.ts';
import type { TurnContext } from './context.ts';
import { expiryOf } from './earlier-request.ts';

/** Stands for the call that this question has none of. */
const resumeCall = 'resume';

/** Asks whether a turn of an earlier process continues (`Turns.Resume: "ask"`). Silence declines. */
export class ResumeQuestion {
  readonly #turn: TurnContext;
  readonly #onDecided: (isAccepted: boolean) => void;
  readonly #timer: NodeJS.Timeout;
  #request: ApprovalRequest | undefined;

  /** @param now milliseconds since the epoch */
  constructor(turn: TurnContext, now: number, onDecided: (isAccepted: boolean) => void) {
    this.#turn = turn;
    this.#onDecided = onDecided;
    const { record, place, approvalTimeoutMs } = turn;
    const shown = {
      callId: resumeCall,
      approvalType: 'remoteResource' as const,
      operation: 'continue',
      target: 'this turn, which the end of the agent server cut',
      scopeKey: `resume:${place.turnId}`,
      covers: 'this turn',
    };
    const { items } = record;
    const earlier = items.last('approvalRequest', ({ callId }) => callId === resumeCall);
    const isOpen = items.last('approvalResponse', ({ requestId }) => requestId === earlier?.requestId) === undefined;
    const item =
      earlier && isOpen
        ? earlier
        : items.add<'approvalRequest'>({ type: 'approvalRequest', requestId: `approval_${randomUUID()}`, ...shown });
    const { id: itemId, requestId, createdAt } = item;
    const expiresAt = expiryOf(createdAt, approvalTimeoutMs, now);
    this.#request = { ...place, itemId, requestId, tool: 'Turn', ...shown, createdAt, expiresAt };
    record.publish({ method: 'item/approval/request', params: this.#request });
    this.#timer = setTimeout(
      () => this.decide(requestId, 'decline', { by: 'timeout' }),
      Date.parse(expiresAt) - now,
    ).unref();
  }

  get pending(): readonly ApprovalRequest[] {
    return this.#request ? [this.#request] : [];
  }

  /** False: it is not this question, or it is decided. */
  decide(requestId: string, decision: ApprovalDecision, decider: Decider): boolean {
    if (this.#request?.requestId !== requestId) return false;
    this.#request = undefined;
    clearTimeout(this.#timer);
    const { record, place, thread } = this.#turn;
    const about = { requestId, callId: resumeCall, decision, ...authorOf(decider) };
    record.items.add({ type: 'approvalResponse', ...about });
    record.publish({
      method: 'item/approval/resolved',
      params: { ...place, requestId, decision, ...authorOf(decider) },
    });
    thread.onChange();
    this.#onDecided(decision !== 'decline' && decision !== 'cancel');
    return true;
  }

  /** Declines the open question: the turn is interrupted. */
  decline(): void {
    if (this.#request) this.decide(this.#request.requestId, 'cancel', { by: 'policy' });
  }

  /** Leaves the question to the next process. */
  leave(): void {
    clearTimeout(this.#timer);
  }
}
