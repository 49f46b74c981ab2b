import { createHash } from 'node:crypto';
import {
  chmodSync,
  closeSync,
  constants,
  fchmodSync,
  fchownSync,
  fstatSync,
  fsyncSync,
  linkSync,
  lstatSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmdirSync,
  rmSync,
  type Stats,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { DeployError } from '../errors.ts';
import { onFile } from './failures.ts';
import { inParentDirectory, type ParentDirectory } from './tree.ts';

const { O_RDONLY, O_WRONLY, O_CREAT, O_EXCL, O_NOFOLLOW = 0, O_NONBLOCK = 0, O_DIRECTORY = 0 } = constants;

/** No file of a stack comes near it; one that does was put there to fill the memory. */
const maxFileBytes = 16 * 1024 * 1024;

/** Permission bits, and whose it is. */
export interface Attributes {
  readonly mode: number;
  readonly uid: number;
  readonly gid: number;
}
export interface FoundFile extends Attributes {
  readonly kind: 'file';
  readonly content: Buffer;
  readonly hash: string;
}
/** Entry at a path. Anything but a regular file or a directory is an error. */
export type StackEntry = { readonly kind: 'absent' } | ({ readonly kind: 'directory' } & Attributes) | FoundFile;

export function hashOf(content: string | Uint8Array): string {
  return createHash('sha256').update(content).digest('hex');
}

/** Files and directories of one stack, as one change sees them. Paths are relative to the stack. Errors are DeployErrors that name the path. */
export class StackFiles {
  readonly #root: string;
  readonly #change: string;

  /** @param change names the remains of a killed write, so the next run finds them */
  constructor(root: string, change: string) {
    this.#root = root;
    this.#change = change;
  }

  pathOf(path: string): string {
    return join(this.#root, path);
  }

  /** Reads the entry at a path; absent, too, when a directory on the way is missing. */
  find(path: string): StackEntry {
    if (isRoot(path)) return onFile(this.#root, () => ({ kind: 'directory', ...attributesOf(lstatSync(this.#root)) }));
    return this.#in(path, ({ at, name }): StackEntry => {
      const stats = lstatSync(at(name));
      if (stats.isSymbolicLink()) throw this.#refused(path, 'is a symbolic link');
      if (stats.isDirectory()) return { kind: 'directory', ...attributesOf(stats) };
      if (!stats.isFile()) throw this.#refused(path, 'is not a regular file');
      return readFound(at(name));
    });
  }

  /** Makes a directory, or gives one that is there these permissions. */
  makeDirectory(path: string, mode: number): void {
    if (isRoot(path)) onFile(this.#root, () => chmodSync(this.#root, mode));
    else this.#makeBelow(path, mode);
  }

  #makeBelow(path: string, mode: number): void {
    this.#at(path, ({ at, name, sync }) => {
      try {
        mkdirSync(at(name), { mode: 0o700 });
        sync();
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
      }
      withOpen(at(name), O_RDONLY | O_DIRECTORY | O_NOFOLLOW, (fd) => fchmodSync(fd, mode));
    });
  }

  /** Removes a directory unless there is something in it. */
  removeDirectory(path: string): void {
    this.#unless(path, ['ENOENT', 'ENOTEMPTY', 'EEXIST'], ({ at, name, sync }) => {
      rmdirSync(at(name));
      sync();
    });
  }

  /**
   * Replaces a file atomically: readers find the former or the new content, also after a power cut.
   *
   * @param mode mode of the file, for any umask
   * @param owner attributes of the replaced file
   */
  write(path: string, content: string | Uint8Array, mode: number, owner?: Attributes): void {
    this.#at(path, (place) => {
      const temporary = place.at(this.#temporaryOf(place));
      rmSync(temporary, { force: true });
      try {
        withOpen(temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, (fd) => {
          writeFileSync(fd, content);
          dress(fd, mode, owner);
          fsyncSync(fd);
        });
        renameSync(temporary, place.at(place.name));
      } catch (error) {
        rmSync(temporary, { force: true });
        throw error;
      }
      place.sync();
    });
  }

  /**
   * Moves a copy from elsewhere back to its path. Needs no room on the disk where both are on one.
   *
   * @param content content of the copy
   */
  restore(path: string, copy: string, content: Uint8Array, former: Attributes): void {
    if (!this.#linkBack(path, copy, former)) this.write(path, content, former.mode, former);
  }

  #linkBack(path: string, copy: string, former: Attributes): boolean {
    return this.#at(path, (place) => {
      const temporary = place.at(this.#temporaryOf(place));
      rmSync(temporary, { force: true });
      try {
        linkSync(copy, temporary);
      } catch {
        // Another file system, or one without hard links: the content is written again, and that write reports the problem.
        return false;
      }
      withOpen(temporary, O_RDONLY | O_NOFOLLOW, (fd) => dress(fd, former.mode, former));
      renameSync(temporary, place.at(place.name));
      // Where both names were one file already, a rename does nothing (rename(2)).
      rmSync(temporary, { force: true });
      place.sync();
      return true;
    });
  }

  remove(path: string): void {
    this.#unless(path, ['ENOENT'], ({ at, name, sync }) => {
      rmSync(at(name));
      sync();
    });
  }

  /** Removes the remains of a killed write. */
  sweep(path: string): void {
    this.#unless(path, ['ENOENT'], (parent) => rmSync(parent.at(this.#temporaryOf(parent)), { force: true }));
  }

  #temporaryOf({ name }: ParentDirectory): string {
    return `.${name}.${this.#change}.tmp`;
  }

  #refused(path: string, why: string): DeployError {
    return new DeployError(
      'fileFailed',
      `${this.pathOf(path)} ${why}.`,
      'Put a regular file there, or move it away; it is never written through.',
    );
  }

  #at<T>(path: string, work: (parent: ParentDirectory) => T): T {
    return onFile(this.pathOf(path), () => inParentDirectory(this.#root, path, work));
  }

  #in(path: string, work: (parent: ParentDirectory) => StackEntry): StackEntry {
    return onFile(this.pathOf(path), () => {
      try {
        return inParentDirectory(this.#root, path, work);
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code === 'ENOENT') return { kind: 'absent' };
        throw error;
      }
    });
  }

  #unless(path: string, expected: readonly string[], work: (parent: ParentDirectory) => void): void {
    onFile(this.pathOf(path), () => {
      try {
        inParentDirectory(this.#root, path, work);
      } catch (error) {
        if (!expected.includes((error as NodeJS.ErrnoException).code ?? '')) throw error;
      }
    });
  }
}

/** The stack itself. */
function isRoot(path: string): boolean {
  return path === '' || path === '.';
}

function readFound(path: string): FoundFile {
  // Without O_NONBLOCK this would wait for a FIFO that another program has just put there.
  return withOpen(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, (fd) => {
    const stats = fstatSync(fd);
    if (!stats.isFile() || stats.size > maxFileBytes) {
      throw new Error(`it is not a regular file of at most ${maxFileBytes} bytes`);
    }
    const content = readFileSync(fd);
    return { kind: 'file', ...attributesOf(stats), content, hash: hashOf(content) };
  });
}

function attributesOf({ mode, uid, gid }: Stats): Attributes {
  return { mode: mode & 0o7777, uid, gid };
}

/** Owner first: a change of owner takes special bits away. Only root can change the owner. */
function dress(fd: number, mode: number, owner: Attributes | undefined): void {
  if (owner && process.geteuid?.() === 0) fchownSync(fd, owner.uid, owner.gid);
  fchmodSync(fd, mode);
}

function withOpen<T>(path: string, flags: number, work: (fd: number) => T): T {
  const fd = openSync(path, flags, 0o600);
  try {
    return work(fd);
  } finally {
    closeSync(fd);
  }
}
