import type { InputPart, ThreadConfig, Turn } from '../../../protocol/index.ts';
import type { Delegate } from '../../delegate.ts';
import type { ThreadStore } from '../../thread-store.ts';
import type { SubagentOrder, Tool, ToolResult } from '../../tool.ts';
import type { StartedSubagent } from '../../turn-actor-store.ts';
import type { Listener } from '../feed.ts';
import type { Journal } from '../journal.ts';
import type { FileCheckpoints } from '../types.ts';

/** Thread of a turn, as far as the turn uses it and reports to it. */
export interface TurnThread {
  readonly id: string;
  readonly config: ThreadConfig;
  /** Channel of the thread's client. */
  readonly channel: string | undefined;
  /** Directory of the conversation: the workspace of the server, or a worktree. */
  readonly workspacePath: string;
  /** Further directories that its tools read without a question. Canonical. */
  readonly directories?: readonly string[] | undefined;
  /** Answers of the model that the turn may use. */
  readonly maxRounds: number;
  /** Whether the next process can continue the turn. */
  readonly isResumable: boolean;
  readonly store: ThreadStore;
  readonly journal: Journal;
  /** Client that receives the events of this turn without a subscription. */
  readonly asker: Listener | undefined;
  /** External agent that does the turn; absent: the model does it. */
  readonly delegate: Delegate | undefined;
  /** Absent: the files are not saved. */
  readonly checkpoints: FileCheckpoints | undefined;
  /** Tools that this thread may use at the time of the call. */
  readonly tools: () => readonly Tool[];
  /** Resolves when a client has registered its tools for the thread, or after `clientToolMs`. */
  readonly dynamicTools: (signal: AbortSignal) => Promise<void>;
  readonly isGranted: (scopeKey: string) => boolean;
  readonly grant: (scopeKey: string, lasts: 'session' | 'always') => void;
  /** Called before calls with effects begin, with the tool or the external agent. When it throws, they do not begin. */
  readonly beforeEffects: (tool: string) => void;
  readonly spawnSubagent: (order: SubagentOrder, call: SpawningCall, signal: AbortSignal) => Promise<ToolResult>;
  /** Whether the turn of a sub-agent has ended with its process, so that its work is unknown. */
  readonly isSubagentLost: (subagent: StartedSubagent) => boolean;
  /** Called when the turn starts, waits for approval, or resumes. @param input of a start */
  readonly onChange: (input?: readonly InputPart[]) => void;
  /** Called once, after the turn's last event. `isStored`: its end is in the store. */
  readonly onEnd: (turn: Turn, isStored: boolean) => void;
}

/** Call of a turn that waits for a sub-agent. */
export interface SpawningCall {
  readonly callId: string;
  /** Sub-agent that an earlier process has started for the call. */
  readonly started: StartedSubagent | undefined;
  /** Stores a started sub-agent in the present transaction, which stores its turn. */
  readonly saveStart: (subagent: StartedSubagent) => void;
}

/** Ids of a turn, as its events and traces have them. */
export interface TurnPlace {
  readonly threadId: string;
  readonly turnId: string;
}
