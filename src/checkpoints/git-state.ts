import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import * as v from 'valibot';
import { gitPlaceOf, isGone, maxHeadBytes, readSmall } from './git-place.ts';

const GitState = v.object({
  /** Text of `HEAD`: `ref: refs/heads/main`, or a commit. */
  head: v.string(),
  /** Commits of the local branches, by full name. */
  refs: v.record(v.string(), v.string()),
  /** Content of the index in the store; null: missing, undefined: it was not saved. */
  index: v.optional(v.nullable(v.string())),
  /** Where the repository is; undefined: the directory `.git` of the tree. */
  place: v.optional(v.object({ kind: v.picklist(['linked', 'elsewhere']), directory: v.string() })),
});
/** Where a repository stands. */
export type GitState = v.InferOutput<typeof GitState>;

export const parseGitState = (json: unknown): GitState | undefined => {
  if (typeof json !== 'string') return undefined;
  const parsed = v.safeParse(GitState, JSON.parse(json));
  return parsed.success ? parsed.output : undefined;
};

const maxPackedBytes = 4 * 2 ** 20;
const maxBranches = 2_000;
export const commitPattern = /^[0-9a-f]{40,64}$/;
export const branchPattern = /^refs\/heads\/(?!.*(?:\.\.|\/\/|[\s~^:?*[\\]))[^\0]+$/;

/** Reads HEAD and the branches from the files of the repository, without a process. @returns undefined: no repository */
export function readGitState(root: string): GitState | undefined {
  const place = gitPlaceOf(root);
  const head = place && readSmall(join(place.directory, 'HEAD'), maxHeadBytes)?.trim();
  if (!place || head === undefined) return undefined;
  const { kind, directory, common } = place;
  const refs: Record<string, string> = {};
  for (const line of (readSmall(join(common, 'packed-refs'), maxPackedBytes) ?? '').split('\n')) {
    const [value = '', name = ''] = line.split(' ');
    if (branchPattern.test(name) && commitPattern.test(value)) refs[name] = value;
  }
  for (const name of looseBranches(common, 'refs/heads', [])) {
    const value = readSmall(join(common, name), maxHeadBytes)?.trim() ?? '';
    if (branchPattern.test(name) && commitPattern.test(value)) refs[name] = value;
  }
  return { head, refs, ...(kind !== 'own' && { place: { kind, directory } }) };
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

/** Branch on which a repository stands; undefined: on none. */
export const branchOf = ({ head }: Pick<GitState, 'head'>): string | undefined =>
  head.startsWith('ref: ') ? head.slice('ref: '.length) : undefined;

/** References in which two states differ; `HEAD` is one. @param only branches that count; undefined: all */
export function movedRefs(before: GitState, after: GitState, only?: ReadonlySet<string>): string[] {
  const names = new Set([...Object.keys(before.refs), ...Object.keys(after.refs)]);
  const moved = [...names].filter((name) => before.refs[name] !== after.refs[name] && (only?.has(name) ?? true)).sort();
  return before.head === after.head ? moved : ['HEAD', ...moved];
}

/**
 * Branches that a restore of a worktree sets back: the one on which it stood, which git lets stand no other worktree on. All others belong to
 * the whole repository, and others may have moved them. @returns undefined: all branches, because the repository is the tree's own
 */
export function ownBranches(state: GitState): ReadonlySet<string> | undefined {
  if (state.place?.kind !== 'linked') return undefined;
  const branch = branchOf(state);
  return new Set(branch === undefined ? [] : [branch]);
}
