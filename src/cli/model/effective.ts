import {
  ConfigError,
  type LoadedConfig,
  loadConfig,
  readUserSettings,
  readWorkspaceSettings,
  userConfigFile,
  workspaceConfigFile,
} from '../../config/index.ts';
import type { CommandContext } from '../command.ts';
import { CliError } from '../errors.ts';
import { canonical, isWorkspace, workspacePath } from '../workspace.ts';

type Settings = Readonly<Record<string, unknown>>;

/** Configuration of a command, with the files that it is made of. */
export interface Effective extends LoadedConfig {
  /** Undefined outside a workspace. */
  readonly workspace: string | undefined;
  readonly layers: readonly { readonly file: string; readonly settings: Settings }[];
}

/** Loads the configuration of the workspace of a command; outside a workspace, the user's. @throws CliError */
export function effective(context: CommandContext): Effective {
  const { home, env, options } = context;
  const path = canonical(workspacePath(context, options['workspace']));
  const workspace = isWorkspace(path, home) ? path : undefined;
  if (workspace === undefined && typeof options['workspace'] === 'string') {
    throw new CliError('workspaceNotFound', `${path} is no workspace.`, 'Make it one with: oratorio init');
  }
  try {
    const loaded = loadConfig({ home, workspace, env });
    const own = workspace === undefined ? undefined : readWorkspaceSettings(workspace);
    const isAdmitted = (key: string) => !loaded.restrictedSettings.includes(key);
    return {
      ...loaded,
      workspace,
      layers: [
        { file: userConfigFile(home), settings: readUserSettings(home) ?? {} },
        ...(workspace !== undefined && own
          ? [
              {
                file: workspaceConfigFile(workspace),
                settings: Object.fromEntries(Object.entries(own).filter(([key]) => isAdmitted(key))),
              },
            ]
          : []),
      ],
    };
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    throw new CliError('failure', error.message, 'Correct the file, then try again.', 'invalidConfig');
  }
}

/** File that decides a setting of the top level, and the value as it stands there; undefined: the default. */
export function sourceIn(
  { layers }: Effective,
  setting: string,
): { readonly file: string; readonly value: unknown } | undefined {
  for (const { file, settings } of layers.toReversed()) {
    // Settings are found in any case; of several spellings the last one holds.
    const entry = Object.entries(settings).findLast(([key]) => key.toLowerCase() === setting.toLowerCase());
    if (entry && entry[1] !== '') return { file, value: entry[1] };
  }
  return undefined;
}
