import { lstat } from 'node:fs/promises';
import { resolve } from 'node:path';
import type { ContentPart } from '../../model.ts';
import { pictureType } from '../../picture-formats.ts';
import { maxPictureBytes, pictureFor } from '../../pictures.ts';
import { isWithin, type PathRules, resolveInWorkspace } from '../paths.ts';
import { openFile } from './handles.ts';

/**
 * Reads an image that a message names by its path; a text names the reason why a picture cannot be shown. Undefined: the file
 * is missing, not an image, too large or not allowed.
 */
export type ReadImage = (path: string, workspacePath: string) => Promise<ContentPart | undefined>;

/**
 * Messages are stored and read again with every turn, and by then a path may lead elsewhere. So the path obeys the same rules as
 * those of the file tools, no symlink is followed out of the workspace or at its end, and the bytes must be those of an image.
 */
export const createImageReader =
  (rules: PathRules): ReadImage =>
  async (given, workspacePath) => {
    try {
      const named = resolve(workspacePath, given);
      const { path, isInside, isBlocked } = await resolveInWorkspace(workspacePath, named, rules);
      if (isBlocked || (isWithin(workspacePath, named) && !isInside)) return undefined;
      if ((await lstat(named)).isSymbolicLink()) return undefined;
      const bytes = await readAll(path);
      const mimeType = bytes && pictureType(bytes);
      if (mimeType === undefined) return undefined;
      return pictureFor({ type: 'image', url: `data:${mimeType};base64,${bytes?.toString('base64')}` });
    } catch {
      // Gone, refused or unreadable: the message only mentions it.
      return undefined;
    }
  };

async function readAll(path: string): Promise<Buffer | undefined> {
  const { handle, stats, close } = await openFile(path);
  try {
    const size = Number(stats.size);
    if (size > maxPictureBytes) return undefined;
    const bytes = Buffer.alloc(size);
    const { bytesRead } = await handle.read(bytes, 0, size, 0);
    return bytes.subarray(0, bytesRead);
  } finally {
    await close();
  }
}
