import { realpathSync, type Stats, statSync } from 'node:fs';
import { isAbsolute, join } from 'node:path';
import { hubError } from './errors.ts';

/** A workspace as it was asked for and as it really is. */
export interface WorkspacePath {
  readonly requested: string;
  /** The real path: every spelling and symlink of a workspace has the same one. */
  readonly canonical: string;
}

interface Known extends WorkspacePath {
  readonly device: number;
  readonly inode: number;
}

/** Longest path the operating systems we run on accept. */
const maxPathLength = 4096;
const maxKnown = 4096;

function statOrUndefined(path: string): Stats | undefined {
  return statSync(path, { throwIfNoEntry: false });
}

/** ENOTDIR, EACCES, ELOOP and the like mean for us what ENOENT means: there is no such workspace. */
function directoryAt(path: string): Stats | undefined {
  try {
    const stats = statOrUndefined(path);
    return stats?.isDirectory() ? stats : undefined;
  } catch {
    return undefined;
  }
}

/**
 * Makes the resolver of workspace paths (specification §7.1, DESIGN §5): 400 `workspaceNotFound` for what cannot be a
 * path, 404 for what is not a workspace. A spelling seen before is recognised by device and inode at the cost of one
 * `stat`, which is what keeps a warm `ensure` cheap.
 */
export function createPathResolver(): (path: unknown) => WorkspacePath {
  const known = new Map<string, Known>();
  /** Spellings looked at in this turn of the event loop: many requests at once cost one look. */
  const verified = new Map<string, WorkspacePath>();

  function remember(path: string, entry: WorkspacePath): WorkspacePath {
    if (verified.size === 0) setImmediate(() => verified.clear());
    verified.set(path, entry);
    return entry;
  }

  return function resolve(path) {
    const justSeen = typeof path === 'string' ? verified.get(path) : undefined;
    if (justSeen) return justSeen;
    if (typeof path !== 'string' || path.trim() === '') {
      throw hubError('workspaceNotFound', 'Workspace path is required.', null, 400);
    }
    if (!isAbsolute(path) || path.includes('\0') || path.length > maxPathLength) {
      throw hubError('workspaceNotFound', 'Workspace path must be an absolute path.', { workspacePath: path }, 400);
    }
    const stats = directoryAt(path);
    if (!stats) throw hubError('workspaceNotFound', 'Workspace path does not exist.', { workspacePath: path }, 404);

    const seen = known.get(path);
    if (seen && seen.device === stats.dev && seen.inode === stats.ino) return remember(path, seen);

    const canonical = realpathSync.native(path);
    if (!directoryAt(join(canonical, '.oratorio'))) {
      throw hubError(
        'workspaceNotFound',
        'This directory is not an Oratorio workspace (it has no .oratorio directory). Run: oratorio init',
        { workspacePath: path },
        404,
      );
    }
    const entry = { requested: path, canonical, device: stats.dev, inode: stats.ino };
    if (known.size >= maxKnown) known.clear();
    known.set(path, entry);
    return remember(path, entry);
  };
}
