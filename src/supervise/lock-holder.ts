import { readFileSync, statSync } from 'node:fs';

/**
 * The process that holds a lock of `acquireLock`, from the kernel's own list. Null when no process holds it, when it cannot
 * be seen from here (another pid namespace), and on systems without `/proc/locks`: only Linux has it.
 */
export function lockHolder(file: string): number | null {
  if (process.platform !== 'linux') return null;
  try {
    const { dev, ino } = statSync(file, { bigint: true });
    const locks = parseLocks(readFileSync('/proc/locks', 'utf8')).filter(({ inode }) => inode === ino);
    const exact = locks.filter(({ device }) => device === deviceName(dev));
    // File systems with devices of their own (overlay, btrfs) name another one here: then the inode must be unique.
    const pids = new Set((exact.length > 0 ? exact : locks).map(({ pid }) => pid));
    const [pid] = pids;
    return pids.size === 1 && pid !== undefined && pid > 0 ? pid : null;
  } catch {
    return null;
  }
}

interface HeldLock {
  readonly pid: number;
  readonly device: string;
  readonly inode: bigint;
}

/** Lines like `1: POSIX  ADVISORY  WRITE 4711 fd:01:131 1073741824 1073742335`; one with `->` waits for another. */
export function parseLocks(text: string): HeldLock[] {
  const held: HeldLock[] = [];
  for (const line of text.split('\n')) {
    const match = /^\d+: POSIX +\S+ +WRITE +(\d+) ([0-9a-f]+:[0-9a-f]+):(\d+) /.exec(line);
    if (match?.[1] && match[2] && match[3])
      held.push({ pid: Number(match[1]), device: match[2], inode: BigInt(match[3]) });
  }
  return held;
}

/** `major:minor` in hexadecimal, as the kernel prints a device. */
function deviceName(device: bigint): string {
  const major = ((device >> 8n) & 0xfffn) | ((device >> 32n) & 0xfffff000n);
  const minor = (device & 0xffn) | ((device >> 12n) & 0xffffff00n);
  return [major, minor].map((number) => number.toString(16).padStart(2, '0')).join(':');
}
