import { basename, join } from 'node:path';
import type { AnyActorRef } from 'xstate';
import {
  BackgroundProcesses,
  type ChatRequestStore,
  createBuiltinTools,
  createSkillTool,
  DayLedger,
  type DaySpending,
  describeCommands,
  forksOf,
  Hooks,
  imageReader,
  Library,
  type ModelProvider,
  modelSettingsOf,
  modelSource,
  OutputFiles,
  type PathSearch,
  pathSearch,
  placeRules,
  preloadTurnParts,
  Rooms,
  RuleBook,
  Runtime,
  type StoredThread,
  selectTools,
  shellEnvironment,
  sweepSandboxes,
  ThreadDirectories,
  type ToolSettings,
  TraceRetention,
  type TraceStore,
  textReader,
  trySandbox,
  userCommands,
  worktreesOf,
} from '../agent/index.ts';
import type { Automations } from '../automations/index.ts';
import type { Engines } from '../checkpoints/index.ts';
import { type Config, homeDirectory, type LoadedConfig, restartPolicyOf } from '../config/index.ts';
import { messageOf, type PinnedDirectory } from '../lib/index.ts';
import { type Logger, Secrets } from '../log/index.ts';
import {
  type AgentChoice,
  type AgentInUse,
  type AgentMode,
  defaults,
  type LaunchDocument,
  type PromptCommandInfo,
  type Turn,
} from '../protocol/index.ts';
import { outsideEnvironment } from '../supervise/index.ts';
import { startTelemetry, type Telemetry } from '../telemetry/index.ts';
import { automationsOf } from './announced-automations.ts';
import { checkBudget } from './budget-check.ts';
import { agentInUse, commandsOfAgent } from './delegated-agent.ts';
import { agentsForTasks } from './delegated-agents.ts';
import { LazyCheckpoints } from './file-checkpoints.ts';
import { McpServices } from './mcp-services.ts';
import type { Observable } from './observatory.ts';
import { ownModel } from './own-model.ts';
import { runtimeSettingsOf, worktreeRootsOf } from './runtime-settings.ts';
import { SandboxReport } from './sandbox-report.ts';
import { faultOf, openStorage, spendingOf } from './storage.ts';
import { turnTitle } from './turn-title.ts';
import { withHiddenForks } from './workspace.ts';
import { agentsOfWorkspace } from './workspace-agents.ts';

export interface AssemblyOptions {
  /** Canonical. */
  readonly workspacePath: string;
  /** The workspace as the server opened it. */
  readonly workspace: PinnedDirectory;
  /** State directory of the workspace, below the home: the database is in it. */
  readonly stateDirectory: string;
  readonly config: Config;
  /** Settings of the files, which name a refused key's file. */
  readonly layers: LoadedConfig['layers'];
  /** Files of the workspace may run: its environment is prepared for commands. */
  readonly isTrusted: boolean;
  /** The Hub's sidecar, when there is one: it takes the place of the configured upstream. */
  readonly upstream: LaunchDocument['upstream'];
  /** Our environment, with the marker of this start: programs inherit from it. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Secrets that must not reach a tool, trace or prompt. */
  readonly secrets: readonly string[];
  readonly logger: Logger;
  /** Another model provider than the configured one. */
  readonly provider: (() => Promise<ModelProvider>) | undefined;
  readonly checkpointEngines: Engines | undefined;
  /** Sees the root actor of every turn, MCP server and automation before it starts. */
  readonly observe: (actor: AnyActorRef, observable: Observable) => void;
  readonly onTurnEnd: (thread: StoredThread, turn: Turn) => void;
}

/** The runtime with all its parts, and further resources to close. */
export interface Assembly {
  readonly runtime: Runtime;
  readonly mcp: McpServices;
  readonly automations: Automations;
  readonly traces: TraceStore;
  readonly chatRequests: ChatRequestStore;
  readonly telemetry: Telemetry;
  readonly spending: DaySpending;
  readonly library: Library;
  readonly paths: PathSearch;
  /** Known state of the sandbox of commands. */
  readonly sandbox: SandboxReport;
  /** Current agent that does the turns. */
  readonly agent: () => AgentInUse;
  /** Prompt commands of that agent. */
  readonly agentCommands: () => readonly PromptCommandInfo[];
  readonly agentModes: () => readonly AgentMode[];
  /** Agents that threads may name. */
  readonly agentChoices: () => readonly AgentChoice[];
  /** Prepares, once the server answers, the parts that the first turn would wait for. */
  readonly warmUp: () => void;
  /** Whether a turn or a background process runs, which a restart would end. */
  readonly isBusy: () => boolean;
  /** Calls the listener when that may have changed. */
  readonly onAgentChange: (listener: () => void) => void;
  /** Describes, for health, the state of the parts besides the threads. */
  readonly describe: () => Readonly<Record<string, unknown>>;
  /** @throws StartupError (config) for a budget that cannot be checked, because the price of the model is unknown */
  readonly checkBudget: () => Promise<void>;
  /** Ends automations, turns, tools and MCP servers; the database last. */
  close(): Promise<void>;
}

