/**
 * Methods and notifications of the agent server, each once. Incoming objects tolerate
 * unknown fields, times are ISO 8601 in UTC, unknown values are left out rather than null.
 */
import * as v from 'valibot';
import { AgentChoice, AgentInUse, AgentMode, AgentOption } from './agents.ts';
import { Automation, AutomationInput, AutomationRun, AutomationsState } from './automations.ts';
import { Checkpoint, diffFormats, FileDiff, RestoredFiles } from './checkpoints.ts';
import { defaults } from './defaults.ts';
import { LibraryProblem, PromptCommandInfo, SkillInfo } from './library.ts';
import { McpServerConfig, McpServerName, McpServerSettings, McpServerStatus, McpTestResult } from './mcp.ts';
import { ModelPrice } from './models.ts';
import { MoveStep, MoveStepResult } from './moves.ts';
import { QuestionAnswer, questionStates } from './questions.ts';
import {
  Identity,
  InputPart,
  Item,
  QueuedInput,
  RaceAttempt,
  Thread,
  ThreadConfig,
  ThreadRuntime,
  ThreadSummary,
  TokenUsage,
  Turn,
  TurnError,
} from './threads.ts';
import {
  ApprovalRequest,
  approvalDecisions,
  approvalPolicies,
  DynamicTool,
  DynamicToolCall,
  DynamicToolResult,
  QuestionRequest,
  turnModes,
} from './tools.ts';

/** Version of this protocol: additive within a major. */
export const protocolVersion = '1';

const id = v.pipe(v.string(), v.nonEmpty());
const optionalFlag = v.optional(v.boolean());
const empty = v.object({});

export const ClientCapabilities = v.object({
  approvalSupport: v.optional(v.boolean(), true),
  /** False: no `…/delta` notifications are sent. */
  streamingSupport: v.optional(v.boolean(), true),
  /** Exact names of notifications this connection does not want. */
  optOutNotificationMethods: v.optional(v.array(v.string()), []),
});

const ServerCapabilities = v.object({
  threadManagement: v.boolean(),
  threadSubscriptions: v.boolean(),
  approvalFlow: v.boolean(),
  modeSwitch: v.boolean(),
  configOverride: v.boolean(),
  cronManagement: v.boolean(),
  heartbeatManagement: v.boolean(),
  skillsManagement: v.boolean(),
  pluginManagement: v.boolean(),
  commandManagement: v.boolean(),
  modelCatalogManagement: v.boolean(),
  workspaceConfigManagement: v.boolean(),
  mcpManagement: v.boolean(),
  subAgentManagement: v.boolean(),
  backgroundTerminals: v.boolean(),
  channelStatus: v.boolean(),
  extensions: v.record(v.string(), v.unknown()),
});

const Model = v.object({
  id: v.string(),
  ownedBy: v.string(),
  createdAt: v.optional(v.string()),
  /** Configured name of the provider. */
  provider: v.optional(v.string()),
  /** Tokens of input and output together. */
  contextWindow: v.optional(v.number()),
  maxOutputTokens: v.optional(v.number()),
  /** Absent: unknown. */
  price: v.optional(ModelPrice),
  /** The model can reason before it answers. */
  reasoning: v.optional(v.boolean()),
});

const nonEmptyInput = v.pipe(v.array(InputPart), v.nonEmpty('at least one part'));

