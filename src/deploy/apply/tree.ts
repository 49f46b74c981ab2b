import { closeSync, constants, existsSync, fsyncSync, openSync } from 'node:fs';
import { join } from 'node:path';

/** Flags that an operating system does not know are 0 there. */
const { O_RDONLY, O_DIRECTORY = 0, O_NOFOLLOW = 0 } = constants;
const descriptors = '/proc/self/fd';
const hasDescriptors = existsSync(descriptors);

/** The directory that holds a path, kept open while `work` runs. */
export interface ParentDirectory {
  /** Path for system calls: an entry of this directory, even after another one has taken its name. */
  readonly at: (name: string) => string;
  /** Last part of the path. */
  readonly name: string;
  /** Writes the directory's own changes (new, renamed and removed names) to the disk. */
  readonly sync: () => void;
}

/**
 * Does `work` in the directory that holds `path`. No part of the way below `root` may be a symbolic link, nor can be
 * exchanged for one meanwhile: containers write below a stack, and this is often run by root.
 *
 * @param path relative to `root`, of plain names
 * @throws errors of the system; ENOTDIR or ELOOP at a symbolic link
 */
export function inParentDirectory<T>(root: string, path: string, work: (parent: ParentDirectory) => T): T {
  const names = path.split('/');
  if (names.some((name) => name === '' || name === '.' || name === '..')) {
    throw new TypeError(`A path of a plan must be one inside of the stack: ${path}`);
  }
  const held: number[] = [];
  let base = root;
  const enter = (directory: string, flags: number): void => {
    const fd = openSync(directory, O_RDONLY | O_DIRECTORY | flags);
    held.push(fd);
    base = hasDescriptors ? `${descriptors}/${fd}` : directory;
  };
  try {
    enter(root, 0);
    for (const name of names.slice(0, -1)) enter(join(base, name), O_NOFOLLOW);
    const fd = held.at(-1);
    return work({
      at: (name) => join(base, name),
      name: names.at(-1) ?? '',
      sync: () => fd !== undefined && fsyncSync(fd),
    });
  } finally {
    for (const fd of held.reverse()) closeSync(fd);
  }
}
