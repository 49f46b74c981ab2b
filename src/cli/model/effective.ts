import { ConfigError, type LoadedConfig, loadConfig } from '../../config/index.ts';
import type { CommandContext } from '../command.ts';
import { CliError, invalidConfig } from '../errors.ts';
import { canonical, isWorkspace, workspacePath } from '../workspace.ts';

/** Configuration of a command. */
export interface Effective extends LoadedConfig {
  /** Undefined outside a workspace. */
  readonly workspace: string | undefined;
}

/** Loads the configuration of the workspace of a command; outside a workspace, the user's. @throws CliError */
export function effective(context: CommandContext): Effective {
  const { home, env, options } = context;
  const path = canonical(workspacePath(context, options['workspace']));
  const workspace = isWorkspace(path, home) ? path : undefined;
  if (workspace === undefined && typeof options['workspace'] === 'string') {
    throw new CliError('workspaceNotFound', `${path} is not a workspace.`, 'Make it one with: oratorio init');
  }
  try {
    return { ...loadConfig({ home, workspace, env }), workspace };
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    throw invalidConfig(error);
  }
}

/** File that decides a setting of the top level, and its value in this file; undefined: the default. */
export function sourceIn(
  { layers }: Pick<Effective, 'layers'>,
  setting: string,
): { readonly file: string; readonly value: unknown } | undefined {
  const layer = layers.findLast(({ settings }) => (settings[setting] ?? '') !== '');
  return layer && { file: layer.file, value: layer.settings[setting] };
}
