/** Directory in which the tests store tools for later runs. */
import { lstatSync, mkdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { acquireLock, type Lock } from '../../src/supervise/index.ts';

const lockPollMs = 200;

/**
 * The cache; no other user can have written to it. `npm test` gives each run a temporary directory of its own and names the
 * system's in `ORATORIO_TEST_CACHE`.
 */
export function cacheDirectory(): string {
  const base = process.env['XDG_CACHE_HOME'];
  const uid = process.getuid?.() ?? 0;
  const temporary = process.env['ORATORIO_TEST_CACHE'] ?? tmpdir();
  const directory = base ? join(base, 'oratorio-test-tools') : join(temporary, `oratorio-test-tools-${uid}`);
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  const { uid: owner, mode } = lstatSync(directory);
  if (owner === uid && (mode & 0o022) === 0) return directory;
  throw new Error(`${directory} is not a directory of this user alone`);
}

/** Test files run side by side: the first fetches the file that all of them wait for. `name` is that of a lock in the cache. */
export async function withLock<T>(name: string, action: () => Promise<T>): Promise<T> {
  const lock = await takeLock(join(cacheDirectory(), name));
  try {
    return await action();
  } finally {
    lock.release();
  }
}

async function takeLock(file: string): Promise<Lock> {
  for (;;) {
    const lock = acquireLock(file);
    if (lock !== 'held') return lock;
    await delay(lockPollMs);
  }
}
