/**
 * Parts of a conversation: threads, turns, items. Times are ISO 8601 in UTC; unknown
 * values are left out rather than null. Codes and kinds are open: readers tolerate ones they do not know.
 */
import * as v from 'valibot';
import { reasoningEfforts } from './models.ts';
import { QuestionContent, QuestionForm, questionStates } from './questions.ts';
import { approvalDecisions, approvalKinds, approvalPolicies, ProposedRule, quotaFields, turnModes } from './tools.ts';

const id = v.pipe(v.string(), v.nonEmpty());
const time = v.string();

export const Identity = v.object({
  channelName: v.optional(v.string()),
  userId: v.optional(v.string()),
  channelContext: v.optional(v.string()),
  workspacePath: v.optional(v.string()),
});
export type Identity = v.InferOutput<typeof Identity>;

/** One part of a user's message. */
export const InputPart = v.variant('type', [
  v.object({ type: v.literal('text'), text: v.string() }),
  v.object({
    type: v.literal('commandRef'),
    name: v.string(),
    argsText: v.optional(v.string()),
    rawText: v.optional(v.string()),
    /** Text that it stands for; the server sets it. */
    text: v.optional(v.string()),
  }),
  v.object({ type: v.literal('skillRef'), name: v.string(), text: v.optional(v.string()) }),
  v.object({
    type: v.literal('resourceRef'),
    /** Name of the MCP server. */
    server: v.string(),
    uri: v.string(),
    /** Text of the resource; the server sets it. */
    text: v.optional(v.string()),
  }),
  v.object({ type: v.literal('fileRef'), path: v.string(), displayPath: v.optional(v.string()) }),
  v.object({ type: v.literal('image'), url: v.string() }),
  v.object({
    type: v.literal('localImage'),
    path: v.string(),
    mimeType: v.optional(v.string()),
    fileName: v.optional(v.string()),
  }),
]);
export type InputPart = v.InferOutput<typeof InputPart>;

/** Counts of one request or of several. `inputTokens` includes cache reads and writes, `outputTokens` reasoning. */
export const TokenUsage = v.object({
  inputTokens: v.number(),
  outputTokens: v.number(),
  totalTokens: v.number(),
  cachedInputTokens: v.optional(v.number()),
  reasoningTokens: v.optional(v.number()),
  /** In US dollars. Absent: the price of a model is unknown. */
  costUsd: v.optional(v.number()),
});
export type TokenUsage = v.InferOutput<typeof TokenUsage>;

/** Why a turn failed: `code` is for programs, `message` for people. Codes are open. */
export const TurnError = v.object({
  code: v.string(),
  message: v.string(),
  /** How long the upstream wants to be left alone. */
  retryAfterMs: v.optional(v.number()),
});
export type TurnError = v.InferOutput<typeof TurnError>;

const itemBase = { id, turnId: id, status: v.picklist(['started', 'streaming', 'completed']), createdAt: time };

/** End of a tool call. `declined`: not allowed. `cancelled`: the turn ended before it. */
/** `unknown`: the agent server ended while the call ran; it may have had its effect, and is not repeated. */
export const toolOutcomes = ['completed', 'failed', 'declined', 'cancelled', 'unknown'] as const;
export type ToolOutcome = (typeof toolOutcomes)[number];

/**
 * Runner of a tool: this server, an MCP server, the connection that brought the tool, the caller after the turn's end, or an
 * external agent itself.
 */
export const toolSources = ['builtin', 'mcp', 'dynamic', 'client', 'agent'] as const;
export type ToolSource = (typeof toolSources)[number];

export const planStatuses = ['pending', 'in_progress', 'completed'] as const;
/** Longest plan. */
export const maxPlanSteps = 50;

/** One step of the agent's plan. */
export const PlanStep = v.object({ step: v.string(), status: v.picklist(planStatuses) });
export type PlanStep = v.InferOutput<typeof PlanStep>;

const discarded = v.pipe(
  v.optional(v.literal(true)),
  v.description('The answer broke off and was requested again: this part of it is withdrawn, and no model gets it.'),
);

const messageId = v.pipe(
  v.optional(id),
  v.description(
    'Id that the client gave the message in `turn/enqueue`. If the response was lost, it shows that the message has arrived.',
  ),
);

