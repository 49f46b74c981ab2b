import { closeSync, constants, fstatSync, lstatSync, openSync, readdirSync, readSync } from 'node:fs';
import { join } from 'node:path';
import * as v from 'valibot';
import { codeOf } from './errors.ts';

const GitState = v.object({
  /** Text of `HEAD`: `ref: refs/heads/main`, or a commit. */
  head: v.string(),
  /** Commits of the local branches, by full name. */
  refs: v.record(v.string(), v.string()),
  /** Content of the index in the store; null: missing, undefined: it was not saved. */
  index: v.optional(v.nullable(v.string())),
});
/** Where a repository stands. */
export type GitState = v.InferOutput<typeof GitState>;

export const parseGitState = (json: unknown): GitState | undefined => {
  if (typeof json !== 'string') return undefined;
  const parsed = v.safeParse(GitState, JSON.parse(json));
  return parsed.success ? parsed.output : undefined;
};

const { O_RDONLY, O_NOFOLLOW = 0, O_NONBLOCK = 0 } = constants;
const maxHeadBytes = 4_096;
const maxPackedBytes = 4 * 2 ** 20;
const maxBranches = 2_000;
export const commitPattern = /^[0-9a-f]{40,64}$/;
export const branchPattern = /^refs\/heads\/(?!.*(?:\.\.|\/\/|[\s~^:?*[\\]))[^\0]+$/;

/** Reads HEAD and the branches from the files of the repository at the root, without a process. @returns undefined: no repository */
export function readGitState(root: string): GitState | undefined {
  const directory = join(root, '.git');
  if (!lstatSync(directory, { throwIfNoEntry: false })?.isDirectory()) return undefined;
  const head = readSmall(join(directory, 'HEAD'), maxHeadBytes)?.trim();
  if (head === undefined) return undefined;
  const refs: Record<string, string> = {};
  for (const line of (readSmall(join(directory, 'packed-refs'), maxPackedBytes) ?? '').split('\n')) {
    const [value = '', name = ''] = line.split(' ');
    if (branchPattern.test(name) && commitPattern.test(value)) refs[name] = value;
  }
  for (const name of looseBranches(directory, 'refs/heads', [])) {
    const value = readSmall(join(directory, name), maxHeadBytes)?.trim() ?? '';
    if (branchPattern.test(name) && commitPattern.test(value)) refs[name] = value;
  }
  return { head, refs };
}

function looseBranches(directory: string, below: string, found: string[]): string[] {
  try {
    for (const entry of readdirSync(join(directory, below), { withFileTypes: true })) {
      if (found.length >= maxBranches) break;
      const name = `${below}/${entry.name}`;
      if (entry.isDirectory()) looseBranches(directory, name, found);
      else if (entry.isFile()) found.push(name);
    }
  } catch (error) {
    if (!isGone(error)) throw error;
  }
  return found;
}

/** @returns undefined: missing, no file, or too large */
function readSmall(path: string, maxBytes: number): string | undefined {
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
const isGone = (error: unknown): boolean => goneCodes.has(codeOf(error) ?? '');

/** References in which two states differ; `HEAD` is one. */
export function movedRefs(before: GitState, after: GitState): string[] {
  const names = new Set([...Object.keys(before.refs), ...Object.keys(after.refs)]);
  const moved = [...names].filter((name) => before.refs[name] !== after.refs[name]).sort();
  return before.head === after.head ? moved : ['HEAD', ...moved];
}
