import { opendir } from 'node:fs/promises';
import { join } from 'node:path';
import { codeOf } from './errors.ts';

/** Entries of a directory that are read at a time. */
const bufferSize = 256;

/** Counts entries of a tree, up to a limit; ignores links and unreadable directories. Never blocks, even in a large directory. */
export async function countEntries(root: string, limit: number): Promise<number> {
  const pending = [root];
  let count = 0;
  for (let directory = pending.pop(); directory !== undefined && count < limit; directory = pending.pop()) {
    try {
      for await (const entry of await opendir(directory, { bufferSize })) {
        count += 1;
        if (count >= limit) break;
        if (entry.isDirectory() && entry.name !== '.git') pending.push(join(directory, entry.name));
      }
    } catch (error) {
      // The scan itself names unreadable entries.
      if (codeOf(error) === undefined) throw error;
    }
  }
  return count;
}
