/**
 * Resolves the real target of a path that a model wrote (design §5a). Nothing is opened by the given name, only by the result of
 * `resolveInWorkspace`, and the opened file is compared with that result once more (`files/handles.ts`), because a
 * symlink can be swapped in between. Not visible in a path: a hard link is as good a name of a file as any other.
 */

import { lstat, readlink, realpath, stat } from 'node:fs/promises';
import { dirname, isAbsolute, join, parse, relative, resolve, sep } from 'node:path';
import { directoryName } from '../../config/index.ts';
import { type PinnedDirectory, userHome } from '../../lib/index.ts';
import { identityIn, nameIdentity, PlainPaths } from './plain-paths.ts';
import { errorCode } from './text.ts';

/** Paths that no tool may touch, even with approval. */
export interface PathRules {
  /** `Permissions.BlockedPaths`: files and directories, absolute, from `~`, or relative to the workspace. */
  readonly blockedPaths: readonly string[];
  /** Ours, e.g. the user's home of Oratorio. Absolute. A workspace's own `.oratorio` need not be listed. */
  readonly protectedDirectories: readonly string[];
  /** Workspace of the server: while its path leads elsewhere, no path is judged. Absent: not pinned. */
  readonly workspace?: PinnedDirectory | undefined;
  /** Directory within our own state that may still be read, without approval. Absolute. */
  readonly readableDirectory?: string | undefined;
}

export interface ResolvedPath {
  /** Absolute; no part of it that exists is a symlink. */
  readonly path: string;
  readonly isInside: boolean;
  readonly isBlocked: boolean;
  /** Completes "<path> …". There when it is blocked. */
  readonly blockedBecause?: string;
  /** Whether the path is in `PathRules.readableDirectory`. */
  readonly isReadable?: true;
}

/** A place that is out of bounds with all that is in it. */
export interface ForbiddenPlace {
  readonly path: string;
  /** Completes "<path> …". */
  readonly because: string;
  /** Device and inode, as far as it exists. */
  readonly identity: string;
  /** Whether a workspace within this place is still allowed: Oratorio's home may hold one. */
  readonly sparesWorkspace: boolean;
}

/** Whether a search may show its result at this absolute path. */
export type PathFilter = (path: string) => Promise<boolean>;

/** A path that we do not open. The message is a sentence for the model. */
export class PathError extends Error {
  override readonly name = 'PathError';
}

/** Longest path the operating systems we run on accept. */
const maxPathLength = 4096;
/** Number of symlinks in a row that Linux follows. */
const maxLinks = 40;
/** Directories whose files are the kernel's: processes' environments, memory, devices. */
const kernelDirectories = process.platform === 'linux' ? ['/proc', '/sys', '/dev'] : [];
const ownState = "belongs to Oratorio's own state";
const isWindows = process.platform === 'win32';
/** File systems there usually ignore the case and normal form of names; to block too much is safe. */
const hasFoldedNames = isWindows || process.platform === 'darwin';

/**
 * Finds out where `given` leads and whether that is allowed. Nothing is, in place of a root directory that is gone.
 *
 * @param workspacePath canonical and absolute; the base of relative paths
 * @param given as the model wrote it; `~` is the user's home
 * @param purpose `read`: nothing is changed there, and the content of `readableDirectory` and of `directories` counts as inside
 * @param directories canonical and absolute
 * @throws PathError
 */
export async function resolveInWorkspace(
  workspacePath: string,
  given: string,
  rules: PathRules,
  purpose: 'read' | 'use' = 'use',
  directories: readonly string[] = [],
): Promise<ResolvedPath> {
  const named = absolutePath(workspacePath, given);
  requireRoots(workspacePath, rules);
  const paths = new PlainPaths();
  const plain = isWithin(workspacePath, named) ? paths.at(named) : undefined;
  const path = plain?.path ?? (await realPathOf(named));
  const { readableDirectory } = rules;
  if (purpose === 'read' && readableDirectory !== undefined) {
    const directory = paths.at(readableDirectory)?.path ?? (await realPathOf(readableDirectory));
    if (path !== directory && isWithin(directory, path))
      return { path, isInside: true, isBlocked: false, isReadable: true };
  }
  const chain = plain?.chain ?? (await identitiesUpward(path));
  const workspace = paths.at(workspacePath)?.chain[0] ?? (await identityOf(workspacePath));
  const isInside = isWithin(workspacePath, path) || chain.includes(workspace);
  const places = await placesOutOfBounds(workspacePath, rules, paths);
  const because = whyBlocked({ workspacePath, workspace, named, path, isInside, chain }, places);
  const isFurther = purpose === 'read' && directories.some((directory) => isWithin(directory, path));
  return because === undefined
    ? { path, isInside: isInside || isFurther, isBlocked: false }
    : { path, isInside, isBlocked: true, blockedBecause: because };
}

