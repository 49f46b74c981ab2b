import { homedir } from 'node:os';
import { isAbsolute, join, resolve } from 'node:path';

/** Name of Oratorio's directory in a user's home and in a workspace (DESIGN §1). */
export const directoryName = '.oratorio';

/** Where everything of this user is: `$ORATORIO_HOME`, else `~/.oratorio`. Absolute. */
export function homeDirectory(env: Readonly<Record<string, string | undefined>>): string {
  const chosen = env['ORATORIO_HOME'];
  if (chosen === undefined || chosen === '') return join(homedir(), directoryName);
  return isAbsolute(chosen) ? chosen : resolve(chosen);
}

/** The configuration file of a user's home. */
export function userConfigFile(home: string): string {
  return join(home, 'config.json');
}

/** The configuration file of a workspace. */
export function workspaceConfigFile(workspacePath: string): string {
  return join(workspacePath, directoryName, 'config.json');
}
