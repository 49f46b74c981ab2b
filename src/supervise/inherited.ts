import { closeSync, fstatSync, readdirSync, readFileSync } from 'node:fs';

/** Flag of a descriptor that the system closes when a program starts (O_CLOEXEC, in octal as `fdinfo` has it). */
const closedOnStart = 0o2000000;

let isRepeated = false;
/** Inodes of open sockets that close on start, by descriptor. A Hub has a thousand, and their flags do not change. */
let checked = new Map<number, number>();

/**
 * Closes the descriptors that a terminal, an editor or a test runner has left open in this process: programs that it starts, sandboxed ones
 * too, would have them. Node opens its own so that they end with the start of a program. Linux only: elsewhere Node closes those that follow
 * each other from 3 on. `closeBeforeStart` repeats it from now on.
 *
 * @returns the closed descriptors
 */
export function closeInherited(env: Readonly<Record<string, string | undefined>> = process.env): number[] {
  isRepeated = true;
  if (process.platform !== 'linux') return [];
  const channel = Number(env['NODE_CHANNEL_FD'] ?? -1);
  const known = checked;
  checked = new Map();
  return readdirSync('/proc/self/fd')
    .map(Number)
    .filter((fd) => fd > 2 && fd !== channel && isInherited(fd, known.get(fd)))
    .filter(close);
}

/** Called before a program is started: a library may have opened more. Without effect in a process that has not called `closeInherited`. */
export function closeBeforeStart(): void {
  if (isRepeated) closeInherited();
}

/** @param known inode of the socket for which this descriptor was checked */
function isInherited(fd: number, known: number | undefined): boolean {
  try {
    const stat = fstatSync(fd);
    const inode = stat.isSocket() ? stat.ino : undefined;
    if (inode !== undefined && inode === known) {
      checked.set(fd, inode);
      return false;
    }
    const [, flags = ''] = /^flags:\s*([0-7]+)$/m.exec(readFileSync(`/proc/self/fdinfo/${fd}`, 'utf8')) ?? [];
    const isClosed = flags !== '' && (Number.parseInt(flags, 8) & closedOnStart) !== 0;
    if (isClosed && inode !== undefined) checked.set(fd, inode);
    return flags !== '' && !isClosed;
  } catch {
    // The descriptor of the listing itself is closed by now.
    return false;
  }
}

function close(fd: number): boolean {
  try {
    closeSync(fd);
    return true;
  } catch {
    return false;
  }
}
