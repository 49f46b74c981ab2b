import type {
  AgentOption,
  ApprovalDecision,
  PlanStep,
  QuestionAnswer,
  QuestionForm,
  ToolOutcome,
} from '../protocol/index.ts';
import type { ContentPart } from './model.ts';
import type { ApprovalNeed } from './tool.ts';

/** Tokens and cost of a delegated turn. */
export interface DelegatedUse {
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly cachedInputTokens?: number | undefined;
  readonly reasoningTokens?: number | undefined;
  /** Cost in US dollars; undefined: unknown. */
  readonly costUsd?: number | undefined;
}

/** A request to a model that the agent has made in a turn. Its text is the agent's: not trusted. */
export interface DelegatedRequest extends DelegatedUse {
  /** Undefined: unknown. */
  readonly model: string | undefined;
  /** Time of the end, in milliseconds since the Unix epoch. */
  readonly endedAt: number;
  readonly durationMs: number;
}

/** A tool call that the external agent runs itself. Its text comes from the agent: untrusted and unbounded. */
export interface DelegatedCall {
  /** Unique in the turn. */
  readonly callId: string;
  /** Name for people. `Exec`, `WriteFile` and other names of our tools where the kind is the same. */
  readonly tool: string;
  /** A JSON object. */
  readonly arguments: Readonly<Record<string, unknown>>;
  /** Set when the call runs a command: its output is shown. */
  readonly command?: string | undefined;
}

/** A call that the agent asks about before it makes it. */
export interface DelegatedQuestion {
  readonly call: DelegatedCall;
  /** Undefined: a reading call, which our policy allows without a question. */
  readonly need: ApprovalNeed | undefined;
  /** The call names a tool of ours and its arguments: it is judged as our own call of it. */
  readonly isOurs?: boolean | undefined;
  /** An equal call was allowed just now: only a denying rule applies. */
  readonly isGranted?: boolean | undefined;
}

/** Reports of a delegated turn while it runs. They are ignored once the turn has ended. */
export interface DelegatedReport {
  /** Call before the prompt is sent. If the promise rejects, do not send it. */
  readonly prompting: () => Promise<void>;
  /** Bytes of any message of the agent: they count against the limits of the turn. */
  readonly received: (bytes: number) => void;
  /** Text of an answer or of thoughts, as it comes. Another id begins another message. */
  readonly text: (type: 'agentMessage' | 'reasoningContent', text: string, messageId?: string) => void;
  /** A call begins. */
  readonly begin: (call: DelegatedCall) => void;
  /** Output of a command as it comes. */
  readonly output: (callId: string, text: string) => void;
  /** A call ends. */
  readonly end: (
    callId: string,
    end: { readonly outcome: ToolOutcome; readonly text: string; readonly exitCode?: number | undefined },
  ) => void;
  readonly plan: (callId: string, steps: readonly PlanStep[]) => void;
  /** Something that a reader of the conversation should know. */
  readonly notice: (kind: string, text: string) => void;
  /** Tokens and cost of the turn, once. */
  readonly used: (use: DelegatedUse) => void;
  /** Reports a request for the trace only, also after the end of the turn. */
  readonly requested: (request: DelegatedRequest) => void;
  /** Resolves with the decision of a rule, the policy, an earlier grant or a user; `cancel` once the agent has withdrawn it. */
  readonly ask: (question: DelegatedQuestion, withdrawn?: AbortSignal) => Promise<ApprovalDecision>;
  /** Asks the user, until the agent withdraws it; `cancel` at once when no user can answer. @param callId call that it belongs to */
  readonly elicit: (question: QuestionForm, callId: string, withdrawn: AbortSignal) => Promise<QuestionAnswer>;
}

export interface DelegatedOrder {
  readonly threadId: string;
  readonly turnId: string;
  /** Canonical directory that the turn works in. */
  readonly workspacePath: string;
  /** Further directories of the conversation. Canonical. */
  readonly directories: readonly string[];
  readonly input: readonly ContentPart[];
  /** Whether an earlier process has sent the prompt: only its session can continue, and `input` asks the agent to do so. */
  readonly isContinued: boolean;
  /** Model and effort that the turn asks for; undefined: the agent's own. */
  readonly model: string | undefined;
  readonly effort: string | undefined;
  /** Mode of the agent; undefined: the one that it is in. */
  readonly mode: string | undefined;
  /** Further choices, by the id of the agent's option. */
  readonly options: Readonly<Record<string, string | boolean>>;
  readonly isPlanning: boolean;
  /** Session of the thread at the agent, as `keep` has stored it. */
  readonly session: DelegatedSession | undefined;
  /** Stores the session for the next turns of this thread. */
  readonly keep: (session: DelegatedSession) => void;
  readonly report: DelegatedReport;
}

/** Conversation of a thread at an agent. */
export interface DelegatedSession {
  readonly agent: string;
  readonly version: string | null;
  readonly sessionId: string;
}

/** Choices that an agent has offered in the session that it opened last. */
export interface DelegateOffers {
  /** Names of models; one may be the `model` of an order. */
  readonly models: readonly string[];
  /** Ways of working; the `mode` of an order may be the id of one. */
  readonly modes: readonly { readonly id: string; readonly name: string }[];
  /** Further choices. */
  readonly options: readonly AgentOption[];
  /** Commands that a prompt may begin with, after `/`. */
  readonly commands: readonly {
    readonly name: string;
    readonly description: string;
    readonly argumentHint?: string;
  }[];
}

/** Offers of an agent that has opened no session. */
export const noOffers: DelegateOffers = { models: [], modes: [], options: [], commands: [] };

/** Why a thread cannot have an agent, as far as this can be seen without a start. */
export type AgentProblem = 'unknown' | 'notInstalled' | 'restricted';

/** A turn that a delegate could not do. The message is a sentence for people; the runtime removes secrets from it. */
export class DelegateError extends Error {
  override readonly name = 'DelegateError';
  readonly code: string;
  /** Time until the limit that refused the turn is reset, in milliseconds; undefined: unknown. */
  readonly resetMs: number | undefined;

  constructor(code: string, message: string, resetMs?: number) {
    super(message);
    this.code = code;
    this.resetMs = resetMs;
  }
}

/** Stands in for an agent that cannot be had: its turns fail. */
export const unknownAgent = (name: string, isTrusted: boolean): Delegate => ({
  name,
  prepare() {},
  async run() {
    const why = isTrusted ? 'it is no preset, and not the one of the configuration' : 'trust this workspace first';
    throw new DelegateError('agentUnavailable', `There is no agent ${name}: ${why}.`);
  },
  offers: () => noOffers,
  forget() {},
  endThread() {},
});

/**
 * External agent that does turns in place of the model. `run` rejects with a `DelegateError`, or with the reason of
 * `signal` once it has stopped working.
 */
export interface Delegate {
  readonly name: string;
  /** Starts the agent's process, because a turn of the thread will run soon. The turn reports a failure. */
  prepare(threadId: string): void;
  run(
    order: DelegatedOrder,
    signal: AbortSignal,
  ): Promise<{ readonly isCancelled: boolean; readonly finish: 'stop' | 'length' | 'contentFilter' }>;
  /** Latest offers of the agent; empty before its very first session. */
  offers(): DelegateOffers;
  /** A thread is deleted. */
  forget(threadId: string): void;
  /** A thread has ended: it has no more turns. With the last one its process ends. */
  endThread(threadId: string): void;
}
