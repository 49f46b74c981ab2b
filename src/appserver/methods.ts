import type * as v from 'valibot';
import {
  AgentError,
  type DynamicTools,
  type Library,
  type Listener,
  type PathSearch,
  type Runtime,
} from '../agent/index.ts';
import type { Automations } from '../automations/index.ts';
import {
  type AgentChoice,
  type AgentInUse,
  type AgentMode,
  type AgentOption,
  agentLimits,
  type Checkpoint,
  type FileDiff,
  type Frozen,
  type InputPart,
  type PromptCommandInfo,
  protocolVersion,
  type RestoredFiles,
  type RpcMethod,
  type RpcResult,
  type rpcMethods,
  version,
} from '../protocol/index.ts';
import type { McpServices } from './mcp-services.ts';
import type { ThreadServers } from './thread-servers.ts';

/** Answer to a request, and the work right after the answer was sent. */
export interface Handled<M extends RpcMethod> {
  readonly result: RpcResult<M>;
  /** Promise for which the answer waits. */
  readonly before?: Promise<void>;
  readonly after?: () => void;
}

/** The requesting connection: receives the events that it caused or subscribed to, and the calls of its own tools. */
export interface Asker {
  readonly hear: Listener;
  readonly callTool: DynamicTools['call'];
  /** Name of the client in `initialize`. */
  readonly client?: () => string | undefined;
  /** Aborts when the connection has ended. */
  readonly gone: AbortSignal;
}

type Params<M extends RpcMethod> = v.InferOutput<(typeof rpcMethods)[M]['params']>;
type Method<M extends RpcMethod> = (params: Params<M>, asker: Asker) => Handled<M> | Promise<Handled<M>>;
export type Methods = { readonly [M in RpcMethod]: Method<M> };

/** Capabilities of this server; the rest of the protocol's vocabulary is false, so that a client need not try. */
const capabilities: RpcResult<'initialize'>['capabilities'] = {
  threadManagement: true,
  threadSubscriptions: true,
  approvalFlow: true,
  modeSwitch: false,
  configOverride: true,
  cronManagement: true,
  heartbeatManagement: false,
  skillsManagement: true,
  pluginManagement: false,
  commandManagement: true,
  modelCatalogManagement: true,
  workspaceConfigManagement: false,
  mcpManagement: true,
  subAgentManagement: false,
  backgroundTerminals: false,
  channelStatus: false,
  // A client that finds this may send `thread/rollback` with `restoreFiles`, `checkpoint/…` and `turn/diff`.
  extensions: { checkpoints: true },
};

const introduction: RpcResult<'initialize'> = {
  serverInfo: { name: 'oratorio', version, protocolVersion, extensions: [] },
  capabilities,
};

function toolsOf(tools: DynamicTools['tools'] | undefined, { callTool }: Asker): DynamicTools | undefined {
  return tools && { tools, call: callTool };
}

/** Current agent that does the turns, its offers, and the agents that threads may name. */
export interface AgentViews {
  readonly agent: () => AgentInUse;
  readonly agentCommands: () => readonly PromptCommandInfo[];
  readonly agentModes: () => readonly AgentMode[];
  readonly agentOptions: () => readonly AgentOption[];
  readonly agentChoices: () => readonly AgentChoice[];
}

/** Every method onto the runtime. That `initialize` comes first, and once, is the connection's business. */
export function methodsOf(
  runtime: Runtime,
  mcp: McpServices,
  threadServers: ThreadServers,
  automations: Automations,
  library: WorkspaceLibrary,
  { agent, agentCommands, agentModes, agentOptions, agentChoices }: AgentViews,
): Methods {
  return {
    ...threadMethods(runtime, threadServers),
    ...turnMethods(runtime, mcp),
    ...fileMethods(runtime),
    ...libraryMethods(library, agentCommands, mcp),
    'agent/read': () => ({
      result: {
        ...{ agent: agent(), modes: [...agentModes()], options: [...agentOptions()], limits: agentLimits(agent()) },
        agents: [...agentChoices()],
      },
    }),
    ...mcpMethods(mcp),
    ...cronMethods(automations),
    ...automationMethods(automations),
  };
}

