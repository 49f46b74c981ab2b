import { closeSync, constants, fstatSync, openSync, readlinkSync, writeSync } from 'node:fs';

const { O_APPEND, O_CREAT, O_NOFOLLOW, O_WRONLY } = constants;
const deletedMark = / \(deleted\)$/;

/** Where lines go: `process.stderr`, or anything that takes text. */
export interface LogStream {
  write(text: string): unknown;
  readonly isTTY?: boolean | undefined;
}

/**
 * Appends to an open file. On Linux a file that was deleted is made again (0600) with the next line, once its directory is there:
 * lines written to a deleted file would be lost.
 */
export function appendingTo(descriptor: number): LogStream {
  let current = descriptor;
  return {
    write(text) {
      if (fstatSync(current).nlink === 0) current = reopened(current, descriptor);
      return writeSync(current, text);
    },
  };
}

/** Descriptor of the file that is made again; the present one when that fails. `first` belongs to the process and stays open. */
function reopened(current: number, first: number): number {
  try {
    const path = readlinkSync(`/proc/self/fd/${current}`).replace(deletedMark, '');
    const made = openSync(path, O_APPEND | O_CREAT | O_NOFOLLOW | O_WRONLY, 0o600);
    if (current !== first) closeSync(current);
    return made;
  } catch {
    return current;
  }
}
