import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../toolchain.mjs';
import type { Lock } from './manifest.ts';

/** Most that an installation of the package may take, Node 22 included. */
export const installedLimitBytes = 228e6;

/** Sum of the sizes of all files below a directory. */
export function sizeOf(directory: string): number {
  return readdirSync(directory, { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile())
    .reduce((sum, entry) => sum + statSync(join(entry.parentPath, entry.name)).size, 0);
}

/** Platform, as named in the lock file; default: this machine. */
export interface LockedPlatform {
  readonly os: string;
  readonly arch: string;
}

const thisPlatform: LockedPlatform = { os: process.platform, arch: process.arch };

/** Packages that npm installs with the staged package on a platform, as paths below `node_modules` of the checkout. */
export function installedBeside(staged: string, { os: system, arch } = thisPlatform): readonly string[] {
  const { packages } = JSON.parse(readFileSync(join(staged, 'npm-shrinkwrap.json'), 'utf8')) as Lock;
  const isHere = (allowed: unknown, here: string): boolean => allowed === undefined || [allowed].flat().includes(here);
  return Object.entries(packages)
    .filter(([path, { os, cpu }]) => path !== '' && isHere(os, system) && isHere(cpu, arch))
    .map(([path]) => path.replace(/^node_modules\//, ''));
}

/** Bytes of an installation of the staged package on this platform. */
export const installedSize = (staged: string): number =>
  sizeOf(staged) + installedBeside(staged).reduce((sum, name) => sum + sizeOf(join(root, 'node_modules', name)), 0);
