import {
  closeSync,
  constants,
  fchmodSync,
  fdatasyncSync,
  fstatSync,
  linkSync,
  lstatSync,
  openSync,
  renameSync,
  rmSync,
  type Stats,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { basename, join } from 'node:path';
import type { Contents } from './contents.ts';
import { codeOf } from './errors.ts';
import { gitPlaceOf } from './git-place.ts';
import type { GitState } from './git-state.ts';
import { hashOfFile } from './hash-file.ts';
import type { RunGit } from './ignored.ts';
import { racyMs } from './limits.ts';
import { piecesOf } from './pieces.ts';
import { Tree } from './tree.ts';

export interface GitIndexOptions {
  readonly tree: Tree;
  readonly contents: Contents;
  /** Directory of the store. */
  readonly directory: string;
  /** Compares indexes; undefined: they differ when their bytes do. */
  readonly git: RunGit | undefined;
}

type SavedIndex = GitState['index'];

const index = 'index';
/** Name that git itself takes before it changes the index. */
const lock = 'index.lock';
/** The next index before it has its place. */
const staged = 'index.oratorio';
const maxBytes = 64 * 2 ** 20;
const defaultMode = 0o644;
const { O_RDONLY, O_WRONLY, O_CREAT, O_EXCL, O_NOFOLLOW = 0, O_NONBLOCK = 0 } = constants;

/** Directory of a repository, reached through descriptors. */
interface GitDirectory {
  at(name: string): string | Buffer;
  close(): void;
}

/** The index of the repository at the root, or of the worktree that the tree is: what is staged. Saved with each mark, and put back whole. */
export class GitIndex {
  readonly #options: GitIndexOptions;
  #last: { readonly stats: Stats; readonly hash: string } | undefined;

  constructor(options: GitIndexOptions) {
    this.#options = options;
  }

  /** Stores the present index, if it is another one than the last. @returns null: missing, undefined: it cannot be saved */
  save(): SavedIndex {
    return this.#opened((fd, stats) => {
      const last = this.#last;
      if (last && isSameFile(last.stats, stats)) return last.hash;
      this.#last = undefined;
      const hash = this.#options.contents.putAll(piecesOf(fd, stats.size), stats.size);
      const after = fstatSync(fd);
      if (!isSameFile(stats, after)) return undefined;
      if (after.ctimeMs < Date.now() - racyMs) this.#last = { stats, hash };
      return hash;
    });
  }

  /** A commit failed: what was stored since the one before is lost. */
  forget(): void {
    this.#last = undefined;
  }

  /** Whether two indexes name the same entries; times of files in them do not count. */
  async isSame(a: SavedIndex, b: SavedIndex): Promise<boolean> {
    if (a === b) return a !== undefined;
    if (typeof a !== 'string' || typeof b !== 'string') return false;
    const [one, two] = [await this.#entriesOf(a), await this.#entriesOf(b)];
    return one !== undefined && one === two;
  }

  /** Whether the repository has this index now. */
  async isPresent(saved: SavedIndex): Promise<boolean> {
    const present = this.#opened((_, { size }, files) => hashOfFile(files.at(index), size));
    if (present === saved) return present !== undefined;
    if (typeof present !== 'string' || typeof saved !== 'string') return false;
    const entries = await this.#entriesOf(saved);
    return entries !== undefined && entries === (await this.#options.git?.(listEntries, ''));
  }

  /** Whether git can read a saved index. */
  async isReadable(saved: SavedIndex): Promise<boolean> {
    return saved === null || (saved !== undefined && (await this.#entriesOf(saved)) !== undefined);
  }

  /** Puts a saved index in its place, under the lock of git. @returns false: another program changes the index, or the disk refuses */
  replace(saved: string | null, onStep?: (step: string) => void): boolean {
    const files = this.#files();
    if (!files) return false;
    try {
      rmSync(files.at(staged), { force: true });
      this.#stage(files, saved);
      // A name of the staged file: the lock of a process that was killed here is known by it.
      linkSync(files.at(staged), files.at(lock));
      onStep?.('git index locked');
      if (saved === null) {
        rmSync(files.at(index), { force: true });
        rmSync(files.at(lock));
      } else renameSync(files.at(lock), files.at(index));
      return true;
    } catch (error) {
      if (codeOf(error) === undefined) throw error;
      return false;
    } finally {
      rmSync(files.at(staged), { force: true });
      files.close();
    }
  }

  /** Removes the lock of a process that was killed while it held it. */
  clearLock(): void {
    const files = this.#files();
    if (!files) return;
    try {
      const [own, held] = [staged, lock].map((name) => lstatSync(files.at(name), { throwIfNoEntry: false }));
      if (own && held && own.ino === held.ino && own.dev === held.dev) rmSync(files.at(lock), { force: true });
      if (own) rmSync(files.at(staged), { force: true });
    } catch (error) {
      if (codeOf(error) === undefined) throw error;
    } finally {
      files.close();
    }
  }

  /** Undefined: nothing shows that the repository belongs to the tree. */
  #files(): GitDirectory | undefined {
    const { tree } = this.#options;
    const place = gitPlaceOf(tree.root);
    if (place?.kind === 'elsewhere') return undefined;
    if (place?.kind !== 'linked') return { at: (name) => tree.at(`.git/${name}`), close: () => tree.close() };
    const common = new Tree(place.common);
    const below = `worktrees/${Buffer.from(basename(place.directory)).toString('latin1')}`;
    return { at: (name) => common.at(`${below}/${name}`), close: () => common.close() };
  }

  #stage(files: GitDirectory, saved: string | null): void {
    const { contents } = this.#options;
    const mode = lstatSync(files.at(index), { throwIfNoEntry: false })?.mode ?? defaultMode;
    const fd = openSync(files.at(staged), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600);
    try {
      for (const piece of saved === null ? [] : contents.read(saved)) {
        for (let done = 0; done < piece.length; ) done += writeSync(fd, piece, done);
      }
      fchmodSync(fd, mode & 0o777);
      fdatasyncSync(fd);
    } finally {
      closeSync(fd);
    }
  }

  /** Lines of git for the entries of a saved index; undefined: it cannot be read. */
  async #entriesOf(saved: string): Promise<string | undefined> {
    const { git, contents, directory } = this.#options;
    const file = join(directory, 'index');
    try {
      writeFileSync(file, Buffer.concat([...contents.read(saved)]), { mode: 0o600 });
      return await git?.(listEntries, '', file);
    } finally {
      rmSync(file, { force: true });
    }
  }

  #opened(work: (fd: number, stats: Stats, files: GitDirectory) => SavedIndex): SavedIndex {
    const files = this.#files();
    if (!files) return undefined;
    try {
      const fd = openSync(files.at(index), O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
      try {
        const stats = fstatSync(fd);
        return stats.isFile() && stats.size <= maxBytes ? work(fd, stats, files) : undefined;
      } finally {
        closeSync(fd);
      }
    } catch (error) {
      if (codeOf(error) === 'ENOENT') return null;
      if (codeOf(error) === undefined) throw error;
      return undefined;
    } finally {
      files.close();
    }
  }
}

/** Mode, object, stage, flag and path of each entry; no file is read, nothing of the repository runs. */
const listEntries = ['ls-files', '-z', '--stage', '-v'];

const isSameFile = (a: Stats, b: Stats): boolean =>
  a.ino === b.ino && a.size === b.size && a.mtimeMs === b.mtimeMs && a.ctimeMs === b.ctimeMs;
