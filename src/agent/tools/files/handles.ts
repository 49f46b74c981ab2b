import {
  type BigIntStats,
  closeSync,
  constants,
  existsSync,
  fstatSync,
  openSync,
  readlinkSync,
  readSync,
} from 'node:fs';
import { type FileHandle, lstat, mkdir, open, readlink, realpath, rmdir } from 'node:fs/promises';
import { basename, dirname, join, sep } from 'node:path';
import { isWithin } from '../paths.ts';
import { errorCode } from '../text.ts';
import { FileError } from './errors.ts';

/** Flags that an operating system does not know are 0 there. */
const { O_RDONLY, O_NOFOLLOW = 0, O_NONBLOCK = 0, O_DIRECTORY = 0 } = constants;

/** Linux only, and not among Node's constants: holds a place, opens nothing, and needs no right to read (open(2)). */
const O_PATH = 0o10000000;

/** Linux shows the real path of an open file, and opens paths below an open directory: nothing can be swapped under it. */
const descriptors = '/proc/self/fd';
const hasDescriptors = process.platform === 'linux' && existsSync(descriptors);

/** Most attempts to open a file that is replaced whole during the opening. */
const maxTries = 5;

/** A directory that stays the checked one, even if its name comes to mean another. */
export interface DirectoryHandle {
  /** Real and absolute, when it was opened. */
  readonly path: string;
  /** A path of the entry `name` for system calls; of the directory itself without a name. */
  readonly at: (name?: string) => string;
  /** Makes sure that `handle` is open on the entry `name` of this very directory. @throws FileError moved */
  readonly confirm: (handle: FileHandle, name: string) => Promise<void>;
  readonly sync: () => Promise<void>;
  readonly close: () => Promise<void>;
}

export interface OpenFile {
  readonly handle: FileHandle;
  readonly stats: BigIntStats;
  readonly close: () => Promise<void>;
}

/**
 * Opens a regular file for reading.
 *
 * @param path result of `resolveInWorkspace`: opens the file at exactly this path, or nothing
 * @throws FileError moved, notAFile; errors of the system
 */