/**
 * Puts the runtime of one workspace together.
 *
 * @throws StartupError (config) when the database cannot be used
 */
export function assemble(options: AssemblyOptions): Assembly {
  const { workspacePath, config, secrets, logger, observe, onTurnEnd } = options;
  // A file of the workspace counts as a program, or as a library of one, only where its path is given.
  const env = outsideEnvironment(workspacePath, options.env);
  const cleaner = new Secrets();
  for (const secret of secrets) cleaner.protect(secret);
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
  const mcp = new McpServices(
    {
      workspacePath,
      servers: config.McpServers,
      home: homeDirectory(env),
      env,
      logger,
      restartPolicy: restartPolicyOf(config),
      observe: (actor, name) => observe(actor, { id: `mcp/${name}`, machine: 'mcp-server', title: name }),
    },
    (server) => runtime.feed.broadcast({ method: 'mcp/status/updated', params: { server } }),
  );
  const library = new Library(homeDirectory(env));
  const { BlockedPaths: blockedPaths } = config.Permissions;
  const pathSettings = { blockedPaths, home: homeDirectory(env), workspace: options.workspace };
  const paths = pathSearch(pathSettings, options.workspacePath);
  const outputs = new OutputFiles(join(options.stateDirectory, 'outputs'));
  const temporary = new ThreadDirectories(join(options.stateDirectory, 'tmp'));
  const directories = [outputs, temporary];
  const sweep = () => {
    for (const each of directories) each.sweep((threadId) => store.threads.thread(threadId) !== undefined);
  };
  sweep();
  const processes = new BackgroundProcesses({
    secrets,
    outputs,
    observe: (actor, { id, threadId }) =>
      observe(actor, { id: `${threadId}/${id}`, machine: 'background-process', title: id }),
  });
  sweepSandboxes(homeDirectory(env));
  const rooms = new Rooms(env);
  // A start waits for no trial, and has no process besides the server.
  const sandbox: SandboxReport = new SandboxReport(() => trySandbox(toolSettings, workspacePath));
  const ownSettings = {
    ...pathSettings,
    tools: config.Tools,
    passEnvironment: config.Supervision.PassEnvironment,
    secrets,
    environment: options.env,
  };
  const shellProblems = {
    timeoutMs: defaults.agent.shellSetupMs,
    onProblem: (problem: string) => logger.warn(problem),
  };
  const toolSettings: ToolSettings = {
    ...ownSettings,
    outputs,
    processes,
    rooms,
    temporary,
    onSandbox: (problem) => sandbox.noted(problem),
    ...(options.isTrusted && {
      shell: shellEnvironment(ownSettings, shellProblems),
      agents: agentsForTasks(config.Agent, env['PATH'] ?? ''),
    }),
  };
  const builtin = createBuiltinTools(toolSettings);
  const skillTool = createSkillTool(library);
  const readImage = imageReader(pathSettings);
  const models = modelSettingsOf(config, options.upstream, options.layers);
  const source =
    options.provider ??
    modelSource(models, {
      home: homeDirectory(env),
      onKey(key) {
        cleaner.protect(key);
        logger.protect(key);
      },
      onProblem: (reason) => logger.warn('the refreshed model catalogue is not used', { reason }),
    });
  let asked: Promise<ModelProvider> | undefined;
  const provider = () => {
    asked = source();
    return asked;
  };
  const { Sandbox, Network } = config.Tools.Shell;
  if (Sandbox === 'off') void sandbox.try().catch(onBug);
  const spending = spendingOf(ledger, logger);
  const checkpoints = config.Checkpoints.Enabled
    ? new LazyCheckpoints({
        directory: join(options.stateDirectory, 'checkpoints'),
        settings: config.Checkpoints,
        engines: options.checkpointEngines,
        ownDirectories: [homeDirectory(env)],
        gitEnvironment: gitEnvironmentOf(env),
        rollback: (threadId, turnIds) => runtime.files.takeBack(threadId, turnIds),
        isInUse: (directory) => runtime.files.isInUse(directory),
        observe: (actor, treeId, root) =>
          observe(actor, { id: `checkpoint/${treeId}`, machine: 'checkpoint', title: `files of ${basename(root)}` }),
        onProblem: (error) => logger.warn('checkpoints cannot be used', { reason: messageOf(error) }),
      })
    : undefined;
  const { delegate, agents } = agentsOfWorkspace({ ...options, env }, toolSettings, (secret) => {
    logger.protect(secret);
    cleaner.protect(secret);
  });
  for (const [name, value] of Object.entries(config.Agent.Env)) {
    if (/key|token|secret|password/i.test(name)) cleaner.protect(value);
  }
  const runtime = new Runtime({
    workspacePath,
    workspace: options.workspace,
    delegate,
    ...(options.isTrusted && {
      agentOf: (name: string) => agents.of(name),
      agentProblem: (name: string) => agents.problemOf(name),
    }),
    checkpoints,
    worktreeRoots: worktreeRootsOf(workspacePath, config),
    store: store.threads,
    traces: config.Tracing.Enabled ? store.traces : undefined,
    provider: delegate && !options.provider ? ownModel(config, models, provider) : provider,
    readImage,
    library,
    ...(options.isTrusted && {
      openWorktree: worktreesOf({ environment: env, passEnvironment: config.Supervision.PassEnvironment, secrets }),
      openFork: withHiddenForks(
        forksOf({ environment: env, passEnvironment: config.Supervision.PassEnvironment, secrets }),
      ),
    }),
    processes: {
      list: (threadId) => processes.list(threadId),
      stop: (threadId, id) => processes.stop(threadId, id),
      async endThread(threadId) {
        await processes.endThread(threadId);
        await rooms.end(threadId);
      },
      rest: (threadId) => void rooms.endIdle(threadId).catch(onBug),
    },
    hooks: new Hooks(
      config.Hooks,
      userCommands({ environment: env, passEnvironment: config.Supervision.PassEnvironment, secrets }),
      workspacePath,
    ),
    rules: new RuleBook({
      configured: config.Permissions.Rules,
      stateDirectory: options.stateDirectory,
      places: placeRules(toolSettings),
    }),
    surroundings: {
      library,
      home: homeDirectory(env),
      read: textReader(pathSettings),
      commands: async () => describeCommands(await sandbox.try(), Network),
    },
    tools: () => selectTools([...builtin, skillTool, ...mcp.tools()], config.EnabledTools),
    settings: runtimeSettingsOf(config),
    spending,
    clean: (text) => cleaner.clean(text),
    onBug,
    observe(actor, threadId, turnId, input) {
      const title = turnTitle(input, (text) => cleaner.clean(text));
      observe(actor, { id: `${threadId}/${turnId}`, machine: 'turn', title: title || turnId });
    },
    onTurnEnd,
    onDeleted(threadId) {
      for (const each of directories) each.forget(threadId);
      agents.forget(threadId);
      void checkpoints?.forget(threadId).catch((error: unknown) => {
        logger.warn('checkpoints of a deleted conversation stay', { threadId, reason: messageOf(error) });
      });
    },
  });
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
    runtime,
    library,
    paths,
    mcp,
    automations,
    traces: store.traces,
    chatRequests: store.chatRequests,
    telemetry,
    spending,
    sandbox,
    agent: () => agentInUse(delegate),
    agentCommands: () => commandsOfAgent(delegate),
    agentModes: () => delegate?.offers().modes ?? [],
    agentChoices: () => agents.choices(options.isTrusted),
    warmUp() {
      delegate?.warmUp();
      void Promise.all([preloadTurnParts(delegate ? undefined : models), checkpoints?.preload()]).then(() =>
        logger.debug('the code of turns is loaded'),
      );
    },
    isBusy: () => runtime.turns.count > 0 || processes.isBusy,
    onAgentChange: (listener) => delegate?.onChange(listener),
    describe: () => ({
      sandbox: sandbox.status ?? { mode: Sandbox, available: false, reason: 'not tried yet: the first turn does' },
      mcp: mcp.describe(),
      automations: automations.describe(),
      ...(delegate && { agent: delegate.describe() }),
    }),
    checkBudget: () => checkBudget(config, provider),
    async close() {
      // Begins nothing more, and is over when the turns are.
      paths.close();
      const ended = automations.close();
      await runtime.close();
      await checkpoints?.close().catch(onBug);
      await processes.close();
      await rooms.close();
      await ended;
      await agents.close();
      await mcp.close();
      (await asked?.catch(() => undefined))?.close();
      retention.stop();
      // Threads in memory end here.
      sweep();
      store.close();
      ledger.close();
      // Telemetry has received the last traces by now.
      await telemetry.stop();
    },
  };
}

/** Environment of git, which only names ignored files: `PATH` finds git and its library. */
function gitEnvironmentOf(env: AssemblyOptions['env']): Readonly<Record<string, string>> {
  const { PATH = '', HOME = '' } = env;
  return { PATH, HOME };
}
