import { closeSync, constants, fstatSync, lstatSync, openSync, readdirSync, readSync, realpathSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { type BytePath, bytePath, systemPath } from './byte-path.ts';
import { isGone } from './errors.ts';

/** Directories of the repository to which a tree belongs, absolute. */
export interface GitPlace {
  /**
   * `own`: the directory `.git`. `linked`: a worktree, which the repository names, too. `module`: a submodule's directory in the
   * `.git` of the workspace. `above`: the repository of a directory above the workspace. `elsewhere`: another directory that a
   * `.git` names; nothing shows that it belongs to this tree. The last two are never written to.
   */
  readonly kind: 'own' | 'linked' | 'module' | 'above' | 'elsewhere';
  /** Directory with HEAD and the index. */
  readonly directory: string;
  /** Directory with the branches; that of a worktree belongs to others, too. */
  readonly common: string;
  /** Way to `directory` and `common` through descriptors, from a directory above both; undefined: both are never written to. */
  readonly way?: GitWay;
}

export interface GitWay {
  readonly base: string;
  readonly directory: BytePath;
  readonly common: BytePath;
}

const { O_RDONLY, O_NOFOLLOW = 0, O_NONBLOCK = 0 } = constants;
const maxPointerBytes = 8_192;
export const maxHeadBytes = 4_096;
const maxWorktrees = 2_000;
const modules = '.git/modules/';
/** Most directories in the name of a submodule. */
const maxModuleDepth = 4;

/** Finds the repository of a workspace as git does, upwards, without a process. @returns undefined: no repository */
export function gitPlaceOf(root: string): GitPlace | undefined {
  return placeIn(root, '') ?? placeAbove(root);
}

/** Repository of a directory of the workspace that has a `.git`. @param path relative to the workspace; `''` for itself */
export function placeIn(workspace: string, path: BytePath): GitPlace | undefined {
  const root = path === '' ? workspace : join(workspace, Buffer.from(path, 'latin1').toString());
  const named = join(root, '.git');
  const stats = lstatSync(named, { throwIfNoEntry: false });
  if (stats?.isDirectory()) {
    // Git takes the branches from the directory that this file names.
    if (lstatSync(join(named, 'commondir'), { throwIfNoEntry: false })) return elsewhere(named);
    const below = path === '' ? '.git' : `${path}/.git`;
    return {
      ...{ kind: 'own', directory: named, common: named },
      way: { base: workspace, directory: below, common: below },
    };
  }
  try {
    if (stats?.isSymbolicLink()) return elsewhere(realpathSync(named));
    const [, target] = /^gitdir: (.+)$/m.exec((stats && readSmall(named, maxPointerBytes)) ?? '') ?? [];
    if (target === undefined) return undefined;
    const directory = realpathSync(resolve(root, target));
    if (path === '') return linkedPlace(directory, named) ?? elsewhere(directory);
    return modulePlace(workspace, directory) ?? elsewhere(directory);
  } catch (error) {
    if (isGone(error)) return undefined;
    throw error;
  }
}

/** Repository of a directory above, on the same file system and of a user that git trusts. */
function placeAbove(root: string): GitPlace | undefined {
  try {
    const { dev } = lstatSync(root);
    for (let at = dirname(root), below = root; at !== below; below = at, at = dirname(at)) {
      const stats = lstatSync(at);
      if (stats.dev !== dev) return undefined;
      const place = placeIn(at, '');
      if (!place || readSmall(join(place.directory, 'HEAD'), maxHeadBytes) === undefined) continue;
      const { uid } = lstatSync(place.directory);
      const isTrusted = uid === (process.getuid?.() ?? uid);
      return isTrusted ? { kind: 'above', directory: place.directory, common: place.common } : undefined;
    }
  } catch (error) {
    if (!isGone(error)) throw error;
  }
  return undefined;
}

const elsewhere = (directory: string): GitPlace => ({ kind: 'elsewhere', directory, common: directory });

/**
 * @returns undefined unless the repository names the worktree: any program that can write in the tree may have written its
 * `.git` file
 */
function linkedPlace(directory: string, file: string): GitPlace | undefined {
  const [worktrees, common] = [dirname(directory), dirname(dirname(directory))];
  const pointer = (name: string) => readSmall(join(directory, name), maxPointerBytes)?.trim();
  const isNamed = basename(worktrees) === 'worktrees' && pointer('gitdir') === file;
  const shared = isNamed ? pointer('commondir') : undefined;
  if (shared === undefined || resolve(directory, shared) !== common) return undefined;
  // In the tree itself, a turn could have made all of this.
  if (directory.startsWith(`${dirname(file)}/`)) return undefined;
  const way = { base: common, directory: bytePath(`worktrees/${basename(directory)}`), common: '' };
  return { kind: 'linked', directory, common, way };
}

/** @returns undefined: the directory is not in the repository of the workspace */
function modulePlace(workspace: string, directory: string): GitPlace | undefined {
  if (!directory.startsWith(`${workspace}/${modules}`)) return undefined;
  if (!lstatSync(join(workspace, '.git'), { throwIfNoEntry: false })?.isDirectory()) return undefined;
  const below = bytePath(directory.slice(workspace.length + 1));
  return { kind: 'module', directory, common: directory, way: { base: workspace, directory: below, common: below } };
}

/** Repositories of submodules in the `.git` of a workspace, also of those that are not checked out. */
export function modulePlaces(workspace: string): readonly GitPlace[] {
  const found: GitPlace[] = [];
  const look = (directory: string, depth: number) => {
    for (const name of namesIn(directory)) {
      const below = join(directory, name);
      if (readSmall(join(below, 'HEAD'), maxHeadBytes) === undefined) {
        if (depth < maxModuleDepth && lstatSync(below, { throwIfNoEntry: false })?.isDirectory())
          look(below, depth + 1);
        continue;
      }
      const place = modulePlace(workspace, below);
      if (place) found.push(place);
    }
  };
  look(join(workspace, modules), 0);
  return found;
}

/** Texts of `HEAD` of the other worktrees of a repository. */
export function otherHeads({ common, directory }: GitPlace): readonly string[] {
  const below = join(common, 'worktrees');
  const linked = namesIn(below).map((name) => join(below, name));
  return [common, ...linked].flatMap((each) =>
    each === directory ? [] : (readBytes(join(each, 'HEAD'), maxHeadBytes)?.trim() ?? []),
  );
}

function namesIn(directory: string): readonly string[] {
  try {
    return readdirSync(directory).slice(0, maxWorktrees);
  } catch (error) {
    if (isGone(error)) return [];
    throw error;
  }
}

/** @returns undefined: missing, no file, or too large */
export function readSmall(path: string, maxBytes: number): string | undefined {
  const text = readBytes(path, maxBytes);
  return text === undefined ? undefined : Buffer.from(text, 'latin1').toString();
}

/** Content of a file with one character a byte. @returns undefined: missing, no file, or too large */
export function readBytes(path: string | Buffer, maxBytes: number): string | undefined {
  try {
    const fd = openSync(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
    try {
      const stats = fstatSync(fd);
      if (!stats.isFile() || stats.size > maxBytes) return undefined;
      const bytes = Buffer.alloc(stats.size);
      return bytes.toString('latin1', 0, readSync(fd, bytes, 0, stats.size, 0));
    } finally {
      closeSync(fd);
    }
  } catch (error) {
    if (isGone(error)) return undefined;
    throw error;
  }
}

/** Path of an entry in a directory of a repository, for system calls. */
export const gitPath = (directory: string, name: BytePath): string | Buffer =>
  systemPath(`${bytePath(directory)}/${name}`);