/** Client to server: parameters and result by method. */
export const rpcMethods = {
  initialize: {
    summary: 'Introduces the client. The first request of every connection.',
    params: v.object({
      clientInfo: v.object({ name: v.string(), title: v.optional(v.string()), version: v.string() }),
      capabilities: v.optional(ClientCapabilities, {}),
    }),
    result: v.object({
      serverInfo: v.object({
        name: v.string(),
        version: v.string(),
        protocolVersion: v.string(),
        extensions: v.array(v.string()),
      }),
      capabilities: ServerCapabilities,
      dashboardUrl: v.optional(v.string()),
    }),
  },
  'thread/start': {
    summary: 'Begins a conversation.',
    params: v.object({
      identity: v.optional(Identity),
      config: v.optional(ThreadConfig),
      /** Tools that this connection runs. After the connection ends, `thread/resume` registers them again. */
      dynamicTools: v.optional(v.array(DynamicTool)),
      historyMode: v.optional(v.picklist(['server'])),
      displayName: v.optional(v.string()),
    }),
    result: v.object({ thread: Thread }),
  },
  'thread/list': {
    summary: 'All conversations, the most recently active first, without those of sub-agents.',
    params: v.object({
      identity: v.optional(Identity),
      includeArchived: optionalFlag,
      channelName: v.optional(v.string()),
    }),
    result: v.object({ data: v.array(ThreadSummary) }),
  },
  'thread/read': {
    summary:
      'One conversation: with `includeTurns` at most `turnLimit` turns, those before `beforeTurnId` or the newest.',
    params: v.object({
      threadId: id,
      includeTurns: optionalFlag,
      turnLimit: v.optional(v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(1000))),
      beforeTurnId: v.optional(id),
    }),
    result: v.object({ thread: Thread }),
  },
  'thread/resume': {
    summary:
      'Reads a conversation with its newest turns and subscribes to it; pending approvals are requested again. `dynamicTools` replace the tools of an earlier connection: a turn whose agent server ended waits for them and repeats its open `item/tool/call` with the same `callId`.',
    params: v.object({ threadId: id, dynamicTools: v.optional(v.array(DynamicTool)) }),
    result: v.object({ thread: Thread }),
  },
  'thread/mcp/set': {
    summary:
      'Starts MCP servers for one conversation and replaces those that an earlier call started for it. They end when this connection leaves the conversation (`thread/unsubscribe`) or closes. Responds when each server is ready or has failed. A configured server with the same name takes precedence; an external agent starts them itself, with its next session.',
    params: v.object({
      threadId: id,
      servers: v.pipe(v.record(McpServerName, McpServerSettings), v.maxEntries(defaults.mcp.threadServers)),
    }),
    result: v.object({
      data: v.array(McpServerStatus),
      configured: v.pipe(v.array(McpServerName), v.description('Names whose configured server is used instead.')),
    }),
  },
  'thread/rename': {
    summary: 'Gives a conversation a name.',
    params: v.object({ threadId: id, displayName: v.pipe(v.string(), v.trim(), v.nonEmpty(), v.maxLength(200)) }),
    result: empty,
  },
  'thread/archive': {
    summary: 'Puts a conversation away; it cannot be written to until it is unarchived.',
    params: v.object({ threadId: id }),
    result: empty,
  },
  'thread/unarchive': {
    summary: 'Takes a conversation out again.',
    params: v.object({ threadId: id }),
    result: empty,
  },
  'thread/delete': {
    summary: 'Deletes a conversation for good, its traces included. A turn that runs is interrupted first.',
    params: v.object({ threadId: id }),
    result: empty,
  },
  'process/stop': {
    summary: 'Ends a background process of a conversation, with everything that it has started.',
    params: v.object({ threadId: id, processId: id }),
    result: empty,
  },
  'thread/rollback': {
    summary:
      'Takes back the last turns; with `restoreFiles` also their changes in the workspace. Changes of others stay: where they concern the same files, the request is refused unless `force` is set.',
    params: v.object({
      threadId: id,
      numTurns: v.pipe(v.number(), v.integer(), v.minValue(1)),
      restoreFiles: v.optional(v.boolean(), false),
      /** Overwrites conflicting changes. */
      force: v.optional(v.boolean(), false),
    }),
    result: v.object({ thread: Thread, ...v.partial(RestoredFiles).entries }),
  },
  'thread/fork': {
    summary:
      'Copies a conversation up to a turn. With `worktree` the copy works in a directory of its own beside the workspace, with the files in their state at the end of that turn: a git worktree, or a plain copy. Ignored files and environments are copied, too.',
    params: v.object({
      threadId: id,
      /** Default: the last turn that has ended, with the current files. */
      atTurnId: v.optional(id),
      worktree: v.optional(v.boolean(), false),
      displayName: v.optional(v.string()),
      agent: v.pipe(
        v.optional(id),
        v.description(
          'Agent that does the turns of the copy, one of `agents` of `agent/read`. Default: that of the original. Another agent has not seen the turns that are copied: a notice in its first turn says so.',
        ),
      ),
    }),
    result: v.object({ thread: Thread }),
  },
  'thread/merge': {
    summary:
      'Brings the changes of a fork with a worktree into the workspace of its original, as one change that `checkpoint/restore` takes back by its `restoreId`. Texts that both changed are merged line by line; anything else that both changed refuses it, unless `force` is set.',
    params: v.object({
      threadId: id,
      /** Conflicting files take the fork's state. */
      force: v.optional(v.boolean(), false),
    }),
    result: RestoredFiles,
  },
  'thread/move': {
    summary:
      'One step of the move of a conversation between machines, for the Hub, which leads it: `oratorio move`. The conversation is at the source until `commit` at the target; a step may be repeated.',
    params: MoveStep,
    result: MoveStepResult,
  },
  'checkpoint/list': {
    summary:
      'Lists the checkpoints of a conversation, oldest first: before each turn that may have changed files, and before each restore.',
    params: v.object({ threadId: id }),
    result: v.object({ data: v.array(Checkpoint) }),
  },
  'checkpoint/restore': {
    summary:
      'Restores files to their state before a turn, or before a restore; the conversation stays. Can be taken back itself, by its `restoreId`.',
    params: v.object({
      threadId: id,
      turnId: id,
      /** Files and directories, relative to the workspace. Default: all. */
      paths: v.optional(v.array(v.string())),
      /** Overwrites conflicting changes. */
      force: v.optional(v.boolean(), false),
    }),
    result: RestoredFiles,
  },
  'turn/diff': {
    summary: 'Shows the changes of a turn, or of all turns of a conversation, in the workspace.',
    params: v.object({
      threadId: id,
      /** Default: all turns that were not taken back. */
      turnId: v.optional(id),
      format: v.optional(v.picklist(diffFormats), 'unified'),
    }),
    result: FileDiff,
  },
  'thread/config/update': {
    summary: 'Changes settings of a conversation; fields that are absent stay.',
    params: v.object({ threadId: id, config: ThreadConfig }),
    result: v.object({ config: ThreadConfig }),
  },
  'thread/compact': {
    summary: 'Summarises all but the latest turns, now.',
    params: v.object({ threadId: id }),
    result: empty,
  },
  'thread/subscribe': {
    summary:
      'From now on this connection gets the notifications of the thread; `replayRecent` also sends a running turn, as it stands, and pending approvals.',
    params: v.object({ threadId: id, replayRecent: optionalFlag }),
    result: empty,
  },
  'thread/unsubscribe': {
    summary: 'Ends that.',
    params: v.object({ threadId: id }),
    result: empty,
  },
  'turn/start': {
    summary: 'Says something. The answer comes as notifications.',
    params: v.object({
      threadId: id,
      input: nonEmptyInput,
      approvalPolicy: v.pipe(
        v.optional(v.picklist(approvalPolicies)),
        v.description('For this turn and its sub-agents only; the thread keeps its own. Default: that of the thread.'),
      ),
      mode: v.pipe(
        v.optional(v.picklist(turnModes)),
        v.description('For this turn and its sub-agents only, as `approvalPolicy`.'),
      ),
      unattended: v.pipe(
        optionalFlag,
        v.description('No user can answer the questions of this turn, so they end at once.'),
      ),
    }),
    result: v.object({ turn: Turn }),
  },
  'turn/interrupt': {
    summary: 'Ends a turn early: model, tools and sub-agents are stopped, and `turn/cancelled` follows.',
    params: v.object({ threadId: id, turnId: id }),
    result: empty,
  },
  'turn/enqueue': {
    summary: 'Starts a turn when none runs, else waits in line until the running one has completed.',
    params: v.object({
      threadId: id,
      input: nonEmptyInput,
      sender: v.optional(v.string()),
      messageId: v.pipe(
        v.optional(v.pipe(id, v.maxLength(100))),
        v.description(
          'Id chosen by the client, unique in the conversation. A repeated request with the same id has no effect.',
        ),
      ),
    }),
    result: v.object({ queuedInput: QueuedInput, queuedInputs: v.array(QueuedInput) }),
  },
  'turn/queue/remove': {
    summary: 'Removes a queued message.',
    params: v.object({ threadId: id, queuedInputId: id }),
    result: v.object({ queuedInputs: v.array(QueuedInput) }),
  },
  'turn/steer': {
    summary:
      'Gives the running turn more to think of: queued input, or `input`. It is heard before the next request to the model.',
    params: v.object({
      threadId: id,
      expectedTurnId: id,
      queuedInputId: v.optional(id),
      input: v.optional(nonEmptyInput),
    }),
    result: v.object({ turnId: id, queuedInputs: v.array(QueuedInput) }),
  },
  'approval/list': {
    summary: 'Approvals that wait for a decision, in one conversation or in all.',
    params: v.object({ threadId: v.optional(id) }),
    result: v.object({ data: v.array(ApprovalRequest) }),
  },
  'approval/respond': {
    summary: 'Decides, from any connection. The first answer counts.',
    params: v.object({ requestId: id, decision: v.picklist(approvalDecisions) }),
    result: empty,
  },
  'question/list': {
    summary: 'Lists the questions that wait for an answer, in one conversation or in all.',
    params: v.object({ threadId: v.optional(id) }),
    result: v.object({ data: v.array(QuestionRequest) }),
  },
  'question/answer': {
    summary:
      'Answers a question, from any connection. The first answer counts; an invalid answer leaves the question open.',
    params: v.object({ requestId: id, ...QuestionAnswer.entries }),
    result: empty,
  },
  'mcp/list': {
    summary: 'The MCP servers of the workspace and their settings; values that may be secret are masked.',
    params: empty,
    result: v.object({ data: v.array(McpServerConfig) }),
  },
  'mcp/get': {
    summary: 'One of them.',
    params: v.object({ name: McpServerName }),
    result: v.object({ server: McpServerConfig }),
  },
  'mcp/upsert': {
    summary: 'Adds or changes one, in the configuration of the workspace, and applies it at once.',
    params: v.object({ name: McpServerName, settings: McpServerSettings }),
    result: v.object({ server: McpServerConfig }),
  },
  'mcp/remove': {
    summary: 'Removes one.',
    params: v.object({ name: McpServerName }),
    result: empty,
  },
  'mcp/status/list': {
    summary: 'How each of them is.',
    params: empty,
    result: v.object({ data: v.array(McpServerStatus) }),
  },
  'mcp/login': {
    summary:
      'Starts a log-in at a server, for a browser on this machine, and ends an earlier one at the same server. The server starts when the user has logged in.',
    params: v.object({
      server: McpServerName,
      redirect: v.pipe(
        v.optional(v.pipe(v.string(), v.nonEmpty(), v.maxLength(8_192))),
        v.description(
          'Last address of a browser on another machine, which could not open it: completes the log-in in progress, and the answer follows when the token is stored.',
        ),
      ),
    }),
    result: v.object({ url: v.string() }),
  },
  'mcp/logout': {
    summary: 'Logs out of a server and deletes its token.',
    params: v.object({ server: McpServerName }),
    result: empty,
  },
  'mcp/test': {
    summary: 'Starts one aside, asks for its tools, and stops it again.',
    params: v.object({ name: v.optional(McpServerName), settings: v.optional(McpServerSettings) }),
    result: McpTestResult,
  },
  'cron/list': {
    summary: 'The cron jobs of the workspace, the next one first.',
    params: v.object({ includeDisabled: v.optional(v.boolean(), true) }),
    result: v.object({ jobs: v.array(Automation) }),
  },
  'cron/add': {
    summary: 'Makes a job; its schedule is required.',
    params: AutomationInput,
    result: v.object({ job: Automation }),
  },
  'cron/remove': {
    summary: 'Removes a job and its history. A run that is under way is cancelled.',
    params: v.object({ jobId: id }),
    result: v.object({ removed: v.boolean() }),
  },
  'cron/enable': {
    summary: 'Switches a job on or off. A run that has started continues.',
    params: v.object({ jobId: id, enabled: v.boolean() }),
    result: v.object({ job: Automation }),
  },
  'cron/run': {
    summary: 'Runs a job now, besides its schedule.',
    params: v.object({ jobId: id }),
    result: v.object({ job: Automation }),
  },
  'automation/state': {
    summary: 'All jobs and tasks at once.',
    params: empty,
    result: AutomationsState,
  },
  'automation/task/list': {
    summary: 'The local tasks of the workspace.',
    params: empty,
    result: v.object({ tasks: v.array(Automation) }),
  },
  'automation/task/create': {
    summary: 'Makes a task; without a schedule it runs once, as soon as there is room.',
    params: AutomationInput,
    result: v.object({ task: Automation }),
  },
  'automation/read': {
    summary: 'One job or task.',
    params: v.object({ automationId: id }),
    result: v.object({ automation: Automation }),
  },
  'automation/update': {
    summary: 'Changes a job or task; fields that are absent stay. `version` guards against an older view.',
    params: v.object({
      automationId: id,
      version: v.optional(v.number()),
      change: v.partial(AutomationInput),
    }),
    result: v.object({ automation: Automation }),
  },
  'automation/run': {
    summary: 'Runs a job or task now.',
    params: v.object({ automationId: id }),
    result: v.object({ automation: Automation }),
  },
  'automation/cancel': {
    summary: 'Ends the run that has started or waits for a retry; the schedule continues.',
    params: v.object({ automationId: id }),
    result: v.object({ automation: Automation }),
  },
  'automation/delete': {
    summary: 'Removes a job or task and its history.',
    params: v.object({ automationId: id }),
    result: v.object({ removed: v.boolean() }),
  },
  'automation/runs': {
    summary: 'The history of a job or task, newest first; `before` is a runId.',
    params: v.object({
      automationId: id,
      limit: v.optional(v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(500)), 50),
      before: v.optional(id),
    }),
    result: v.object({ data: v.array(AutomationRun), next: v.optional(v.string()) }),
  },
  'skills/list': {
    summary: 'The skills of the user and the workspace, and those that are left out with the reason.',
    params: empty,
    result: v.object({ data: v.array(SkillInfo), problems: v.array(LibraryProblem) }),
  },
  'skills/read': {
    summary: 'The body of a skill.',
    params: v.object({ name: id }),
    result: v.object({ name: v.string(), body: v.string() }),
  },
  'command/list': {
    summary: 'The prompt commands of the user, the workspace and the agent that does the turns.',
    params: empty,
    result: v.object({ data: v.array(PromptCommandInfo), problems: v.array(LibraryProblem) }),
  },
  'command/expand': {
    summary: 'The text that a prompt command stands for.',
    params: v.object({ name: id, arguments: v.optional(v.string(), '') }),
    result: v.object({ text: v.string() }),
  },
  'file/search': {
    summary: 'Files of the workspace whose paths match the typed text, without those that `FindFiles` skips.',
    params: v.object({
      query: v.optional(v.pipe(v.string(), v.maxLength(200)), ''),
      limit: v.optional(v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(50)), 20),
    }),
    result: v.object({
      data: v.pipe(v.array(v.string()), v.description('Paths from the workspace on; the best first.')),
      isComplete: v.pipe(
        v.boolean(),
        v.description('False when files were left out: there are too many, or the time was over.'),
      ),
    }),
  },
  'agent/read': {
    summary: 'The agent that does the turns of this workspace, and its limits.',
    params: empty,
    result: v.object({
      agent: AgentInUse,
      modes: v.pipe(
        v.optional(v.array(AgentMode)),
        v.description(
          'Ways of working that it offered last and in which it asks before it acts; empty before its very first turn; absent: an older server.',
        ),
      ),
      options: v.pipe(
        v.optional(v.array(AgentOption)),
        v.description('Further choices that it offered last; absent: an older server.'),
      ),
      limits: v.pipe(v.array(v.string()), v.description('Limits of the agent, in sentences for people.')),
      agents: v.pipe(
        v.optional(v.array(AgentChoice)),
        v.description(
          'Agents that a thread may name, our own first; no other where the workspace is not trusted; absent: an older server.',
        ),
      ),
    }),
  },
  'model/list': {
    summary: 'The models of the provider, or those that the agent which does the turns has offered.',
    params: empty,
    result: v.union([
      v.object({ success: v.literal(true), models: v.array(Model) }),
      v.object({ success: v.literal(false), errorCode: v.string(), errorMessage: v.string() }),
    ]),
  },
} as const;
export type RpcMethod = keyof typeof rpcMethods;

