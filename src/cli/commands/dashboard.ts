import { type Config, ConfigError, loadConfig } from '../../config/index.ts';
import { openViewer, type Viewer, ViewerError } from '../../dashboard/index.ts';
import { httpBase } from '../../lib/index.ts';
import { createLogger } from '../../log/index.ts';
import { dashboardPaths } from '../../protocol/index.ts';
import {
  dashboardToken,
  revokeDashboardTokens,
  revokePageToken,
  watchedDashboardTokens,
} from '../../supervise/index.ts';
import type { CommandContext } from '../command.ts';
import { CliError, quoted } from '../errors.ts';
import { exitCodes } from '../exit-codes.ts';
import { showPage } from '../page.ts';
import { portOf } from '../port.ts';
import { warnIfRestricted } from '../restricted.ts';
import { canonical, isWorkspace, workspacePath } from '../workspace.ts';

/** `oratorio dashboard`: serves the read-only viewer of one workspace until it is stopped; or makes new tokens. */
export async function run(context: CommandContext): Promise<number> {
  const { options, output, home, signal } = context;
  if (options['new-token'] === true) {
    revokeDashboardTokens(home);
    revokePageToken(home);
    output.line(
      'Made new tokens for the Hub’s page and all dashboards: pages that are open ask for them, old addresses open nothing.',
    );
    return exitCodes.ok.code;
  }
  const path = canonical(workspacePath(context, options['workspace']));
  if (!isWorkspace(path, home)) {
    throw new CliError(
      'workspaceNotFound',
      `${path} is not a workspace.`,
      `To make it one: oratorio init ${quoted(path)}`,
    );
  }
  warnIfRestricted(context, path);
  const viewer = await open(context, path);
  try {
    output.line(`Showing ${output.colors.bold(path)} (read-only)`);
    if (viewer.problem) output.note(`${viewer.problem.what} → ${viewer.problem.next}`);
    await showPage(
      context,
      { address: `${httpBase(viewer)}${dashboardPaths.page}`, token: dashboardToken(home, path) },
      {
        opensByItself: false,
      },
    );
    output.line(output.colors.dim('Ctrl-C stops it.'));
    if (!signal.aborted) {
      await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
    }
    return exitCodes.ok.code;
  } finally {
    await viewer.close();
  }
}

async function open({ options, home, env }: CommandContext, path: string): Promise<Viewer> {
  const config = configOf(home, path, env);
  const asked = options['port'];
  const port = typeof asked === 'string' ? portOf(asked, 'dashboard') : config.DashBoard.Port;
  const logger = createLogger({ name: 'dashboard' });
  const tokens = watchedDashboardTokens(home, path);
  logger.protect(tokens().current);
  try {
    return await openViewer({
      workspacePath: path,
      home,
      env,
      config,
      tokens,
      address: { host: config.DashBoard.Host, port },
      takesAnyPort: asked === undefined,
      logger,
    });
  } catch (error) {
    if (error instanceof ViewerError) throw new CliError('startFailed', error.message);
    throw error;
  }
}

function configOf(home: string, workspace: string, env: CommandContext['env']): Config {
  try {
    return loadConfig({ home, workspace, env }).config;
  } catch (error) {
    if (error instanceof ConfigError)
      throw new CliError('startFailed', error.message, 'Correct the file that is named.');
    throw error;
  }
}
