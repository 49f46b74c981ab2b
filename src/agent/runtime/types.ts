/** Requests to the runtime, their results, and the services that other rooms provide. */
import type {
  ApprovalPolicy,
  BackgroundProcessInfo,
  Checkpoint,
  DynamicTool,
  DynamicToolCall,
  DynamicToolResult,
  FileDiff,
  Frozen,
  Identity,
  ReasoningEffort,
  RestoreConflict,
  RestoredFiles,
  Thread,
  ThreadConfig,
  Turn,
  TurnMode,
} from '../../protocol/index.ts';
import type { ModelMessage, ModelTool, Sampling, ToolChoice } from '../model.ts';

/** Tools of one connection, and how they are called. After `close` of the connection `call` rejects. */
export interface DynamicTools {
  readonly tools: readonly DynamicTool[];
  readonly call: (call: DynamicToolCall, signal: AbortSignal) => Promise<DynamicToolResult>;
}

/** Commands in the background of threads, as far as the life of a thread concerns them. */
export interface ThreadProcesses {
  readonly list: (threadId: string) => BackgroundProcessInfo[];
  /** Ends a process. @returns false: the thread has no process of this id */
  readonly stop: (threadId: string, processId: string) => Promise<boolean>;
  /** Ends and forgets all of a thread. */
  readonly endThread: (threadId: string) => Promise<void>;
  /** Whether the command of a call of an earlier server has outlived it: the tool finishes the call. */
  readonly isKept?: (call: { readonly threadId: string; readonly turnId: string; readonly callId: string }) => boolean;
  /** Whether the command of a running call is left to the next process. */
  readonly isLeft?: (call: { readonly threadId: string; readonly turnId: string; readonly callId: string }) => boolean;
  /** Ends the idle sandboxes of a thread, which have no process. Never rejects. Resolves when all of them have ended. */
  readonly rest?: (threadId: string) => Promise<void>;
}

/** A turn in a tree of files. */
export interface FilePlace {
  readonly threadId: string;
  readonly turnId: string;
  /** Canonical path of the tree. */
  readonly workspacePath: string;
}

/** Work of an unfinished turn, as far as its calls were stored. */
export interface TurnWork {
  /** End of its last call with effects, in milliseconds; 0: it had no such call. */
  readonly lastWorkedAt: number;
  /** Whether a call with effects has begun and not ended. */
  readonly isWorking: boolean;
  /** SHA-256 of the contents that file tools wrote, by absolute path. */
  readonly written: Readonly<Record<string, string>>;
}

/** Result of a restore of files, or the reasons for its refusal. */
export type FileRestore =
  | ({ readonly kind: 'restored' } & Omit<Frozen<RestoredFiles>, 'runningProcesses'>)
  | { readonly kind: 'refused'; readonly conflicts: readonly RestoreConflict[]; readonly conflictsTotal: number };

/** Whether a turn will need its files saved: a tool of it may change them, or something else will do the whole turn. */
export type ExpectedChanges = 'none' | 'possible' | 'certain';

/** Checkpoints of files before and after turns. A method that rejects does so with a message for users. */
export interface FileCheckpoints {
  /** Resolves when work that a crash interrupted is completed. Undefined: no work was interrupted. Never rejects. */
  recovered(): Promise<void> | undefined;
  /** A turn begins. */
  begin(place: FilePlace, changes: ExpectedChanges): void;
  /** A turn is resumed after the death of its server: replaces `begin`. Call it at the start, before any other turn works. */
  resume(place: FilePlace, changes: ExpectedChanges): void;
  /** Resolves when the files are saved in their state before any tool of the turn changed them. */
  secure(place: FilePlace): Promise<void>;
  /** A call that may change files begins; `secure` has resolved. @returns reports its end */
  working(place: FilePlace): () => void;
  /** Saves the files at the end of a turn. Undefined: no tool could change them. */
  settle(place: FilePlace): Promise<void> | undefined;
  restore(request: {
    readonly threadId: string;
    readonly workspacePath: string;
    readonly turnIds: readonly string[];
    readonly paths?: readonly string[] | undefined;
    readonly force: boolean;
    /** Turns of the conversation that go with the files. */
    readonly conversation: readonly string[];
  }): Promise<FileRestore>;
  list(threadId: string, workspacePath: string): Promise<readonly Frozen<Checkpoint>[]>;
  /** Turns that are taken back to restore the files before a turn or a restore. Undefined: there is no such checkpoint. */
  turnsFrom(threadId: string, workspacePath: string, turnId: string): Promise<readonly string[] | undefined>;
  diff(
    threadId: string,
    workspacePath: string,
    turnId: string | undefined,
    isUnified: boolean,
  ): Promise<Omit<Frozen<FileDiff>, 'format'>>;
  /** Merges the changes of a fork's own tree into the tree of another thread. */
  merge(
    fork: { readonly threadId: string; readonly workspacePath: string },
    into: { readonly threadId: string; readonly workspacePath: string },
    force: boolean,
  ): Promise<FileRestore>;
  /** Notes a directory for a copy, before it is made: a later start removes it when no thread came to work in it. */
  announceCopy(target: string, workspacePath: string): Promise<void>;
  /** The copy stays: a thread that works in it is stored. */
  keepCopy(target: string, workspacePath: string): Promise<void>;
  /** Removes an announced copy, complete or not. */
  removeCopy(target: string, workspacePath: string): Promise<void>;
  /** Copies the files into an empty directory: their state at the end of a turn, or their current state. */
  copyTo(
    target: string,
    workspacePath: string,
    end: { readonly threadId: string; readonly turnId: string } | undefined,
  ): Promise<unknown>;
  forget(threadId: string): Promise<void>;
  /** Commit of a tree; null without one. */
  head(workspacePath: string): Promise<string | null>;
  /** Writes the changed files of a conversation to a file, for its move to another machine. */
  depart(threadId: string, workspacePath: string, file: string): Promise<DepartedFiles>;
  /** Brings the files of such a file into a tree. @param departed mark at which the conversation left this tree */
  arrive(threadId: string, workspacePath: string, file: string, departed: number | undefined): Promise<FileRestore>;
}

