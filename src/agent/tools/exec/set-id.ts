import { chmodSync, closeSync, constants, fstatSync, lstatSync, openSync, readlinkSync } from 'node:fs';
import { findProgram } from '../../../lib/index.ts';
import { runProgram, searchPathOutside } from '../../../supervise/index.ts';
import { isWithin } from '../paths.ts';
import { type BytePath, entriesIn, joined } from './byte-path.ts';
import { onlyPath } from './held-directory.ts';

const setId = 0o6000;
const timeoutMs = 60_000;
const maxListedBytes = 1_048_576;
/** Entries of a workspace up to which a command waits for the search. */
const maxPromptEntries = 2_000;

/**
 * Does the work of `clearSetId` in a small workspace, without a process.
 *
 * @returns undefined: the workspace has too many entries, nothing was cleared
 */
export function clearSetIdPromptly(root: string, sinceMs: number): readonly string[] | undefined {
  if (process.platform !== 'linux') return [];
  const files: BytePath[] = [];
  const directories: BytePath[] = [root];
  let count = 0;
  for (const directory of directories) {
    for (const entry of entriesIn(directory)) {
      count += 1;
      if (count > maxPromptEntries) return undefined;
      if (entry.isDirectory()) directories.push(joined(directory, entry.name));
      else if (entry.isFile() && isSetId(joined(directory, entry.name))) files.push(joined(directory, entry.name));
    }
  }
  return files
    .map((file) => Buffer.from(file))
    .filter((file) => clear(file, root, sinceMs))
    .map(String);
}

function isSetId(file: BytePath): boolean {
  try {
    return ((lstatSync(file, { throwIfNoEntry: false })?.mode ?? 0) & setId) !== 0;
  } catch {
    return false;
  }
}

/**
 * Clears the set-user-id and set-group-id bits of files that have changed since a moment, because every user of the machine could run such a
 * file with the rights of this one. Linux only.
 *
 * @param root canonical
 * @param sinceMs time of the file system; a file that has not changed since then belongs to the user
 * @returns paths of these files
 */
export async function clearSetId(root: string, sinceMs: number): Promise<readonly string[]> {
  const find =
    process.platform === 'linux' ? findProgram('find', searchPathOutside(root, process.env['PATH'])) : undefined;
  if (find === undefined) return [];
  const printed: Buffer[] = [];
  let length = 0;
  await runProgram({
    program: find,
    args: [root, '-type', 'f', '-perm', '/6000', '-print0'],
    env: { LC_ALL: 'C' },
    cwd: '/',
    timeoutMs,
    stdout: (chunk) => {
      length += chunk.length;
      if (length <= maxListedBytes) printed.push(chunk);
    },
  }).catch(() => undefined);
  const names = Buffer.concat(printed).toString('latin1').split('\0').slice(0, -1);
  return names
    .map((name) => Buffer.from(name, 'latin1'))
    .filter((file) => clear(file, root, sinceMs))
    .map(String);
}

/** Clears the bits of one file. A descriptor holds the file, because another command may put a link in its place. */
function clear(file: Buffer, root: string, sinceMs: number): boolean {
  let fd: number | undefined;
  try {
    fd = openSync(file, onlyPath | constants.O_NOFOLLOW);
    const held = `/proc/self/fd/${fd}`;
    const stats = fstatSync(fd);
    if (!stats.isFile() || (stats.mode & setId) === 0 || stats.ctimeMs < sinceMs) return false;
    if (!isWithin(root, readlinkSync(held))) return false;
    chmodSync(held, stats.mode & 0o1777);
    return true;
  } catch {
    // The file is gone, or belongs to another user.
    return false;
  } finally {
    if (fd !== undefined) closeSync(fd);
  }
}
