import type { DroppedFinding, ReviewFinding, Severity, SubmittedFinding, TokenUsage } from '../../protocol/index.ts';
import type { Anchor, DiffFile, Selection, SuggestionObstacle } from '../anchors/index.ts';
import type { PreparedReview } from '../git/index.ts';
import type { StoredFinding, StoredItem, StoredRun } from '../store/index.ts';

/** Task of the agent, with all facts about the change. */
export interface ReviewAssignment {
  readonly run: StoredRun;
  readonly item: StoredItem;
  /** The route's workspace, whose agent server does the work. */
  readonly workspacePath: string;
  readonly prepared: PreparedReview;
  /** The whole change, parsed: findings are anchored in it. */
  readonly diffFiles: readonly DiffFile[];
  readonly selection: Selection;
  /** Instructions from the settings and from the base commit; never from the head. */
  readonly instructions: readonly string[];
  /** Reported findings that are not resolved: they are not reported again, and are resolved when fixed. */
  readonly openFindings: readonly StoredFinding[];
  readonly maxFindings: number;
  /** Less severe findings are not requested. Default: the setting. */
  readonly minSeverity?: Severity;
}

export interface AnchoredFinding {
  readonly finding: SubmittedFinding;
  readonly anchor: Anchor;
  readonly fingerprint: string;
  /** Former path of its file, when the change renames it. */
  readonly oldPath?: string;
  /** Reason for publishing its change without a suggestion. */
  readonly obstacle?: SuggestionObstacle;
}

/** Finding of a draft that is missing from the last valid draft. */
export type WithdrawnFinding = Omit<DroppedFinding, 'sameAs'> & { readonly reason: 'withdrawn' | 'notTaken' };

/** Submission of the model; the last one of a turn counts. */
export interface ReviewSubmission {
  readonly threadId: string;
  readonly turnId: string;
  readonly summary: string;
  readonly findings: readonly AnchoredFinding[];
  readonly resolved: readonly {
    readonly findingId: string;
    readonly resolution: NonNullable<ReviewFinding['resolution']>;
    readonly note: string | null;
  }[];
  /** Findings of drafts that the model replaced, or that were refused. */
  readonly withdrawn?: readonly WithdrawnFinding[];
  /** Notes for users: findings without an anchor that the summary lists, for example. */
  readonly warnings: readonly string[];
  readonly usage?: TokenUsage;
}

export interface ReviewHooks {
  /** Aborted: the turn is interrupted and the promise rejects with the reason. */
  readonly signal: AbortSignal;
  /** Called before the model is prompted; awaited, so that another process knows the turn that it has to interrupt. */
  readonly onTurn: (turn: { readonly threadId: string; readonly turnId: string | null }) => Promise<void>;
  /** Called at each message of the agent, which is therefore not stalled. */
  readonly onActivity: () => void;
}

/** Reason why a review by an agent has no result. Codes: agentUnavailable, agentConnectionLost, turnFailed, draftMissing. */
export interface ReviewAgentFailure {
  readonly code: string;
  readonly message: string;
  readonly isRetryable: boolean;
  readonly retryAfterMs?: number;
}

/** Agent servers in the form that reviews use. */
export interface ReviewAgent {
  /**
   * Runs one turn in a separate thread, in the worktree, read-only. Resolves when a draft was submitted and the turn is over.
   *
   * @throws ReviewAgentError (a ReviewAgentFailure), or the signal's reason
   */
  review(assignment: ReviewAssignment, hooks: ReviewHooks): Promise<ReviewSubmission>;
  /** Ends the running turn of a thread, which another process may have begun. A missing thread is not an error. */
  interrupt(workspacePath: string, threadId: string): Promise<void>;
  /**
   * Address of the Dashboard page of a thread, without a token: the Dashboard asks for one. Undefined when no server shows the
   * thread; no server is started for it.
   */
  traceUrl(workspacePath: string, threadId: string): Promise<string | undefined>;
  /** Entry of `/api/v1/status` for the agent server of a workspace. */
  status(workspacePath: string): Promise<{ readonly state: 'reachable' | 'unreachable'; readonly message?: string }>;
  close(): Promise<void>;
}
