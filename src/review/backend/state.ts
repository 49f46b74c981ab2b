import { randomBytes } from 'node:crypto';
import { chmodSync, linkSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { messageOf } from '../../lib/index.ts';
import { acquireLock, ensurePrivateDirectory, type Lock, removeStaleTemps } from '../../supervise/index.ts';
import { BackendError } from './error.ts';

/** Makes the directory (0700), and tightens one that is there. @throws BackendError */
export function openStateDirectory(directory: string): void {
  try {
    ensurePrivateDirectory(directory);
    removeStaleTemps(directory);
  } catch (error) {
    throw new BackendError(
      'stateDirectoryUnusable',
      `The state directory cannot be used: ${messageOf(error)}`,
      'Name another one with --state or ORATORIO_STATE_ROOT.',
      { cause: error },
    );
  }
}

/** SQLite has one backend at a time; the kernel lets go of the lock, however the process ends. @throws BackendError */
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
    `Another review backend works on ${directory}.`,
    'Stop it first, name another directory with --state, or set Storage.ConnectionString to share a PostgreSQL database.',
  );
}

const shape = /^[A-Za-z0-9_-]{43}$/;
export const serviceTokenFile = (directory: string): string => join(directory, 'service.token');

/**
 * The token that opens the API; made when there is none (0600). Of those who make one at the same time the first has it.
 * @throws BackendError
 */
export function serviceToken(directory: string): string {
  const file = serviceTokenFile(directory);
  try {
    return read(file) ?? make(directory, file);
  } catch (error) {
    if (error instanceof BackendError) throw error;
    throw new BackendError('stateDirectoryUnusable', `The service token: ${messageOf(error)}`, null, { cause: error });
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
    `${file} holds no service token.`,
    'Delete it; a new token is made then.',
  );
}

function make(directory: string, file: string): string {
  const mine = join(directory, `.service.token.${process.pid}.${randomBytes(6).toString('hex')}.tmp`);
  try {
    writeFileSync(mine, `${randomBytes(32).toString('base64url')}\n`, { mode: 0o600, flag: 'wx' });
    linkSync(mine, file);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  } finally {
    rmSync(mine, { force: true });
  }
  const token = read(file);
  if (token === undefined) throw new Error(`${file} has vanished`);
  return token;
}
