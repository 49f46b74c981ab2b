import {
  chmodSync,
  closeSync,
  constants,
  copyFileSync,
  existsSync,
  fchmodSync,
  fstatSync,
  mkdirSync,
  openSync,
  symlinkSync,
  writeSync,
} from 'node:fs';
import { depthOf, isOfRepository, systemPath } from './byte-path.ts';
import type { Contents } from './contents.ts';
import { isSame, type PathEntry, type StampedEntry } from './entry.ts';
import { codeOf } from './errors.ts';
import { type History, plainEntry } from './history.ts';
import { Tree } from './tree.ts';

export interface CopyOptions {
  readonly history: History;
  readonly contents: Contents;
  /** Tree of the checkpoints. */
  readonly from: Tree;
  /** Mark whose state is copied. */
  readonly seq: number;
  /** Empty directory of this user. */
  readonly target: string;
  /** Called before each entry that is made; for tests. */
  readonly onStep?: ((step: string) => void) | undefined;
}

const { O_RDONLY, O_WRONLY, O_CREAT, O_EXCL, O_NOFOLLOW = 0, O_NONBLOCK = 0, COPYFILE_FICLONE } = constants;
const descriptors = '/proc/self/fd';

/**
 * Copies a checkpoint into another directory. A file that is still the same on the disk is cloned where the file system can; never
 * linked, because a write into one name would change the other. Files outside every checkpoint are not copied.
 */
export function copyTree(options: CopyOptions): number {
  const { history, seq, target, onStep } = options;
  const to = new Tree(target);
  // A copy is a worktree: repositories in it would name places of the original.
  const entries = [...history.entriesAt(seq)].filter(({ path }) => path !== '' && !isOfRepository(path));
  const directories = entries
    .filter(({ kind }) => kind === 'directory')
    .sort((a, b) => depthOf(a.path) - depthOf(b.path));
  let copied = 0;
  try {
    for (const { path } of directories) {
      onStep?.(`mkdir ${path}`);
      mkdirSync(to.at(path), 0o700);
    }
    for (const entry of entries) {
      onStep?.(`copy ${entry.path}`);
      if (entry.kind === 'link') symlinkSync(systemPath(entry.target ?? ''), to.at(entry.path));
      if (entry.kind === 'file') copyFile(options, to, entry);
      copied += 1;
    }
    // A directory without `w` takes no entry: modes come last.
    for (const { path, mode } of directories.toReversed()) chmodSync(to.at(path), mode);
  } finally {
    to.close();
    options.from.close();
  }
  return copied;
}

function copyFile(options: CopyOptions, to: Tree, entry: StampedEntry): void {
  if (clone(options, to, entry)) return;
  const { contents } = options;
  const fd = openSync(to.at(entry.path), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600);
  try {
    for (const piece of contents.read(entry.hash ?? '')) {
      for (let done = 0; done < piece.length; ) done += writeSync(fd, piece, done);
    }
    fchmodSync(fd, entry.mode);
  } finally {
    closeSync(fd);
  }
}

/** @returns false: the file differs from the checkpoint, or the system knows no path of an open file */
function clone({ history, from }: CopyOptions, to: Tree, entry: StampedEntry): boolean {
  const present = history.current(entry.path);
  if (!present || !isSame(plainEntry(present), plainEntry(entry as PathEntry)) || !existsSync(descriptors))
    return false;
  try {
    const fd = openSync(from.at(entry.path), O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
    try {
      const { ino, size, mtimeMs, ctimeMs } = fstatSync(fd);
      const isUnchanged =
        ino === present.ino && size === present.size && mtimeMs === present.mtime && ctimeMs === present.ctime;
      if (!isUnchanged) return false;
      // Copies the open file itself, even if its name now leads to another one.
      copyFileSync(`${descriptors}/${fd}`, to.at(entry.path), COPYFILE_FICLONE);
      chmodSync(to.at(entry.path), entry.mode);
      return true;
    } finally {
      closeSync(fd);
    }
  } catch (error) {
    if (['ENOENT', 'ENOTDIR', 'ELOOP', 'EACCES'].includes(codeOf(error) ?? '')) return false;
    throw error;
  }
}
