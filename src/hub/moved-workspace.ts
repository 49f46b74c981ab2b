/** Words about a workspace whose directory is gone, with the place that it was probably moved to. */
import { readdirSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { directoryName } from '../config/index.ts';
import type { StoredWorkspace } from './store.ts';

/** Entries of the parent directory that are compared. */
const maxSiblings = 2_000;

/** Identity of a directory, which a rename does not change; null for a missing one. */
export function directoryIdentity(path: string): string | null {
  try {
    const { dev, ino } = statSync(path);
    return `${dev}:${ino}`;
  } catch {
    return null;
  }
}

/** Whether nothing has the name of a workspace. */
export function isGone(path: string): boolean {
  try {
    return statSync(path, { throwIfNoEntry: false }) === undefined;
  } catch {
    // A directory above may be unreadable for a moment.
    return false;
  }
}

/** The workspace beside the old path that was at the old path before; null when no directory matches. */
function newPlaceOf({ canonicalWorkspacePath: path, directory }: StoredWorkspace): string | null {
  if (directory === null) return null;
  try {
    const siblings = readdirSync(dirname(path)).slice(0, maxSiblings);
    const places = siblings.map((name) => join(dirname(path), name));
    return (
      places.find(
        (place) => directoryIdentity(place) === directory && directoryIdentity(join(place, directoryName)) !== null,
      ) ?? null
    );
  } catch {
    return null;
  }
}

export interface GoneWorkspace {
  readonly message: string;
  readonly movedTo: string | null;
}

export function goneWorkspace(stored: StoredWorkspace): GoneWorkspace {
  const movedTo = newPlaceOf(stored);
  const where = movedTo === null ? '' : `, probably to ${movedTo}`;
  const message = `${stored.canonicalWorkspacePath} does not exist: it was moved or deleted${where}. Move it back, or remove it from the list.`;
  return { message, movedTo };
}
