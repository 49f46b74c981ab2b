import type { Failure } from './failure.ts';

/** Types of the turn machine: input, results of its actors, context and events. */

export interface TurnInput {
  readonly threadId: string;
  readonly turnId: string;
  /** Answers of the model that this turn may use. */
  readonly maxRounds: number;
  /** Repetitions of one failed request. */
  readonly maxRetries: number;
  /** Models that may take over when the model of the turn fails. */
  readonly fallbackModels: number;
  /** Times that the hooks of the turn's end may have it continue; 0: no hooks. */
  readonly endChecks: number;
  /** An external agent does the turn in place of the model. */
  readonly isDelegated: boolean;
  /** Longest wait for quotas without an answer in between, in milliseconds; 0: the turn waits for none. */
  readonly maxQuotaWaitMs: number;
  /** A user confirms a wait for a quota before it begins. */
  readonly asksForQuota: boolean;
  /** Seed of the pauses between repetitions. */
  readonly seed: number;
  /** State of the turn when its process ended; absent: a new turn. */
  readonly resumed?: SavedTurn | undefined;
}

/** State of a turn, saved for the next process. */
export interface SavedTurn {
  /** Name of the state. */
  readonly state: string;
  /** Null: the turn had not begun. */
  readonly context: SavedContext | null;
}

/** The context without the facts that the next process has itself. */
export type SavedContext = Omit<TurnContext, keyof TurnKey | 'limits' | 'pending' | 'isStored'>;

/** State in which a resumed turn continues. */
export type ResumedState =
  | 'checking'
  | 'reviewing'
  | 'checkingEnd'
  | 'concluding'
  | 'waitingForQuota'
  | 'securing'
  | 'storing';

/** Result of the work before a resumed turn continues. */
export interface Resumption {
  readonly next: ResumedState;
}

/** Input of every actor. */
export type TurnKey = Pick<TurnInput, 'threadId' | 'turnId'>;

export interface TurnTokens {
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly cachedInputTokens: number;
  readonly reasoningTokens: number;
  /** In US dollars; null: the price of a request is unknown. */
  readonly costUsd: number | null;
}

/** Tokens of a turn before its first request. */
export const noTokens: TurnTokens = {
  inputTokens: 0,
  outputTokens: 0,
  cachedInputTokens: 0,
  reasoningTokens: 0,
  costUsd: 0,
};

export type TurnFinish = 'stop' | 'length' | 'toolCalls' | 'contentFilter';
export type TurnInterrupter = 'user' | 'shutdown' | 'approval';
export type TurnOutcome = 'completed' | 'failed' | 'cancelled';

export interface InferenceInput extends TurnKey {
  /** No request of the turn has been answered yet. */
  readonly isFirstRequest: boolean;
  /** Failures since the last answer, which this request repeats. */
  readonly retries: number;
}

export interface FallbackInput extends TurnKey {
  /** Place of the model in the list of fallback models, from 0. */
  readonly index: number;
}

/** Wait of a turn for a quota. */
export interface QuotaWait {
  /** Time at which the turn continues, in milliseconds since the epoch; 0: at once. */
  readonly until: number;
  /** Length of the whole wait, in milliseconds. */
  readonly pauseMs: number;
  /** The provider has stated a reset. */
  readonly isKnown: boolean;
  /** Refusal of the provider. */
  readonly reason: string;
}

export interface QuotaInput extends TurnKey, QuotaWait {}

/** Result of the check before a request. */
export interface CheckedTurn {
  /** The conversation exceeds the context window and can be compacted. */
  readonly isTooLong: boolean;
  /** Budget that is used up, in words; null: none. */
  readonly usedUpBudget: string | null;
}

/** Result of one answer of the model. Its tokens are reported by `TOKENS.USED`. */
export interface Inference {
  /** Number of calls for the server. */
  readonly calls: number;
  /** Number of calls that the caller runs after the turn. */
  readonly clientCalls: number;
  /** A user added input during the answer. */
  readonly isSteered: boolean;
  readonly finish: TurnFinish;
  readonly flaw: AnswerFlaw | null;
}

/**
 * Defect of an answer that its service calls complete. `empty`: neither text nor call. `lostCall`: a call is announced, and none came.
 * `printedCall`: the text is a call of an offered tool.
 */
export type AnswerFlaw = 'empty' | 'lostCall' | 'printedCall';

/** Result of an external agent. */
export interface Delegated {
  /** The agent has ended the turn as cancelled, for example because a call was declined. */
  readonly isCancelled: boolean;
  readonly finish: TurnFinish;
}

export interface ReviewedCalls {
  /** Ids of the approvals that are requested. */
  readonly pending: readonly string[];
}

/** Result of the check before a turn ends. */
export interface CheckedEnd {
  /** A hook of the user has the turn continue, and the conversation has its reason. */
  readonly continues: boolean;
}

export interface ToolRun {
  /** Tool that the model calls again and again with the same result; null: none. */
  readonly repeated: string | null;
  /** A call was cut off at the output limit of the model. */
  readonly isCut: boolean;
}

