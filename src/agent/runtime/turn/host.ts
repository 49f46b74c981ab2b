import type { ApprovalPolicy, ThreadConfig, Turn } from '../../../protocol/index.ts';
import type { Delegate } from '../../delegate.ts';
import type { Hooks } from '../../hooks/index.ts';
import type { Surroundings } from '../../instructions/index.ts';
import type { Library } from '../../library/index.ts';
import type { ModelProvider } from '../../model.ts';
import type { RuleBook } from '../../rules/index.ts';
import type { ThreadStore } from '../../thread-store.ts';
import type { SubagentOrder, Tool, ToolResult } from '../../tool.ts';
import type { ReadImage } from '../../tools/index.ts';
import type { ThreadEvent } from '../feed.ts';
import type { Journal } from '../journal.ts';
import type { Tracer } from '../tracer.ts';
import type { FileCheckpoints } from '../types.ts';

/** Settings of the runtime; the names match the configuration. */
export interface RuntimeSettings {
  readonly systemPrompt: string;
  readonly maxToolCallRounds: number;
  /** Limit of queued inputs in one thread; 0 disables the queue. */
  readonly maxSessionQueueSize: number;
  readonly compaction: {
    readonly isAutomatic: boolean;
    /** Tokens of any model's window; 0: as known of the model. */
    readonly contextWindow: number;
    readonly reserveTokens: number;
    readonly keepRecentTurns: number;
  };
  readonly subAgent: {
    /** Model of sub-agents that explore; empty: `model`. */
    readonly exploreModel: string;
    readonly maxDepth: number;
    readonly maxConcurrency: number;
    readonly maxToolCallRounds: number;
    readonly model: string;
  };
  readonly approvalPolicy: ApprovalPolicy;
  readonly approvalTimeoutMs: number;
  /** Repetitions of one failed request to a model. */
  readonly maxRetries: number;
  /** Models that take over, in this order, when the model of a turn fails. */
  readonly fallbackModels: readonly string[];
  /** Limits in US dollars; 0: none. */
  readonly budget: { readonly turnUsd: number; readonly sessionUsd: number; readonly dayUsd: number };
}

/** Known spending in US dollars. */
export interface TurnSpending {
  /** Counts a request. */
  readonly add: (usd: number) => void;
  /** Returns the thread's spending before this turn. */
  readonly ofThread: () => number;
  /** Returns the spending of all the user's workspaces on this local day. */
  readonly today: () => number;
}

/** Services that a turn needs from its thread and from the runtime. */
export interface TurnHost {
  readonly threadId: string;
  readonly config: ThreadConfig;
  /** Directory of the conversation: the workspace of the server, or a worktree. */
  readonly workspacePath: string;
  /** Workspace of the server. */
  readonly projectPath: string;
  readonly settings: RuntimeSettings;
  readonly maxRounds: number;
  readonly store: ThreadStore;
  readonly journal: Journal;
  readonly tracer: Tracer | undefined;
  readonly provider: () => Promise<ModelProvider>;
  /** Absent: the model does the turns. */
  readonly delegate: Delegate | undefined;
  /** Windows that refusals have shown to be smaller than known, in tokens as estimated here, by model; '' is the default one. */
  readonly learnedWindows: Map<string, number>;
  readonly spending: TurnSpending;
  /** Tools that this thread may use at the time of the call. */
  readonly tools: () => readonly Tool[];
  readonly readImage: ReadImage;
  /** Absent: no files with instructions are read. */
  readonly surroundings: Surroundings | undefined;
  /** Absent: no rules about calls. */
  readonly rules: RuleBook | undefined;
  /** Absent: no hooks. */
  readonly hooks: Hooks | undefined;
  /** Absent: no skills. */
  readonly library: Library | undefined;
  /** Absent: the files are not saved. */
  readonly checkpoints: FileCheckpoints | undefined;
  readonly publish: (event: ThreadEvent) => void;
  /** Redacts secrets. */
  readonly clean: (text: string) => string;
  readonly isGranted: (scopeKey: string) => boolean;
  readonly grant: (scopeKey: string, lasts: 'session' | 'always') => void;
  readonly spawnSubagent: (order: SubagentOrder, signal: AbortSignal) => Promise<ToolResult>;
  /** Called when the turn starts, waits for approval, or resumes. */
  readonly onChange: () => void;
  /** Records when the thread was last active; part of the write at the end of the turn. */
  readonly touch: (at: string) => void;
  /** Called once, after the turn's last event. `isStored`: its end is in the store. */
  readonly onEnd: (turn: Turn, isStored: boolean) => void;
  /** Logs a bug and returns its id. */
  readonly onBug: (error: unknown) => string;
}
