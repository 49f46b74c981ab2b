import { randomBytes } from 'node:crypto';
import { chmodSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { createFileAtomic, messageOf } from '../../lib/index.ts';
import { acquireLock, ensurePrivateDirectory, type Lock, removeStaleTemps } from '../../supervise/index.ts';
import { BackendError } from './error.ts';

/** Creates the directory (0700), or restricts the mode of an existing one. @throws BackendError */
export function openStateDirectory(directory: string): void {
  try {
    ensurePrivateDirectory(directory);
    removeStaleTemps(directory);
  } catch (error) {
    throw new BackendError(
      'stateDirectoryUnusable',
      `The state directory cannot be used: ${messageOf(error)}`,
      'Choose another directory with --state or ORATORIO_STATE_ROOT.',
      { cause: error },
    );
  }
}

/** Locks the directory, because SQLite allows one backend. The kernel releases the lock at any end of the process. @throws BackendError */
export function lockState(directory: string): Lock {
  let lock: Lock | 'held';
  try {
    lock = acquireLock(join(directory, 'backend.mutex'));
  } catch (error) {
    throw new BackendError('stateDirectoryUnusable', messageOf(error), null, { cause: error });
  }
  if (lock !== 'held') return lock;
  throw new BackendError(
    'alreadyRunning',
    `Another review backend uses ${directory}.`,
    'Stop it first, choose another directory with --state, or set Storage.ConnectionString to share a PostgreSQL database.',
  );
}

const shape = /^[A-Za-z0-9_-]{43}$/;
export const serviceTokenFile = (directory: string): string => join(directory, 'service.token');

/**
 * Reads or creates (0600) the service token of the API. Processes that create it at the same time all use the first one.
 * @throws BackendError
 */
export function serviceToken(directory: string): string {
  const file = serviceTokenFile(directory);
  try {
    return read(file) ?? make(file);
  } catch (error) {
    if (error instanceof BackendError) throw error;
    throw new BackendError('stateDirectoryUnusable', `Cannot use the service token: ${messageOf(error)}`, null, {
      cause: error,
    });
  }
}

function read(file: string): string | undefined {
  const found = statSync(file, { throwIfNoEntry: false });
  if (!found) return undefined;
  if (process.platform !== 'win32' && (found.mode & 0o077) !== 0) chmodSync(file, 0o600);
  const token = readFileSync(file, 'utf8').trim();
  if (shape.test(token)) return token;
  throw new BackendError(
    'stateDirectoryUnusable',
    `${file} contains no service token.`,
    'Delete it; the next start creates a new token.',
  );
}

function make(file: string): string {
  createFileAtomic(file, `${randomBytes(32).toString('base64url')}\n`);
  const token = read(file);
  if (token === undefined) throw new Error(`${file} has vanished`);
  return token;
}