/** Failures since the last answer, and the reactions to them. */
export interface TurnPatience {
  /** Seed of the next pause. */
  readonly seed: number;
  /** Compactions since the last answer: after the third the conversation counts as too long. */
  readonly compactions: number;
  /** Refused parts that were left out since the last answer. */
  readonly omissions: number;
  /** Failed requests since the last answer. */
  readonly failedRequests: number;
  /** Pause before the next repetition, in milliseconds. */
  readonly retryMs: number;
  /** Fallback models used so far. */
  readonly fallbacks: number;
  /** Times that the end was checked: a hook had the turn continue each time before the last. */
  readonly heldUp: number;
  /** Answers in a row without text and call. */
  readonly emptyAnswers: number;
  /** Times that the model was notified that it had printed a call. */
  readonly corrections: number;
  /** Answers in a row with a call that was cut off. */
  readonly cutAnswers: number;
  /** The model has called a tool. */
  readonly hasCalled: boolean;
  /** Waits for a quota since the last answer, and their length in milliseconds. */
  readonly quotaWaits: number;
  readonly quotaWaitedMs: number;
  /** Time at which the turn continues, in milliseconds since the epoch; 0: at once. */
  readonly quotaUntil: number;
  /** Answer of the user to the present wait for a quota or a budget; null: none yet. */
  readonly quotaAnswer: Exclude<HoldAnswer, 'hurried'> | null;
}

/** `accepted`: the turn waits for its quota. `hurried`: it continues before the reset. `refused`: it ends. */
export type HoldAnswer = 'accepted' | 'hurried' | 'refused';

/** Every transition copies it: above sixteen fields V8 keeps such a copy as a dictionary, which takes thirty times as long. */
export interface TurnContext extends TurnKey {
  readonly limits: Omit<TurnInput, keyof TurnKey | 'seed' | 'resumed'> & { readonly isResumed: boolean };
  readonly patience: TurnPatience;
  /** Requests to the model so far, repeated ones included. */
  readonly requests: number;
  /** Answers of the model so far. */
  readonly rounds: number;
  /** Sum over all requests, those included that were interrupted or failed. */
  readonly tokens: TurnTokens;
  /** Undecided approvals, by request id. */
  readonly pending: readonly string[];
  readonly clientCalls: number;
  /** Budget that is used up, in words. */
  readonly usedUpBudget: string | null;
  readonly finish: TurnFinish;
  /** Source of the first interrupt. */
  readonly interruptedBy: TurnInterrupter | null;
  readonly failure: Failure | null;
  /** Null until the turn ends. */
  readonly outcome: TurnOutcome | null;
  /** The end of the turn was written. */
  readonly isStored: boolean;
}

export type TurnEvent =
  /** Request of a user, an approval or a shutdown to end the turn. */
  | { readonly type: 'INTERRUPT'; readonly by: TurnInterrupter }
  /** A user, a policy or the timeout decided an approval. */
  | { readonly type: 'DECIDED'; readonly requestId: string }
  /** An external agent asks for an approval. */
  | { readonly type: 'APPROVAL.NEEDED'; readonly requestId: string }
  /** One request to the model ended, with an answer or without; or a summary or a sub-agent, which count with their cost only. */
  | { readonly type: 'TOKENS.USED'; readonly tokens: TurnTokens }
  /** The user allows the turn to exceed its budget. */
  | { readonly type: 'BUDGET.RAISED' }
  /** A user, or a policy, answers a turn that is held. */
  | { readonly type: 'HOLD.ANSWERED'; readonly answer: HoldAnswer }
  /** The end of the turn was written. */
  | { readonly type: 'END.STORED' }
  /** A write of this turn failed; nothing of that batch was published. */
  | { readonly type: 'STORAGE.FAILED'; readonly message: string };

export type TurnEmitted =
  | { readonly type: 'turn.waiting' }
  | { readonly type: 'turn.resumed' }
  | { readonly type: 'turn.approvalsExpired'; readonly requestIds: readonly string[] }
  /** The turn has used all its requests. */
  | { readonly type: 'turn.limitReached'; readonly rounds: number }
  /** The model repeats one call although its result stays the same. */
  | { readonly type: 'turn.stuck'; readonly rounds: number; readonly tool: string }
  /** Calls were cut off at the output limit, several answers in a row. */
  | { readonly type: 'turn.cutOff'; readonly answers: number }
  /** The model printed a call of a tool as text: it is notified to call tools. */
  | { readonly type: 'turn.callPrinted' }
  /** The turn ends without a last text: its calls are its result. */
  | { readonly type: 'turn.endedSilently' }
  /** The last request of a turn at its limit failed. */
  | { readonly type: 'turn.notConcluded'; readonly reason: string }
  /** A request failed and is repeated after a pause. `attempt` counts from 1. */
  | { readonly type: 'turn.retrying'; readonly attempt: number; readonly waitMs: number; readonly reason: string }
  /** A request was refused and is repeated without the refused part, which `leftOut` names. */
  | { readonly type: 'turn.leavingOut'; readonly leftOut: string; readonly reason: string }
  /** The next fallback model takes over; `index` counts from 0. */
  | { readonly type: 'turn.fallingBack'; readonly index: number; readonly reason: string }
  | { readonly type: 'turn.budgetReached'; readonly budget: string }
  /** The turn begins to wait for a quota. */
  | (QuotaWait & { readonly type: 'turn.quotaReached' })
  /** A user must confirm the wait. */
  | (QuotaWait & { readonly type: 'turn.quotaAsked' })
  /** No user decided about the budget or the quota in time. */
  | { readonly type: 'turn.holdExpired' }
  /** The outcome is decided and must be written. `END.STORED` or `STORAGE.FAILED` answers it. */
  | { readonly type: 'turn.ending' }
  /** Last event. `isStored: false`: a write failed, so the store lacks this end. */
  | { readonly type: 'turn.ended'; readonly isStored: boolean };
