import { readFile } from 'node:fs/promises';
import { join } from 'node:path';

/**
 * The commit that a ref of one of our stores names: from the ref's file, or else from `packed-refs` (git-pack-refs(1)). No
 * process is needed for it, and stores are ours, so no other kind of ref is in them.
 *
 * @returns null when there is no such ref
 */
export async function readRef(gitDir: string, name: string): Promise<string | null> {
  // A ref that is being packed is in `packed-refs` before its file goes: the file is read first.
  const loose = await readIfThere(join(gitDir, name));
  const sha = /^([0-9a-f]{40})\n?$/.exec(loose)?.[1];
  if (sha !== undefined) return sha;
  const line = (await readIfThere(join(gitDir, 'packed-refs'))).split('\n').find((entry) => entry.endsWith(` ${name}`));
  return /^[0-9a-f]{40}(?= )/.exec(line ?? '')?.[0] ?? null;
}

async function readIfThere(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return '';
    throw error;
  }
}