type Some<Prefix extends string> = Pick<Methods, Extract<RpcMethod, Prefix>>;

function threadMethods(runtime: Runtime, servers: ThreadServers): Some<'initialize' | `thread/${string}`> {
  return {
    initialize: () => ({ result: introduction }),
    'thread/start': ({ identity, displayName, config, dynamicTools }, asker) => {
      const brought = toolsOf(dynamicTools, asker);
      const { thread, announce } = runtime.threads.start({ identity, displayName, config, dynamicTools: brought });
      return { result: { thread }, after: announce };
    },
    'thread/list': (params) => ({ result: { data: runtime.threads.list(params) } }),
    'thread/read': ({ threadId, includeTurns = false, turnLimit, beforeTurnId }) => ({
      result: { thread: runtime.threads.read(threadId, { includeTurns, turnLimit, beforeTurnId }) },
    }),
    'thread/resume': ({ threadId, dynamicTools }, asker) => {
      const { thread, announce } = runtime.threads.resume(threadId, asker.hear, toolsOf(dynamicTools, asker));
      return { result: { thread }, after: announce };
    },
    'thread/subscribe': ({ threadId, replayRecent = false }, asker) => {
      const { replay } = runtime.threads.subscribe(threadId, asker.hear);
      return replayRecent ? { result: {}, after: replay } : { result: {} };
    },
    'thread/unsubscribe': ({ threadId }, asker) => {
      runtime.threads.unsubscribe(threadId, asker.hear);
      servers.release(threadId, asker.gone);
      return { result: {} };
    },
    'thread/mcp/set': async ({ threadId, servers: wanted }, { gone }) => ({
      result: await servers.set(threadId, gone, wanted),
    }),
    'thread/rename': ({ threadId, displayName }) => ({
      result: {},
      after: runtime.threads.rename(threadId, displayName),
    }),
    'thread/archive': ({ threadId }) => ({ result: {}, after: runtime.threads.archive(threadId, true) }),
    'thread/unarchive': ({ threadId }) => ({ result: {}, after: runtime.threads.archive(threadId, false) }),
    'thread/delete': async ({ threadId }) => ({ result: {}, after: await runtime.threads.delete(threadId) }),
    'thread/rollback': async ({ threadId, numTurns, restoreFiles, force }) => {
      if (!restoreFiles) return { result: { thread: runtime.threads.rollback(threadId, numTurns) } };
      return { result: sent<RpcResult<'thread/rollback'>>(await runtime.files.undo(threadId, numTurns, force)) };
    },
    'thread/fork': async ({ threadId, ...fork }) => {
      const { thread, announce } = await runtime.files.fork(threadId, fork);
      return { result: { thread }, after: announce };
    },
    'thread/merge': async ({ threadId, force }) => ({
      result: sent<RestoredFiles>(await runtime.files.merge(threadId, force)),
    }),
    'thread/config/update': ({ threadId, config }) => ({
      result: { config: runtime.threads.updateConfig(threadId, config) },
    }),
    'thread/move': async (step) => ({ result: await runtime.moves.step(step) }),
    'thread/compact': async ({ threadId }) => {
      await runtime.threads.compact(threadId);
      return { result: {} };
    },
  };
}

function turnMethods(
  runtime: Runtime,
  mcp: McpServices,
): Omit<
  Some<`turn/${string}` | `approval/${string}` | `question/${string}` | 'process/stop' | 'model/list'>,
  'turn/diff'
