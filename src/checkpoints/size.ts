import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { Pacer } from './pacer.ts';

/** Counts entries of a tree, up to a limit; links are not followed. What cannot be read counts for nothing. */
export async function countEntries(root: string, limit: number): Promise<number> {
  const pacer = new Pacer();
  const pending = [root];
  let count = 0;
  for (let directory = pending.pop(); directory !== undefined && count < limit; directory = pending.pop()) {
    try {
      for (const entry of readdirSync(directory, { withFileTypes: true })) {
        count += 1;
        if (entry.isDirectory() && entry.name !== '.git') pending.push(join(directory, entry.name));
      }
    } catch {
      // The scan itself says what cannot be read.
    }
    if (pacer.isDue) await pacer.pause();
  }
  return count;
}
