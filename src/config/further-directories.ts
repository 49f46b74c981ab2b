import { realpathSync, statSync } from 'node:fs';
import { isAbsolute, relative, sep } from 'node:path';
import { isWithin, realPathOr } from '../lib/index.ts';

/** Directories of the system, whose files no project needs. */
const ofSystem = ['/proc', '/sys', '/dev', '/etc', '/run', '/boot'];
const maxPathLength = 4_096;

/**
 * Canonical path of a directory that a conversation may read beside its workspace.
 *
 * @param home of the user, absolute
 * @returns undefined: not a directory, one of the system, one around the home, or a hidden one in it, where programs keep keys
 */
export function furtherDirectory(path: string, home: string): string | undefined {
  if (!isAbsolute(path) || path.includes('\0') || path.length > maxPathLength) return undefined;
  const real = directoryAt(path);
  if (real === undefined || ofSystem.some((system) => isWithin(system, real))) return undefined;
  const ownHome = realPathOr(home);
  if (isWithin(real, ownHome)) return undefined;
  const isHidden = isWithin(ownHome, real) && relative(ownHome, real).split(sep)[0]?.startsWith('.') === true;
  return isHidden ? undefined : real;
}

function directoryAt(path: string): string | undefined {
  try {
    const real = realpathSync(path);
    return statSync(real).isDirectory() ? real : undefined;
  } catch {
    // Missing, or closed to this user: there is nothing to read.
    return undefined;
  }
}