> {
  return {
    'turn/start': ({ threadId, input, approvalPolicy, mode, unattended: isUnattended }, asker) => {
      const options = { approvalPolicy, mode, isUnattended };
      return withReferences({ runtime, mcp, threadId }, input, (resolved) => {
        const { turn, stored, begin } = runtime.turns.startWithOthers(threadId, resolved, asker.hear, options);
        return { result: { turn }, before: stored, after: begin };
      });
    },
    'turn/interrupt': ({ threadId, turnId }) => ({ result: {}, after: runtime.turns.interrupt(threadId, turnId) }),
    'turn/enqueue': ({ threadId, input, sender, messageId }, asker) => {
      const marks = { sender, messageId };
      return withReferences({ runtime, mcp, threadId }, input, (resolved) => {
        const { queuedInput, queuedInputs, begin } = runtime.turns.enqueue(threadId, resolved, marks, asker.hear);
        return { result: { queuedInput, queuedInputs: [...queuedInputs] }, after: begin };
      });
    },
    'turn/queue/remove': ({ threadId, queuedInputId }) => ({
      result: { queuedInputs: [...runtime.turns.dequeue(threadId, queuedInputId)] },
    }),
    'turn/steer': ({ threadId, expectedTurnId, queuedInputId, input }) =>
      withReferences({ runtime, mcp, threadId }, input ?? [], (resolved) => {
        const words = { queuedInputId, input: input && resolved };
        const { turnId, queuedInputs } = runtime.turns.steer(threadId, expectedTurnId, words);
        return { result: { turnId, queuedInputs: [...queuedInputs] } };
      }),
    'approval/list': ({ threadId }) => ({
      result: { data: runtime.turns.approvals(threadId).filter(({ question }) => !question) },
    }),
    'approval/respond': ({ requestId, decision }, asker) => {
      runtime.turns.respond(requestId, decision, 'user', asker.client?.());
      return { result: {} };
    },
    'question/list': ({ threadId }) => ({
      result: {
        data: runtime.turns
          .approvals(threadId)
          .flatMap(({ question, ...request }) => (question ? { ...request, question } : [])),
      },
    }),
    'question/answer': ({ requestId, ...answer }, asker) => {
      runtime.turns.answer(requestId, answer, asker.client?.());
      return { result: {} };
    },
    'process/stop': async ({ threadId, processId }) => {
      await runtime.threads.stopProcess(threadId, processId);
      return { result: {} };
    },
    'model/list': async () => ({ result: await runtime.models() }),
  };
}

/**
 * Calls `use` with the texts of prompts and resources of MCP servers, at once when the input names none. A read-only thread gets none: its
 * input has texts of others, such as a pull request, and it may use no MCP server. @throws AgentError
 */
function withReferences<T>(
  { runtime, mcp, threadId }: { readonly runtime: Runtime; readonly mcp: McpServices; readonly threadId: string },
  input: readonly InputPart[],
  use: (resolved: readonly InputPart[]) => T,
): T | Promise<T> {
  const resolved = mcp.resolve(input, () => !runtime.threads.isReadOnly(threadId));
  return resolved instanceof Promise ? resolved.then(use) : use(resolved);
}

/** Casts a frozen result: it is only sent, so its arrays may belong to its maker. */
const sent = <T>(result: Frozen<T>): T => result as T;

function fileMethods(runtime: Runtime): Some<`checkpoint/${string}` | 'turn/diff'> {
  return {
    'checkpoint/list': async ({ threadId }) => ({
      result: { data: (await runtime.files.checkpoints(threadId)).map((each) => sent<Checkpoint>(each)) },
    }),
    'checkpoint/restore': async ({ threadId, turnId, paths, force }) => ({
      result: sent<RestoredFiles>(await runtime.files.restore(threadId, turnId, { paths, force })),
    }),
    'turn/diff': async ({ threadId, turnId, format }) => ({
      result: sent<FileDiff>(await runtime.files.diff(threadId, turnId, format)),
    }),
  };
}

/** Skills, prompt commands and paths of one workspace. */
export interface WorkspaceLibrary {
  readonly library: Library;
  readonly paths: PathSearch;
  readonly workspacePath: string;
}