/** Files of a conversation that moves. */
export interface DepartedFiles {
  readonly head: string | null;
  /** Mark of the files as they left. */
  readonly seq: number;
  readonly entries: number;
}

export interface ForkThread {
  /** Last turn of the fork. Default: the last one that has ended. */
  readonly atTurnId?: string | undefined;
  /** The fork works in a directory of its own. */
  readonly worktree: boolean;
  readonly displayName?: string | undefined;
  /** Agent of the fork. Default: the original's agent. */
  readonly agent?: string | undefined;
}

export interface StartThread {
  readonly identity?: Identity | undefined;
  readonly displayName?: string | undefined;
  readonly config?: ThreadConfig | undefined;
  readonly dynamicTools?: DynamicTools | undefined;
  /** Ephemeral: in memory and never listed, but traced. The caller deletes it. */
  readonly isEphemeral?: boolean;
  /** Transient: never listed, like an ephemeral one, but stored until the caller deletes it, so its turn outlives this process. */
  readonly isTransient?: boolean;
  /** Unused id, chosen by the caller. Default: generated. */
  readonly threadId?: string | undefined;
}

/** Options of one turn, which override the thread's options. */
export interface TurnOptions {
  readonly model?: string | undefined;
  readonly effort?: ReasoningEffort | undefined;
  /** Limit of one answer, in tokens. */
  readonly maxOutputTokens?: number | undefined;
  /** Conversation for the model in place of the thread's earlier turns: for callers that send all of it with every request. */
  readonly history?: readonly ModelMessage[] | undefined;
  /** System messages of the caller, after the server's messages. */
  readonly instructions?: readonly string[] | undefined;
  /**
   * `none`: the model is offered no tool of the server. `standard`: extra ones only when the thread names them. Default `server`: all
   * that the thread has.
   */
  readonly tools?: 'server' | 'standard' | 'none' | undefined;
  /** Tools of the caller: a call of one ends the turn with `finishReason: 'toolCalls'`. A tool of the server with the same name is not offered. */
  readonly clientTools?: readonly ModelTool[] | undefined;
  /** Results of such calls of the previous turn; `input` may be empty then. */
  readonly toolResults?:
    | readonly { readonly callId: string; readonly text: string; readonly isError: boolean }[]
    | undefined;
  readonly toolChoice?: ToolChoice | undefined;
  readonly responseFormat?: Readonly<Record<string, unknown>> | undefined;
  readonly sampling?: Sampling | undefined;
  readonly approvalPolicy?: ApprovalPolicy | undefined;
  readonly mode?: TurnMode | undefined;
  readonly approvalTimeoutMs?: number | undefined;
  /** No user can answer a question of this turn. */
  readonly isUnattended?: boolean | undefined;
  /** False: the turn ends with a refusal for a quota, because its caller waits for an answer. Default: `Quota.Wait` decides. */
  readonly waitsForQuota?: boolean | undefined;
  readonly sender?: string | undefined;
  /** Id that the client gave the message; its item repeats it. */
  readonly messageId?: string | undefined;
  /** Call of the parent's turn that waits for this turn of a sub-agent. */
  readonly parentCallId?: string | undefined;
  /** Whether a client has registered tools for the thread: the next process waits for a client that registers them again. */
  readonly hasDynamicTools?: boolean | undefined;
  /** Writes of the caller that share the commit of the turn's row and prompt. When it throws, no turn starts. */
  readonly alsoStore?: ((turnId: string) => void) | undefined;
  /**
   * Called before calls with effects begin, those of sub-agents included, with the tool or the external agent that begins. When it
   * throws, the calls do not begin. A turn that the next process continues gets another one by `TurnControl.watchEffects`.
   */
  readonly beforeEffects?: ((tool: string) => void) | undefined;
}

export interface ListThreads {
  readonly identity?: Identity | undefined;
  readonly channelName?: string | undefined;
  readonly includeArchived?: boolean | undefined;
}

export interface ReadThread {
  readonly includeTurns: boolean;
  readonly turnLimit?: number | undefined;
  readonly beforeTurnId?: string | undefined;
}

/** A turn that runs, or is reserved and has not begun. */
export interface RunningTurn {
  readonly turnId: string;
  /** Current state of the turn. */
  readonly snapshot: () => Turn;
  /** Resolves after the last event of the turn, when its thread can start another one. Never rejects. */
  readonly ended: Promise<Turn>;
}

/** A new or resumed thread. `announce` publishes it, after the answer to its client. */
export interface StartedThread {
  readonly thread: Thread;
  readonly announce: () => void;
}

/** A stored turn. `begin` runs it, after the answer to its client. */
export interface StartedTurn {
  readonly turn: Turn;
  readonly begin: () => void;
  readonly ended: RunningTurn['ended'];
}
