import { existsSync, readdirSync, realpathSync } from 'node:fs';
import { join } from 'node:path';
import { FileRefusedError, readBoundedFile } from '../../lib/index.ts';
import { isWithin } from '../tools/index.ts';

/** A directory with skills, commands or types of sub-agents. */
export interface LibraryPlace {
  /** Absolute. */
  readonly path: string;
  /** Real directory that it must lie in; absent: a place of the user's own. */
  readonly within?: string | undefined;
}

/** Longest file, in bytes. */
export const maxFileBytes = 65_536;
/** Most entries of one directory that are read. */
const maxEntries = 500;

/** Names in a directory, in their order; empty when it is missing, or a link leads out of the workspace. */
export function namesIn(place: LibraryPlace): readonly string[] {
  if (!isInPlace(place, place.path)) return [];
  try {
    return readdirSync(place.path).toSorted().slice(0, maxEntries);
  } catch {
    return [];
  }
}

/**
 * Text of a file in a place.
 *
 * @param path absolute
 * @returns undefined: there is no such file; a problem: it is not read
 */
export function readFileIn(
  place: LibraryPlace,
  path: string,
): { readonly text: string } | { readonly problem: string } | undefined {
  if (!isInPlace(place, path)) return undefined;
  try {
    const text = readBoundedFile(path, { maxBytes: maxFileBytes, owner: 'any' });
    return text === undefined ? undefined : { text };
  } catch (error) {
    if (!(error instanceof FileRefusedError)) throw error;
    return { problem: error.fault };
  }
}

/** Whether the real path of an entry is in its place, and the place in its workspace. */
function isInPlace({ path: directory, within }: LibraryPlace, path: string): boolean {
  // Most are not there, and an error costs more than all the rest.
  if (!existsSync(path)) return false;
  try {
    const real = realpathSync(directory);
    return (within === undefined || isWithin(within, real)) && isWithin(real, realpathSync(path));
  } catch {
    return false;
  }
}

/** Places of one kind: the workspace's places before the user's. @param home the user's home of Oratorio */
export function placesOf(
  kind: 'skills' | 'commands' | 'agents',
  home: string,
  workspacePath: string,
): readonly LibraryPlace[] {
  const inWorkspace =
    kind === 'skills'
      ? [
          ['.agents', kind],
          ['.oratorio', kind],
        ]
      : [['.oratorio', kind]];
  return [
    ...inWorkspace.map((parts) => ({ path: join(workspacePath, ...parts), within: workspacePath })),
    { path: join(home, kind) },
  ];
}