function libraryMethods(
  { library, paths, workspacePath }: WorkspaceLibrary,
  agentCommands: () => readonly PromptCommandInfo[],
  mcp: McpServices,
): Some<`skills/${string}` | `command/${string}` | 'file/search'> {
  return {
    'file/search': async ({ query, limit }) => {
      const found = await paths.find(query, limit);
      return { result: { data: [...found.paths], isComplete: found.isComplete } };
    },
    'skills/list': () => {
      const { data, problems } = library.skills(workspacePath);
      return { result: { data: [...data], problems: [...problems] } };
    },
    'skills/read': ({ name }) => {
      const body = library.skillBody(name, workspacePath);
      if (body === undefined) throw new AgentError('skillNotFound', { name });
      return { result: { name, body } };
    },
    'command/list': async () => {
      const { data, problems } = library.commands(workspacePath);
      const own = new Set(data.map(({ name }) => name));
      // A command of the user hides one of the agent: the prompt would be expanded before the agent sees it.
      const others = agentCommands().filter(({ name }) => !own.has(name));
      return { result: { data: [...data, ...others, ...(await mcp.prompts())], problems: [...problems] } };
    },
    'command/expand': async ({ name, arguments: argumentsText }) => {
      const text = library.expand(name, argumentsText, workspacePath) ?? (await mcp.expand(name, argumentsText));
      if (text === undefined) throw new AgentError('commandNotFound', { name });
      return { result: { text } };
    },
  };
}

function mcpMethods(mcp: McpServices): Some<`mcp/${string}`> {
  return {
    'mcp/list': async () => ({ result: { data: [...(await mcp.list())] } }),
    'mcp/get': async ({ name }) => ({ result: { server: await mcp.get(name) } }),
    'mcp/upsert': async ({ name, settings }) => ({ result: { server: await mcp.upsert(name, settings) } }),
    'mcp/remove': async ({ name }) => {
      await mcp.remove(name);
      return { result: {} };
    },
    'mcp/status/list': async () => ({ result: { data: [...(await mcp.status())] } }),
    'mcp/login': async ({ server, redirect }) => ({ result: { url: await mcp.login(server, redirect) } }),
    'mcp/logout': async ({ server }) => {
      await mcp.logout(server);
      return { result: {} };
    },
    'mcp/test': async ({ name, settings }) => ({ result: await mcp.test(settings ?? name ?? '', name) }),
  };
}

function cronMethods(automations: Automations): Some<`cron/${string}`> {
  return {
    'cron/list': async ({ includeDisabled }) => {
      const jobs = await automations.list('cron');
      return { result: { jobs: jobs.filter(({ enabled }) => enabled || includeDisabled) } };
    },
    'cron/add': async (input) => ({ result: { job: await automations.add('cron', input) } }),
    'cron/remove': async ({ jobId }) => ({ result: { removed: await automations.remove(jobId) } }),
    'cron/enable': async ({ jobId, enabled }) => ({ result: { job: await automations.setEnabled(jobId, enabled) } }),
    'cron/run': async ({ jobId }) => ({ result: { job: await automations.run(jobId) } }),
  };
}

function automationMethods(automations: Automations): Some<`automation/${string}`> {
  return {
    'automation/state': async () => ({ result: await automations.state() }),
    'automation/task/list': async () => ({ result: { tasks: [...(await automations.list('task'))] } }),
    'automation/task/create': async (input) => ({ result: { task: await automations.add('task', input) } }),
    'automation/read': async ({ automationId }) => ({ result: { automation: await automations.read(automationId) } }),
    'automation/update': async ({ automationId, version, change }) => ({
      result: { automation: await automations.update(automationId, change, version) },
    }),
    'automation/run': async ({ automationId }) => ({ result: { automation: await automations.run(automationId) } }),
    'automation/cancel': async ({ automationId }) => ({
      result: { automation: await automations.cancel(automationId) },
    }),
    'automation/delete': async ({ automationId }) => ({ result: { removed: await automations.remove(automationId) } }),
    'automation/runs': async ({ automationId, limit, before }) => {
      const { data, next } = await automations.runs(automationId, { limit, before });
      return { result: { data: [...data], ...(next !== undefined && { next }) } };
    },
  };
}
