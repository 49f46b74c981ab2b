import { realpathSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { directoryName } from '../config/index.ts';
import { AppServerLock } from '../protocol/index.ts';
import { acquireLock, type Lock, LockError, readJson, writeFileAtomic } from '../supervise/index.ts';
import { StartupError } from './startup-error.ts';

/** A workspace that this process alone serves. */
export interface HeldWorkspace {
  /** Canonical. */
  readonly path: string;
  readonly lock: Lock;
  /** What the server before us has published and not taken back: it did not end in an orderly way. */
  readonly predecessor: AppServerLock | undefined;
  /** Publishes our address: from now on clients come. */
  publish(address: AppServerLock): void;
  /** Takes the published address back, if it is still ours. The lock is kept. */
  withdraw(): void;
}

/**
 * Finds the workspace and takes its OS lock: nothing else happens before that.
 *
 * @throws StartupError noWorkspace, held, system
 */
export function holdWorkspace(workspacePath: string): HeldWorkspace {
  const path = canonicalPath(workspacePath);
  const inside = join(path, directoryName);
  if (!statSync(inside, { throwIfNoEntry: false })?.isDirectory()) {
    throw new StartupError('noWorkspace', `${path} is not a workspace; make it one with: oratorio init`);
  }
  const lock = takeLock(join(inside, 'appserver.mutex'), path);
  const addressFile = join(inside, 'appserver.lock');
  const stale = readJson(addressFile, AppServerLock);
  let published: AppServerLock | undefined;
  return {
    path,
    lock,
    predecessor: stale.kind === 'ok' ? stale.value : undefined,
    publish(address) {
      writeFileAtomic(addressFile, `${JSON.stringify(address, null, 2)}\n`);
      published = address;
    },
    withdraw() {
      const found = readJson(addressFile, AppServerLock);
      if (published && found.kind === 'ok' && isSame(found.value, published)) rmSync(addressFile, { force: true });
      published = undefined;
    },
  };
}

function canonicalPath(path: string): string {
  try {
    return realpathSync.native(path);
  } catch (error) {
    throw new StartupError('noWorkspace', `${path} cannot be opened (${(error as NodeJS.ErrnoException).code})`);
  }
}

function takeLock(file: string, path: string): Lock {
  try {
    const lock = acquireLock(file);
    if (lock !== 'held') return lock;
  } catch (error) {
    if (error instanceof LockError) throw new StartupError('system', error.message, { cause: error });
    throw error;
  }
  throw new StartupError('held', `another agent server serves ${path}`);
}

function isSame(a: AppServerLock, b: AppServerLock): boolean {
  return (
    a.pid === b.pid && a.startedAt === b.startedAt && a.endpoints.appServerWebSocket === b.endpoints.appServerWebSocket
  );
}
