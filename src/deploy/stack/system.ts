import { readFileSync } from 'node:fs';
import { statfs } from 'node:fs/promises';
import { dirname } from 'node:path';
import { defaults } from '../defaults.ts';
import { DeployError } from '../errors.ts';

/** User of the containers, and owner of the files that they share with the host. */
export interface StackUser {
  readonly uid: number;
  readonly gid: number;
  /** The files have to be given to them: root makes the stack, but nothing of it runs as root. */
  readonly isOther: boolean;
}

/** @throws DeployError unsupportedPlatform: stacks are set up on Linux only */
export function requireLinux(platform: NodeJS.Platform = process.platform): void {
  if (platform === 'linux') return;
  throw new DeployError(
    'unsupportedPlatform',
    `A review stack runs on a Linux host, this is ${platform}.`,
    'Run this command on the host; --dry-run works everywhere.',
  );
}

/** The caller, or a user of its own when that is root. */
export function stackUser(ids: { readonly uid: number; readonly gid: number } | null = ownIds()): StackUser {
  if (ids === null || ids.uid === 0) return { uid: defaults.user, gid: defaults.user, isOther: true };
  return { ...ids, isOther: false };
}

/** Whether mounts need a label: SELinux is on and refuses access by default. */
export function isSelinuxEnforcing(file = '/sys/fs/selinux/enforce'): boolean {
  try {
    return readFileSync(file, 'utf8').trim() === '1';
  } catch {
    // There is no such file without SELinux.
    return false;
  }
}

/** Bytes that may still be written at `path`, which need not be there yet. */
export async function freeBytes(path: string): Promise<number> {
  try {
    const { bavail, bsize } = await statfs(path);
    return bavail * bsize;
  } catch (error) {
    const isAbsent = (error as NodeJS.ErrnoException).code === 'ENOENT';
    if (!isAbsent || dirname(path) === path) throw error;
    return freeBytes(dirname(path));
  }
}

function ownIds(): { readonly uid: number; readonly gid: number } | null {
  const [uid, gid] = [process.getuid?.(), process.getgid?.()];
  return uid === undefined || gid === undefined ? null : { uid, gid };
}