/**
 * Judges many files that a search found without following symlinks: a file that is now reached through a symlink was put
 * there after the search began, and is not shown.
 */
export async function createPathFilter(workspacePath: string, rules: PathRules): Promise<PathFilter> {
  const places = await forbiddenPlaces(workspacePath, rules);
  return async (path) => {
    // A path that is gone by now is not shown either.
    const real = await realpath(path).catch(() => undefined);
    if (real !== path) return false;
    const isInside = isWithin(workspacePath, path);
    const chain = [await identityOf(path)];
    const workspace = await identityOf(workspacePath);
    return whyBlocked({ workspacePath, workspace, named: path, path, isInside, chain }, places) === undefined;
  };
}

/** Whether `path` is `directory` or somewhere in it, judged by the names alone. Both are absolute. */
export function isWithin(directory: string, path: string): boolean {
  return path === directory || path.startsWith(directory.endsWith(sep) ? directory : directory + sep);
}

/** Path for the model, which may give it back: relative to the workspace when it is inside, always with `/`. */
export function displayPath(workspacePath: string, path: string): string {
  const shown = isWithin(workspacePath, path) ? relative(workspacePath, path) || '.' : path;
  return isWindows ? shown.replaceAll('\\', '/') : shown;
}

/** A path in a list of one path a line: quoted as JSON when a line break or another control character is in it. */
export const listedPath = (path: string): string => (/[\p{Cc}\u2028\u2029]/u.test(path) ? JSON.stringify(path) : path);

/** All places out of bounds, so that a search can go round them. Each is listed with its written path and its real path. */
export const forbiddenPlaces = (workspacePath: string, rules: PathRules): Promise<ForbiddenPlace[]> =>
  placesOutOfBounds(workspacePath, rules, new PlainPaths());

async function placesOutOfBounds(
  workspacePath: string,
  rules: PathRules,
  paths: PlainPaths,
): Promise<ForbiddenPlace[]> {
  const ours = [join(workspacePath, directoryName), ...rules.protectedDirectories];
  const places = [
    ...ours.map((path) => ({ path, because: ownState, sparesWorkspace: true })),
    ...kernelDirectories.map((path) => ({ path, because: 'belongs to the kernel', sparesWorkspace: true })),
    ...rules.blockedPaths.map((path) => ({
      path: resolve(workspacePath, withHome(path)),
      because: 'is blocked by Permissions.BlockedPaths',
      sparesWorkspace: false,
    })),
  ];
  const found = await Promise.all(
    places.map(async (place) => {
      // A blocked path may lie on a file system that does not answer.
      const isNear = place.sparesWorkspace || isWithin(workspacePath, place.path);
      const plain = isNear ? paths.at(place.path) : undefined;
      if (plain) return [{ ...place, identity: plain.chain[0] }];
      // A place that cannot be resolved is out of bounds by its name.
      const real = await realPathOf(place.path).catch(() => place.path);
      const names = [...new Set([place.path, real])];
      return Promise.all(names.map(async (path) => ({ ...place, path, identity: await identityOf(path) })));
    }),
  );
  return found.flat();
}

/** @throws PathError when the workspace, or the directory of the conversation, is not there */
function requireRoots(workspacePath: string, { workspace }: PathRules): void {
  const loss = workspace?.lossOf(workspacePath);
  if (loss) throw new PathError(loss.message);
}

