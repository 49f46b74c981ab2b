import { realpath } from 'node:fs/promises';
import { resolve } from 'node:path';
import { isWithin, type PathRules, resolveInWorkspace } from '../paths.ts';
import { decodeText, sniff, sniffBytes } from './content.ts';
import { openFile } from './handles.ts';

/** Beginning of a text file. */
export interface LocalText {
  /** Real path. */
  readonly path: string;
  readonly text: string;
  /** The file is longer. */
  readonly isCut: boolean;
}

/** Reads the beginning of text files, without approval. Undefined: not there, not a text, or not allowed. */
export interface ReadText {
  /** A file of the workspace, by the rules of the file tools. No link out of the workspace is followed. */
  readonly inWorkspace: (path: string, workspacePath: string, maxBytes: number) => Promise<LocalText | undefined>;
  /** A file of the user's own. @param path absolute */
  readonly ofUser: (path: string, maxBytes: number) => Promise<LocalText | undefined>;
}

export const createTextReader = (rules: PathRules): ReadText => ({
  async inWorkspace(given, workspacePath, maxBytes) {
    try {
      const { path, isBlocked } = await resolveInWorkspace(workspacePath, resolve(workspacePath, given), rules);
      if (isBlocked || !isWithin(workspacePath, path)) return undefined;
      return await readHead(path, maxBytes);
    } catch {
      // Gone, refused or unreadable: as if it were not there.
      return undefined;
    }
  },
  async ofUser(path, maxBytes) {
    try {
      return await readHead(await realpath(path), maxBytes);
    } catch {
      return undefined;
    }
  },
});

async function readHead(path: string, maxBytes: number): Promise<LocalText | undefined> {
  const { handle, close } = await openFile(path);
  try {
    const bytes = Buffer.alloc(maxBytes + 1);
    const { bytesRead } = await handle.read(bytes, 0, bytes.length, 0);
    const found = sniff(bytes.subarray(0, Math.min(bytesRead, sniffBytes)));
    if (found.kind !== 'text') return undefined;
    const isCut = bytesRead > maxBytes;
    const text = decodeText(bytes.subarray(0, Math.min(bytesRead, maxBytes)), found);
    // A character may have been cut in two.
    return { path, text: isCut ? text.replace(/\uFFFD$/, '') : text, isCut };
  } finally {
    await close();
  }
}