/**
 * Methods of the page's WebSocket (`dashboardPaths.socket`): those that a conversation at the page needs. Others are
 * refused with `methodNotAllowed`: automations and settings have routes of their own there, with their own rules.
 */
export const pageMethods: ReadonlySet<RpcMethod> = new Set<RpcMethod>([
  'initialize',
  'thread/start',
  'thread/list',
  'thread/read',
  'thread/rename',
  'thread/archive',
  'thread/unarchive',
  'thread/delete',
  'thread/rollback',
  'thread/fork',
  'thread/merge',
  'thread/config/update',
  'thread/compact',
  'thread/subscribe',
  'thread/unsubscribe',
  'process/stop',
  'turn/start',
  'turn/interrupt',
  'turn/enqueue',
  'turn/queue/remove',
  'turn/steer',
  'turn/diff',
  'checkpoint/list',
  'checkpoint/restore',
  'approval/list',
  'approval/respond',
  'question/list',
  'question/answer',
  'skills/list',
  'command/list',
  'file/search',
  'model/list',
  'agent/read',
]);
/** Parameters as a client writes them. */
export type RpcParams<M extends RpcMethod> = v.InferInput<(typeof rpcMethods)[M]['params']>;
export type RpcResult<M extends RpcMethod> = v.InferOutput<(typeof rpcMethods)[M]['result']>;

