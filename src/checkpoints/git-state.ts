import * as v from 'valibot';
import type { BytePath } from './byte-path.ts';

const Repository = {
  /** Text of `HEAD`: `ref: refs/heads/main`, or a commit. */
  head: v.string(),
  /** Commits of all refs by full name; `ref: …` for a symbolic one. Names are bytes, one character each. */
  refs: v.record(v.string(), v.string()),
  /** Content of the index in the store; null: missing, undefined: it was not saved. */
  index: v.optional(v.nullable(v.string())),
  /** Place of the repository; undefined: the directory `.git` of the tree. */
  place: v.optional(v.object({ kind: v.picklist(['linked', 'module', 'above', 'elsewhere']), directory: v.string() })),
  /**
   * Small files: the log of the stash, the configuration, and those of a merge or a rebase in progress. Undefined: an earlier
   * version read branches only.
   */
  files: v.optional(v.record(v.string(), v.string())),
  /** Hash of the entries of an index, without times of files. */
  indexPrint: v.optional(v.string()),
  /** The repository has more refs, or larger files, than are saved. */
  isPartial: v.optional(v.literal(true)),
  /** Changed after the last sign of life of a crashed turn. */
  isUncertain: v.optional(v.literal(true)),
};

const GitState = v.object({
  ...Repository,
  /** Repositories in directories of the tree, by path. */
  nested: v.optional(v.record(v.string(), v.object(Repository))),
});

/** State of a repository, and of those in the directories of its tree. */
export type GitState = v.InferOutput<typeof GitState>;

/** Stored states of all repositories of a tree. */
export interface TreeState {
  readonly root: GitState | undefined;
  readonly nested: Readonly<Record<BytePath, GitState>>;
}

export const parseGitState = (json: unknown): GitState | undefined => {
  const parsed = v.safeParse(GitState, json);
  return parsed.success ? parsed.output : undefined;
};

export const commitPattern = /^[0-9a-f]{40,64}$/;
/** Names that git accepts for a ref (git-check-ref-format(1)), so that none of them is an option or a path. */
export const refPattern = /^refs\/(?!.*(?:\.\.|\/\/|@\{|\/\.|\.lock(?:\/|$)|[\0-\x20\x7f~^:?*[\\]))[^/].*[^/.]$/s;

const heads = 'refs/heads/';
const stash = 'refs/stash';
export const stashLog = 'logs/refs/stash';

/** Parts of git that belong to an operation in progress, by the name of their first file or directory. */
const operations: Readonly<Record<string, string>> = {
  MERGE_HEAD: 'MERGE_HEAD',
  MERGE_MSG: 'MERGE_HEAD',
  MERGE_MODE: 'MERGE_HEAD',
  AUTO_MERGE: 'MERGE_HEAD',
  SQUASH_MSG: 'MERGE_HEAD',
  CHERRY_PICK_HEAD: 'CHERRY_PICK_HEAD',
  REVERT_HEAD: 'REVERT_HEAD',
  sequencer: 'sequencer',
  'rebase-merge': 'rebase-merge',
  'rebase-apply': 'rebase-apply',
  BISECT_LOG: 'BISECT_LOG',
  BISECT_START: 'BISECT_LOG',
  BISECT_TERMS: 'BISECT_LOG',
  BISECT_NAMES: 'BISECT_LOG',
  BISECT_EXPECTED_REV: 'BISECT_LOG',
};
/** Files and directories of the worktree's own directory that are saved. */
export const operationNames: readonly string[] = Object.keys(operations);
/** Files of the common directory that are saved. */
export const commonNames: readonly string[] = [stashLog, 'config', 'info/exclude', 'shallow'];

/** Name of the part to which a saved file belongs. */
export const partOf = (file: string): string =>
  file === stashLog ? stash : (operations[file.split('/', 1)[0] ?? ''] ?? file);

/** Commands that end an operation, by the name of its part. */
export const abortCommands: Readonly<Record<string, string>> = {
  MERGE_HEAD: 'git merge --abort',
  CHERRY_PICK_HEAD: 'git cherry-pick --abort',
  REVERT_HEAD: 'git revert --abort',
  sequencer: 'git cherry-pick --abort',
  'rebase-merge': 'git rebase --abort',
  'rebase-apply': 'git rebase --abort',
  BISECT_LOG: 'git bisect reset',
};

/** Branch on which a repository stands; undefined: on none. */
export const branchOf = ({ head }: Pick<GitState, 'head'>): string | undefined =>
  head.startsWith('ref: ') ? head.slice('ref: '.length) : undefined;

/** Parts of a repository that can be set back, each as one text: HEAD, refs, files. */
export function partsOf(state: GitState): ReadonlyMap<string, string> {
  const parts = new Map([['HEAD', state.head], ...Object.entries(state.refs)]);
  for (const [file, text] of Object.entries(state.files ?? {}).sort(([a], [b]) => (a < b ? -1 : 1))) {
    const part = partOf(file);
    parts.set(part, `${parts.get(part) ?? ''}\n${file}\n${text}`);
  }
  return parts;
}

/** Parts in which two states differ, HEAD first. Parts that only one of them has saved do not count. */
export function movedParts(before: GitState, after: GitState): string[] {
  const [one, two] = [partsOf(before), partsOf(after)];
  const isComparable = before.files !== undefined && after.files !== undefined;
  const isWhole = !before.isPartial && !after.isPartial;
  const names = [...new Set([...one.keys(), ...two.keys()])].filter((name) => {
    if (name === 'HEAD') return before.head !== after.head;
    if (!isWhole || !(isComparable || name.startsWith(heads))) return false;
    return one.get(name) !== two.get(name);
  });
  return names.sort((a, b) => (a === 'HEAD' ? -1 : b === 'HEAD' ? 1 : a < b ? -1 : 1));
}

/** Whether two states of a repository differ in anything that a turn may have done. */
export const isMoved = (before: GitState, after: GitState): boolean =>
  (before.indexPrint !== undefined && after.indexPrint !== undefined && before.indexPrint !== after.indexPrint) ||
  movedParts(before, after).length > 0 ||
  !isSamePlace(before, after);

export const isSamePlace = (a: GitState, b: GitState): boolean =>
  a.place?.kind === b.place?.kind && a.place?.directory === b.place?.directory;

/**
 * Whether a part is set back only together with HEAD and the index: the branch that is checked out, and operations in progress.
 * Other branches, tags, remote refs, notes and the stash are set back one by one.
 */
export function isCoupled(name: string, states: readonly GitState[]): boolean {
  if (name.startsWith('refs/')) return states.some((state) => branchOf(state) === name);
  return name !== 'config' && !commonNames.includes(name);
}

/**
 * Whether a restore of a worktree sets a part back: its own HEAD, its operations, and the branch that it had checked out, which git
 * allows in no other worktree. All other refs belong to the whole repository, and others may have moved them.
 */
export function isOwnPart(name: string, before: GitState): boolean {
  if (before.place?.kind !== 'linked') return true;
  if (name.startsWith('refs/')) return name === branchOf(before) || /^refs\/(?:bisect|worktree|rewritten)\//.test(name);
  return !commonNames.includes(name);
}
