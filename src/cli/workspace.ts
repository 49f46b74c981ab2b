import { existsSync, realpathSync } from 'node:fs';
import { findWorkspace, WorkspaceError } from '../config/index.ts';
import type { CommandContext } from './command.ts';
import { CliError } from './errors.ts';

export interface RemoteWorkspace {
  readonly host: string;
  /** Absolute path on that machine. */
  readonly path: string;
}

const shape = /^([a-z][a-z0-9-]{1,31}):(\/[^\0\r\n]*)$/;

/** Parses an argument as a workspace of another machine; undefined for a path of this machine. */
export function remoteWorkspace(named: string | boolean | undefined): RemoteWorkspace | undefined {
  const [, host, path] = typeof named === 'string' ? (shape.exec(named) ?? []) : [];
  return host === undefined || path === undefined ? undefined : { host, path };
}

/**
 * Workspace of a command, absolute; default: the current directory. The Hub decides whether it is a workspace.
 *
 * @throws CliError usage, for a workspace of another machine
 */
export function workspacePath(
  { absolute }: Pick<CommandContext, 'absolute'>,
  named: string | boolean | undefined,
): string {
  const path = absolute(typeof named === 'string' ? named : '.');
  const remote = remoteWorkspace(named);
  if (!remote || existsSync(path)) return path;
  const words = `This command works only for workspaces of this machine, and ${remote.path} is on the host ${remote.host}.`;
  throw new CliError('usage', words, 'Run the command on the host over ssh. See its address: oratorio hosts');
}

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
