import { randomBytes } from 'node:crypto';
import { linkSync, renameSync, rmSync, statSync } from 'node:fs';
import { createFileAtomic, readBoundedFile, temporaryName, withAdvice } from '../lib/index.ts';

/** Error for a file that another process has locked. The message is meant for the user. */
export class LockedFileError extends Error {
  override readonly name = 'LockedFileError';
}

const lockWaitMs = 10_000;
const lockPollMs = 10;
/** Longest possible change. An older lock belongs to a dead process, even if its pid is in use again. */
const longestChangeMs = 60_000;

/**
 * Locks a file while `change` reads and writes it, so that no change of another process is lost. The lock file `FILE.lock` contains
 * the pid of its owner; the lock of a dead process is taken over.
 *
 * @throws LockedFileError when another process holds the lock for too long, FileRefusedError for another kind of file, or the error
 * of `change`
 */
export function whileLocked(file: string, change: () => void): void {
  const lockFile = `${file}.lock`;
  const mine = `${process.pid} ${randomBytes(8).toString('hex')}`;
  const deadline = performance.now() + lockWaitMs;
  while (!createFileAtomic(lockFile, mine)) {
    if (performance.now() > deadline)
      throw new LockedFileError(`${lockFile} is held by another process: try again, or remove it`);
    if (!removeAbandoned(lockFile)) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, lockPollMs);
  }
  try {
    change();
  } finally {
    if (ownerOf(lockFile) === mine) rmSync(lockFile, { force: true });
  }
}

/** Reads a file that may be missing; undefined: it is missing. */
function ifPresent<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

const ownerOf = (file: string): string | undefined => withAdvice(() => readBoundedFile(file, { owner: 'any' }));

/** Removes a lock whose process is gone. @returns whether the lock may be free now */
function removeAbandoned(file: string): boolean {
  const owner = ownerOf(file);
  if (owner === undefined) return true;
  if (isRunning(Number(owner.split(' ')[0])) && ageMs(file) < longestChangeMs) return false;
  // Move, then compare: in the meantime, another process may have replaced the lock with its own.
  const aside = temporaryName(file);
  if (ifPresent(() => renameSync(file, aside) ?? true) === undefined) return true;
  if (ownerOf(aside) !== owner) putBack(aside, file);
  rmSync(aside, { force: true });
  return true;
}

function putBack(aside: string, file: string): void {
  try {
    linkSync(aside, file);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
}

/** Age of a file, in milliseconds; file times are on the wall clock. */
const ageMs = (file: string): number => Date.now() - (statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? Date.now());

function isRunning(pid: number): boolean {
  if (!Number.isInteger(pid) || pid <= 0) return false;
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ESRCH';
  }
}
