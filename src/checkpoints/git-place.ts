import { closeSync, constants, fstatSync, lstatSync, openSync, readdirSync, readSync, realpathSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { codeOf } from './errors.ts';

/** Directories of the repository to which a tree belongs, absolute. */
export interface GitPlace {
  /**
   * `own`: the directory `.git`. `linked`: a worktree, which the repository names, too. `elsewhere`: a submodule, a link, or any other
   * directory that a `.git` names; nothing shows that it belongs to this tree, so it is never written to.
   */
  readonly kind: 'own' | 'linked' | 'elsewhere';
  /** Has HEAD and the index. */
  readonly directory: string;
  /** Has the branches; that of a worktree belongs to others, too. */
  readonly common: string;
}

const { O_RDONLY, O_NOFOLLOW = 0, O_NONBLOCK = 0 } = constants;
const maxPointerBytes = 8_192;
export const maxHeadBytes = 4_096;
const maxWorktrees = 2_000;

/** Finds the repository of a tree, without a process. @returns undefined: its root has no `.git` */
export function gitPlaceOf(root: string): GitPlace | undefined {
  const named = join(root, '.git');
  const stats = lstatSync(named, { throwIfNoEntry: false });
  if (stats?.isDirectory()) {
    // Git takes the branches from the directory that this file names.
    const isShared = lstatSync(join(named, 'commondir'), { throwIfNoEntry: false }) !== undefined;
    return isShared ? elsewhere(named) : { kind: 'own', directory: named, common: named };
  }
  try {
    if (stats?.isSymbolicLink()) return elsewhere(realpathSync(named));
    const [, target] = /^gitdir: (.+)$/m.exec((stats && readSmall(named, maxPointerBytes)) ?? '') ?? [];
    if (target === undefined) return undefined;
    const directory = realpathSync(resolve(root, target));
    return linkedPlace(directory, named) ?? elsewhere(directory);
  } catch (error) {
    if (isGone(error)) return undefined;
    throw error;
  }
}

const elsewhere = (directory: string): GitPlace => ({ kind: 'elsewhere', directory, common: directory });

/** @returns undefined unless the repository names the worktree: a `.git` file may be written by anyone who can write in the tree */
function linkedPlace(directory: string, file: string): GitPlace | undefined {
  const [worktrees, common] = [dirname(directory), dirname(dirname(directory))];
  const pointer = (name: string) => readSmall(join(directory, name), maxPointerBytes)?.trim();
  const isNamed = basename(worktrees) === 'worktrees' && pointer('gitdir') === file;
  const shared = isNamed ? pointer('commondir') : undefined;
  if (shared === undefined || resolve(directory, shared) !== common) return undefined;
  // In the tree itself, a turn could have made all of this.
  return directory.startsWith(`${dirname(file)}/`) ? undefined : { kind: 'linked', directory, common };
}

/** Texts of `HEAD` of the other worktrees of a repository. */
export function otherHeads({ common, directory }: GitPlace): readonly string[] {
  const below = join(common, 'worktrees');
  const linked = namesIn(below).map((name) => join(below, name));
  return [common, ...linked].flatMap((each) =>
    each === directory ? [] : (readSmall(join(each, 'HEAD'), maxHeadBytes)?.trim() ?? []),
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
  try {
    const fd = openSync(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
    try {
      const { size } = fstatSync(fd);
      if (!fstatSync(fd).isFile() || size > maxBytes) return undefined;
      const bytes = Buffer.alloc(size);
      return bytes.subarray(0, readSync(fd, bytes, 0, size, 0)).toString();
    } finally {
      closeSync(fd);
    }
  } catch (error) {
    if (isGone(error)) return undefined;
    throw error;
  }
}

const goneCodes = new Set(['ENOENT', 'ENOTDIR', 'ELOOP', 'EACCES', 'ENXIO']);
export const isGone = (error: unknown): boolean => goneCodes.has(codeOf(error) ?? '');
