import {
  closeSync,
  constants,
  fstatSync,
  lstatSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
} from 'node:fs';
import { dirname, isAbsolute, join, resolve } from 'node:path';
import { canonicalPath } from '../../../lib/index.ts';
import { type BytePath, joined } from './byte-path.ts';
import { statOf } from './mount-plan.ts';
import { gitAbsent } from './sandbox-rule.ts';

/** Names of a git directory that a change of configuration or programs touches. */
const watched = [...gitAbsent.directories, ...gitAbsent.files, 'commondir', 'gitdir', 'objects', 'objects/info'];

/** Whether a name directly in a git directory is one of these. */
export const isWatched = (name: string): boolean => watched.includes(name);

/** Content of a git directory that git reads as configuration or runs. */
export interface GitState {
  /** See `directoryOf`. */
  readonly directory: string;
  readonly texts: ReadonlyMap<string, string>;
  /** Targets of names that are links. */
  readonly links: ReadonlyMap<string, string>;
  /** Programs in `hooks`, with their identities. */
  readonly hooks: ReadonlyMap<string, string>;
}

/** Files of a git directory that lead to other places. */
const pointers = ['config', 'config.worktree', 'commondir', 'gitdir', 'objects/info/alternates'];
const maxText = 1_000_000;

export const identityOf = (path: BytePath): string => {
  try {
    const found = lstatSync(path, { throwIfNoEntry: false });
    return found ? `${found.dev}:${found.ino}:${found.mode}` : '';
  } catch {
    return '';
  }
};

/** Device and inode of a directory: another directory in its place has another one. Empty: missing. */
export const directoryOf = (path: BytePath): string => identityOf(path).split(':', 2).join(':');

/** Time until which a sandbox could change files, in milliseconds by the file system's clock. Infinity: it may still run. */
export type UntilMs = number;

/** Whether a file changed only after the end of a sandbox, so that the user changed it. No program can set this time back. */
export const isChangedAfter = (path: BytePath, untilMs: UntilMs): boolean => isAfter(path, untilMs, 'ctimeMs');

/** Whether an entry was created after the end of a sandbox; false if the file system does not record the time. */
export const isMadeAfter = (path: BytePath, untilMs: UntilMs): boolean => isAfter(path, untilMs, 'birthtimeMs');

function isAfter(path: BytePath, untilMs: UntilMs, time: 'ctimeMs' | 'birthtimeMs'): boolean {
  if (untilMs === Number.POSITIVE_INFINITY) return false;
  try {
    return (lstatSync(path, { throwIfNoEntry: false })?.[time] ?? 0) > untilMs;
  } catch {
    return false;
  }
}

/** Cheap: a few system calls, no content. */
export function fingerprintOf(directory: BytePath): string {
  return watched
    .map((name) => {
      try {
        const found = lstatSync(joined(directory, name), { throwIfNoEntry: false });
        if (!found) return '-';
        const isWorkplace = name === 'objects' || name === 'objects/info';
        return isWorkplace ? `${found.ino}` : `${found.ino}.${found.ctimeMs}`;
      } catch {
        return '?';
      }
    })
    .join(' ');
}

const { O_RDONLY, O_NOFOLLOW = 0, O_NONBLOCK = 0 } = constants;

/**
 * Reads a regular file; undefined: missing, not a regular file, too large. A command may put a FIFO in its place at any moment, which a
 * plain read would wait for.
 */
export function readRegular(path: BytePath, followsLinks = false): Buffer | undefined {
  let fd: number | undefined;
  try {
    fd = openSync(path, O_RDONLY | O_NONBLOCK | (followsLinks ? 0 : O_NOFOLLOW));
    const found = fstatSync(fd);
    return found.isFile() && found.size <= maxText ? readFileSync(fd) : undefined;
  } catch {
    return undefined;
  } finally {
    if (fd !== undefined) closeSync(fd);
  }
}

/** Reads a text of a regular file; undefined: missing, a link, too large. */
export const textIn = (directory: BytePath, name: string): string | undefined =>
  readRegular(joined(directory, name))?.toString();

