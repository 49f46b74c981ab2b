import { shownPath } from './byte-path.ts';
import type { GitIndex } from './git-index.ts';
import { abortCommands, branchOf, type GitState, isOwnPart, isSamePlace, movedParts, partOf } from './git-state.ts';
import type { TurnSpan } from './spans.ts';

/** States of a repository before and after turns. The state before them can be set back. */
export interface GitMove {
  readonly before: GitState;
  readonly after: GitState;
  readonly isIndexMoved?: boolean;
  /** Parts that the turns moved, without the index. Absent: an earlier version wrote the move down. */
  readonly parts?: readonly string[];
  /** Parts that also moved between the turns. */
  readonly apart?: readonly string[];
  /** Parts that the turns moved and that other worktrees share. */
  readonly shared?: readonly string[];
}

/** A part of a repository that an undo leaves. */
export interface LeftPart {
  readonly name: string;
  readonly reason: string;
  /** Command that sets the part back. */
  readonly command?: string;
}

/** Result of setting a repository back, or the reason why it stays. */
export interface GitRestore {
  /** Names of all parts that the turns moved: `HEAD`, refs, `index`, files of an operation in progress, `config`. */
  readonly moved: string[];
  /** Whether all of them have their earlier state. */
  readonly isRestored: boolean;
  /** Reason why the repository, or a part of it, stays. */
  readonly reason?: string;
  /** The first parts that stay. */
  readonly left?: LeftPart[];
}

interface Span {
  readonly start: GitState;
  readonly end: GitState;
}

export const isAnother = 'the workspace belongs to another repository now';
export const stayReasons = {
  made: 'the turn made this repository: it stays',
  removed: 'the turn removed the repository, and it was not saved',
  above: 'the repository is above the workspace: it stays',
  elsewhere: 'its directory is not that of this workspace',
  uncertain: 'it may have been changed after the server had ended',
  unsaved: 'the index was not saved',
  partial: 'it has more refs, or larger files, than are saved',
} as const;

/** Compares a repository before and after turns. @param stateAt returns its state at a mark. @returns undefined: nothing moved */
export async function moveOf(
  marked: readonly TurnSpan[],
  stateAt: (seq: number) => GitState | undefined,
  index: Pick<GitIndex, 'isSame'>,
): Promise<GitMove | GitRestore | undefined> {
  const spans: Span[] = [];
  for (const { startSeq, endSeq } of marked) {
    if (endSeq === null) return undefined;
    const [start, end] = [stateAt(startSeq), stateAt(endSeq)];
    if (!start && end) return { moved: ['.git'], isRestored: false, reason: stayReasons.made };
    if (start && !end) return { moved: ['.git'], isRestored: false, reason: stayReasons.removed };
    if (start && end) spans.push({ start, end });
  }
  const [before, after] = [spans[0]?.start, spans.at(-1)?.end];
  return before && after ? new Comparison(spans, index).move(before, after) : undefined;
}

class Comparison {
  readonly #spans: readonly Span[];
  readonly #index: Pick<GitIndex, 'isSame'>;

  constructor(spans: readonly Span[], index: Pick<GitIndex, 'isSame'>) {
    this.#spans = spans;
    this.#index = index;
  }

  async move(before: GitState, after: GitState): Promise<GitMove | GitRestore | undefined> {
    const [moved, apart] = [new Set<string>(), new Set<string>()];
    for (const [at, span] of this.#spans.entries()) {
      for (const name of await this.#movedIn(span)) moved.add(name);
      const next = this.#spans[at + 1];
      if (next) for (const name of await this.#movedIn({ start: span.end, end: next.start })) apart.add(name);
    }
    const isPlaceSame = this.#spans.every(({ start, end }) => isSamePlace(before, start) && isSamePlace(before, end));
    if (!isPlaceSame) return { moved: moved.size > 0 ? [...moved] : ['.git'], isRestored: false, reason: isAnother };
    const own = [...moved].filter((name) => name === 'index' || isOwnPart(name, before));
    const shared = [...moved].filter((name) => !own.includes(name));
    const isPartial = before.isPartial || after.isPartial;
    if (own.length === 0 && shared.length === 0) {
      return isPartial ? { moved: ['refs'], isRestored: false, reason: stayReasons.partial } : undefined;
    }
    const stay = (reason: string): GitRestore => ({
      moved: own.length > 0 ? own : shared,
      isRestored: false,
      reason,
      left: leftParts(own, before, reason),
    });
    const kind = before.place?.kind;
    if (kind === 'above' || kind === 'elsewhere') return stay(stayReasons[kind]);
    if (this.#spans.some(({ end }) => end.isUncertain)) return stay(stayReasons.uncertain);
    const all = await this.#movedIn({ start: before, end: after });
    const parts = all.filter((name) => own.includes(name) || apart.has(name));
    const isIndexMoved = own.includes('index') || all.includes('index');
    if (isIndexMoved && (before.index === undefined || after.index === undefined)) return stay(stayReasons.unsaved);
    return {
      ...{ before: narrow(before, all), after: narrow(after, all), isIndexMoved },
      ...{ parts: parts.filter((name) => name !== 'index'), apart: [...apart], shared },
    };
  }

  async #movedIn({ start, end }: Span): Promise<readonly string[]> {
    const parts = movedParts(start, end);
    const isUnknown = start.index === undefined || end.index === undefined;
    const hasPrints = start.indexPrint !== undefined || end.indexPrint !== undefined;
    // A repository that is never written to has only prints.
    if (isUnknown) return hasPrints && start.indexPrint !== end.indexPrint ? [...parts, 'index'] : parts;
    return (await this.#index.isSame(start.index, end.index)) ? parts : [...parts, 'index'];
  }
}

/** Reduces a state to the refs that count, for the stored restore. */
function narrow(state: GitState, names: readonly string[]): GitState {
  const kept = new Set([...names, branchOf(state)]);
  return { ...state, refs: Object.fromEntries(Object.entries(state.refs).filter(([name]) => kept.has(name))) };
}

/** Shell command with which a person sets a part back. @returns undefined: no command does */
function commandFor(name: string, before: GitState): string | undefined {
  const { head, refs } = before;
  const shown = quoted(shownPath(name));
  const branch = branchOf(before);
  if (name === 'HEAD') {
    return branch === undefined
      ? `git update-ref --no-deref HEAD ${head}`
      : `git symbolic-ref HEAD ${quoted(shownPath(branch))}`;
  }
  if (!name.startsWith('refs/')) return before.files && movedBy(name, before) ? abortCommands[name] : undefined;
  const wanted = refs[name];
  if (wanted === undefined) return name === 'refs/stash' ? 'git stash drop' : `git update-ref -d ${shown}`;
  if (name === 'refs/stash') return `git stash store ${wanted}`;
  return wanted.startsWith('ref: ')
    ? `git symbolic-ref ${shown} ${quoted(shownPath(wanted.slice(5)))}`
    : `git update-ref ${shown} ${wanted}`;
}

/** Whether the turns began an operation: none of its files existed before. */
const movedBy = (name: string, { files = {} }: GitState): boolean =>
  !Object.keys(files).some((file) => partOf(file) === name);

const quoted = (text: string): string => (/^[\w./@%+=:,-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);

/** Most parts of a list that are named one by one. */
const maxLeft = 50;

/** Parts that stay for one reason, with commands. */
export const leftParts = (names: readonly string[], before: GitState, reason: string): LeftPart[] =>
  names.slice(0, maxLeft).map((name) => {
    const command = commandFor(name, before);
    return { name, reason, ...(command !== undefined && { command }) };
  });
