import { basename, join } from 'node:path';
import type { AnyActorRef } from 'xstate';
import {
  type ChatRequestStore,
  DayLedger,
  type DaySpending,
  describeCommands,
  forksOf,
  Hooks,
  type Library,
  type PathSearch,
  placeRules,
  preloadTurnParts,
  type ResponseStore,
  RuleBook,
  Runtime,
  type RuntimeOptions,
  selectTools,
  TraceRetention,
  type TraceStore,
  userCommands,
  worktreesOf,
} from '../agent/index.ts';
import type { Automations } from '../automations/index.ts';
import { agentSecretsIn, type Config, homeDirectory, restartPolicyOf } from '../config/index.ts';
import { messageOf } from '../lib/index.ts';
import { Secrets } from '../log/index.ts';
import { outsideEnvironment, ownIdentity } from '../supervise/index.ts';
import { startTelemetry, type Telemetry, traceparentOf } from '../telemetry/index.ts';
import { automationsOf } from './announced-automations.ts';
import type { AssemblyOptions } from './assembly-options.ts';
import { agentInUse, commandsOfAgent } from './delegated-agent.ts';
import { LazyCheckpoints } from './file-checkpoints.ts';
import { turnTitle } from './inspection.ts';
import { McpServices } from './mcp-services.ts';
import type { AgentViews } from './methods.ts';
import { checkBudget, type ModelAccess, openModel, ownModel } from './model-access.ts';
import { runtimeSettingsOf, worktreeRootsOf } from './runtime-settings.ts';
import type { SandboxReport } from './sandbox-report.ts';
import { faultOf, openStorage, spendingOf } from './storage.ts';
import { ThreadServers } from './thread-servers.ts';
import { openTools, type ToolParts } from './tool-parts.ts';
import { withHiddenForks } from './workspace.ts';
import { agentsOfWorkspace, type WorkspaceAgents } from './workspace-agents.ts';

/** The runtime with all its parts, and further resources to close. */
export interface Assembly extends AgentViews {
  readonly runtime: Runtime;
  readonly mcp: McpServices;
  /** MCP servers that clients bring for single threads. */
  readonly threadServers: ThreadServers;
  readonly automations: Automations;
  readonly traces: TraceStore;
  readonly chatRequests: ChatRequestStore;
  readonly responses: ResponseStore;
  readonly telemetry: Telemetry;
  readonly spending: DaySpending;
  readonly library: Library;
  readonly paths: PathSearch;
  /** Known state of the sandbox of commands. */
  readonly sandbox: SandboxReport;
  /** Prepares, once the server answers, the parts that the first turn would wait for. */
  readonly warmUp: () => Promise<void>;
  /** Whether a turn or a background process runs, which a restart would end. */
  readonly isBusy: () => boolean;
  /** Calls the listener when that may have changed. */
  readonly onAgentChange: (listener: () => void) => void;
  /** Describes, for health, the state of the parts besides the threads. */
  readonly describe: () => Readonly<Record<string, unknown>>;
  /** @throws StartupError (config) for a budget that cannot be checked, because the price of the model is unknown */
  readonly checkBudget: () => Promise<void>;
  /** Leaves commands to the next server, from now on. */
  handOver(): void;
  /** Ends automations, turns, tools and MCP servers; the database last. */
  close(): Promise<void>;
}

/**
 * Puts the runtime of one workspace together.
 *
 * @throws StartupError (config) when the database cannot be used
 */
