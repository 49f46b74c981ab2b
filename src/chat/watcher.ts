import type { HttpError } from '../http/index.ts';
import type { FinishReason, TokenUsage } from '../protocol/index.ts';
import type { Activity } from './activity.ts';
import type { CallPiece } from './client-calls.ts';

/** End of a turn; `error` is set if it failed. */
export interface Outcome {
  readonly finish: FinishReason;
  readonly usage: TokenUsage | undefined;
  readonly error: HttpError | undefined;
}

/** Receiver of an answer while it is written. */
export interface Watcher {
  /** The reply sends each piece at once and cannot take it back. */
  readonly isStream: boolean;
  onText(text: string): void;
  onReasoning(text: string): void;
  /** A piece of a call of one of the caller's tools. */
  onCall(piece: CallPiece): void;
  /** `line` is the activity as text for the thoughts; empty if activity is not shown there. */
  onActivity(activity: Activity, line: string): void;
  /** The last call. */
  onEnd(outcome: Outcome): void;
}
