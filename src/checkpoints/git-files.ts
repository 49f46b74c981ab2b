import {
  closeSync,
  constants,
  fchmodSync,
  fdatasyncSync,
  linkSync,
  lstatSync,
  mkdirSync,
  openSync,
  renameSync,
  rmSync,
  writeSync,
} from 'node:fs';
import { type BytePath, parentOf } from './byte-path.ts';
import { codeOf } from './errors.ts';
import type { GitWay } from './git-place.ts';
import { Tree } from './tree.ts';

/** Suffixes of git's own lock, taken before a file changes, and of the next content before it has its place. */
const [lockSuffix, stagedSuffix] = ['.lock', '.oratorio'];
const defaultMode = 0o644;
const { O_WRONLY, O_CREAT, O_EXCL, O_NOFOLLOW = 0 } = constants;

/** Directory of a repository that has a file: the worktree's own, or the one that all worktrees share. */
export type GitSide = 'directory' | 'common';

/** Files of a repository, reached through descriptors and replaced under git's locks. */
export class GitFiles {
  readonly #tree: Tree;
  readonly #way: GitWay;

  constructor(way: GitWay) {
    this.#tree = new Tree(way.base);
    this.#way = way;
  }

  /** Path for system calls, valid until the next call. */
  at(name: BytePath, side: GitSide = 'directory'): string | Buffer {
    const below = this.#way[side];
    return this.#tree.at(below === '' ? name : `${below}/${name}`);
  }

  /** Puts a file in its place, or removes it. @returns false: another program changes it, or the disk refuses */
  replace(
    name: BytePath,
    pieces: Iterable<Uint8Array> | null,
    side: GitSide = 'directory',
    onLocked?: () => void,
  ): boolean {
    const [staged, lock] = [`${name}${stagedSuffix}`, `${name}${lockSuffix}`];
    let isStaged = false;
    try {
      if (pieces) this.#makeParents(name, side);
      rmSync(this.at(staged, side), { force: true });
      isStaged = true;
      this.#stage(name, pieces ?? [], side);
      // The lock is a name of the staged file: this identifies the lock of a process that was killed here.
      linkSync(this.at(staged, side), this.at(lock, side));
      onLocked?.();
      if (pieces === null) {
        rmSync(this.at(name, side), { force: true });
        rmSync(this.at(lock, side));
      } else renameSync(this.at(lock, side), this.at(name, side));
      return true;
    } catch (error) {
      if (codeOf(error) === undefined) throw error;
      return pieces === null && codeOf(error) === 'ENOENT';
    } finally {
      if (isStaged) this.#remove(staged, side);
    }
  }

  /** Removes the lock of a process that was killed while it held the lock. */
  clearLock(name: BytePath, side: GitSide = 'directory'): void {
    const [staged, lock] = [`${name}${stagedSuffix}`, `${name}${lockSuffix}`];
    try {
      const [own, held] = [staged, lock].map((each) => lstatSync(this.at(each, side), { throwIfNoEntry: false }));
      if (own && held && own.ino === held.ino && own.dev === held.dev) rmSync(this.at(lock, side), { force: true });
      if (own) rmSync(this.at(staged, side), { force: true });
    } catch (error) {
      if (codeOf(error) === undefined) throw error;
    }
  }

  close(): void {
    this.#tree.close();
  }

  #stage(name: BytePath, pieces: Iterable<Uint8Array>, side: GitSide): void {
    const mode = lstatSync(this.at(name, side), { throwIfNoEntry: false })?.mode ?? defaultMode;
    const fd = openSync(this.at(`${name}${stagedSuffix}`, side), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600);
    try {
      for (const piece of pieces) {
        for (let done = 0; done < piece.length; ) done += writeSync(fd, piece, done);
      }
      fchmodSync(fd, mode & 0o777);
      fdatasyncSync(fd);
    } finally {
      closeSync(fd);
    }
  }

  #makeParents(name: BytePath, side: GitSide): void {
    const parent = parentOf(name);
    if (parent === undefined || parent === '') return;
    this.#makeParents(parent, side);
    try {
      mkdirSync(this.at(parent, side));
    } catch (error) {
      if (codeOf(error) !== 'EEXIST') throw error;
    }
  }

  #remove(name: BytePath, side: GitSide): void {
    try {
      rmSync(this.at(name, side), { force: true });
    } catch (error) {
      if (codeOf(error) === undefined) throw error;
    }
  }
}
