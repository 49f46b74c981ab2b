import type { ApprovalPolicy, ThreadConfig, Turn } from '../../protocol/index.ts';
import type { ModelProvider } from '../model.ts';
import type { ThreadStore } from '../thread-store.ts';
import type { Tool, ToolResult } from '../tool.ts';
import type { ReadImage } from '../tools/index.ts';
import type { ThreadEvent } from './feed.ts';
import type { Journal } from './journal.ts';
import type { Tracer } from './tracer.ts';

/** Settings of the runtime; the names are those of the configuration. */
export interface RuntimeSettings {
  readonly systemPrompt: string;
  readonly maxToolCallRounds: number;
  /** Inputs that wait in one thread; 0: none may. */
  readonly maxSessionQueueSize: number;
  readonly compaction: {
    readonly isAutomatic: boolean;
    readonly contextWindow: number;
    readonly reserveTokens: number;
    readonly keepRecentTurns: number;
  };
  readonly subAgent: {
    readonly maxDepth: number;
    readonly maxConcurrency: number;
    readonly maxToolCallRounds: number;
    readonly model: string;
  };
  readonly approvalPolicy: ApprovalPolicy;
  readonly approvalTimeoutMs: number;
}

/** Services that a turn needs from its thread and from the runtime. */
export interface TurnHost {
  readonly threadId: string;
  readonly config: ThreadConfig;
  readonly workspacePath: string;
  readonly settings: RuntimeSettings;
  readonly maxRounds: number;
  readonly store: ThreadStore;
  readonly journal: Journal;
  readonly tracer: Tracer | undefined;
  readonly provider: () => Promise<ModelProvider>;
  /** Those that this thread may use, by the time of the call. */
  readonly tools: () => readonly Tool[];
  readonly readImage: ReadImage;
  readonly publish: (event: ThreadEvent) => void;
  /** Takes secrets out of a text. */
  readonly clean: (text: string) => string;
  readonly isGranted: (scopeKey: string) => boolean;
  readonly grant: (scopeKey: string, lasts: 'session' | 'always') => void;
  readonly spawnSubagent: (task: string, label: string | undefined, signal: AbortSignal) => Promise<ToolResult>;
  /** Called when it starts, begins to wait for a user, or continues. */
  readonly onChange: () => void;
  /** Notes when the thread was last active; part of what is written at the end of the turn. */
  readonly touch: (at: string) => void;
  /** Called once, after the turn's last event. `isKept`: its end is in the store. */
  readonly onEnd: (turn: Turn, isKept: boolean) => void;
  /** Logs a bug of ours and returns its id. */
  readonly onBug: (error: unknown) => string;
}
