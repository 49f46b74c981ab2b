import { randomUUID } from 'node:crypto';
import type { AnyActorRef } from 'xstate';
import type { PinnedDirectory } from '../../lib/index.ts';
import type { ApprovalPolicy, InputPart, Turn } from '../../protocol/index.ts';
import type { AgentProblem, Delegate } from '../delegate.ts';
import type { Hooks } from '../hooks/index.ts';
import type { Surroundings } from '../instructions/index.ts';
import type { Library } from '../library/index.ts';
import type { ModelProvider } from '../model.ts';
import type { RuleBook } from '../rules/index.ts';
import type { StoredThread, ThreadStore, TraceStore } from '../thread-store.ts';
import type { Tool } from '../tool.ts';
import type { ReadImage } from '../tools/index.ts';
import type { OpenFork, OpenWorktree } from '../worktrees/index.ts';
import { systemClock, type WaitClock } from './clock.ts';
import { Feed } from './feed.ts';
import type { Past, PastStep } from './past-steps.ts';
import { Tracer } from './tracer.ts';
import type { FileCheckpoints, ThreadProcesses } from './types.ts';

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
  /** Policy of the chat API; absent: `approvalPolicy`. */
  readonly apiApprovalPolicy?: ApprovalPolicy | undefined;
  readonly approvalTimeoutMs: number;
  /** Repetitions of one failed request to a model. */
  readonly maxRetries: number;
  /** Models that take over, in this order, when the model of a turn fails. */
  readonly fallbackModels: readonly string[];
  /** Limits in US dollars; 0: none. */
  readonly budget: { readonly turnUsd: number; readonly sessionUsd: number; readonly dayUsd: number };
  /** Refusals for minutes to days. */
  readonly quota: { readonly wait: 'auto' | 'ask' | 'never'; readonly maxWaitMs: number };
  /** Turns that an earlier process left unfinished. */
  readonly turns: {
    readonly resume: 'auto' | 'ask' | 'never';
    /** Times that a turn may continue without a finished step in between. */
    readonly maxResumes: number;
    readonly resumeWithinHours: number;
    /** Time for a client to register its tools again, in milliseconds. Default: the time limit of a call. */
    readonly clientToolMs?: number;
    /** Whether an external agent is asked to continue its turn. */
    readonly resumeAgents: boolean;
  };
}

/** Spending of the user on this local day, in US dollars. */
export interface DaySpending {
  add(usd: number): void;
  today(): number;
}