/** One thing that happened in a turn. Its status never goes back; a completed one changes only by becoming `discarded`. */
export const Item = v.variant('type', [
  v.object({ ...itemBase, type: v.literal('userMessage'), input: v.array(InputPart), messageId }),
  v.object({ ...itemBase, type: v.literal('agentMessage'), text: v.string(), discarded }),
  v.object({ ...itemBase, type: v.literal('reasoningContent'), text: v.string(), discarded }),
  /** The model asks for a tool. `arguments` is the JSON text as the model wrote it. */
  v.object({
    ...itemBase,
    type: v.literal('toolCall'),
    callId: id,
    tool: v.string(),
    source: v.picklist(toolSources),
    arguments: v.string(),
  }),
  /** A shell command while it runs; `output` grows by deltas and is bounded. */
  v.object({
    ...itemBase,
    type: v.literal('commandExecution'),
    callId: id,
    command: v.string(),
    output: v.string(),
    exitCode: v.optional(v.number()),
    outcome: v.optional(v.picklist(toolOutcomes)),
  }),
  /** Result of its call for the model. */
  v.object({
    ...itemBase,
    type: v.literal('toolResult'),
    callId: id,
    tool: v.string(),
    outcome: v.picklist(toolOutcomes),
    text: v.string(),
    durationMs: v.optional(v.number()),
  }),
  v.object({
    ...itemBase,
    type: v.literal('approvalRequest'),
    requestId: id,
    callId: id,
    approvalType: v.picklist(approvalKinds),
    operation: v.string(),
    target: v.string(),
    workingDirectory: v.optional(v.string()),
    scopeKey: v.string(),
    covers: v.optional(v.string()),
    reason: v.optional(v.string()),
    proposedRule: v.optional(ProposedRule),
    ...quotaFields,
  }),
  v.object({
    ...itemBase,
    type: v.literal('approvalResponse'),
    requestId: id,
    callId: id,
    decision: v.picklist(approvalDecisions),
    decidedBy: v.picklist(['user', 'policy', 'timeout']),
    client: v.pipe(
      v.optional(v.string()),
      v.description('Program through which the user decided, by the name in its initialize.'),
    ),
  }),
  /** A question to the user. It is `started` while it is open. */
  v.object({
    ...itemBase,
    type: v.literal('question'),
    requestId: id,
    callId: id,
    ...QuestionForm.entries,
    state: v.picklist(questionStates),
    answers: v.optional(QuestionContent),
    decidedBy: v.optional(v.picklist(['user', 'policy', 'timeout'])),
    client: v.optional(v.string()),
  }),
  /** Something the runtime did that a reader of the conversation should know, e.g. `contextCompacted`. */
  v.object({
    ...itemBase,
    type: v.literal('systemNotice'),
    kind: v.pipe(
      v.string(),
      v.description(
        'Kinds are open. `requestRepeated`: an answer broke off or a request was refused, and it is requested again; `modelReplaced`: a fallback model continues; both discard the unfinished answer before them; `pictureRefused`: the model no longer gets pictures of `itemIds`; `toolRefused`: the model no longer gets the declarations of `tools`.',
      ),
    ),
    text: v.string(),
    itemIds: v.pipe(
      v.optional(v.array(id)),
      v.description(
        'Items that the notice concerns, with `pictureRefused`: messages whose pictures the model no longer gets.',
      ),
    ),
    tools: v.pipe(
      v.optional(v.array(v.string())),
      v.description('Names of tools that the notice concerns, with `toolRefused`.'),
    ),
  }),
  /** New plan of the agent; it replaces the plan before. */
  v.object({ ...itemBase, type: v.literal('plan'), callId: id, steps: v.array(PlanStep) }),
  v.object({ ...itemBase, type: v.literal('error'), error: TurnError }),
]);
export type Item = v.InferOutput<typeof Item>;
export type ItemOf<T extends Item['type']> = Extract<Item, { readonly type: T }>;

/** A turn has not ended. */
export const runningStatuses = ['running', 'waitingApproval', 'waitingQuota'] as const;
export const turnStatuses = [...runningStatuses, 'completed', 'failed', 'cancelled'] as const;
export const isRunningStatus = (status: string): boolean => runningStatuses.some((each) => each === status);
export const finishReasons = ['stop', 'length', 'toolCalls', 'contentFilter'] as const;
export type FinishReason = (typeof finishReasons)[number];