export async function openFile(path: string): Promise<OpenFile> {
  // Without O_NONBLOCK a FIFO would be waited for.
  const handle = await openVerified(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  try {
    const stats = await handle.stat({ bigint: true });
    if (!stats.isFile()) throw new FileError('notAFile', `it is ${kindOf(stats)}, not a regular file`);
    return { handle, stats, close: () => handle.close() };
  } catch (error) {
    await handle.close();
    throw error;
  }
}

/**
 * Reads the beginning of a regular file without waiting: for small files that are read often, on a file system of the user's own.
 *
 * @param path as for `openFile`
 * @returns number of bytes; undefined: not possible so, and `openFile` finds out why
 */
export function readBeginning(path: string, into: Uint8Array): number | undefined {
  if (!hasDescriptors) return undefined;
  let file: number;
  try {
    file = openSync(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  } catch {
    return undefined;
  }
  try {
    const isThere = readlinkSync(`${descriptors}/${file}`) === path && fstatSync(file).isFile();
    return isThere ? readSync(file, into, 0, into.length, 0) : undefined;
  } finally {
    closeSync(file);
  }
}

/** Opens a directory. @throws FileError moved; errors of the system */
export async function openDirectory(path: string): Promise<DirectoryHandle> {
  if (process.platform === 'win32') return unpinned(path);
  const handle = await openVerified(path, O_RDONLY | O_NOFOLLOW | O_DIRECTORY);
  const base = hasDescriptors ? `${descriptors}/${handle.fd}` : path;
  return {
    path,
    at: (name) => (name === undefined ? base : join(base, name)),
    // Where `at` goes through the descriptor there is nothing to doubt.
    confirm: async (entry, name) => (hasDescriptors ? undefined : mustBe(entry, join(path, name))),
    sync: () => handle.sync(),
    close: () => handle.close(),
  };
}

/** Windows opens no directories: there a swap after this check is not noticed. */
async function unpinned(path: string): Promise<DirectoryHandle> {
  if ((await realpath(path)) !== path) throw moved();
  return {
    path,
    at: (name) => (name === undefined ? path : join(path, name)),
    confirm: (entry, name) => mustBe(entry, join(path, name)),
    sync: async () => {},
    close: async () => {},
  };
}

/**
 * Opens a directory and makes its missing levels, one pinned level after the other.
 *
 * @param root directory that is never made, nor one above it; `path` may lie elsewhere
 * @returns the directory, and a function that removes the made ones that are empty
 */
export async function makeDirectory(
  path: string,
  root: string,
): Promise<{ directory: DirectoryHandle; undo: () => Promise<void> }> {
  const made: string[] = [];
  const undo = async () => {
    for (const each of made.toReversed()) {
      // A directory that another program has filled stays.
      await rmdir(each).catch(() => {});
    }
  };
  try {
    return { directory: await openOrMake(path, root, made), undo };
  } catch (error) {
    await undo();
    throw error;
  }
}

async function openOrMake(path: string, root: string, made: string[]): Promise<DirectoryHandle> {
  try {
    return await openDirectory(path);
  } catch (error) {
    if (errorCode(error) !== 'ENOENT' || dirname(path) === path || isWithin(path, root)) throw error;
  }
  const parent = await openOrMake(dirname(path), root, made);
  try {
    await mkdir(parent.at(basename(path)));
    made.push(path);
  } catch (error) {
    if (errorCode(error) !== 'EEXIST') throw error;
  } finally {
    await parent.close();
  }
  return openDirectory(path);
}

/** Reads the entry itself, not its target; undefined when it is missing. */
export async function statEntry(path: string): Promise<BigIntStats | undefined> {
  try {
    return await lstat(path, { bigint: true });
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return undefined;
    throw error;
  }
}

/** Kind of a file in words, with an article. */
export function kindOf(stats: BigIntStats): string {
  if (stats.isDirectory()) return 'a directory';
  if (stats.isSymbolicLink()) return 'a symlink';
  if (stats.isFIFO()) return 'a FIFO';
  if (stats.isSocket()) return 'a socket';
  return stats.isFile() ? 'a file' : 'a device';
}

async function openVerified(path: string, flags: number): Promise<FileHandle> {
  for (let tries = 1; ; tries += 1) {
    const handle = await openAsGiven(path, flags);
    const found = await whereIs(handle, path).catch((error: unknown) => error);
    if (found === 'there') return handle;
    await handle.close();
    if (found === 'replaced' && tries < maxTries) continue;
    throw found instanceof Error ? found : moved();
  }
}

/** A symlink at the end of a path that has none was put there just now. */
async function openAsGiven(path: string, flags: number): Promise<FileHandle> {
  try {
    return await open(path, flags);
  } catch (error) {
    const isLink = errorCode(error) === 'ELOOP' || (await isSymlink(path));
    throw isLink ? moved() : error;
  }
}

const isSymlink = async (path: string): Promise<boolean> =>
  (await lstat(path).catch(() => undefined))?.isSymbolicLink() ?? false;

/** `replaced`: another file has taken its place, as whole-file writers do. */
type Whereabouts = 'there' | 'replaced' | 'elsewhere';

/** Whether the open file is the one at the path: no symlink led elsewhere. */
async function whereIs(handle: FileHandle, path: string): Promise<Whereabouts> {
  if (hasDescriptors) {
    const real = await readlink(`${descriptors}/${handle.fd}`);
    if (real === path) return 'there';
    if (real === `${path} (deleted)`) return 'replaced';
    // Some file systems report it in another spelling.
    return compared(await handle.stat({ bigint: true }), await walkTo(path).catch(() => undefined));
  }
  return whereIsByIdentity(handle, path);
}

const compared = (opened: BigIntStats, named: BigIntStats | undefined): Whereabouts => {
  if (named === undefined) return 'elsewhere';
  return named.dev === opened.dev && named.ino === opened.ino ? 'there' : 'replaced';
};

/**
 * Resolves a path without symlinks. Each directory is held while the next name is looked up in it: a check of the path,
 * then of the file, would follow a symlink that is put there in between.
 *
 * @throws errors of the system, when a part of it is a symlink or not there
 */
async function walkTo(path: string): Promise<BigIntStats> {
  let directory = await open(sep, O_PATH | O_DIRECTORY);
  try {
    for (const name of dirname(path).split(sep).filter(Boolean)) {
      const next = await open(`${descriptors}/${directory.fd}/${name}`, O_PATH | O_NOFOLLOW | O_DIRECTORY);
      await directory.close();
      directory = next;
    }
    return await lstat(`${descriptors}/${directory.fd}/${basename(path)}`, { bigint: true });
  } finally {
    await directory.close();
  }
}

/** Compares identities, on systems that do not report the path of an open file. Reads twice, to notice an exchange in between. */
async function whereIsByIdentity(handle: FileHandle, path: string): Promise<Whereabouts> {
  const opened = await handle.stat({ bigint: true });
  const isReal = async () => (await realpath(path).catch(() => undefined)) === path;
  if (!(await isReal())) return 'elsewhere';
  const named = await statEntry(path);
  return (await isReal()) ? compared(opened, named) : 'elsewhere';
}

async function mustBe(handle: FileHandle, path: string): Promise<void> {
  if ((await whereIsByIdentity(handle, path)) !== 'there') throw moved();
}

const moved = (): FileError =>
  new FileError('moved', 'a part of the path was exchanged while it was being opened; nothing was read or written');
