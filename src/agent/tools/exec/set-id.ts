import { chmodSync, closeSync, constants, fstatSync, lstatSync, openSync, readlinkSync } from 'node:fs';
import { findProgram } from '../../../lib/index.ts';
import { runProgram, searchPathOutside } from '../../../supervise/index.ts';
import { isWithin } from '../paths.ts';
import { type BytePath, entriesIn, joined } from './byte-path.ts';
import { onlyPath } from './held-directory.ts';
import { KnownDirectories } from './known-directories.ts';

const setId = 0o6000;
const timeoutMs = 60_000;
const maxListedBytes = 1_048_576;
/** Entries of a workspace up to which a command waits for the search, and up to which it needs no process. */
const limits = { prompt: 2_000, ownProcess: 20_000 };
/** Entries between two pauses, in which other work gets its turn. */
const sliceLength = 500;

interface SearchedDirectory {
  readonly path: BytePath;
  readonly directories: readonly BytePath[];
  readonly files: readonly BytePath[];
}

/**
 * Clears the set-user-id and set-group-id bits of files below a directory that have changed since a moment, because every user of the
 * machine could run such a file with the rights of this one. Linux only.
 */
export class SetIdSearch {
  readonly #root: string;
  readonly #known = new KnownDirectories(list);

  /** @param root canonical */
  constructor(root: string) {
    this.#root = root;
  }

  /** Does the work of `clear` in a small workspace. @returns undefined: it has too many entries, nothing was cleared */
  clearPromptly(sinceMs: number): Promise<readonly string[] | undefined> {
    return this.#clear(sinceMs, limits.prompt);
  }

  /**
   * Not for two calls at a time.
   *
   * @param sinceMs time of the file system; a file that has not changed since then belongs to the user
   * @returns paths of the files
   */
  async clear(sinceMs: number): Promise<readonly string[]> {
    return (await this.#clear(sinceMs, limits.ownProcess)) ?? clearWithProgram(this.#root, sinceMs);
  }

  async #clear(sinceMs: number, max: number): Promise<readonly string[] | undefined> {
    if (process.platform !== 'linux') return [];
    const found = await this.#find(max);
    if (!found) return undefined;
    const cleared: string[] = [];
    let left = sliceLength;
    for (const { path, files } of found) {
      const marked = files.map((name) => joined(path, name)).filter(isSetId);
      cleared.push(...marked.filter((file) => clear(Buffer.from(file), this.#root, sinceMs)).map(String));
      left -= files.length;
      if (left > 0) continue;
      left = sliceLength;
      await nextTurn();
    }
    return cleared;
  }

  /** All directories, or undefined when there are more entries. */
  async #find(max: number): Promise<readonly SearchedDirectory[] | undefined> {
    const left: BytePath[] = [this.#root];
    const found: SearchedDirectory[] = [];
    let count = 0;
    try {
      for (const path of left) {
        const directory = this.#known.read(path);
        if (!directory) continue;
        found.push(directory);
        for (const name of directory.directories) left.push(joined(path, name));
        count += directory.directories.length + directory.files.length;
        if (count > max) return undefined;
        if (found.length % sliceLength === 0) await nextTurn();
      }
      return found;
    } finally {
      this.#known.finish();
    }
  }
}

const nextTurn = () => new Promise<void>((resolve) => setImmediate(resolve));

function list(path: BytePath): SearchedDirectory {
  const entries = entriesIn(path);
  const namesOf = (chosen: typeof entries) => chosen.map(({ name }) => name);
  return {
    path,
    directories: namesOf(entries.filter((entry) => entry.isDirectory())),
    files: namesOf(entries.filter((entry) => entry.isFile())),
  };
}

function isSetId(file: BytePath): boolean {
  try {
    return ((lstatSync(file, { throwIfNoEntry: false })?.mode ?? 0) & setId) !== 0;
  } catch {
    return false;
  }
}

/** Searches with `find`, for a workspace of many entries. */
async function clearWithProgram(root: string, sinceMs: number): Promise<readonly string[]> {
  const find = findProgram('find', searchPathOutside(root, process.env['PATH']));
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