export function assemble(options: AssemblyOptions): Assembly {
  const { workspacePath, config, secrets, logger } = options;
  // A file of the workspace counts as a program, or as a library of one, only where its path is given.
  const env = outsideEnvironment(workspacePath, options.env);
  const cleaner = new Secrets();
  for (const secret of secrets) cleaner.protect(secret);
  const protect = (secret: string) => {
    cleaner.protect(secret);
    logger.protect(secret);
  };
  const onBug = (error: unknown) => logger.bug(error);
  const store = openStorage(options.stateDirectory, logger);
  const ledger = new DayLedger({ file: join(homeDirectory(env), 'spending.db'), workspace: workspacePath });
  const telemetry = startTelemetry({
    settings: config.Telemetry,
    workspacePath,
    traces: store.traces,
    describe: () => runtime.describe(),
    logger,
  });
  const mcp = openMcp(options, env, (server) =>
    runtime.feed.broadcast({ method: 'mcp/status/updated', params: { server } }),
  );
  const tools = openTools(
    options,
    env,
    (threadId) => store.threads.thread(threadId) !== undefined,
    ({ threadId, turnId }) => store.threads.turnActors.get(threadId, turnId) !== undefined,
  );
  const model = openModel(options, env, protect);
  const { sandbox, library, paths } = tools;
  if (config.Tools.Shell.Sandbox === 'off') sandbox.try();
  const spending = spendingOf(ledger, logger);
  const checkpoints = checkpointsOf(options, env, () => runtime);
  const threadServers: ThreadServers = new ThreadServers({
    common: (threadId) => mcpOptionsOf(options, env, `${threadId}/`),
    configured: new Set(Object.keys(config.McpServers)),
    isDelegated: (threadId) => runtime.threads.isDelegated(threadId),
    serve: (threadId, serverTools) =>
      runtime.threads.serve(threadId, serverTools && (() => selectTools(serverTools(), config.EnabledTools))),
    protect,
    onBug,
  });
  const { delegate, agents } = agentsOfWorkspace({ ...options, env }, tools.settings, protect, (threadId) =>
    threadServers.of(threadId),
  );
  for (const secret of agentSecretsIn(config)) cleaner.protect(secret);
  const parts = { env, cleaner, store, mcp, threadServers, tools, model, spending, checkpoints, delegate, agents };
  const runtime = new Runtime(runtimeOptionsOf(options, parts));
  void tools.adopt().catch(onBug);
  if (!config.Tracing.Enabled) {
    // Earlier recordings are still deleted with their conversation.
    runtime.feed.join(({ method, params }) => {
      if (method === 'thread/deleted') store.traces.deleteSession(params.threadId);
    });
  }
  const automations = automationsOf(options, store, runtime, telemetry);
  const retention = new TraceRetention({
    traces: store.traces,
    days: config.Tracing.RetentionDays,
    maxEvents: config.Tracing.MaxEvents,
    onFault: faultOf(logger, 'old traces cannot be deleted'),
  });
  retention.start();
  return {
    ...{ runtime, library, paths, mcp, threadServers, automations, telemetry, spending, sandbox },
    traces: store.traces,
    chatRequests: store.chatRequests,
    responses: store.responses,
    agent: () => agentInUse(delegate),
    agentCommands: () => commandsOfAgent(delegate),
    agentModes: () => delegate?.offers().modes ?? [],
    agentOptions: () => delegate?.offers().options ?? [],
    agentChoices: () => agents.choices(options.isTrusted),
    async warmUp() {
      delegate?.warmUp();
      await Promise.all([preloadTurnParts(delegate ? undefined : model.settings), checkpoints?.preload()]);
      logger.debug('the code of turns is loaded');
    },
    isBusy: () => runtime.turns.count > 0 || tools.isBusy(),
    onAgentChange: (listener) => delegate?.onChange(listener),
    describe: () => describeParts(config, parts, automations),
    checkBudget: () => checkBudget(config, model.provider),
    handOver: () => tools.handOver(),
    async close() {
      // Begins nothing more, and is over when the turns are.
      paths.close();
      const ended = automations.close();
      await runtime.close();
      await checkpoints?.close().catch(onBug);
      await tools.close();
      await ended;
      await agents.close();
      await Promise.all([mcp.close(), threadServers.close()]);
      await model.close();
      retention.stop();
      // Threads in memory end here.
      tools.sweep();
      store.close();
      ledger.close();
      // Telemetry has received the last traces by now.
      await telemetry.stop();
    },
  };
}

interface RuntimeParts extends WorkspaceAgents {
  readonly env: AssemblyOptions['env'];
  readonly cleaner: Secrets;
  readonly store: ReturnType<typeof openStorage>;
  readonly mcp: McpServices;
  readonly threadServers: ThreadServers;
  readonly tools: ToolParts;
  readonly model: ModelAccess;
  readonly spending: DaySpending;
  readonly checkpoints: LazyCheckpoints | undefined;
}