export function stateOf(directory: BytePath): GitState {
  const texts = new Map(
    pointers.flatMap((name) => {
      const text = textIn(directory, name);
      return text === undefined ? [] : [[name, text] as const];
    }),
  );
  const links = new Map(
    watched.flatMap((name) => {
      const target = linkTarget(joined(directory, name));
      return target === undefined ? [] : [[name, target] as const];
    }),
  );
  return { directory: directoryOf(directory), texts, links, hooks: hooksIn(directory) };
}

/** Target of a link, as written; undefined: not a link. */
export function linkTarget(path: BytePath): string | undefined {
  try {
    return readlinkSync(path, 'utf8');
  } catch {
    return undefined;
  }
}

/** Entries of `hooks` that are not samples. Empty for a link: its target has a rule of its own. */
export function hooksIn(directory: BytePath): ReadonlyMap<string, string> {
  try {
    const hooks = joined(directory, 'hooks');
    if (!lstatSync(hooks).isDirectory()) return new Map();
    const names = readdirSync(hooks).filter((name) => !/\.(?:sample|removed-[0-9a-f]+)$/.test(name));
    return new Map(names.map((name) => [name, identityOf(joined(hooks, name))]));
  } catch {
    return new Map();
  }
}

/** Whether git takes a directory for a git directory, roughly: more of them than it does. */
export const looksLikeGit = (path: string): boolean =>
  statOf(join(path, 'HEAD'), lstatSync) !== undefined &&
  (statOf(join(path, 'objects')) !== undefined || statOf(join(path, 'commondir'), lstatSync) !== undefined);

/** Begins a `.git` file. */
const pointer = 'gitdir: ';

/** Canonical target of a `.git` file or link; undefined: it leads nowhere. */
export function targetOf(entry: string, kind: 'file' | 'link'): string | undefined {
  try {
    if (kind === 'link') return realpathSync(entry);
    const text = readRegular(entry)?.toString() ?? '';
    if (!text.startsWith(pointer)) return undefined;
    const named = text
      .slice(pointer.length)
      .replace(/(?<!\n)\n+$/, '')
      .replace(/\r$/, '');
    return named === '' ? undefined : realpathSync(resolve(entry, '..', named));
  } catch {
    return undefined;
  }
}

/** Common directory of a worktree's git directory; undefined: it is its own. */
export function commonOf(directory: string): string | undefined {
  const named = textIn(directory, 'commondir')?.replace(/(?<![\r\n])[\r\n]+$/, '');
  if (named === undefined) return undefined;
  try {
    return realpathSync(isAbsolute(named) ? named : join(directory, named));
  } catch {
    return undefined;
  }
}

/** Git directories of submodules and of their submodules. */
export function modulesOf(directory: string, depth = 8): readonly string[] {
  if (depth === 0) return [];
  const below = (path: string, left: number): readonly string[] => {
    if (left === 0) return [];
    try {
      return readdirSync(path, { withFileTypes: true })
        .filter((entry) => entry.isDirectory())
        .flatMap(({ name }) => {
          const each = join(path, name);
          return looksLikeGit(each) ? [each, ...modulesOf(each, depth - 1)] : below(each, left - 1);
        });
    } catch {
      return [];
    }
  };
  return below(join(directory, 'modules'), 6);
}

/** Whether the repository names the worktree, too: a `.git` file may be a stranger's. */
export function isWorktreeOf(common: string, own: string, file: string): boolean {
  const back = textIn(own, 'gitdir')?.trim();
  return back === file && dirname(own) === join(common, 'worktrees');
}

/** Git directories of the worktrees of a repository. */
export function worktreesOf(directory: string): readonly string[] {
  try {
    const worktrees = join(directory, 'worktrees');
    return readdirSync(worktrees).map((name) => join(worktrees, name));
  } catch {
    return [];
  }
}

/** Git directories whose objects a repository uses. */
export function alternatesOf(directory: string): readonly string[] {
  const lines = textIn(directory, 'objects/info/alternates')?.split('\n') ?? [];
  return lines
    .filter((line) => line !== '')
    .flatMap((line) => {
      const git = dirname(canonicalPath(join(line.startsWith('/') ? '/' : join(directory, 'objects'), line)));
      return looksLikeGit(git) ? [git] : [];
    });
}
