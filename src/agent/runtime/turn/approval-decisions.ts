import type { ApprovalDecision } from '../../../protocol/index.ts';
import type { ThreadEvent } from '../feed.ts';
import type { DecidedBy } from './call-review.ts';

type Resolved = Extract<ThreadEvent, { method: 'item/approval/resolved' }>;

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
  note({ requestId, decision, decidedBy, client }: Resolved['params']): void {
    if (!this.#made.has(requestId)) this.remember(requestId, { decision, decidedBy, client });
  }

  remember(requestId: string, made: MadeDecision): void {
    this.#made.set(requestId, made);
    const [oldest] = this.#made.keys();
    if (this.#made.size > maxDecisions && oldest !== undefined) this.#made.delete(oldest);
  }
}
