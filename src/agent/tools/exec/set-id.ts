import { chmodSync, closeSync, constants, fstatSync, lstatSync, openSync, readlinkSync } from 'node:fs';
import { findProgram } from '../../../lib/index.ts';
import { runProgram, searchPathOutside } from '../../../supervise/index.ts';
import { isWithin } from '../paths.ts';
import { type BytePath, joined, readEntries } from './byte-path.ts';
import { allowReading, type OpenedDirectory, onlyPath, withdrawReading } from './held-directory.ts';
import { KnownDirectories } from './known-directories.ts';

const setId = 0o6000;
const timeoutMs = 60_000;
/** Bytes of the paths that a search returns. Further files are cleared without a report. */
const maxListedBytes = 1_048_576;
/** Entries of a workspace up to which a command waits for the search, and up to which it needs no process. */
const limits = { prompt: 2_000, ownProcess: 20_000 };
/** Entries between two pauses, in which other work gets its turn. */
const sliceLength = 500;

/** Period, by the file system's clock, in which a sandbox changed files. Other changes count as the user's. */
export interface Period {
  readonly sinceMs: number;
  readonly untilMs: number;
}

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
  readonly #known = new KnownDirectories((path) => this.#list(path));
  /** Directories that the user could not read before this search. */
  #opened: OpenedDirectory[] = [];

  /** @param root canonical */
  constructor(root: string) {
    this.#root = root;
  }

  /** Does the work of `clear` in a small workspace. @returns undefined: it has too many entries, nothing was cleared */
  clearPromptly(period: Period): Promise<readonly string[] | undefined> {
    return this.#clear([this.#root], period, limits.prompt);
  }

  /**
   * Not for two calls at a time.
   *
   * @returns paths of the files
   */
  async clear(period: Period): Promise<readonly string[]> {
    const cleared = await this.#clear([this.#root], period, limits.ownProcess);
    if (cleared) return cleared;
    const { paths, closed } = await clearWithProgram(this.#root, period);
    return [...paths, ...((await this.#clear(closed, period, Infinity)) ?? [])];
  }

  async #clear(roots: readonly BytePath[], period: Period, max: number): Promise<readonly string[] | undefined> {
    if (process.platform !== 'linux') return [];
    try {
      const found = await this.#find(roots, max);
      return found && (await this.#clearIn(found, period));
    } finally {
      for (const directory of this.#opened.reverse()) withdrawReading(directory);
      this.#opened = [];
    }
  }

  async #clearIn(found: readonly SearchedDirectory[], period: Period): Promise<readonly string[]> {
    const cleared: string[] = [];
    let left = sliceLength;
    for (const { path, files } of found) {
      const marked = files.map((name) => joined(path, name)).filter(isSetId);
      for (const file of marked) if (clear(Buffer.from(file), this.#root, period)) cleared.push(String(file));
      left -= files.length;
      if (left > 0) continue;
      left = sliceLength;
      await nextTurn();
    }
    return cleared;
  }

  /** All directories, or undefined when there are more entries. */
  async #find(roots: readonly BytePath[], max: number): Promise<readonly SearchedDirectory[] | undefined> {
    const left = [...roots];
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

  #list(path: BytePath): SearchedDirectory {
    const opened = allowReading(path);
    if (opened) this.#opened.push(opened);
    const entries = readEntries(path);
    const namesOf = (chosen: typeof entries) => chosen.map(({ name }) => name);
    return {
      path,
      directories: namesOf(entries.filter((entry) => entry.isDirectory())),
      files: namesOf(entries.filter((entry) => entry.isFile())),
    };
  }
}

const nextTurn = () => new Promise<void>((resolve) => setImmediate(resolve));

function isSetId(file: BytePath): boolean {
  try {
    return ((lstatSync(file, { throwIfNoEntry: false })?.mode ?? 0) & setId) !== 0;
  } catch {
    return false;
  }
}

interface ProgramSearch {
  readonly paths: readonly string[];
  /** Directories that `find` may not be able to read. */
  readonly closed: readonly BytePath[];
}

const isDirectory = (path: BytePath): boolean => lstatSync(path, { throwIfNoEntry: false })?.isDirectory() === true;

/** Searches with `find`, for a workspace of many entries. */
async function clearWithProgram(root: string, period: Period): Promise<ProgramSearch> {
  const find = findProgram('find', searchPathOutside(root, process.env['PATH']));
  const paths: string[] = [];
  const closed: BytePath[] = [];
  if (find === undefined) return { paths, closed };
  let listed = 0;
  const take = (file: Buffer) => {
    if (isDirectory(file)) return void closed.push(file);
    if (!clear(file, root, period)) return;
    listed += file.length;
    if (listed <= maxListedBytes) paths.push(String(file));
  };
  let rest = Buffer.alloc(0);
  await runProgram({
    program: find,
    args: [
      root,
      ...['-type', 'd', '!', '-perm', '-0500', '-print0', '-prune'],
      '-o',
      ...['-type', 'f', '-perm', '/6000', '-print0'],
    ],
    env: { LC_ALL: 'C' },
    cwd: '/',
    timeoutMs,
    stdout: (chunk) => {
      rest = Buffer.concat([rest, chunk]);
      for (let end = rest.indexOf(0); end !== -1; end = rest.indexOf(0)) {
        take(rest.subarray(0, end));
        rest = rest.subarray(end + 1);
      }
    },
  }).catch(() => undefined);
  return { paths, closed };
}

/** Clears the bits of one file. A descriptor holds the file, because another command may put a link in its place. */
function clear(file: Buffer, root: string, { sinceMs, untilMs }: Period): boolean {
  let fd: number | undefined;
  try {
    fd = openSync(file, onlyPath | constants.O_NOFOLLOW);
    const held = `/proc/self/fd/${fd}`;
    const stats = fstatSync(fd);
    if (!stats.isFile() || (stats.mode & setId) === 0) return false;
    if (stats.ctimeMs < sinceMs || stats.ctimeMs > untilMs) return false;
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
