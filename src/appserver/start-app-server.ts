import { ownSystemPrompt, takeSandboxes } from '../agent/index.ts';
import { ConfigError, carriedConfig, homeDirectory, type LoadedConfig, loadConfig } from '../config/index.ts';
import { RecentLog } from '../log/index.ts';
import { defaults } from '../protocol/index.ts';
import { keptDirectory, processRecords } from '../supervise/index.ts';
import type { AppServer, AppServerOptions } from './app-server.ts';
import { importOldState } from './import-state.ts';
import { endLeftovers } from './incarnation.ts';
import { RunningServer } from './running-server.ts';
import { StartupError } from './startup-error.ts';
import { keepsCommands } from './tool-parts.ts';
import { type HeldWorkspace, hideFromGit, holdWorkspace } from './workspace.ts';

/**
 * Starts serving one workspace. Its OS lock comes first: a process without the lock changes nothing.
 *
 * @throws StartupError for a failure that the user or the Hub can fix
 */
export async function startAppServer(options: AppServerOptions): Promise<AppServer> {
  const workspace = holdWorkspace(options.workspacePath, homeDirectory(options.env));
  const recentLog = new RecentLog(defaults.dashboard.logLines);
  const untap = options.logger.tap(recentLog.add);
  try {
    const { launch } = options;
    if (launch && launch.workspacePath !== workspace.path) {
      throw new StartupError('config', `the launch document is for another workspace, ${launch.workspacePath}`);
    }
    await hideFromGit(workspace);
    const loaded = await readConfig(workspace, options);
    const records = processRecords(homeDirectory(options.env), workspace.path);
    await endLeftovers(workspace.predecessor, records, options.logger);
    const home = homeDirectory(options.env);
    const keeps = keepsCommands(launch !== undefined, loaded.config);
    const sandboxes = await takeSandboxes(home, keptDirectory(home, workspace.path), keeps);
    sandboxes.swept.catch((error: unknown) => options.logger.bug(error));
    importOldState(workspace, loaded.trust, options.logger);
    return await RunningServer.start(workspace, { ...loaded, sandboxes }, options, { recentLog, untap });
  } catch (error) {
    untap();
    workspace.release();
    throw error;
  }
}

/** Settings of the launch document if it has any, else settings of the files. */
async function readConfig(workspace: HeldWorkspace, { env, logger, launch }: AppServerOptions): Promise<LoadedConfig> {
  try {
    const loaded = launch?.settings
      ? carriedConfig(launch.settings)
      : loadConfig({ home: homeDirectory(env), workspace: workspace.path, env });
    for (const warning of loaded.warnings) logger.warn(warning);
    const config = launch?.tools ? inContainer(loaded.config) : loaded.config;
    return { ...loaded, config: { ...config, SystemPrompt: ownSystemPrompt(loaded) } };
  } catch (error) {
    if (error instanceof ConfigError) throw new StartupError('config', error.message, { cause: error });
    throw error;
  }
}

/** The container is the sandbox and ends with the server, so no command outlives the server. */
const inContainer = (config: LoadedConfig['config']): LoadedConfig['config'] => ({
  ...config,
  Tools: { ...config.Tools, Shell: { ...config.Tools.Shell, Sandbox: 'off' } },
  Turns: { ...config.Turns, KeepCommands: false },
});
