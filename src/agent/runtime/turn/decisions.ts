import type { ApprovalDecision, Item, QuestionState } from '../../../protocol/index.ts';
import type { DecidedBy } from './call-review.ts';

/** Decision that led to the state of a question. */
export const wordOf = (state: QuestionState): ApprovalDecision =>
  state === 'answered' ? 'accept' : state === 'cancelled' ? 'cancel' : 'decline';

/** State of a question after a decision. */
export function stateOf(decision: ApprovalDecision, by: DecidedBy): QuestionState {
  if (decision.startsWith('accept')) return 'answered';
  if (by === 'timeout') return 'expired';
  return decision === 'cancel' ? 'cancelled' : 'declined';
}

/** Number of decided approvals to remember for late answers. */
const maxDecisions = 1_000;

/** Decision about an approval or a question, and its author. */
export interface MadeDecision {
  readonly decision: ApprovalDecision;
  readonly decidedBy: DecidedBy;
  /** Program through which a user decided, by the name that it gave. */
  readonly client?: string | undefined;
}

/** Latest decisions about approvals, so that a late answer gets the first decision. */
export class ApprovalDecisions {
  readonly #made = new Map<string, MadeDecision>();

  of(requestId: string): MadeDecision | undefined {
    return this.#made.get(requestId);
  }

  /** Remembers a published decision. Decisions of clients are already remembered. */
  note({ requestId, decision, decidedBy, client }: MadeDecision & { readonly requestId: string }): void {
    if (!this.#made.has(requestId)) this.remember(requestId, { decision, decidedBy, client });
  }

  /** Remembers the decisions of an earlier process, from the items of its turn. */
  restore(items: readonly Item[]): void {
    for (const item of items) {
      if (item.type === 'approvalResponse') this.note(item);
      if (item.type === 'question' && item.decidedBy) {
        const { requestId, state, decidedBy, client } = item;
        this.note({ ...{ requestId, decidedBy, client }, decision: wordOf(state) });
      }
    }
  }

  remember(requestId: string, made: MadeDecision): void {
    this.#made.set(requestId, made);
    const [oldest] = this.#made.keys();
    if (this.#made.size > maxDecisions && oldest !== undefined) this.#made.delete(oldest);
  }
}
