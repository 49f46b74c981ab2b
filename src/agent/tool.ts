import type {
  ApprovalKind,
  PlanStep,
  ProposedRule,
  QuestionAnswer,
  QuestionContent,
  QuestionForm,
  ToolSource,
} from '../protocol/index.ts';
import type { ContentPart } from './model.ts';
import type { FileChange } from './turn-actor-store.ts';

/** Something that only a person (or a policy) may allow (design §5a). */
export interface ApprovalNeed {
  readonly kind: ApprovalKind;
  /** One word: `write`, `edit`, `read`, `run`, `fetch`, `call`. */
  readonly operation: string;
  /** Target of the call: an absolute path, a command, an address. For users, in full. */
  readonly target: string;
  /** Real directory that a command runs in. */
  readonly workingDirectory?: string;
  /** Scope key of `acceptForSession` and `acceptAlways`, e.g. `file:write:/ws/src/a.ts`. Calls with equal keys share a scope. */
  readonly scopeKey: string;
  /** Words for the scope that complete "allow …", e.g. `this command in /ws`. */
  readonly covers: string;
  readonly reason?: string;
  /** No rule, grant or policy answers in place of the user: where no user is asked, the call does not run. */
  readonly isAskedAlways?: boolean;
  /** Rule that `acceptAlways` saves in place of a grant. */
  readonly proposedRule?: ProposedRule;
  /** Makes the unified diff of the call's changes, for the user who decides. Undefined: the changes cannot be known. */
  readonly preview?: () => Promise<string | undefined>;
  /** The made preview. */
  readonly diff?: string;
  /** If present, this is a question, and accepting it is an answer. */
  readonly question?: QuestionForm;
}

/** Services and limits of a running tool. */
export interface ToolContext {
  /** Canonical, absolute. */
  readonly workspacePath: string;
  /** Further directories that are read without a question. Canonical, absolute. */
  readonly directories?: readonly string[] | undefined;
  readonly threadId: string;
  readonly turnId: string;
  readonly callId: string;
  /** Aborts when the turn is interrupted: stop, take everything back that cannot stand, leave no process. */
  readonly signal: AbortSignal;
  /** Tool chains of the user's shell, for commands. */
  readonly environment?: Readonly<Record<string, string>> | undefined;
  /** A rule gives this call of `Exec` the network. */
  readonly hasNetwork?: boolean | undefined;
  /** This call of `Exec` was allowed because it only reads: no program and no library of the workspace takes part. */
  readonly onlyReads?: boolean | undefined;
  /** Called before a tool that `replacesFile` does so; resolves when the change is recorded. */
  readonly onReplace?: ((change: FileChange) => Promise<void>) | undefined;
  /** Output of a command as it comes; ignored by tools that have none. */
  readonly onOutput: (text: string) => void;
  /** An earlier agent server has started this call: it is finished, not run again. */
  readonly wasStarted?: boolean | undefined;
  /** Work of this call in another process, which outlives this agent server. Absent: a turn with this call is not resumed elsewhere. */
  readonly remote?: RemoteWork | undefined;
  /** Calls back when the result of this call is stored, for the removal of files by which it could be found again. Absent: at once. */
  readonly onStored?: ((work: () => void) => void) | undefined;
  /** Whether the policy or an earlier grant allows the scope of a `scopeKey` without a question. */
  readonly isApproved: (scopeKey: string) => boolean;
  /** Answers of the user to the question of this call. */
  readonly answers?: QuestionContent | undefined;
  /** Asks the user while the call runs; returns `cancel` if no user can answer. Absent: questions are impossible. */
  readonly elicit?: ((question: QuestionForm, withdrawn: AbortSignal) => Promise<QuestionAnswer>) | undefined;
  /** Runs a sub-agent and returns its last message. Only for `SpawnSubagent`. */
  readonly spawnSubagent: (order: SubagentOrder) => Promise<ToolResult>;
}

/** Work of a call in another process, e.g. a task of an MCP server. */
export interface RemoteWork {
  /** Handle that an earlier agent server saved. The tool then waits for this work. */
  readonly handle: string | undefined;
  /** Saves the handle through which the next agent server finds the work. */
  save(handle: string): void;
  /** Whether the turn continues in the next agent server, so an abort must not end the work. */
  isLeft(): boolean;
}

/** A task for a sub-agent. */
export interface SubagentOrder {
  readonly task: string;
  /** A short name, for people who watch. */
  readonly label: string | undefined;
  /** `explore`, `work`, or a type of the user or the project; undefined: `work`. */
  readonly type: string | undefined;
  /** The sub-agent works in a git worktree of its own. */
  readonly worktree?: boolean;
  /** External agent that does the task; absent: our own. */
  readonly agent?: string | undefined;
}

/** Result for the model. An error is text too: the conversation continues. */
export interface ToolResult {
  readonly text: string;
  readonly isError: boolean;
  /** Images that go with the text. */
  readonly images?: readonly Extract<ContentPart, { type: 'image' }>[];
  /** New plan of the thread, for its clients. */
  readonly plan?: readonly PlanStep[];
  /** Exit code of a command. */
  readonly exitCode?: number;
  /** Whether the call had its effect is unknown. */
  readonly isUnknown?: boolean;
}

/** A tool the model can call. Stateless; one object serves all threads. */
export interface Tool {
  /** Name for the model, unique among the tools of a turn: 1 to 64 of A–Z a–z 0–9 _ -. */
  readonly name: string;
  readonly source: ToolSource;
  readonly description: string;
  /** JSON Schema of an object. */
  readonly inputSchema: Readonly<Record<string, unknown>>;
  /** Changes nothing anywhere: such calls run in parallel, the others one after the other. */
  readonly isReadOnly: boolean;
  /** The only effect is one replaced file, which is reported to `onReplace` before. */
  readonly replacesFile?: boolean | undefined;
  /** Offered only to callers that show its effects, or that name it. */
  readonly isExtra?: boolean | undefined;
  /**
   * Checks and completes the arguments of the model. Tolerates aliases (`file_path`, `filePath` for `path`).
   * @returns the arguments, or their problem as a sentence for the model
   */
  readonly parse: (
    args: unknown,
  ) => { readonly ok: true; readonly args: unknown } | { readonly ok: false; readonly error: string };
  /** File or directory that these parsed arguments name, as the model wrote it; absent: the tool touches none. */
  readonly placeOf?: ((args: unknown) => string) | undefined;
  /** Approval that `run` needs for these parsed arguments; undefined: none. Never throws: a call that cannot be judged needs approval, one that can never be allowed is refused by `run`. */
  readonly approvalFor: (
    args: unknown,
    context: Pick<ToolContext, 'workspacePath' | 'directories'>,
  ) => Promise<ApprovalNeed | undefined>;
  /** Does it. Failures of the world are results with `isError`; throws only for bugs, and when `signal` has aborted. */
  readonly run: (args: unknown, context: ToolContext) => Promise<ToolResult>;
}
