import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { GitIndex } from './git-index.ts';
import { type GitPlace, gitPlaceOf, otherHeads } from './git-place.ts';
import {
  branchOf,
  branchPattern,
  commitPattern,
  type GitState,
  movedRefs,
  ownBranches,
  readGitState,
} from './git-state.ts';
import type { RunGit } from './ignored.ts';

/** States of a repository before and after turns, of which the first can be set back. */
export interface GitMove {
  readonly before: GitState;
  readonly after: GitState;
  readonly isIndexMoved?: boolean;
}

/** Result of setting a repository back, or the reason why it stays. */
export interface GitRestore {
  /** Names of all that the turns moved: `HEAD`, branches, `index`. */
  readonly moved: string[];
  readonly isRestored: boolean;
  /** Set when it stays as it is, or a part of it does. */
  readonly reason?: string;
}

/** Turns of which the states at their marks are known. */
type MarkedTurn = { readonly startSeq: number; readonly endSeq: number | null };

interface Span {
  readonly start: GitState;
  readonly end: GitState;
}

/** Compares the repository before and after turns; undefined: they moved nothing. What was moved between them, too, stays, and the result says so. */
export async function moveOf(
  turns: readonly MarkedTurn[],
  stateAt: (seq: number) => GitState | undefined,
  index: Pick<GitIndex, 'isSame'>,
): Promise<GitMove | GitRestore | undefined> {
  const spans: Span[] = [];
  for (const { startSeq, endSeq } of turns) {
    const [start, end] = [stateAt(startSeq), endSeq === null ? undefined : stateAt(endSeq)];
    if (!start || !end) return undefined;
    spans.push({ start, end });
  }
  const [before, after] = [spans[0]?.start, spans.at(-1)?.end];
  if (!before || !after) return undefined;
  const own = ownBranches(before);
  const movedIn = async ({ start, end }: Span): Promise<readonly string[]> => {
    const isUnknown = start.index === undefined || end.index === undefined;
    const isSame = isUnknown || (await index.isSame(start.index, end.index));
    return isSame ? movedRefs(start, end, own) : [...movedRefs(start, end, own), 'index'];
  };
  const moved = new Set<string>();
  let isApart = false;
  for (const [at, span] of spans.entries()) {
    for (const name of await movedIn(span)) moved.add(name);
    const next = spans[at + 1];
    if (next && (await movedIn({ start: span.end, end: next.start })).length > 0) isApart = true;
  }
  if (moved.size === 0) return undefined;
  const stay = (reason: string): GitRestore => ({ moved: [...moved], isRestored: false, reason });
  if (spans.some(({ start, end }) => !isSamePlace(before, start) || !isSamePlace(before, end))) return stay(isAnother);
  if (before.place?.kind === 'elsewhere') return stay('its directory is not that of this workspace');
  if (isApart) return stay('it was changed between the turns, too');
  const all = await movedIn({ start: before, end: after });
  if (all.length === 0) return undefined;
  if (before.index === undefined || after.index === undefined) {
    return { moved: [...all], isRestored: false, reason: 'the index was not saved' };
  }
  return { before, after, isIndexMoved: all.includes('index') };
}

export interface GitRestoreOptions {
  readonly root: string;
  readonly git: RunGit | undefined;
  readonly index: GitIndex;
  /** A process that was killed may have set back a part. */
  readonly isRecovery: boolean;
  readonly onStep?: ((step: string) => void) | undefined;
}

const isAnother = 'the workspace belongs to another repository now';
const isSamePlace = (a: GitState, b: GitState): boolean =>
  a.place?.kind === b.place?.kind && a.place?.directory === b.place?.directory;

const underWay = ['index.lock', 'MERGE_HEAD', 'CHERRY_PICK_HEAD', 'REVERT_HEAD', 'rebase-merge', 'rebase-apply'];
const movedSince = 'HEAD or a branch was moved since';

/**
 * Sets HEAD, branches and the index back to `before`, when they are still as turns have left them in `after`. The commits stay in the
 * reflog. Of a worktree only the branch on which it stood is moved. Runs no program that the repository names: no hook, no filter, no transport.
 */