export const Turn = v.object({
  id,
  threadId: id,
  status: v.picklist(turnStatuses),
  items: v.array(Item),
  startedAt: time,
  completedAt: v.optional(time),
  tokenUsage: v.optional(TokenUsage),
  error: v.optional(TurnError),
  /** Why the answer ended; `toolCalls`: the caller is to run tools of its own and come back. */
  finishReason: v.optional(v.picklist(finishReasons)),
  /** Cause of a cancelled turn; `crash`: the server died in it. */
  interruptedBy: v.optional(v.picklist(['user', 'shutdown', 'crash', 'approval'])),
  resumes: v.pipe(
    v.optional(v.number()),
    v.description('Times that the turn continued after its agent server had ended.'),
  ),
});
export type Turn = v.InferOutput<typeof Turn>;

const maxVariables = 100;
const maxVariable = 32_768;
const ToolChains = v.pipe(
  v.record(
    v.pipe(v.string(), v.regex(/^[A-Za-z_]\w{0,99}$/, 'the name of a variable')),
    v.pipe(
      v.string(),
      v.maxLength(maxVariable),
      v.check((text) => !text.includes('\0'), 'a text without NUL characters'),
    ),
  ),
  v.check((variables) => Object.keys(variables).length <= maxVariables, `at most ${maxVariables} variables`),
);

/** `working`: its turn runs. `checking`: the check runs in its files. `stopped`: another attempt has passed before. */
export const raceStates = ['working', 'checking', 'passed', 'failed', 'stopped'] as const;

/** One attempt of a race: a fork with files of its own, whose result a command checks. */
export const RaceAttempt = v.object({
  number: v.pipe(v.number(), v.integer(), v.minValue(1)),
  /** Command that decides. */
  check: v.pipe(v.string(), v.maxLength(10_000)),
  state: v.picklist(raceStates),
  /** Agent of the attempt, for people: only `agent` of the thread is binding. */
  agent: v.optional(v.pipe(id, v.maxLength(200))),
  /** Set when it has failed before its check: the agent could not be had, or its turn has failed. */
  failure: v.optional(
    v.object({
      code: v.pipe(
        v.string(),
        v.maxLength(100),
        v.description('Code of the failed turn, or `agentUnavailable` when the agent was not there.'),
      ),
      message: v.pipe(v.string(), v.maxLength(2_000)),
    }),
  ),
  /** End of its turn and check. `oratorio race --prune` keeps an attempt whose files changed later. */
  endedAt: v.optional(v.pipe(v.string(), v.isoTimestamp())),
  /** Restore that takes the attempt's changes out of the workspace of the original. The server sets it. */
  restoreId: v.optional(id),
});
export type RaceAttempt = v.InferOutput<typeof RaceAttempt>;

/** Settings of one thread; absent ones come from the configuration. */
export const ThreadConfig = v.object({
  model: v.optional(v.string()),
  /** A model without this effort gets the nearest that it has. */
  effort: v.optional(v.picklist(reasoningEfforts)),
  /** Limit of one answer of the model, reasoning included. */
  maxOutputTokens: v.optional(v.pipe(v.number(), v.integer(), v.minValue(1))),
  approvalPolicy: v.optional(v.picklist(approvalPolicies)),
  mode: v.pipe(
    v.optional(v.picklist(turnModes)),
    v.description(
      '`plan`: the agent only reads, and ends each turn with a plan for the user to accept. Default: `default`.',
    ),
  ),
  /** Added to the system prompt. */
  agentInstructions: v.optional(v.string()),
  environment: v.pipe(
    v.optional(ToolChains),
    v.description(
      'Tool chains of the shell that the user works in, and its `PATH`, for commands; other variables are ignored.',
    ),
  ),
  agent: v.pipe(
    v.optional(id),
    v.description(
      'Agent that does the turns of this thread: a preset such as `codex`, the one of the configuration, or `oratorio`, our own. Absent: that of the workspace. Set on the thread of a sub-agent too; never changed.',
    ),
  ),
  agentMode: v.pipe(
    v.optional(id),
    v.description(
      'Mode of the external agent that does the turns, one of `modes` of `agent/read`. Absent: the mode that the agent is in.',
    ),
  ),
  agentOptions: v.pipe(
    v.optional(
      v.pipe(
        v.record(v.pipe(id, v.maxLength(200)), v.union([v.pipe(v.string(), v.maxLength(200)), v.boolean()])),
        v.maxEntries(50),
      ),
    ),
    v.description(
      'Options of the external agent that does the turns, by the `id` in `options` of `agent/read`. Absent: the agent decides.',
    ),
  ),
  additionalDirectories: v.pipe(
    v.optional(v.pipe(v.array(v.pipe(id, v.maxLength(4_096))), v.maxLength(32))),
    v.description(
      'Absolute paths of directories beside the workspace: tools read, list and search them without a question. System directories, directories that contain the home, and hidden directories in the home are ignored.',
    ),
  ),
  /** Names of tools; a subset of the tools that the configuration enables. Absent: all of those. */
  enabledTools: v.optional(v.array(v.string())),
  workspaceOverride: v.pipe(
    v.optional(id),
    v.description(
      'Directory to work in instead of the workspace: absolute, below a worktree root of the server. Given at thread/start, kept as its real path, never changed.',
    ),
  ),
  race: v.pipe(
    v.optional(RaceAttempt),
    v.description('State of an attempt of `oratorio race`, for people who watch it; changes nothing about turns.'),
  ),
  readOnly: v.pipe(
    v.optional(v.boolean()),
    v.description(
      'Nothing is changed: of the tools of the server only built-in ones that read are there, and every operation that needs approval is declined, despite earlier grants. Never taken back.',
    ),
  ),
});
export type ThreadConfig = v.InferOutput<typeof ThreadConfig>;

