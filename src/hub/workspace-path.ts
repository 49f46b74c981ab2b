import { lstatSync, type Stats, statSync } from 'node:fs';
import { isAbsolute } from 'node:path';
import { findWorkspace, WorkspaceError } from '../config/index.ts';
import { hubError } from './errors.ts';

/** Requested and real path of a workspace. */
export interface WorkspacePath {
  readonly requested: string;
  /** The real path: every spelling and symlink of a workspace has the same one. */
  readonly canonical: string;
}

interface Known extends WorkspacePath {
  /** `.oratorio` in it. */
  readonly directory: string;
  readonly root: Stats;
  readonly inside: Stats;
}

/** Longest path in bytes: the system takes 4095, and files of the workspace have longer ones. */
const maxPathBytes = 4_096 - 256;
const maxKnown = 4096;

/** Why a text cannot be the path of a workspace; null when it can. */
function faultOf(path: string): string | null {
  if (path.includes('\0')) return 'contains a NUL character';
  if (!isAbsolute(path)) return 'must be an absolute path';
  const bytes = Buffer.byteLength(path);
  return bytes > maxPathBytes ? `has ${bytes} bytes; the limit is ${maxPathBytes}` : null;
}

const shown = (path: string) => ({ workspacePath: path });

/** ENOTDIR, EACCES, ELOOP and similar errors count as ENOENT: the workspace does not exist. */
function statsOf(path: string, stat: typeof lstatSync): Stats | undefined {
  try {
    return stat(path, { throwIfNoEntry: false });
  } catch {
    return undefined;
  }
}

/** True when nothing has changed that `findWorkspace` checks. */
function isSame(before: Stats, now: Stats | undefined): boolean {
  return (
    now !== undefined &&
    now.ino === before.ino &&
    now.dev === before.dev &&
    now.uid === before.uid &&
    now.mode === before.mode
  );
}

/**
 * Makes the resolver of workspace paths (specification §7.1, design §5): 400 `workspaceNotFound` for a value that cannot be a
 * path, 404 for a directory that is not a workspace of this user, with `ownerUid` when it is another user's. A known spelling
 * costs one `stat` and one `lstat`, which keeps a warm `ensure` cheap.
 *
 * @param home user home of Oratorio
 */
export function createPathResolver(home: string): (path: unknown) => WorkspacePath {
  const known = new Map<string, Known>();
  /** Spellings checked in this turn of the event loop: many requests at once cost one check. */
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
    const fault = faultOf(path);
    if (fault !== null) throw hubError('workspaceNotFound', `Workspace path ${fault}.`, shown(path), 400);
    const root = statsOf(path, statSync);
    if (!root) throw hubError('workspaceNotFound', 'Workspace path does not exist.', shown(path), 404);
    if (!root.isDirectory())
      throw hubError('workspaceNotFound', 'Workspace path is not a directory.', shown(path), 404);
    const seen = known.get(path);
    if (seen && isSame(seen.root, root) && isSame(seen.inside, statsOf(seen.directory, lstatSync))) {
      return remember(path, seen);
    }
    const { path: canonical, directory } = open(path, home);
    const inside = statsOf(directory, lstatSync);
    const entry = { requested: path, canonical };
    if (known.size >= maxKnown) known.clear();
    if (inside) known.set(path, { ...entry, directory, root, inside });
    return remember(path, entry);
  };
}

function open(path: string, home: string): ReturnType<typeof findWorkspace> {
  try {
    return findWorkspace(path, { home });
  } catch (error) {
    if (!(error instanceof WorkspaceError)) throw error;
    const owner = error.ownerUid === null ? {} : { ownerUid: error.ownerUid };
    throw hubError('workspaceNotFound', error.message, { workspacePath: path, ...owner }, 404);
  }
}
