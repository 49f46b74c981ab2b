import { lstatSync, readdirSync, rmSync } from 'node:fs';
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
    const facts = lstatSync(path, { throwIfNoEntry: false });
    // A repository may contain a directory with such a name.
    if (!facts?.isFile()) continue;
    // File times are on the wall clock.
    if (readIdentity(writer) === 'gone' || Date.now() - facts.mtimeMs > longestWriteMs) rmSync(path, { force: true });
  }
}
