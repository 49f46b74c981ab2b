import type { ToolOutcome } from '../protocol/index.ts';
import type { ContentPart } from './model.ts';

/** A call that may have effects and has started. */
export interface StartedCall {
  /** Item of the call: a model may use one call id for several calls of a turn. */
  readonly itemId: string;
  readonly startedAt: string;
  readonly tool: string;
  readonly source: string;
  readonly kind: 'command' | 'file' | 'subagent' | 'other';
  /** File that the call replaces. */
  readonly file?: FileChange | undefined;
  /** Command that outlives the agent server. */
  readonly keep?: { readonly id: string; readonly dir: string } | undefined;
  /** Sub-agent that the call has started. Stored in one commit with its turn. */
  readonly subagent?: StartedSubagent | undefined;
  /** Handle through which the tool finds its work in another process; see `RemoteWork`. */
  readonly handle?: string | undefined;
  /** Time at which the tool returned; its result may be missing. */
  readonly endedAt?: string | undefined;
  /** Result of the tool, for hooks that a kill interrupted. */
  readonly result?: { readonly outcome: ToolOutcome; readonly text: string; readonly exitCode?: number } | undefined;
  /** Images of the stored result; its item does not contain them. */
  readonly images?: readonly ContentPart[] | undefined;
}

/** Turn of a sub-agent, for the call that waits for it. */
export interface StartedSubagent {
  readonly threadId: string;
  readonly turnId: string;
  readonly worktree?: WorktreeBase | undefined;
}

/** Facts by which the changes in a worktree are found again. */
export interface WorktreeBase {
  /** Directory of the worktree, without its path. */
  readonly name: string;
  /** Commit of the files from which it was made. */
  readonly base: string;
  /** Pathspec of the files that are compared. */
  readonly files: readonly string[];
}

/** One replaced file, as SHA-256 of its content. */
export interface FileChange {
  readonly path: string;
  /** Null: the file was missing. */
  readonly before: string | null;
  readonly after: string;
}

/**
 * Facts from which the next process continues with an unfinished turn. A turn without facts ends with its process. Every method may
 * throw `StorageError`.
 */
export interface TurnActorStore {
  /** The facts as JSON; undefined: the turn has none. */
  get(threadId: string, turnId: string): string | undefined;
  /** @param request long options of the caller as JSON, which stay stored when a later call leaves them out */
  put(threadId: string, turnId: string, json: string, request?: string): void;
  /** Long options of the caller as JSON; undefined: none. */
  request(threadId: string, turnId: string): string | undefined;
  /** Deletes the facts of a turn that has ended, and its started calls. */
  delete(threadId: string, turnId: string): void;
  /** Started calls with effects, by call id. */
  calls(threadId: string, turnId: string): ReadonlyMap<string, StartedCall>;
  putCall(threadId: string, turnId: string, callId: string, call: StartedCall): void;
}