const turnEvent = v.object({ threadId: id, turn: Turn });
const itemEvent = v.object({ threadId: id, turnId: id, item: Item });
const delta = v.object({ threadId: id, turnId: id, itemId: id, deltaKind: v.string(), delta: v.string() });

/**
 * Server to client. `thread/…` but `resumed` and `queue/updated` go to every connection, the others to the connection that
 * started the turn and to subscribers.
 */
export const rpcNotifications = {
  'thread/started': v.object({ thread: Thread }),
  'thread/resumed': v.object({ thread: Thread }),
  'thread/renamed': v.object({ threadId: id, displayName: v.string() }),
  'thread/deleted': v.object({ threadId: id }),
  'thread/statusChanged': v.object({ threadId: id, status: Thread.entries.status }),
  'thread/raceUpdated': v.object({ threadId: id, race: RaceAttempt }),
  'thread/runtimeChanged': v.object({ threadId: id, runtime: ThreadRuntime, firstInput: Thread.entries.firstInput }),
  'thread/queue/updated': v.object({ threadId: id, queuedInputs: v.array(QueuedInput) }),
  'turn/started': turnEvent,
  'item/started': itemEvent,
  'item/agentMessage/delta': delta,
  'item/reasoning/delta': delta,
  /** The model is writing the arguments of a call. */
  'item/toolCall/argumentsDelta': v.object({ ...delta.entries, tool: v.string() }),
  'item/commandExecution/outputDelta': delta,
  'item/completed': itemEvent,
  /** An answer broke off and is requested again: these completed parts of it are withdrawn and carry `discarded` from now on. */
  'item/discarded': v.object({ threadId: id, turnId: id, itemIds: v.array(id) }),
  'item/approval/resolved': v.object({
    threadId: id,
    turnId: id,
    requestId: id,
    decision: v.picklist(approvalDecisions),
    decidedBy: v.picklist(['user', 'policy', 'timeout']),
    client: v.pipe(
      v.optional(v.string()),
      v.description('Program through which the user decided, by the name in its initialize.'),
    ),
  }),
  /** A question waits: any client of the conversation may send `question/answer`. */
  'question/asked': QuestionRequest,
  'question/resolved': v.object({
    threadId: id,
    turnId: id,
    requestId: id,
    state: v.picklist(questionStates),
    decision: v.picklist(approvalDecisions),
    decidedBy: v.picklist(['user', 'policy', 'timeout']),
    client: v.optional(v.string()),
  }),
  /** Usage of one request to the model. */
  'item/usage/delta': v.object({ threadId: id, turnId: id, usage: TokenUsage }),
  /**
   * Kinds are open: compacting, compacted, compactFailed, steered, callLimitReached, repeatedCall, queueBlocked, retrying,
   * fallback, budgetReached, quotaWaiting, quotaResumed, hookFailed, toolProblem, turnResumed, turnSuspended.
   */
  'system/event': v.object({
    threadId: v.optional(id),
    turnId: v.optional(id),
    kind: v.string(),
    message: v.string(),
    /** Number of the coming repetition, from 1; for `retrying`. */
    attempt: v.optional(v.number()),
    /** Pause before the repetition, in milliseconds; for `retrying`. */
    waitMs: v.optional(v.number()),
    /**
     * Failure of the request; for `retrying`, `fallback` and `quotaWaiting`. For `turnResumed` and `turnSuspended`: why the agent server ended (`crash`,
     * `restart`, `stop`, `reboot`, `upgrade`).
     */
    reason: v.optional(v.string()),
    /** Model that takes over; for `fallback`. */
    model: v.optional(v.string()),
    /** Reset of the quota, as ISO 8601, and the provider; for `quotaWaiting`. Null: unknown. */
    until: v.optional(v.nullable(v.string())),
    provider: v.optional(v.string()),
    /** Process that continues with the turn; for `turnResumed`. */
    incarnation: v.optional(v.string()),
    /** Milliseconds between the last saved step of the turn and the next agent server; for `turnResumed`. */
    awayMs: v.optional(v.number()),
    /** Calls that may have had their effect, and are not repeated; for `turnResumed`. */
    callsUnknown: v.optional(v.array(v.object({ callId: id, tool: v.string() }))),
  }),
  'mcp/status/updated': v.object({ server: McpServerStatus }),
  /** To every connection: a job was added, changed, run or removed. */
  'cron/stateChanged': v.object({ job: Automation, removed: v.boolean() }),
  'automation/task/updated': v.object({ task: Automation, removed: v.boolean() }),
  'turn/completed': v.object({ threadId: id, turn: Turn, tokenUsage: TokenUsage }),
  'turn/failed': v.object({ threadId: id, turn: Turn, error: TurnError }),
  'turn/cancelled': turnEvent,
} as const;
export type RpcNotificationMethod = keyof typeof rpcNotifications;
export type RpcNotificationParams<N extends RpcNotificationMethod> = v.InferOutput<(typeof rpcNotifications)[N]>;

export type ModelListResult = RpcResult<'model/list'>;

/** Server to client, with an answer. An answer that is an error declines the approval, or fails the call. */
export const serverRequests = {
  'item/approval/request': {
    params: ApprovalRequest,
    result: v.object({
      decision: v.picklist(approvalDecisions),
      unattended: v.pipe(
        optionalFlag,
        v.description(
          'The client declined by itself: no user was asked. The model does not read that the user declined.',
        ),
      ),
    }),
  },
  'item/tool/call': { params: DynamicToolCall, result: DynamicToolResult },
} as const;
export type ServerRequestMethod = keyof typeof serverRequests;

/** Client to server, without an answer. */
export const clientNotifications = { initialized: v.optional(empty) } as const;
