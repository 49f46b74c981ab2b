import { rmSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import type { OpenFork } from '../agent/index.ts';
import { ensureStateDirectory, forksName, openWorkspace, WorkspaceError } from '../config/index.ts';
import { PinnedDirectory, readBoundedFile } from '../lib/index.ts';
import type { AppServerLock, WorkspaceLock } from '../protocol/index.ts';
import {
  acquireLock,
  type Lock,
  LockError,
  readAppServer,
  readHolder,
  removeStaleTemps,
  type WorkspaceFiles,
  withoutTokens,
  workspaceFiles,
  writeFileAtomic,
} from '../supervise/index.ts';
import { StartupError } from './startup-error.ts';

/** A workspace that this process alone serves. */
export interface HeldWorkspace {
  /** Canonical. */
  readonly path: string;
  /** `.oratorio` in it. */
  readonly directory: string;
  /** Below the home, 0700: the state that decides rights. */
  readonly stateDirectory: string;
  /** Directory that was opened: the path of the workspace may lead elsewhere later. */
  readonly pinned: PinnedDirectory;
  readonly lock: Lock;
  /** Address of the previous server of this home when that server did not end in an orderly way. */
  readonly predecessor: AppServerLock | undefined;
  /** Publishes our address: with tokens in the home, without them in the workspace. */
  publish(address: AppServerLock): void;
  /** Removes the published address if it is still ours. The lock stays held. */
  withdraw(): void;
  /** Frees the workspace for another server. */
  release(): void;
}

/**
 * Opens the workspace and takes its OS lock: nothing else happens before that.
 *
 * @param home user home of Oratorio
 * @throws StartupError noWorkspace, held, system
 */
export function holdWorkspace(workspacePath: string, home: string): HeldWorkspace {
  const { path, directory } = open(workspacePath, home);
  const files = workspaceFiles(home, path);
  const lock = takeLock(files, path);
  const stateDirectory = makeState(home, path, lock);
  for (const each of [directory, stateDirectory]) removeLitter(each);
  const pinned = new PinnedDirectory(path);
  const found = readAppServer(files);
  let published: AppServerLock | undefined;
  return {
    path,
    directory,
    stateDirectory,
    pinned,
    lock,
    predecessor: found.kind === 'ok' && found.value.workspacePath === path ? found.value : undefined,
    publish(address) {
      writeFileAtomic(files.serverPath, documentOf(address), perStart);
      published = address;
      writeFileAtomic(files.lockPath, documentOf(visibleIn(address)), perStart);
    },
    withdraw() {
      const current = readAppServer(files);
      if (published && current.kind === 'ok' && isSame(current.value, published)) {
        for (const file of [files.lockPath, files.serverPath]) removeFile(file);
      }
      published = undefined;
    },
    release() {
      pinned.close();
      lock.release();
    },
  };
}

function removeFile(file: string): void {
  try {
    rmSync(file, { force: true });
  } catch {
    // A directory in its place is not ours, and a remaining file names an ended process.
  }
}

function removeLitter(directory: string): void {
  try {
    removeStaleTemps(directory);
  } catch {
    // On a read-only file system the files stay.
  }
}

/** Names in `.oratorio` that Oratorio alone writes, for git. */
const stateNames = ['*appserver.*', 'restore/', 'worktrees/'];

/**
 * Makes git ignore the state of a held workspace. A workspace that was never initialised has no `.gitignore`, and only `oratorio init` writes
 * one: there, the repository's own list of excluded files gets the names.
 */
export async function hideFromGit({ path, directory }: Pick<HeldWorkspace, 'path' | 'directory'>): Promise<void> {
  try {
    if (/^\/?\*\r?$/m.test(readBoundedFile(join(directory, '.gitignore')) ?? '')) return;
    const { excludeFromGit } = await import('../checkpoints/index.ts');
    const patterns = stateNames.map((name) => `**/${basename(directory)}/${name}`);
    excludeFromGit(path, 'Files of running Oratorio servers', patterns);
  } catch {
    // A disk or a repository that cannot be written to: the server runs all the same, and git shows its files.
  }
}

/**
 * Makes git ignore the forks beside a workspace that lies below the root of a repository. The pattern is in the repository's own list
 * of excluded files: a `.gitignore` in the directory would hide the files of a fork from its own searches.
 */
export const withHiddenForks =
  (openFork: OpenFork): OpenFork =>
  async (workspacePath, announce) => {
    try {
      const { excludeFromGit } = await import('../checkpoints/index.ts');
      excludeFromGit(dirname(workspacePath), 'Forks of Oratorio conversations', [`${forksName}/`]);
    } catch {
      // A repository that cannot be written to: the fork works all the same, and git shows it.
    }
    return openFork(workspacePath, announce);
  };

/** No server outlives a power cut, so its address need not. */
const perStart = { isFlushed: false };

const documentOf = (document: AppServerLock | WorkspaceLock): string => `${JSON.stringify(document, null, 2)}\n`;

/** Content of the workspace's own file: it gives no right. */
function visibleIn({ incarnation: _, adoptionProof: __, ...address }: AppServerLock): WorkspaceLock {
  return { ...address, endpoints: withoutTokens(address.endpoints) };
}

function open(workspacePath: string, home: string): ReturnType<typeof openWorkspace> {
  try {
    // A container's volume has its settings in the home; the Hub has checked the directories that it starts servers for.
    return openWorkspace(workspacePath, { home, isNew: true });
  } catch (error) {
    if (error instanceof WorkspaceError) throw new StartupError('noWorkspace', error.message, { cause: error });
    throw error;
  }
}

function takeLock(files: WorkspaceFiles, path: string): Lock {
  try {
    const lock = acquireLock(files.mutexPath);
    if (lock !== 'held') return lock;
  } catch (error) {
    if (error instanceof LockError) throw new StartupError('system', error.message, { cause: error });
    throw error;
  }
  const { pid } = readHolder(files);
  throw new StartupError('held', `another agent server serves ${path}${pid === null ? '' : ` (process ${pid})`}`);
}

function makeState(home: string, path: string, lock: Lock): string {
  try {
    return ensureStateDirectory(home, path);
  } catch (error) {
    lock.release();
    const { message } = error as Error;
    throw new StartupError('system', `cannot use the state directory of this workspace below ${home}: ${message}`, {
      cause: error,
    });
  }
}

function isSame(a: AppServerLock, b: AppServerLock): boolean {
  return (
    a.pid === b.pid && a.startedAt === b.startedAt && a.endpoints.appServerWebSocket === b.endpoints.appServerWebSocket
  );
}
