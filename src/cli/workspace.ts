import { realpathSync } from 'node:fs';
import { findWorkspace, WorkspaceError } from '../config/index.ts';
import type { CommandContext } from './command.ts';
import { CliError } from './errors.ts';

/** Workspace of a command, absolute; default: the current directory. The Hub decides whether it is a workspace. */
export const workspacePath = (
  { absolute }: Pick<CommandContext, 'absolute'>,
  named: string | boolean | undefined,
): string => absolute(typeof named === 'string' ? named : '.');

/**
 * Whether `path` is a workspace of this user. A missing directory and one without `.oratorio` are not.
 *
 * @throws CliError workspaceNotFound, for a workspace of another user, or one that is a symlink
 */
export function isWorkspace(path: string, home: string): boolean {
  try {
    findWorkspace(path, { home });
    return true;
  } catch (error) {
    if (!(error instanceof WorkspaceError)) throw error;
    if (error.fault === 'symlink' || error.fault === 'foreignOwner') {
      throw new CliError('workspaceNotFound', error.message, undefined, 'workspaceNotFound');
    }
    return false;
  }
}

/** Canonical path, as in events of the Hub; the path itself if it does not exist (any more). */
export function canonical(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return path;
  }
}
