import { readFile } from 'node:fs/promises';
import { join } from 'node:path';

/**
 * Returns the commit of a ref in one of our stores: from the ref's file, or else from `packed-refs` (git-pack-refs(1)). Starts no
 * process: stores are ours, and hold no other kind of ref.
 *
 * @returns null when there is no such ref
 */
export async function readRef(gitDir: string, name: string): Promise<string | null> {
  // Packing writes a ref to `packed-refs` before it removes the file: the file is read first.
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