function runtimeOptionsOf(
  options: AssemblyOptions,
  { env, cleaner, store, mcp, threadServers, tools, model, spending, checkpoints, delegate, agents }: RuntimeParts,
): RuntimeOptions {
  const { workspacePath, config, secrets, logger, observe, onTurnEnd } = options;
  const { library, sandbox, processes } = tools;
  const programs = { environment: env, passEnvironment: config.Supervision.PassEnvironment, secrets };
  const clean = (text: string) => cleaner.clean(text);
  return {
    workspacePath,
    workspace: options.workspace,
    isTrusted: options.isTrusted,
    delegate,
    ...(options.isTrusted && {
      agentOf: (name: string) => agents.of(name),
      agentProblem: (name: string) => agents.problemOf(name),
      openWorktree: worktreesOf(programs),
      openFork: withHiddenForks(forksOf(programs)),
    }),
    checkpoints,
    moveDirectory: join(options.stateDirectory, 'moves'),
    worktreeRoots: worktreeRootsOf(workspacePath, config),
    store: store.threads,
    traces: config.Tracing.Enabled ? store.traces : undefined,
    provider: delegate && !options.provider ? ownModel(config, model.settings, model.provider) : model.provider,
    readImage: tools.readImage,
    library,
    processes,
    hooks: new Hooks(config.Hooks, userCommands(programs), workspacePath),
    rules: new RuleBook({
      configured: config.Permissions.Rules,
      stateDirectory: options.stateDirectory,
      places: placeRules(tools.settings),
    }),
    surroundings: {
      library,
      home: homeDirectory(env),
      read: tools.readText,
      commands: () => describeCommands({ available: sandbox.isExpected }, config.Tools.Shell.Network),
    },
    tools: () => selectTools([...tools.tools, ...mcp.tools()], config.EnabledTools),
    toolServers: () => mcp.settled(),
    settings: runtimeSettingsOf(config),
    spending,
    clean,
    incarnation: options.incarnation,
    bootId: ownIdentity().bootId || undefined,
    onBug: (error) => logger.bug(error),
    observe(actor, threadId, turnId, input, past) {
      const title = turnTitle(input, clean);
      observe(actor, { id: `${threadId}/${turnId}`, machine: 'turn', title: title || turnId, ...(past && { past }) });
    },
    stepsOf: (threadId, turnId, after) => options.stepsOf(`${threadId}/${turnId}`, after),
    onTurnEnd(thread, turn) {
      sandbox.turnEnded();
      onTurnEnd(thread, turn);
    },
    onDeleted(threadId) {
      tools.forget(threadId);
      agents.forget(threadId);
      threadServers.release(threadId);
      void checkpoints?.forget(threadId).catch((error: unknown) => {
        logger.warn('checkpoints of a deleted conversation stay', { threadId, reason: messageOf(error) });
      });
    },
  };
}

const openMcp = (
  options: AssemblyOptions,
  env: AssemblyOptions['env'],
  onStatus: ConstructorParameters<typeof McpServices>[1],
): McpServices => new McpServices({ ...mcpOptionsOf(options, env, ''), servers: options.config.McpServers }, onStatus);

/** @param place ends with `/` where not empty: the thread of the servers */
const mcpOptionsOf = (
  { workspacePath, config, logger, observe }: AssemblyOptions,
  env: AssemblyOptions['env'],
  place: string,
) => ({
  ...{ workspacePath, env, logger },
  home: homeDirectory(env),
  restartPolicy: restartPolicyOf(config),
  ...(config.Telemetry.Enabled && { traceparent: traceparentOf }),
  observe: (actor: AnyActorRef, name: string) =>
    observe(actor, { id: `mcp/${place}${name}`, machine: 'mcp-server', title: name }),
});

/** @param runtime is asked only after the start */
function checkpointsOf(
  { stateDirectory, config, checkpointEngines, observe, logger }: AssemblyOptions,
  env: AssemblyOptions['env'],
  runtime: () => Runtime,
): LazyCheckpoints | undefined {
  if (!config.Checkpoints.Enabled) return undefined;
  return new LazyCheckpoints({
    directory: join(stateDirectory, 'checkpoints'),
    settings: config.Checkpoints,
    engines: checkpointEngines,
    ownDirectories: [homeDirectory(env)],
    gitEnvironment: gitEnvironmentOf(env),
    rollback: (threadId, turnIds) => runtime().files.takeBack(threadId, turnIds),
    isInUse: (directory) => runtime().files.isInUse(directory),
    workOf: (threadId, turnId) => runtime().files.workOf(threadId, turnId),
    observe: (actor, treeId, root) =>
      observe(actor, { id: `checkpoint/${treeId}`, machine: 'checkpoint', title: `files of ${basename(root)}` }),
    onProblem: (error) => logger.warn('checkpoints cannot be used', { reason: messageOf(error) }),
  });
}

function describeParts({ Tools }: Config, { tools, mcp, delegate }: RuntimeParts, automations: Automations) {
  const { status } = tools.sandbox;
  const untried = { mode: Tools.Shell.Sandbox, available: false, reason: 'not tried yet: the first turn does' };
  return {
    sandbox: status ?? untried,
    mcp: mcp.describe(),
    automations: automations.describe(),
    ...(delegate && { agent: delegate.describe() }),
  };
}

/** Environment of git, which only names ignored files: `PATH` finds git and its library. */
function gitEnvironmentOf(env: AssemblyOptions['env']): Readonly<Record<string, string>> {
  const { PATH = '', HOME = '' } = env;
  return { PATH, HOME };
}
