import {
  closeSync,
  constants,
  fstatSync,
  lstatSync,
  mkdirSync,
  openSync,
  readFileSync,
  type Stats,
  writeSync,
} from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { bytePath } from './byte-path.ts';
import { maxHeadBytes, placeIn, readSmall } from './git-place.ts';

const { O_RDWR, O_APPEND, O_CREAT, O_NOFOLLOW = 0, O_NONBLOCK = 0 } = constants;
const maxExcludeBytes = 1_048_576;

/**
 * Adds patterns to `info/exclude` of the repository in which a directory lies, once for all of its worktrees. Changes only a
 * repository that proves that the directory is its own, and only files of this user; never follows a link.
 *
 * @param root canonical
 * @param heading comment above the patterns
 * @returns whether the patterns hold
 * @throws errors of the system
 */
export function excludeFromGit(root: string, heading: string, patterns: readonly string[]): boolean {
  const git = repositoryOf(root);
  if (git === undefined || !isOwn(lstatSync(git))) return false;
  const info = join(git, 'info');
  if (!lstatSync(info, { throwIfNoEntry: false })) mkdirSync(info);
  const stats = lstatSync(info);
  if (!stats.isDirectory() || !isOwn(stats)) return false;
  const fd = openSync(join(info, 'exclude'), O_RDWR | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK, 0o666);
  try {
    const file = fstatSync(fd);
    if (!file.isFile() || !isOwn(file) || file.nlink !== 1 || file.size > maxExcludeBytes) return false;
    const text = readFileSync(fd, 'utf8');
    const lines = new Set(text.split(/\r?\n/));
    const missing = patterns.filter((pattern) => !lines.has(pattern));
    const gap = text === '' || text.endsWith('\n') ? '' : '\n';
    if (missing.length > 0) writeSync(fd, `${gap}${[`# ${heading}`, ...missing].join('\n')}\n`);
    return true;
  } finally {
    closeSync(fd);
  }
}

const isOwn = ({ uid }: Stats): boolean => uid === (process.getuid?.() ?? uid);

/**
 * Directory with the `info` of the repository in which git looks for a path; undefined: none, or one that may belong to another
 * tree.
 */
function repositoryOf(root: string): string | undefined {
  for (let at = root, below = ''; at !== below; below = at, at = dirname(at)) {
    const place = placeIn(at, '');
    if (!place || readSmall(join(place.directory, 'HEAD'), maxHeadBytes) === undefined) continue;
    return place.kind === 'elsewhere' ? moduleOf(at) : place.common;
  }
  return undefined;
}

/** Git directory of a submodule, which lies in the repository of a directory above. */
function moduleOf(root: string): string | undefined {
  for (let at = dirname(root), below = root; at !== below; below = at, at = dirname(at)) {
    const place = placeIn(at, bytePath(relative(at, root)));
    if (place?.kind === 'module') return place.common;
  }
  return undefined;
}