/** Input that waits for the running turn to complete. */
export const QueuedInput = v.object({
  id,
  input: v.array(InputPart),
  sender: v.optional(v.string()),
  createdAt: time,
  messageId,
});
export type QueuedInput = v.InferOutput<typeof QueuedInput>;

/** Move of a conversation between machines. */
export const ThreadMove = v.object({
  id: v.pipe(id, v.maxLength(100)),
  state: v.picklist(['leaving', 'left', 'arrived']),
  /** Place it goes to, or came from. */
  place: v.pipe(v.string(), v.maxLength(4_200)),
  /** Mark of the checkpoints at its departure. */
  departed: v.optional(v.number()),
});
export type ThreadMove = v.InferOutput<typeof ThreadMove>;

const summary = {
  id,
  workspacePath: v.string(),
  status: v.picklist(['active', 'paused', 'archived']),
  displayName: v.optional(v.string()),
  firstInput: v.pipe(
    v.optional(v.string()),
    v.description('First words of the first request: name of a conversation that has no `displayName`.'),
  ),
  identity: v.optional(Identity),
  /** Repeats `config.model`. */
  model: v.optional(v.string()),
  config: v.optional(ThreadConfig),
  /** Set on the thread of a sub-agent. */
  parentThreadId: v.optional(id),
  /** Set on a fork: the conversation that it was copied from. */
  forkedFromThreadId: v.optional(id),
  move: v.pipe(
    v.optional(ThreadMove),
    v.description('Last move between machines. `leaving` and `left`: no turn starts here; it continues at `place`.'),
  ),
  createdAt: time,
  lastActiveAt: time,
};
export const ThreadRuntime = v.object({
  running: v.boolean(),
  waitingOnApproval: v.boolean(),
  /** Present: its turn waits for the next start of the agent server. */
  suspended: v.optional(v.boolean()),
});
export type ThreadRuntime = v.InferOutput<typeof ThreadRuntime>;

export const ThreadSummary = v.object({ ...summary, runtime: ThreadRuntime });
export type ThreadSummary = v.InferOutput<typeof ThreadSummary>;

/** A command that runs in the background of a thread, beyond the turn that started it. */
export const BackgroundProcessInfo = v.object({
  id: v.string(),
  command: v.string(),
  state: v.picklist(['starting', 'running', 'clearing', 'stopping', 'ended', 'failed']),
  startedAt: v.string(),
  pid: v.optional(v.number()),
  exitCode: v.optional(v.number()),
  signal: v.optional(v.string()),
  lastError: v.optional(v.string()),
});
export type BackgroundProcessInfo = v.InferOutput<typeof BackgroundProcessInfo>;

/** `turns` only on request: the newest ones, oldest of them first; `hasOlderTurns` means that there are more. */
export const Thread = v.object({
  ...summary,
  turns: v.optional(v.array(Turn)),
  hasOlderTurns: v.optional(v.boolean()),
  queuedInputs: v.optional(v.array(QueuedInput)),
  /** Running ones, and those that have ended lately. */
  backgroundProcesses: v.optional(v.array(BackgroundProcessInfo)),
  /** Context of the last request to the model, against the window of the configuration. */
  contextUsage: v.optional(v.object({ tokens: v.number(), window: v.number() })),
});
export type Thread = v.InferOutput<typeof Thread>;
