import { dirname } from 'node:path';
import { acquireLock, ensurePrivateDirectory, type Lock } from '../supervise/index.ts';

/** Lock of the Hub's home. It can be taken again after its file was removed. */
export interface Claim extends Lock {
  /**
   * Makes the state directory and the lock file again and locks them. Call it only while the claim is not intact.
   *
   * @returns false when another Hub holds the new lock
   * @throws Error when the directory or the file cannot be made
   */
  renew(): boolean;
}

/** @param file lock file in the Hub's state directory. @throws LockError when it cannot be used */
export function claimHome(file: string): Claim | 'held' {
  const first = acquireLock(file);
  if (first === 'held') return 'held';
  let lock = first;
  return {
    file,
    intact: () => lock.intact(),
    release: () => lock.release(),
    renew() {
      const statePath = dirname(file);
      ensurePrivateDirectory(dirname(statePath));
      ensurePrivateDirectory(statePath);
      const next = acquireLock(file);
      if (next === 'held') return false;
      lock.release();
      lock = next;
      return true;
    },
  };
}
