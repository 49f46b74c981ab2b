import { closeSync, constants, fchmodSync, lstatSync, openSync, realpathSync, type Stats, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { createFileAtomic, describeUser, ensurePrivateDirectory, realPathOr, shellWord } from '../lib/index.ts';
import { directoryName, usualHome, workspaceConfigFile, workspaceStateDirectory } from './home.ts';

/** A workspace that belongs to this user. */
export interface OpenedWorkspace {
  /** Canonical: every spelling and symlink of a workspace has the same one. */
  readonly path: string;
  /** `.oratorio` in it: a real directory of this user, 0700. */
  readonly directory: string;
  /** `<home>/workspaces/<key>`: the state that decides rights. It may not exist yet, see `ensureStateDirectory`. */
  readonly stateDirectory: string;
}

export interface OpenWorkspaceOptions {
  /** User home, see `homeDirectory`. */
  readonly home: string;
  /** Id of this user; for tests. Undefined where the system has no uids: then no owner is checked. */
  readonly uid?: number | undefined;
  /** Accepts a directory without a configuration file: one is being written, or the caller has chosen the directory. */
  readonly isNew?: boolean;
}

/** Why a directory is not opened as a workspace. */
export type WorkspaceFault = 'missing' | 'notDirectory' | 'notWorkspace' | 'symlink' | 'foreignOwner' | 'invalidName';

/** A directory is not a workspace of this user. The message names the directory, the fault and what to do, for people. */
export class WorkspaceError extends Error {
  override readonly name = 'WorkspaceError';
  readonly fault: WorkspaceFault;
  /** Owner of `.oratorio`, for `foreignOwner`. */
  readonly ownerUid: number | null;

  constructor(fault: WorkspaceFault, message: string, ownerUid: number | null = null) {
    super(message);
    this.fault = fault;
    this.ownerUid = ownerUid;
  }
}

/**
 * Text of `.oratorio/.gitignore`. The file ignores itself and the settings: `git stash -u` and `git clean` leave untracked files alone when
 * they are ignored.
 */
export const workspaceGitignore = `# Written by Oratorio. To share the settings: git add -f .oratorio/config.json
/*
!/commands/
!/skills/
`;

/** Text that earlier versions wrote; git commands take files that it lets through. */
export const earlierGitignore = `# Written by Oratorio: settings can be committed, everything else stays here.
/*
!/.gitignore
!/config.json
!/commands/
!/skills/
`;

/**
 * Finds a workspace of this user and changes nothing. Its `.oratorio` must be a real directory of this user, with a configuration
 * file: other programs, and earlier versions of this one, make directories of that name. Without the file it is a workspace only
 * where its state lies in the home, because it has run before. The owner of the
 * directory around it does not count: a volume or a shared directory may belong to root or to a colleague, and only
 * `.oratorio` is obeyed.
 *
 * @param path of the workspace itself: directories above it are never tried
 * @throws WorkspaceError
 */
export function findWorkspace(path: string, { home, ...options }: OpenWorkspaceOptions): OpenedWorkspace {
  const uid = 'uid' in options ? options.uid : process.getuid?.();
  const canonical = realDirectory(path);
  const directory = join(canonical, directoryName);
  const stats = lstatOf(directory);
  if (stats === undefined || isHome(stats, home)) throw notWorkspace(canonical);
  if (stats.isSymbolicLink()) {
    throw new WorkspaceError(
      'symlink',
      `${directory} is a symbolic link, which Oratorio does not follow. Replace it with a directory.`,
    );
  }
  if (!stats.isDirectory()) throw notWorkspace(canonical);
  if (uid !== undefined && stats.uid !== uid) {
    const owner = describeUser(stats.uid);
    throw new WorkspaceError(
      'foreignOwner',
      `${directory} belongs to another user, ${owner}; you are ${describeUser(uid)}. Use a workspace of your own, or have ${owner} give this one to you: chown -R ${uid} ${directory}`,
      stats.uid,
    );
  }
  if (options.isNew !== true && !isInitialised(canonical, home)) throw notWorkspace(canonical);
  return { path: canonical, directory, stateDirectory: workspaceStateDirectory(home, canonical) };
}

/** Whether a directory has the settings of a workspace, or has run as one. Its owner is not checked. */
export const isInitialised = (canonicalPath: string, home: string): boolean =>
  hasConfiguration(canonicalPath) || lstatOf(workspaceStateDirectory(home, canonicalPath)) !== undefined;

const hasConfiguration = (path: string): boolean => lstatOf(workspaceConfigFile(path)) !== undefined;

/**
 * The nearest directory above `path` that this user has made a workspace. Directories of other users are passed over, and so is
 * the directory around a home of Oratorio.
 */
export function workspaceAbove(path: string, options: OpenWorkspaceOptions): string | undefined {
  const canonical = realPathOr(path);
  for (let at = dirname(canonical); at !== dirname(at); at = dirname(at)) {
    if (!hasConfiguration(at) || join(at, directoryName) === usualHome()) continue;
    try {
      return openWorkspace(at, options).path;
    } catch (error) {
      if (!(error instanceof WorkspaceError)) throw error;
    }
  }
  return undefined;
}

/**
 * Finds a workspace, as `findWorkspace` does, for a process that works in it. An `.oratorio` that others can enter, as a clone has
 * it, becomes 0700.
 *
 * @throws WorkspaceError
 */
export function openWorkspace(path: string, options: OpenWorkspaceOptions): OpenedWorkspace {
  const found = findWorkspace(path, options);
  tighten(found.directory);
  return found;
}

/**
 * Creates the directory of a workspace's state, each level 0700.
 *
 * @throws PrivateDirectoryError, or the system's error
 */
export function ensureStateDirectory(home: string, canonicalPath: string): string {
  const directory = workspaceStateDirectory(home, canonicalPath);
  ensurePrivateDirectory(home);
  ensurePrivateDirectory(join(home, 'workspaces'));
  ensurePrivateDirectory(directory);
  return directory;
}

/** Writes the `.gitignore` of an `.oratorio` that has none. */
export function writeGitignore(directory: string): void {
  createFileAtomic(join(directory, '.gitignore'), workspaceGitignore);
}

/** Replacement character: Node puts it where the bytes of a name are not UTF-8, and it then names another file. */
export const isValidName = (path: string): boolean => !path.includes('\uFFFD');

function realDirectory(path: string): string {
  if (!isValidName(path)) {
    throw new WorkspaceError('invalidName', `${path} has a name that is not valid UTF-8. Rename the directory.`);
  }
  let canonical: string;
  try {
    canonical = realpathSync.native(path);
    if (!statSync(canonical).isDirectory()) {
      throw new WorkspaceError('notDirectory', `${canonical} is not a directory.`);
    }
  } catch (error) {
    if (error instanceof WorkspaceError) throw error;
    const { code } = error as NodeJS.ErrnoException;
    const why = code === 'ENOENT' ? 'does not exist' : `cannot be opened (${code})`;
    throw new WorkspaceError('missing', `${path} ${why}.`);
  }
  if (isValidName(canonical)) return canonical;
  throw new WorkspaceError('invalidName', `${canonical} has a name that is not valid UTF-8. Rename the directory.`);
}

function lstatOf(path: string): Stats | undefined {
  try {
    return lstatSync(path, { throwIfNoEntry: false });
  } catch {
    // EACCES: a directory that this user cannot enter is not a workspace of this user.
    return undefined;
  }
}

/** Files of Oratorio in a user's home do not make the directory around it a workspace. */
function isHome(stats: Stats, home: string): boolean {
  const found = statSync(home, { throwIfNoEntry: false });
  return found !== undefined && found.ino === stats.ino && found.dev === stats.dev;
}

const notWorkspace = (path: string): WorkspaceError =>
  new WorkspaceError(
    'notWorkspace',
    `${path} is not an Oratorio workspace (it has no .oratorio/config.json). To make it one: oratorio init ${shellWord(path)}`,
  );

/** Makes a directory private; leaves it unchanged on a read-only disk or one without modes, because its owner was checked. */
function tighten(directory: string): void {
  try {
    const { mode } = lstatSync(directory);
    if (process.platform !== 'win32' && (mode & 0o077) !== 0) makePrivate(directory);
  } catch {
    // EROFS and the like: the agent server, which writes here, reports its failure.
  }
}

/** Sets the mode by descriptor, so that a link that replaces the directory is not followed. */
function makePrivate(directory: string): void {
  const fd = openSync(directory, constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW);
  try {
    fchmodSync(fd, 0o700);
  } finally {
    closeSync(fd);
  }
}
