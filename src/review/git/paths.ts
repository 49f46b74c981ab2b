import { createHash } from 'node:crypto';
import { isAbsolute, join, relative } from 'node:path';
import { GitError } from './error.ts';

/** `readable-prefix-0123456789ab`: names a worktree or a store. The part after the last hyphen is unique. */
const keyPattern = /^[a-z0-9][a-z0-9-]{0,47}-[0-9a-f]{12}$/;
const prefixLength = 48;

export const isKey = (text: string): boolean => keyPattern.test(text);

/** Twelve hexadecimal digits of SHA-256. */
export function shortHash(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 12);
}

/** Makes a key: a name for people with a hash for programs. */
export function makeKey(words: readonly string[], identity: string): string {
  const prefix = words
    .join('-')
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .slice(0, prefixLength)
    .replace(/^-+|(?<!-)-+$/g, '');
  return `${prefix || 'repository'}-${shortHash(identity)}`;
}

/** `<root>/<key>`. Checks the key, because the source of a key may lie. */
export function insideRoot(root: string, key: string, suffix = ''): string {
  if (!isKey(key)) throw new GitError('pathOutside', 'This is not the name of a worktree');
  return join(root, `${key}${suffix}`);
}

/** The key of the worktree at `path`, directly below `root`. */
export function keyOf(root: string, path: string): string {
  const key = relative(root, path);
  if (!isAbsolute(path) || !isKey(key)) {
    throw new GitError('pathOutside', 'This directory is not a worktree below the worktree root');
  }
  return key;
}

/** Checks a path inside a repository, in the form of the object database: relative, `/` between its parts. */
export function checkRepositoryPath(path: string): void {
  const isUsable =
    path !== '' &&
    !path.includes('\0') &&
    path.split('/').every((part) => part !== '' && part !== '.' && part !== '..');
  if (!isUsable) throw new GitError('pathOutside', 'The path is not one inside the repository');
}

/** Checks an owner or a name, which is part of a URL and of paths. */
export function checkRepositoryName(part: string): void {
  if (!/^[A-Za-z0-9._-]{1,100}$/.test(part) || part === '.' || part === '..') {
    throw new GitError('pathOutside', 'The owner or the name of the repository is not one of a source');
  }
}

export function checkObjectName(sha: string): void {
  if (/^[0-9a-f]{64}$/.test(sha)) {
    throw new GitError('objectFormatUnsupported', 'Repositories with SHA-256 object names are not supported');
  }
  if (!/^[0-9a-f]{40}$/.test(sha)) throw new GitError('gitCommandFailed', 'This is not a full object name');
}

/** The rules of git-check-ref-format(1) for the name after `refs/heads/`. */
export function checkBranchName(name: string): void {
  const isWrong =
    name === '' ||
    name.length > 1_000 ||
    // biome-ignore lint/suspicious/noControlCharactersInRegex: git forbids them
    /[\u0000-\u0020\u007f~^:?*[\\]|\.\.|@\{|\/\/|^\/|\/$|\.$/.test(name) ||
    name.split('/').some((part) => part.startsWith('.') || part.endsWith('.lock'));
  if (isWrong) throw new GitError('reviewTargetFetchFailed', 'The base branch has no valid name');
}
