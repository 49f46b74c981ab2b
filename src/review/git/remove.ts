import { lstat, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { runProgram } from '../../supervise/index.ts';

/** Grants the owner read, write and search permission in the rest of a tree. Does not follow or change links. */
async function makeWritable(path: string): Promise<void> {
  // The failed removal may still be running, so a path may be missing. The next removal reports other failures.
  await runProgram({
    program: 'chmod',
    args: ['-R', '--', 'u+rwX', path],
    env: { PATH: process.env['PATH'] ?? '', LC_ALL: 'C' },
  });
}

/** Removes a file or a tree, even a read-only or missing one. Links are removed, not followed. */
export async function removeTree(path: string): Promise<void> {
  const found = await lstat(path).catch(() => null);
  if (found === null) return;
  if (!found.isDirectory()) return await rm(path, { force: true });
  try {
    await rm(path, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
  } catch {
    await makeWritable(path);
    await rm(path, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
  }
}

/** Removes lock files and half-written packs of a killed git. Only while no process works on the store. */
export async function removeStaleLocks(gitDir: string): Promise<void> {
  const names = await readdir(gitDir, { recursive: true, withFileTypes: true }).catch(() => []);
  for (const entry of names) {
    const isPack = entry.parentPath.endsWith('/pack') && /^(tmp_|\.tmp-)/.test(entry.name);
    const isLoose = entry.name.startsWith('tmp_obj_');
    if (entry.isFile() && (entry.name.endsWith('.lock') || isPack || isLoose)) {
      await rm(join(entry.parentPath, entry.name), { force: true });
    }
  }
}
