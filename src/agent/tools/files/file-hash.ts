import { createHash } from 'node:crypto';
import { constants } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';

const { O_RDONLY, O_NONBLOCK = 0, O_NOFOLLOW = 0 } = constants;

/** SHA-256 of a content. */
export const hashOf = (data: Uint8Array): string => createHash('sha256').update(data).digest('hex');

/** SHA-256 of a regular file; null: it is missing. @throws errors of the system */
export async function hashOfFile(path: string): Promise<string | null> {
  let file: FileHandle;
  try {
    file = await open(path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
  try {
    if (!(await file.stat()).isFile()) return null;
    const hash = createHash('sha256');
    for await (const chunk of file.createReadStream({ autoClose: false })) hash.update(chunk as Uint8Array);
    return hash.digest('hex');
  } finally {
    await file.close();
  }
}
