import { closeSync, constants, fstatSync, openSync, rmSync, type Stats, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Contents } from './contents.ts';
import { codeOf } from './errors.ts';
import { GitFiles } from './git-files.ts';
import { type GitPlace, gitPath } from './git-place.ts';
import type { GitState } from './git-state.ts';
import { hashOfFile } from './hash-file.ts';
import type { RunGit } from './ignored.ts';
import { hasIndexSum, indexPrint, wholeIndexPrint } from './index-print.ts';
import { racyMs } from './limits.ts';
import { piecesOf } from './pieces.ts';

export interface GitIndexOptions {
  readonly contents: Contents;
  /** Directory of the store. */
  readonly directory: string;
  /** Lists the entries of an index that is split, sparse, or of an unknown form; undefined: such indexes are compared by bytes. */
  readonly git: RunGit | undefined;
}

type SavedIndex = GitState['index'];

/** The index that a mark finds. */
export interface FoundIndex {
  readonly index?: SavedIndex;
  readonly indexPrint?: string;
}

const index = 'index';
const maxBytes = 64 * 2 ** 20;
const { O_RDONLY, O_NOFOLLOW = 0, O_NONBLOCK = 0 } = constants;

interface Last {
  readonly stats: Stats;
  readonly found: FoundIndex;
}

/** The index of one repository of the tree, with the staged files. Saved with each mark, and restored as a whole. */
export class GitIndex {
  readonly #options: GitIndexOptions;
  #last: Last | undefined;

  constructor(options: GitIndexOptions) {
    this.#options = options;
  }

  /** Stores the present index unless it is the last one; for a repository that is never written to, only its print. */
  save(place: GitPlace): FoundIndex {
    const found = opened(place, (fd, stats) => {
      const last = this.#last;
      if (last && isSameFile(last.stats, stats)) return last.found;
      this.#last = undefined;
      const { contents } = this.#options;
      const pieces = [...piecesOf(fd, stats.size)];
      const whole = Buffer.concat(pieces);
      const saved: FoundIndex = {
        ...(place.way && { index: contents.putAll(pieces, stats.size) }),
        indexPrint: indexPrint(whole),
      };
      const after = fstatSync(fd);
      if (!isSameFile(stats, after)) return {};
      if (after.ctimeMs < Date.now() - racyMs) this.#last = { stats, found: saved };
      return saved;
    });
    if (found === null) return place.way ? { index: null } : {};
    return found ?? {};
  }

  /** Forgets the last index after a failed commit: contents stored since the commit before are lost. */
  forget(): void {
    this.#last = undefined;
  }

  /** Whether two indexes name the same entries; times of files in them do not count. */
  async isSame(a: SavedIndex, b: SavedIndex): Promise<boolean> {
    if (a === b) return a !== undefined;
    if (typeof a !== 'string' || typeof b !== 'string') return false;
    const [one, two] = [this.#read(a), this.#read(b)];
    return isSameText([one, two].map(wholeIndexPrint), [() => this.#listed(one), () => this.#listed(two)]);
  }

  /** Whether the repository has this index now. @param git runs in the repository */
  async isPresent(place: GitPlace, saved: SavedIndex, git: RunGit): Promise<boolean> {
    const present = opened(place, (fd, { size }, path) => ({
      hash: hashOfFile(path(), size),
      print: wholeIndexPrint(Buffer.concat([...piecesOf(fd, size)])),
    }));
    if (!present || typeof saved !== 'string') return present === saved && present !== undefined;
    if (present.hash === saved) return true;
    const bytes = this.#read(saved);
    return isSameText([wholeIndexPrint(bytes), present.print], [() => this.#listed(bytes), () => git(listEntries, '')]);
  }

  /** Whether git can read a saved index. */
  async isReadable(saved: SavedIndex): Promise<boolean> {
    if (typeof saved !== 'string') return saved === null;
    const bytes = this.#read(saved);
    return wholeIndexPrint(bytes) === undefined ? (await this.#listed(bytes)) !== undefined : hasIndexSum(bytes);
  }

  /** Replaces the index by a saved one, under git's lock. @returns false: another program changes the index, or the disk refuses */
  replace(place: GitPlace, saved: string | null, onStep?: (step: string) => void): boolean {
    if (!place.way) return false;
    const files = new GitFiles(place.way);
    try {
      const pieces = saved === null ? null : this.#options.contents.read(saved);
      return files.replace(index, pieces, 'directory', () => onStep?.('git index locked'));
    } finally {
      files.close();
    }
  }

  #read(saved: string): Buffer {
    return Buffer.concat([...this.#options.contents.read(saved)]);
  }

  /** Lines of git for the entries of an index; undefined: the index cannot be read. */
  async #listed(bytes: Buffer): Promise<string | undefined> {
    const { git, directory } = this.#options;
    const file = join(directory, 'index');
    try {
      writeFileSync(file, bytes, { mode: 0o600 });
      return await git?.(listEntries, '', file);
    } finally {
      rmSync(file, { force: true });
    }
  }
}

type Texts<T> = readonly (T | undefined)[];

/** Compares two prints, or the lists of git where a print is missing. */
async function isSameText(prints: Texts<string>, lists: Texts<() => Promise<string | undefined>>): Promise<boolean> {
  if (prints.every((print) => print !== undefined)) return prints[0] === prints[1];
  const [one, two] = [await lists[0]?.(), await lists[1]?.()];
  return one !== undefined && one === two;
}

type Work<T> = (fd: number, stats: Stats, path: () => string | Buffer) => T;

/** @returns null: there is no index; undefined: the index cannot be read */
function opened<T>(place: GitPlace, work: Work<T>): T | null | undefined {
  const files = place.way && new GitFiles(place.way);
  const path = () => (files ? files.at(index) : gitPath(place.directory, index));
  try {
    const fd = openSync(path(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
    try {
      const stats = fstatSync(fd);
      return stats.isFile() && stats.size <= maxBytes ? work(fd, stats, path) : undefined;
    } finally {
      closeSync(fd);
    }
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return null;
    if (codeOf(error) === undefined) throw error;
    return undefined;
  } finally {
    files?.close();
  }
}

/** Mode, object, stage, flag and path of each entry; no file is read, nothing of the repository runs. */
const listEntries = ['ls-files', '-z', '--stage', '-v'];

const isSameFile = (a: Stats, b: Stats): boolean =>
  a.ino === b.ino && a.size === b.size && a.mtimeMs === b.mtimeMs && a.ctimeMs === b.ctimeMs;