/** Services of one workspace. The runtime, its threads and their turns share this object. */
export interface RuntimeServices {
  /** Canonical path. */
  readonly workspacePath: string;
  /** The workspace as the server opened it. Absent: not pinned. */
  readonly workspace?: PinnedDirectory | undefined;
  /** Absolute paths; a thread may work in a directory below one of them. They need not exist. */
  readonly worktreeRoots: readonly string[];
  /** Whether settings and files of the workspace may run programs. Default: true. */
  readonly isTrusted?: boolean | undefined;
  /** Threads on disk, and the permanent grants of the workspace. */
  readonly store: ThreadStore;
  /** Absent: nothing is traced. */
  readonly traces?: TraceStore | undefined;
  /** See `providerSource`. */
  readonly provider: () => Promise<ModelProvider>;
  /** Provider that the latest call of `provider` has opened. Undefined: none yet. */
  readonly loadedProvider: () => ModelProvider | undefined;
  /** External agent that does the turns; absent: the model does them. */
  readonly delegate?: Delegate | undefined;
  /** External agents that threads and sub-agents may name; absent: the user does not trust this workspace. */
  readonly agentOf?: ((name: string) => Delegate | undefined) | undefined;
  /** Why a fork cannot have this agent; absent: the workspace is not trusted. */
  readonly agentProblem?: ((name: string) => AgentProblem | undefined) | undefined;
  /** All tools at the time of the call, MCP tools included. */
  readonly tools: () => readonly Tool[];
  /**
   * Resolves when each tool server is ready or has exceeded its start timeout.
   *
   * @returns names of the servers that are not ready
   */
  readonly toolServers?: (() => Promise<readonly string[]>) | undefined;
  /** Built-in tools that the configuration enables, by name; undefined: all. */
  readonly enabledTools?: readonly string[] | undefined;
  readonly settings: RuntimeSettings;
  /** Reads images that messages name by path. */
  readonly readImage: ReadImage;
  /** Absent: no files with instructions are read. */
  readonly surroundings?: Surroundings | undefined;
  /** Absent: no rules about calls. */
  readonly rules?: RuleBook | undefined;
  /** Absent: no background processes. */
  readonly processes?: ThreadProcesses | undefined;
  /** Absent: no hooks. */
  readonly hooks?: Hooks | undefined;
  /** Absent: no skills and prompt commands. */
  readonly library?: Library | undefined;
  /** Absent: files are not saved, and cannot be restored. */
  readonly checkpoints?: FileCheckpoints | undefined;
  /** Private directory for conversations that move. Absent: none can move. */
  readonly moveDirectory?: string | undefined;
  /** Absent: sub-agents have no worktrees of their own. */
  readonly openWorktree?: OpenWorktree | undefined;
  /** Absent: forks have no directories of their own. */
  readonly openFork?: OpenFork | undefined;
  /** Money that all workspaces of the user spend. */
  readonly spending: DaySpending;
  /** Name of this process in the events of resumed turns. */
  readonly incarnation: string;
  /** Boot of the machine; absent: unknown. */
  readonly bootId?: string | undefined;
  /** Clock of waits for a quota. */
  readonly waitClock: WaitClock;
  /** Redacts secrets. */
  readonly clean: (text: string) => string;
  /** Logs a bug and returns its id. */
  readonly onBug: (error: unknown) => string;
  /** Receives the machine of every turn before it starts. */
  readonly observe?: (
    actor: AnyActorRef,
    threadId: string,
    turnId: string,
    input: readonly InputPart[],
    past: Past | undefined,
  ) => void;
  /** Latest transitions of an observed turn, after a position. Absent: none are stored. */
  readonly stepsOf?: ((threadId: string, turnId: string, after: number) => readonly PastStep[]) | undefined;
  /** Called when a thread is deleted, one in memory included. */
  readonly onDeleted?: ((threadId: string) => void) | undefined;
  /** Called after the last event of every turn of a stored thread. */
  readonly onTurnEnd?: (thread: StoredThread, turn: Turn) => void;
  readonly feed: Feed;
  /** Absent: nothing is traced. */
  readonly tracer: Tracer | undefined;
  /** Windows that refusals have shown to be smaller than known, in tokens as estimated here, by model; '' is the default one. */
  readonly learnedWindows: Map<string, number>;
}

/** Services that the runtime makes itself. */
type OwnServices = 'feed' | 'tracer' | 'learnedWindows' | 'loadedProvider';
/** Services that may be missing: images are named by their path only, and only this runtime's spending counts. */
type DefaultedServices = 'worktreeRoots' | 'readImage' | 'spending' | 'clean' | 'incarnation' | 'waitClock';

export interface RuntimeOptions
  extends Omit<RuntimeServices, OwnServices | DefaultedServices>,
    Partial<Pick<RuntimeServices, DefaultedServices>> {
  /** False: nothing is traced; earlier traces stay until their thread is deleted. Default true. */
  readonly isTracing?: boolean;
}

/** Completes the services of a runtime. */
export function completeServices(options: RuntimeOptions): RuntimeServices {
  const { isTracing = true, clean = (text: string) => text, traces, onBug } = options;
  let loaded: ModelProvider | undefined;
  return {
    worktreeRoots: [],
    readImage: async () => undefined,
    spending: new OwnSpending(),
    incarnation: randomUUID(),
    waitClock: systemClock,
    ...options,
    clean,
    provider: async () => {
      loaded = await options.provider();
      return loaded;
    },
    loadedProvider: () => loaded,
    feed: new Feed(onBug),
    tracer: traces && isTracing ? new Tracer(traces, clean) : undefined,
    learnedWindows: new Map(),
  };
}

/** Spending of this process, for services without a ledger. */
class OwnSpending implements DaySpending {
  #usd = 0;

  add(usd: number): void {
    this.#usd += usd;
  }

  today(): number {
    return this.#usd;
  }
}