export async function restoreGit(options: GitRestoreOptions, move: GitMove): Promise<GitRestore> {
  const { root, index, isRecovery, onStep } = options;
  const { before, after, isIndexMoved = false } = move;
  const own = ownBranches(before);
  const moved = [...movedRefs(before, after, own), ...(isIndexMoved ? ['index'] : [])];
  const leave = (reason: string): GitRestore => ({ moved, isRestored: false, reason });
  if (isRecovery) index.clearLock();
  const place = gitPlaceOf(root);
  const now = readGitState(root);
  const git = place && options.git && inPlace(options.git, place);
  if (!place || !now || !git) return leave('there is no repository, or no git');
  if (!isSamePlace(before, now)) return leave(isAnother);
  const remaining = movedRefs(before, now, own);
  const isIndexBack = !isIndexMoved || (await index.isPresent(before.index));
  const shared = sharedBranch(before, after);
  const done = {
    moved,
    isRestored: true,
    ...(shared !== undefined && { reason: `${shared} stays: other worktrees share it` }),
  };
  if (remaining.length === 0 && isIndexBack) return done;
  // A branch on which a turn has left a worktree stays, but what others did on it is theirs.
  const left = branchOf(after);
  const watched = own && new Set(left === undefined ? own : [...own, left]);
  const strange = movedRefs(after, now, watched).filter((name) => !isRecovery || remaining.includes(name));
  if (strange.length > 0) return leave(movedSince);
  const heads = otherHeads(place);
  const taken = [...remaining, branchOf(before)].find((name) => heads.includes(`ref: ${name}`));
  if (remaining.length > 0 && taken !== undefined) return leave(`${taken} is checked out in another worktree`);
  if (!isIndexBack && !(await index.isPresent(after.index))) return leave('the index was changed since');
  if (!isIndexBack && !(await index.isReadable(before.index))) return leave('the saved index cannot be read');
  const busy = underWay.find((name) => existsSync(join(place.directory, name)));
  if (busy !== undefined) return leave(`a change of the repository is under way (${busy})`);
  const problem = await setBack({ ...options, git }, before, now);
  if (problem !== undefined) return leave(problem);
  onStep?.('git index');
  if (!isIndexBack && !index.replace(before.index ?? null, onStep)) return leave('the index could not be replaced');
  return done;
}

/** Runs git in the worktree whose state was read, whatever the `.git` of the tree has come to name. */
const inPlace = (git: RunGit, { kind, directory }: GitPlace): RunGit =>
  kind === 'linked' ? (args, ...rest) => git(['--git-dir', directory, ...args], ...rest) : git;

/** Branch on which a turn has left a worktree, and that it made or moved: others may need it. */
function sharedBranch(before: GitState, after: GitState): string | undefined {
  const name = after.place?.kind === 'linked' ? branchOf(after) : undefined;
  if (name === undefined || name === branchOf(before) || before.refs[name] === after.refs[name]) return undefined;
  return name;
}

/** Moves HEAD and branches. @returns why they stay */
async function setBack(
  { git, onStep }: GitRestoreOptions,
  before: GitState,
  now: GitState,
): Promise<string | undefined> {
  const commands = movedRefs(before, now, ownBranches(before)).flatMap((name) => {
    if (name === 'HEAD') return [];
    const [wanted, present] = [before.refs[name], now.refs[name]];
    if (wanted === undefined) return [`delete ${name} ${present}`];
    return [present === undefined ? `create ${name} ${wanted}` : `update ${name} ${wanted} ${present}`];
  });
  const head = before.head === now.head ? [] : headCommand(before.head);
  const present = head?.length === 0 ? [] : headCommand(now.head);
  if (!head || !present) return 'HEAD cannot be understood';
  // Before its branch goes, HEAD leaves it.
  onStep?.('git HEAD');
  if (head.length > 0 && (await git?.(head, '')) === undefined) return 'git refused to move HEAD';
  onStep?.('git branches');
  if (commands.length === 0 || (await git?.(['update-ref', '--stdin'], `${commands.join('\n')}\n`)) !== undefined) {
    return undefined;
  }
  const isHeadBack = head.length === 0 || (await git?.(present, '')) !== undefined;
  return isHeadBack ? 'git refused to move a branch' : 'git refused to move a branch; HEAD was moved';
}

/** Arguments that move HEAD; undefined: it is neither a branch nor a commit. */
function headCommand(head: string): readonly string[] | undefined {
  const name = head.startsWith('ref: ') ? head.slice(5) : undefined;
  if (name !== undefined) return branchPattern.test(name) ? ['symbolic-ref', 'HEAD', name] : undefined;
  return commitPattern.test(head) ? ['update-ref', '--no-deref', 'HEAD', head] : undefined;
}
