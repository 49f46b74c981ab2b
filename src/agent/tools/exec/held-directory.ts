import { randomBytes } from 'node:crypto';
import { chmodSync, closeSync, constants, fstatSync, lstatSync, openSync, readlinkSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { type BytePath, joined, readEntries } from './byte-path.ts';

const isLinux = process.platform === 'linux';
/** Linux: a descriptor of a file that need not be readable. */
export const onlyPath = 0o10000000;
const ofOwner = 0o700;
const toRead = 0o500;

/**
 * Calls back with a path that keeps leading to this directory, even when a process swaps it for a link. The user gets all rights to a
 * directory of the user: without them nothing could be read or moved in it, but git would work.
 *
 * @returns undefined: the directory is gone, was swapped, or the callback has thrown
 */
export function inDirectory<T>(path: BytePath, act: (place: string) => T): T | undefined {
  let fd: number | undefined;
  try {
    fd = openSync(path, (isLinux ? onlyPath : constants.O_RDONLY) | constants.O_DIRECTORY | constants.O_NOFOLLOW);
    if (!isLinux) return act(String(path));
    const place = `/proc/self/fd/${fd}`;
    if (!readlinkSync(place, 'buffer').equals(Buffer.from(path))) return undefined;
    const { mode, uid } = fstatSync(fd);
    if ((mode & ofOwner) !== ofOwner && uid === process.geteuid?.()) chmodSync(place, (mode & 0o7777) | ofOwner);
    return act(place);
  } catch {
    return undefined;
  } finally {
    if (fd !== undefined) closeSync(fd);
  }
}

/** A directory whose user got rights that were missing. */
export interface OpenedDirectory {
  readonly path: BytePath;
  readonly rights: number;
}

/**
 * Lets the user list a directory of the user and reach its entries. Linux only.
 *
 * @returns undefined: the user could do so before, or the directory belongs to another user
 */
export function allowReading(path: BytePath): OpenedDirectory | undefined {
  const { mode, uid } = lstatSync(path);
  const rights = toRead & ~mode;
  if (rights === 0 || uid === 0 || uid !== process.geteuid?.()) return undefined;
  return change(path, (before) => before | rights) ? { path, rights } : undefined;
}

/** Takes the rights away again that the user got. */
export function withdrawReading({ path, rights }: OpenedDirectory): void {
  change(path, (before) => before & ~rights);
}

/** Changes the mode of a directory, never of one behind a link. */
function change(path: BytePath, edit: (mode: number) => number): boolean {
  let fd: number | undefined;
  try {
    fd = openSync(path, onlyPath | constants.O_DIRECTORY | constants.O_NOFOLLOW);
    chmodSync(`/proc/self/fd/${fd}`, edit(fstatSync(fd).mode & 0o7777));
    return true;
  } catch {
    return false;
  } finally {
    if (fd !== undefined) closeSync(fd);
  }
}

/** Entries of a directory. A directory of the user that cannot be listed gets the rights for it: git works in it without them. */
export function openedEntries(path: BytePath): ReturnType<typeof readEntries> {
  try {
    return readEntries(path);
  } catch {
    inDirectory(path, () => undefined);
    return readEntries(path);
  }
}

/** Longest original name, in bytes, that still fits into the name of a file that is set aside. */
const maxNameBytes = 255 - '.removed-00000000'.length;

/** Name for a file that is set aside. A command may have used the longest possible name. */
export function asideOf(name: string): string {
  const start = Buffer.from(name)
    .subarray(0, maxNameBytes)
    .toString()
    .replace(/\uFFFD+$/, '');
  return `${start}.removed-${randomBytes(4).toString('hex')}`;
}

/** A file that git would have read or run, and that was set aside. */
export interface GitFinding {
  readonly path: string;
  /** Completes "path (…)". */
  readonly what: string;
  /** The file stays where it is, without its set-id bits. */
  readonly isCleared?: true;
}

/**
 * Renames an entry of a directory.
 *
 * @param place of `inDirectory`
 */
export function setAside(directory: BytePath, place: string, name: string, what: string): GitFinding {
  const kept = asideOf(name);
  renameSync(join(place, name), join(place, kept));
  return { path: String(joined(directory, name)), what: `${what}; now ${kept}` };
}
