import { lchown, opendir } from 'node:fs/promises';
import { join } from 'node:path';
import { DeployError } from '../errors.ts';

/**
 * Gives `path` and everything below it to a user. Links are given, not followed. Only root may give to another one.
 * @throws DeployError fileFailed; cancelled
 */
export async function giveTo(path: string, uid: number, gid: number, signal?: AbortSignal): Promise<void> {
  if (signal?.aborted) throw new DeployError('cancelled', 'Giving files to the user of the containers was cancelled.');
  try {
    for await (const entry of await entriesOf(path)) {
      const below = join(path, entry.name);
      await (entry.isDirectory() ? giveTo(below, uid, gid, signal) : lchown(below, uid, gid));
    }
    await lchown(path, uid, gid);
  } catch (error) {
    if (error instanceof DeployError) throw error;
    const { code } = error as NodeJS.ErrnoException;
    throw new DeployError('fileFailed', `${path} cannot be given to user ${uid} (${code}).`, null, { cause: error });
  }
}

/** Entries of a directory; none for any other file. */
async function entriesOf(path: string) {
  return opendir(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOTDIR') return [];
    throw error;
  });
}
