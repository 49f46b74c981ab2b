import { join } from 'node:path';
import { directoryName, workspaceStateDirectory } from '../config/index.ts';
import { fileFault, type JsonFile, readUntrustedJson } from '../lib/index.ts';
import { AppServerLock, WorkspaceLock } from '../protocol/index.ts';
import { isAlive } from './identity.ts';

/** The files by which an agent server owns a workspace and is found. */
export interface WorkspaceFiles {
  /** OS lock, in the workspace: two homes of one user exclude each other. */
  readonly mutexPath: string;
  /** Names the holder, in the workspace. Without rights. */
  readonly lockPath: string;
  /** Addresses with tokens, below the home. */
  readonly serverPath: string;
}

/** @param canonicalPath of the workspace */
export function workspaceFiles(home: string, canonicalPath: string): WorkspaceFiles {
  const directory = join(canonicalPath, directoryName);
  return {
    mutexPath: join(directory, 'appserver.mutex'),
    lockPath: workspaceLockPath(canonicalPath),
    serverPath: join(workspaceStateDirectory(home, canonicalPath), 'appserver.json'),
  };
}

export const workspaceLockPath = (canonicalPath: string): string =>
  join(canonicalPath, directoryName, 'appserver.lock');

/** The agent server that an earlier or the present start has published in this home. It may have ended. */
export const readAppServer = ({ serverPath }: Pick<WorkspaceFiles, 'serverPath'>): JsonFile<AppServerLock> =>
  readUntrustedJson(serverPath, AppServerLock);

/** Holder of a workspace's OS lock, as far as the workspace's own file can be believed: for a message only. */
export interface LockHolder {
  /** Number of a live process; null when the file does not name one, or is not this user's. */
  readonly pid: number | null;
  /** Why the file was not read. */
  readonly problem: string | null;
}

export function readHolder({ lockPath }: Pick<WorkspaceFiles, 'lockPath'>): LockHolder {
  const fault = fileFault(lockPath);
  if (fault) return { pid: null, problem: fault.message };
  const read = readUntrustedJson(lockPath, WorkspaceLock);
  const isLive = read.kind === 'ok' && isAlive(read.value.identity) !== 'gone';
  return {
    pid: isLive ? read.value.pid : null,
    problem: read.kind === 'invalid' ? `${lockPath} ${read.problem}` : null,
  };
}

/** Addresses as others may see them: without query, in which the token is. */
export const withoutTokens = (endpoints: Readonly<Record<string, string>>): Record<string, string> =>
  Object.fromEntries(Object.entries(endpoints).map(([name, url]) => [name, url.split(/[?#]/, 1)[0] ?? '']));
