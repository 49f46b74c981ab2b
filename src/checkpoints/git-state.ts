import { closeSync, constants, existsSync, fstatSync, lstatSync, openSync, readdirSync, readSync } from 'node:fs';
import { join } from 'node:path';
import * as v from 'valibot';
import { codeOf } from './errors.ts';
import type { RunGit } from './ignored.ts';

const GitState = v.object({
  /** Text of `HEAD`: `ref: refs/heads/main`, or a commit. */
  head: v.string(),
  /** Commits of the local branches, by full name. */
  refs: v.record(v.string(), v.string()),
});
/** Where a repository stands. */
export type GitState = v.InferOutput<typeof GitState>;

/** Result of setting a repository back, or the reason why it stays. */
export interface GitRestore {
  /** References that the turns moved; `HEAD` is one. */
  readonly moved: string[];
  readonly isRestored: boolean;
  /** Set when it stays as it is. */
  readonly reason?: string;
}

export const parseGitState = (json: unknown): GitState | undefined => {
  if (typeof json !== 'string') return undefined;
  const parsed = v.safeParse(GitState, JSON.parse(json));
  return parsed.success ? parsed.output : undefined;
};

const { O_RDONLY, O_NOFOLLOW = 0, O_NONBLOCK = 0 } = constants;
const maxHeadBytes = 4_096;
const maxPackedBytes = 4 * 2 ** 20;
const maxBranches = 2_000;
const commit = /^[0-9a-f]{40,64}$/;
const branch = /^refs\/heads\/(?!.*(?:\.\.|\/\/|[\s~^:?*[\\]))[^\0]+$/;

/** Reads HEAD and the branches from the files of the repository at the root, without a process. @returns undefined: no repository */
export function readGitState(root: string): GitState | undefined {
  const directory = join(root, '.git');
  if (!lstatSync(directory, { throwIfNoEntry: false })?.isDirectory()) return undefined;
  const head = readSmall(join(directory, 'HEAD'), maxHeadBytes)?.trim();
  if (head === undefined) return undefined;
  const refs: Record<string, string> = {};
  for (const line of (readSmall(join(directory, 'packed-refs'), maxPackedBytes) ?? '').split('\n')) {
    const [value = '', name = ''] = line.split(' ');
    if (branch.test(name) && commit.test(value)) refs[name] = value;
  }
  for (const name of looseBranches(directory, 'refs/heads', [])) {
    const value = readSmall(join(directory, name), maxHeadBytes)?.trim() ?? '';
    if (branch.test(name) && commit.test(value)) refs[name] = value;
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

/** Turns of which the states at their marks are known. */
type MarkedTurn = { readonly startSeq: number; readonly endSeq: number | null };

/** Where turns began and ended; undefined: nothing was moved, or not by them alone. */
export function movedBy(
  turns: readonly MarkedTurn[],
  stateAt: (seq: number) => GitState | undefined,
): { readonly before: GitState; readonly after: GitState } | undefined {
  let before: GitState | undefined;
  let after: GitState | undefined;
  for (const { startSeq, endSeq } of turns) {
    const [start, end] = [stateAt(startSeq), endSeq === null ? undefined : stateAt(endSeq)];
    if (!start || !end) return undefined;
    if (after && movedRefs(after, start).length > 0) return undefined;
    before ??= start;
    after = end;
  }
  return before && after && movedRefs(before, after).length > 0 ? { before, after } : undefined;
}

const underWay = ['index.lock', 'MERGE_HEAD', 'CHERRY_PICK_HEAD', 'REVERT_HEAD', 'rebase-merge', 'rebase-apply'];

/**
 * Sets HEAD and branches back to `before`, when they are still as turns have left them in `after`. The commits stay in the reflog. Runs
 * no program that the repository names: no hook, no filter, no transport.
 */
export async function restoreGit(
  root: string,
  git: RunGit | undefined,
  { before, after }: { readonly before: GitState; readonly after: GitState },
): Promise<GitRestore> {
  const moved = movedRefs(before, after);
  const now = readGitState(root);
  const leave = (reason: string): GitRestore => ({ moved, isRestored: false, reason });
  if (!now || !git) return leave('there is no repository, or no git');
  if (movedRefs(before, now).length === 0) return { moved, isRestored: true };
  if (movedRefs(after, now).length > 0) return leave('HEAD or a branch was moved since');
  const busy = underWay.find((name) => existsSync(join(root, '.git', name)));
  if (busy !== undefined) return leave(`a change of the repository is under way (${busy})`);
  const commands = moved.flatMap((name) => {
    if (name === 'HEAD') return [];
    const [wanted, present] = [before.refs[name], after.refs[name]];
    if (wanted === undefined) return [`delete ${name} ${present}`];
    return [present === undefined ? `create ${name} ${wanted}` : `update ${name} ${wanted} ${present}`];
  });
  const headOf = (head: string): readonly string[] | undefined => {
    const name = head.startsWith('ref: ') ? head.slice(5) : undefined;
    if (name !== undefined) return branch.test(name) ? ['symbolic-ref', 'HEAD', name] : undefined;
    return commit.test(head) ? ['update-ref', '--no-deref', 'HEAD', head] : undefined;
  };
  const head = before.head === after.head ? [] : headOf(before.head);
  if (!head) return leave('HEAD cannot be understood');
  // Before its branch goes, HEAD leaves it.
  if (head.length > 0 && (await git(head, '')) === undefined) return leave('git refused to move HEAD');
  if (commands.length > 0 && (await git(['update-ref', '--stdin'], `${commands.join('\n')}\n`)) === undefined) {
    return leave('git refused to move a branch');
  }
  // Reads trees only: files are neither compared nor filtered.
  if (Object.keys(before.refs).length > 0 && (await git(['read-tree', 'HEAD'], '')) === undefined) {
    return { moved, isRestored: true, reason: 'the index stays as it is' };
  }
  return { moved, isRestored: true };
}
