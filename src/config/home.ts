import { createHash } from 'node:crypto';
import { dirname, isAbsolute, join, resolve } from 'node:path';
import { userHome } from '../lib/index.ts';

/** Name of Oratorio's directory in a user's home and in a workspace (design §1). */
export const directoryName = '.oratorio';

/** Directory with all data of this user: `$ORATORIO_HOME`, else `~/.oratorio`. Absolute. */
export function homeDirectory(env: Readonly<Record<string, string | undefined>>): string {
  const chosen = env['ORATORIO_HOME'];
  if (chosen === undefined || chosen === '') return usualHome(env);
  return isAbsolute(chosen) ? chosen : resolve(chosen);
}

/** Oratorio's home of a user who chooses none. */
export const usualHome = (env: Readonly<Record<string, string | undefined>> = process.env): string =>
  join(userHome(env), directoryName);

/** Name of the directory with the forks of the workspaces beside it. It makes no directory a workspace. */
export const forksName = '.oratorio-worktrees';

/**
 * Directory of forked conversations and attempts of races beside a workspace: there, git, module resolution and instructions of the
 * workspace do not reach them.
 */
export const forksDirectory = (workspacePath: string): string => join(dirname(workspacePath), forksName);

/** Places that have held forks, the present one first: version 0.1 used the name of a workspace's directory. */
export const forksDirectories = (workspacePath: string): readonly string[] => [
  forksDirectory(workspacePath),
  join(dirname(workspacePath), directoryName, 'worktrees'),
];

/** The user's own configuration file. */
export function userConfigFile(home: string): string {
  return join(home, 'config.json');
}

/** The configuration file of a workspace. */
export function workspaceConfigFile(workspacePath: string): string {
  return join(workspacePath, directoryName, 'config.json');
}

/**
 * Name of a workspace's directories below the home: stable for a canonical path, short, and without words of the path.
 *
 * @param canonicalPath real path of the workspace
 */
export function workspaceKey(canonicalPath: string): string {
  return createHash('sha256').update(canonicalPath).digest('hex').slice(0, 24);
}

/**
 * Directory of the state that decides rights in a workspace (`state.db`, tokens, grants, automations), 0700: below the
 * user's home, because a clone can contain any file of the workspace.
 */
export function workspaceStateDirectory(home: string, canonicalPath: string): string {
  return join(home, 'workspaces', workspaceKey(canonicalPath));
}

/** File of the generated key of a workspace's HTTP interfaces. */
export const generatedKeyFile = (home: string, canonicalPath: string): string =>
  join(workspaceStateDirectory(home, canonicalPath), 'api.key');
