import type { ApprovalDecision, ApprovalRequest, Turn } from '../../../protocol/index.ts';
import { type Feed, isAsked, isResolved, type ThreadEvent } from '../feed.ts';
import { ApprovalDecisions, type Decider, type MadeDecision } from '../turn/index.ts';
import type { RunningTurns } from './running-turns.ts';

/** Approvals and questions of the running turns. The clients of a thread answer for its sub-agents, too. */
export class ThreadApprovals {
  readonly #feed: Feed;
  readonly #running: RunningTurns;
  readonly #decisions = new ApprovalDecisions();

  constructor(feed: Feed, running: RunningTurns) {
    this.#feed = feed;
    this.#running = running;
    feed.watchApprovals((event) => this.#follow(event));
  }

  /** Pending approvals; of one thread with its sub-agents. */
  pending(threadId?: string): readonly ApprovalRequest[] {
    const turns = threadId === undefined ? [...this.#running] : this.#running.within(threadId);
    return turns.flatMap(({ run }) => run.approvals);
  }

  /** False: no approval of this id is pending. */
  respond(requestId: string, decision: ApprovalDecision, decider: Decider): boolean {
    for (const { run } of this.#running) {
      if (!run.decide(requestId, decision, decider)) continue;
      this.#decisions.remember(requestId, { decision, decidedBy: decider.by, client: decider.client });
      return true;
    }
    return false;
  }

  /** Remembers the decisions in a turn that an earlier process left unfinished. */
  restore({ items }: Turn): void {
    this.#decisions.restore(items);
  }

  /** Decision about an approval, while it is remembered. */
  decisionOf(requestId: string): MadeDecision | undefined {
    return this.#decisions.of(requestId);
  }

  /** Remembers a decision, and publishes the event to the clients of the parents. */
  #follow(event: ThreadEvent): void {
    if (isResolved(event)) this.#decisions.note(event.params);
    else if (!isAsked(event)) return;
    const turn = this.#running.of(event.params.threadId);
    if (!turn) return;
    for (const parentId of this.#running.parentsOf(turn.thread)) {
      this.#feed.publish(parentId, event, this.#running.of(parentId)?.asker);
    }
  }
}
