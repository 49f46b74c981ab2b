/**
 * Methods and notifications of the agent server (reference: origin behaviour §3), each once. Incoming objects tolerate
 * unknown fields, times are ISO 8601 in UTC, what is not known is left out rather than null.
 */
import * as v from 'valibot';

/** Version of this protocol: additive within a major. */
export const protocolVersion = '1';

const id = v.pipe(v.string(), v.nonEmpty());
const time = v.string();
const optionalFlag = v.optional(v.boolean());
const empty = v.object({});

export const Identity = v.object({
  channelName: v.optional(v.string()),
  userId: v.optional(v.string()),
  channelContext: v.optional(v.string()),
  workspacePath: v.optional(v.string()),
});
export type Identity = v.InferOutput<typeof Identity>;

/** One part of what a user says. */
export const InputPart = v.variant('type', [
  v.object({ type: v.literal('text'), text: v.string() }),
  v.object({
    type: v.literal('commandRef'),
    name: v.string(),
    argsText: v.optional(v.string()),
    rawText: v.optional(v.string()),
  }),
  v.object({ type: v.literal('skillRef'), name: v.string() }),
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

export const TokenUsage = v.object({ inputTokens: v.number(), outputTokens: v.number(), totalTokens: v.number() });
export type TokenUsage = v.InferOutput<typeof TokenUsage>;

/** Why a turn failed: `code` is for programs, `message` for people. Codes are open. */
export const TurnError = v.object({ code: v.string(), message: v.string() });
export type TurnError = v.InferOutput<typeof TurnError>;

const itemBase = { id, turnId: id, status: v.picklist(['started', 'streaming', 'completed']), createdAt: time };

/** One thing that happened in a turn. Its status never goes back, a completed one never changes. */
export const Item = v.variant('type', [
  v.object({ ...itemBase, type: v.literal('userMessage'), input: v.array(InputPart) }),
  v.object({ ...itemBase, type: v.literal('agentMessage'), text: v.string() }),
  v.object({ ...itemBase, type: v.literal('reasoningContent'), text: v.string() }),
  v.object({ ...itemBase, type: v.literal('error'), error: TurnError }),
]);
export type Item = v.InferOutput<typeof Item>;

export const turnStatuses = ['running', 'completed', 'failed', 'cancelled'] as const;
export const Turn = v.object({
  id,
  threadId: id,
  status: v.picklist(turnStatuses),
  items: v.array(Item),
  startedAt: time,
  completedAt: v.optional(time),
  tokenUsage: v.optional(TokenUsage),
  error: v.optional(TurnError),
});
export type Turn = v.InferOutput<typeof Turn>;

const summary = {
  id,
  workspacePath: v.string(),
  status: v.picklist(['active', 'paused', 'archived']),
  displayName: v.optional(v.string()),
  identity: v.optional(Identity),
  model: v.optional(v.string()),
  createdAt: time,
  lastActiveAt: time,
};
export const ThreadSummary = v.object({ ...summary, runtime: v.object({ running: v.boolean() }) });
export type ThreadSummary = v.InferOutput<typeof ThreadSummary>;

/** `turns` only where it was asked for. */
export const Thread = v.object({ ...summary, turns: v.optional(v.array(Turn)) });
export type Thread = v.InferOutput<typeof Thread>;

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

const Model = v.object({ id: v.string(), ownedBy: v.string(), createdAt: v.optional(time) });

const nonEmptyInput = v.pipe(v.array(InputPart), v.nonEmpty('at least one part'));

/** Client to server: parameters and result by method. */
export const rpcMethods = {
  initialize: {
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
    params: v.object({
      identity: v.optional(Identity),
      config: v.optional(v.object({ model: v.optional(v.string()) })),
      historyMode: v.optional(v.picklist(['server'])),
      displayName: v.optional(v.string()),
    }),
    result: v.object({ thread: Thread }),
  },
  'thread/list': {
    params: v.object({
      identity: v.optional(Identity),
      includeArchived: optionalFlag,
      channelName: v.optional(v.string()),
    }),
    result: v.object({ data: v.array(ThreadSummary) }),
  },
  'thread/read': {
    params: v.object({ threadId: id, includeTurns: optionalFlag }),
    result: v.object({ thread: Thread }),
  },
  'thread/resume': { params: v.object({ threadId: id }), result: v.object({ thread: Thread }) },
  'thread/subscribe': { params: v.object({ threadId: id, replayRecent: optionalFlag }), result: empty },
  'thread/unsubscribe': { params: v.object({ threadId: id }), result: empty },
  'turn/start': { params: v.object({ threadId: id, input: nonEmptyInput }), result: v.object({ turn: Turn }) },
  'turn/interrupt': { params: v.object({ threadId: id, turnId: id }), result: empty },
  'model/list': {
    params: empty,
    result: v.union([
      v.object({ success: v.literal(true), models: v.array(Model) }),
      v.object({ success: v.literal(false), errorCode: v.string(), errorMessage: v.string() }),
    ]),
  },
} as const;
export type RpcMethod = keyof typeof rpcMethods;
/** What a client writes. */
export type RpcParams<M extends RpcMethod> = v.InferInput<(typeof rpcMethods)[M]['params']>;
export type RpcResult<M extends RpcMethod> = v.InferOutput<(typeof rpcMethods)[M]['result']>;

const turnEvent = v.object({ threadId: id, turn: Turn });
const itemEvent = v.object({ threadId: id, turnId: id, item: Item });
const delta = v.object({ threadId: id, turnId: id, itemId: id, deltaKind: v.string(), delta: v.string() });

/** Server to client. `thread/…` go to every connection, the others to who started the turn and who subscribed. */
export const rpcNotifications = {
  'thread/started': v.object({ thread: Thread }),
  'thread/resumed': v.object({ thread: Thread }),
  'turn/started': turnEvent,
  'item/started': itemEvent,
  'item/agentMessage/delta': delta,
  'item/reasoning/delta': delta,
  'item/completed': itemEvent,
  'turn/completed': v.object({ threadId: id, turn: Turn, tokenUsage: TokenUsage }),
  'turn/failed': v.object({ threadId: id, turn: Turn, error: TurnError }),
  'turn/cancelled': turnEvent,
} as const;
export type RpcNotificationMethod = keyof typeof rpcNotifications;
export type RpcNotificationParams<N extends RpcNotificationMethod> = v.InferOutput<(typeof rpcNotifications)[N]>;

/** Client to server, without an answer. */
export const clientNotifications = { initialized: v.optional(empty) } as const;
