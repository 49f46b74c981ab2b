import { realpath } from 'node:fs/promises';
import { resolve } from 'node:path';
import { isWithin, type PathRules, resolveInWorkspace } from '../paths.ts';
import { isMissingBelow } from '../plain-paths.ts';
import { decodeText, sniff, sniffBytes } from './content.ts';
import { openFile, readBeginning } from './handles.ts';

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
    const named = resolve(workspacePath, given);
    if (isMissing(named, [workspacePath])) return undefined;
    try {
      const { path, isBlocked } = await resolveInWorkspace(workspacePath, named, rules);
      if (isBlocked || !isWithin(workspacePath, path)) return undefined;
      return readNow(path, maxBytes) ?? (await readHead(path, maxBytes));
    } catch {
      // Gone, refused or unreadable: as if it were not there.
      return undefined;
    }
  },
  async ofUser(path, maxBytes) {
    if (isMissing(path, rules.protectedDirectories)) return undefined;
    try {
      return await readHead(await realpath(path), maxBytes);
    } catch {
      return undefined;
    }
  },
});

/**
 * Whether a file is missing for certain. Most turns look for files that are not there.
 *
 * @param directories the ones in which that is found out without waiting
 */
const isMissing = (path: string, directories: readonly string[]): boolean =>
  directories.some((directory) => isWithin(directory, path) && isMissingBelow(directory, path));

/** Reads like `readHead`, synchronously; undefined: not possible. @param path in a directory of the user's own */
function readNow(path: string, maxBytes: number): LocalText | undefined {
  const bytes = Buffer.alloc(maxBytes + 1);
  const length = readBeginning(path, bytes);
  return length === undefined ? undefined : textOf(path, bytes.subarray(0, length), maxBytes);
}

async function readHead(path: string, maxBytes: number): Promise<LocalText | undefined> {
  const { handle, close } = await openFile(path);
  try {
    const bytes = Buffer.alloc(maxBytes + 1);
    const { bytesRead } = await handle.read(bytes, 0, bytes.length, 0);
    return textOf(path, bytes.subarray(0, bytesRead), maxBytes);
  } finally {
    await close();
  }
}

/** @param bytes one more than `maxBytes`, when there are more */
function textOf(path: string, bytes: Uint8Array, maxBytes: number): LocalText | undefined {
  const found = sniff(bytes.subarray(0, sniffBytes));
  if (found.kind !== 'text') return undefined;
  const isCut = bytes.length > maxBytes;
  const text = decodeText(bytes.subarray(0, maxBytes), found);
  // A character may have been cut in two.
  return { path, text: isCut ? text.replace(/\uFFFD$/, '') : text, isCut };
}