/** @throws PathError */
function absolutePath(workspacePath: string, given: string): string {
  if (given.trim() === '') throw new PathError('The path is empty.');
  if (given.includes('\0')) throw new PathError('The path contains a NUL character.');
  if (given.length > maxPathLength) throw new PathError(`The path is longer than ${maxPathLength} characters.`);
  if (/^file:\//i.test(given)) throw new PathError('Give a plain path, not a file: URL.');
  if (given.startsWith('\\\\') || (isWindows && given.startsWith('//'))) {
    throw new PathError('Network and device paths are not allowed.');
  }
  const path = resolve(workspacePath, withHome(given));
  if (isWindows && isSpecialOnWindows(path)) throw new PathError('Device names and streams are not allowed.');
  return path;
}

const withHome = (path: string): string => (/^~($|[\\/])/.test(path) ? join(userHome(), path.slice(1)) : path);

/** `NUL`, `com1.txt`, `file.txt:stream`. */
function isSpecialOnWindows(path: string): boolean {
  const rest = path.slice(parse(path).root.length);
  return rest.includes(':') || rest.split(/[\\/]/).some((name) => /^(con|prn|aux|nul|com\d|lpt\d)(\.|$)/i.test(name));
}

/**
 * The real path of the existing part, followed by the rest of the name. A symlink to a missing target is followed, too:
 * a write there would make its target.
 */
async function realPathOf(path: string, links = 0): Promise<string> {
  try {
    return await realpath(path);
  } catch (error) {
    if (!isAbsent(error)) throw notAPath(path, error);
  }
  const target = await linkTarget(path);
  if (target === undefined) {
    const parent = dirname(path);
    return parent === path ? path : join(await realPathOf(parent, links), path.slice(parent.length));
  }
  if (links >= maxLinks) throw new PathError(`${path} goes through too many symlinks.`);
  const parent = await realPathOf(dirname(path), links + 1);
  return realPathOf(isAbsolute(target) ? resolve(target) : resolve(parent, target), links + 1);
}

/** Target of the symlink `path`; undefined for any other entry. */
async function linkTarget(path: string): Promise<string | undefined> {
  try {
    return (await lstat(path)).isSymbolicLink() ? await readlink(path) : undefined;
  } catch (error) {
    if (isAbsent(error)) return undefined;
    throw notAPath(path, error);
  }
}

const isAbsent = (error: unknown): boolean => errorCode(error) === 'ENOENT' || errorCode(error) === 'ENOTDIR';

const reasons: Readonly<Record<string, string>> = {
  EACCES: 'cannot be read (permission denied)',
  EPERM: 'cannot be read (permission denied)',
  ELOOP: 'goes through too many symlinks',
  ENAMETOOLONG: 'has a name that is too long',
};

function notAPath(path: string, error: unknown): PathError {
  const code = errorCode(error) ?? 'unknown error';
  const shown = path.length > 200 ? `${path.slice(0, 200)}…` : path;
  return new PathError(`${shown} ${reasons[code] ?? `cannot be found out about (${code})`}.`, { cause: error });
}

interface Candidate {
  readonly workspacePath: string;
  /** Identity of the workspace directory. */
  readonly workspace: string;
  readonly named: string;
  readonly path: string;
  readonly isInside: boolean;
  /** Identities of the path and of everything above it, upward. */
  readonly chain: readonly string[];
}

function whyBlocked(candidate: Candidate, places: readonly ForbiddenPlace[]): string | undefined {
  const { workspacePath, named, path } = candidate;
  if ([named, path].some((each) => hasOwnDirectory(workspacePath, each))) return ownState;
  const below = identitiesBelowWorkspace(candidate);
  for (const place of places) {
    if (place.sparesWorkspace && candidate.isInside && isWithin(place.path, workspacePath)) continue;
    if ([named, path].some((each) => isWithin(folded(place.path), folded(each)))) return place.because;
    // By identity too: another case, another mount, a hard link are other names of the same thing.
    if (below.includes(place.identity)) return place.because;
  }
  return undefined;
}

/** Whether the path goes through a directory called `.oratorio`: this workspace's, another one's, a user's. */
function hasOwnDirectory(workspacePath: string, path: string): boolean {
  const rest = isWithin(workspacePath, path) ? relative(workspacePath, path) : path;
  return rest.split(sep).some((name) => name.toLowerCase() === directoryName);
}

function identitiesBelowWorkspace({ chain, isInside, workspace }: Candidate): readonly string[] {
  const at = isInside ? chain.indexOf(workspace) : -1;
  return at === -1 ? chain : chain.slice(0, at);
}

const folded = (path: string): string => (hasFoldedNames ? path.normalize('NFC').toLowerCase() : path);

/** Device and inode; a text that equals no other when there is no such file. */
async function identityOf(path: string): Promise<string> {
  try {
    return identityIn(await stat(path, { bigint: true }), path);
  } catch {
    // A path that cannot be read has no identity that another name could share with it.
    return nameIdentity(path);
  }
}

async function identitiesUpward(path: string): Promise<string[]> {
  const paths = [path];
  for (let at = path; at !== dirname(at); ) {
    at = dirname(at);
    paths.push(at);
  }
  return Promise.all(paths.map(identityOf));
}
