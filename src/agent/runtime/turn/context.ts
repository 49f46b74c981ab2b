import type { ApprovalPolicy, InputPart } from '../../../protocol/index.ts';
import type { RuntimeServices } from '../services.ts';
import type { TurnOptions } from '../types.ts';
import type { ResumedTurn } from './facts.ts';
import type { TurnRecord } from './record.ts';
import type { TurnPlace, TurnThread } from './thread.ts';

/** One turn, as all its parts share it. */
export interface TurnContext {
  readonly services: RuntimeServices;
  readonly thread: TurnThread;
  readonly place: TurnPlace;
  /** Prompt of the turn. */
  readonly input: readonly InputPart[];
  readonly options: TurnOptions;
  readonly policy: ApprovalPolicy;
  /** Whether a user can answer questions. */
  readonly canAsk: boolean;
  /** The turn changes nothing: it ends with a plan. */
  readonly isPlanning: boolean;
  readonly approvalTimeoutMs: number;
  readonly record: TurnRecord;
  /** Present: an earlier process began the turn. */
  readonly resumed?: ResumedTurn | undefined;
}
