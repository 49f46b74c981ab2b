import { join } from 'node:path';
import {
  BackgroundProcesses,
  createBuiltinTools,
  createSkillTool,
  imageReader,
  Library,
  OutputFiles,
  type PathSearch,
  pathSearch,
  Rooms,
  type RuntimeOptions,
  shellEnvironment,
  sweepSandboxes,
  ThreadDirectories,
  type ToolSettings,
  textReader,
  trySandbox,
} from '../agent/index.ts';
import { homeDirectory } from '../config/index.ts';
import { defaults } from '../protocol/index.ts';
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
  /** Ends all processes. */
  close(): Promise<void>;
}

/** @param isStored whether a thread is stored */
export function openTools(
  options: AssemblyOptions,
  env: AssemblyOptions['env'],
  isStored: (threadId: string) => boolean,
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
  const processes = new BackgroundProcesses({
    secrets,
    outputs,
    observe: (actor, { id, threadId }) =>
      observe(actor, { id: `${threadId}/${id}`, machine: 'background-process', title: id }),
  });
  sweepSandboxes(home);
  const rooms = new Rooms(env);
  // A start waits for no trial, and has no process besides the server.
  const sandbox: SandboxReport = new SandboxReport(() => trySandbox(settings, workspacePath));
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
    rooms,
    temporary,
    onSandbox: (problem) => sandbox.noted(problem),
    ...(options.isTrusted && {
      shell: shellEnvironment(ownSettings, shellProblems),
      agents: agentsForTasks(config.Agent, env['PATH'] ?? ''),
    }),
  };
  return {
    ...{ settings, library, paths, sandbox, sweep },
    tools: [...createBuiltinTools(settings), createSkillTool(library)],
    readImage: imageReader(pathSettings),
    readText: textReader(pathSettings),
    processes: {
      list: (threadId) => processes.list(threadId),
      stop: (threadId, id) => processes.stop(threadId, id),
      async endThread(threadId) {
        await processes.endThread(threadId);
        await rooms.end(threadId);
      },
      rest: (threadId) => void rooms.endIdle(threadId).catch((error: unknown) => logger.bug(error)),
    },
    isBusy: () => processes.isBusy,
    forget(threadId) {
      for (const each of directories) each.forget(threadId);
    },
    async close() {
      await processes.close();
      await rooms.close();
    },
  };
}
