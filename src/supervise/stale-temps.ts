import { readdirSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { writerOfTemporary } from '../lib/index.ts';
import { readIdentity } from './identity.ts';

/** No write takes so long. */
const longestWriteMs = 60_000;

/**
 * Removes the temporary files of atomic writers that were killed half-way. A zombie writes no more: its parent may be slow to
 * read its exit code. The file of a live writer stays for a minute, and not longer, for pids are used again.
 */
export function removeStaleTemps(directory: string): void {
  for (const name of readdirSync(directory)) {
    const writer = writerOfTemporary(name);
    if (writer === undefined) continue;
    const path = join(directory, name);
    if (readIdentity(writer) === 'gone' || ageMs(path) > longestWriteMs) rmSync(path, { force: true });
  }
}

/** File times are on the wall clock. */
const ageMs = (path: string): number => Date.now() - (statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? Date.now());
