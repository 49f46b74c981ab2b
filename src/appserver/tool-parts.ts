import { join } from 'node:path';
import {
  BackgroundProcesses,
  createBuiltinTools,
  createSkillTool,
  endKeptCalls,
  imageReader,
  isSandboxInstalled,
  type KeepSettings,
  keptOfCall,
  Library,
  OutputFiles,
  type PathSearch,
  pathSearch,
  type RuntimeOptions,
  Sandboxes,
  type SandboxStatus,
  shellEnvironment,
  ThreadDirectories,
  type ToolSettings,
  textReader,
  trySandbox,
} from '../agent/index.ts';
import { homeDirectory } from '../config/index.ts';
import { defaults } from '../protocol/index.ts';
import { keptDirectory } from '../supervise/index.ts';
import type { AssemblyOptions } from './assembly-options.ts';
import { agentsForTasks } from './delegated-agents.ts';
import { SandboxReport } from './sandbox-report.ts';

/** Tools of a workspace, with the processes and directories behind them. */
export interface ToolParts {
  readonly settings: ToolSettings;
  readonly library: Library;
  readonly paths: PathSearch;
  readonly sandbox: SandboxReport;
  readonly processes: RuntimeOptions['processes'];
  /** Tools of the model, without those of MCP servers. */
  readonly tools: ReturnType<typeof createBuiltinTools>;
  readonly readImage: ReturnType<typeof imageReader>;
  readonly readText: ReturnType<typeof textReader>;
  readonly isBusy: () => boolean;
  /** Deletes the files of a deleted thread. */
  forget(threadId: string): void;
  /** Deletes the files of threads that are not stored. */
  sweep(): void;
  /** Adopts background processes of an earlier server, and ends commands whose turns do not continue. */
  adopt(): Promise<void>;
  /** Leaves commands to the next server, from now on: those that an abort would end, and background processes. */
  handOver(): void;
  /** Ends all processes. */
  close(): Promise<void>;
}

/**
 * @param isStored whether a thread is stored
 * @param isUnfinished whether a turn may continue
 */
export function openTools(
  options: AssemblyOptions,
  env: AssemblyOptions['env'],
  isStored: (threadId: string) => boolean,
  isUnfinished: (turn: { readonly threadId: string; readonly turnId: string }) => boolean,
): ToolParts {
  const { workspacePath, config, secrets, logger, observe } = options;
  const home = homeDirectory(env);
  const library = new Library(home);
  const pathSettings = { blockedPaths: config.Permissions.BlockedPaths, home, workspace: options.workspace };
  const paths = pathSearch(pathSettings, workspacePath);
  const outputs = new OutputFiles(join(options.stateDirectory, 'outputs'));
  const temporary = new ThreadDirectories(join(options.stateDirectory, 'tmp'));
  const directories = [outputs, temporary];
  const sweep = () => {
    for (const each of directories) each.sweep(isStored);
  };
  sweep();
  let isHandedOver = false;
  const keep = keepOf(options, () => isHandedOver);
  const processes = new BackgroundProcesses({
    keep,
    secrets,
    outputs,
    onBug: (error) => logger.bug(error),
    observe: (actor, { id, threadId }) =>
      observe(actor, { id: `${threadId}/${id}`, machine: 'background-process', title: id }),
  });
  const sandboxes = new Sandboxes(env, options.sandboxes);
  const { Sandbox: mode } = config.Tools.Shell;
  const sandbox: SandboxReport = new SandboxReport({
    mode,
    isInstalled: () => options.isContained || isSandboxInstalled(mode, env),
    trial: async () => (options.isContained ? contained : trySandbox(settings, workspacePath)),
    onBug: (error) => logger.bug(error),
  });
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
  const settings: ToolSettings = {
    ...ownSettings,
    outputs,
    processes,
    keep,
    sandboxes,
    temporary,
    onSandbox: (problem) => sandbox.noted(problem),
    ...(options.isTrusted && {
      shell: shellEnvironment(ownSettings, shellProblems),
      agents: agentsForTasks(config.Agent, env['PATH'] ?? ''),
    }),
  };
  const isKept = (call: Parameters<typeof keptOfCall>[1]) => keep !== undefined && keptOfCall(keep, call) !== undefined;
  /** Idle sandboxes that are ending. */
  const resting = new Map<string, Promise<void>>();
  const endCalls = async (isOver: Parameters<typeof endKeptCalls>[1]) => {
    if (keep) await endKeptCalls(keep, isOver);
  };
  return {
    ...{ settings, library, paths, sandbox, sweep },
    async adopt() {
      await processes.adopt(isStored);
      await endCalls((call) => !isUnfinished(call));
    },
    handOver() {
      isHandedOver = true;
    },
    tools: [...createBuiltinTools(settings), createSkillTool(library)],
    readImage: imageReader(pathSettings),
    readText: textReader(pathSettings),
    processes: {
      list: (threadId) => processes.list(threadId),
      stop: (threadId, id) => processes.stop(threadId, id),
      isKept,
      isLeft: (call) => isHandedOver && isKept(call),
      async endThread(threadId) {
        await processes.endThread(threadId);
        await sandboxes.end(threadId);
        await endCalls((call) => call.threadId === threadId);
      },
      rest(threadId) {
        const works = [
          sandboxes.endIdle(threadId),
          endCalls((call) => call.threadId === threadId && !isUnfinished(call)),
        ];
        const over = Promise.all([resting.get(threadId), ...works])
          .catch((error: unknown) => logger.bug(error))
          .then(() => {
            if (resting.get(threadId) === over) resting.delete(threadId);
          });
        resting.set(threadId, over);
        return over;
      },
    },
    isBusy: () => processes.isBusy,
    forget(threadId) {
      for (const each of directories) each.forget(threadId);
    },
    async close() {
      sandbox.close();
      if (isHandedOver) processes.handOver();
      await processes.close();
      await sandboxes.close();
    },
  };
}

/** Status of the sandbox of commands in a container. */
const contained: SandboxStatus = { mode: 'required', available: true, reason: 'the container of the agent server' };

/** Whether commands outlive the server. They do not without a Hub, because no other server may start. */
export const keepsCommands = (isManaged: boolean, { Turns }: AssemblyOptions['config']): boolean =>
  isManaged && Turns.KeepCommands && process.platform !== 'win32';

/** Settings of commands that outlive this server. */
function keepOf(
  { isManaged, config, workspacePath, env, sandboxes }: AssemblyOptions,
  isHandedOver: () => boolean,
): KeepSettings | undefined {
  if (!keepsCommands(isManaged, config)) return undefined;
  return {
    directory: keptDirectory(homeDirectory(env), workspacePath),
    patienceSeconds: config.Turns.KeepSeconds,
    isHandedOver,
    leave: (command) => sandboxes.leave(command),
  };
}
