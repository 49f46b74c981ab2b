import { type BytePath, isWithin, parentOf, repositoryOf, shownPath } from './byte-path.ts';
import { type Conflict, fitDirectories, type RestoreOp } from './directories.ts';
import {
  firstOf,
  isSame,
  type NotCovered,
  type SkipReason,
  type StampedEntry,
  type Uncovered,
  uncoveredOf,
} from './entry.ts';
import { type History, type MarkEdge, plainEntry } from './history.ts';
import { type Owner, ownerKey } from './owner.ts';

/** Changes of others that a restore meets, bounded for clients. Its `notCovered` changed, and is in no checkpoint. */
export interface RestoreFindings extends Uncovered {
  readonly conflicts: readonly Conflict[];
  readonly conflictsTotal: number;
  /** Changes of others that stay. */
  readonly kept: readonly string[];
  readonly keptTotal: number;
}

export interface RestorePlan extends RestoreFindings {
  readonly ops: readonly RestoreOp[];
}

/** All findings of a plan. */
interface PlanFindings {
  readonly conflicts: readonly Conflict[];
  readonly kept: readonly BytePath[];
  readonly notCovered: readonly NotCovered[];
}

export const findingsOf = ({ conflicts, kept, notCovered }: PlanFindings): RestoreFindings => ({
  conflicts: firstOf(conflicts),
  conflictsTotal: conflicts.length,
  kept: firstOf(kept).map(shownPath),
  keptTotal: kept.length,
  ...uncoveredOf(notCovered),
});

export interface PlanRequest {
  /** Turns (or a restore) whose changes are taken back. */
  readonly turns: readonly (Owner & { readonly startSeq: number })[];
  /** Files and directories; undefined: all. */
  readonly paths: readonly BytePath[] | undefined;
  /** Overwrites conflicting changes. */
  readonly force: boolean;
}

/** Prefix of the names of restores among turns. */
export const restorePrefix = 'restore_';

type Change = { readonly seq: number } & (
  | { readonly by: 'ours' | 'neutral' }
  | { readonly by: 'foreign'; readonly isShared: boolean; readonly author: string }
);

/**
 * Plans a restore from the newest checkpoint. A change lies between two marks, and the second one names the turns that ran: only
 * these turns → the change is taken back; none of them → it stays; both, or changed by others later → a conflict. Restores and
 * turns that were taken back before count for nothing.
 */
export function planRestore(history: History, request: PlanRequest): RestorePlan {
  return new Planner(history, request).plan();
}

class Planner {
  readonly #history: History;
  readonly #request: PlanRequest;
  readonly #ours: ReadonlySet<string>;
  readonly #neutral: ReadonlySet<string>;
  readonly #owners = new Map<number, { readonly edge: MarkEdge; readonly running: readonly Owner[] }>();
  readonly #ops = new Map<BytePath, RestoreOp>();
  readonly #conflicts: Conflict[] = [];
  readonly #kept: BytePath[] = [];
  readonly #notCovered: NotCovered[] = [];
  readonly #target: number;
  /** Changes in the `.git` of a directory, by path. */
  readonly #inRepositories = new Map<BytePath, Map<BytePath, Change[]>>();

  constructor(history: History, request: PlanRequest) {
    this.#history = history;
    this.#request = request;
    this.#ours = new Set(request.turns.map(ownerKey));
    const neutral = history.turns().filter(({ turn, undoneBy }) => undoneBy !== null || turn.startsWith(restorePrefix));
    this.#neutral = new Set(neutral.map(ownerKey).filter((key) => !this.#ours.has(key)));
    this.#target = Math.min(...request.turns.map(({ startSeq }) => startSeq));
  }

  plan(): RestorePlan {
    for (const [path, changes] of this.#changesByPath()) this.#judge(path, changes);
    for (const [repository, paths] of this.#inRepositories) this.#judgeRepository(repository, paths);
    const history = this.#history;
    const modeOf = (path: BytePath) => {
      const earlier = history.at(path, this.#target);
      return earlier?.kind === 'directory' ? earlier.mode : undefined;
    };
    const { force } = this.#request;
    this.#conflicts.push(...fitDirectories({ history, ops: this.#ops, force, modeOf }));
    const found = { conflicts: this.#conflicts, kept: this.#kept.sort(), notCovered: this.#notCovered };
    return { ops: [...this.#ops.values()], ...findingsOf(found) };
  }

  #changesByPath(): Map<BytePath, Change[]> {
    const { paths } = this.#request;
    const all = new Map<BytePath, Change[]>();
    if (this.#request.turns.length === 0) return all;
    for (const { path, seq } of this.#history.changes(this.#target, this.#history.newestSeq)) {
      if (paths && !paths.some((each) => isWithin(each, path))) continue;
      const repository = repositoryOf(path);
      const among = repository === undefined ? all : this.#repositoryAt(repository);
      const changes = among.get(path);
      const change = this.#changeAt(seq);
      if (changes) changes.push(change);
      else among.set(path, [change]);
    }
    return all;
  }

  #repositoryAt(path: BytePath): Map<BytePath, Change[]> {
    const known = this.#inRepositories.get(path);
    if (known) return known;
    const paths = new Map<BytePath, Change[]>();
    this.#inRepositories.set(path, paths);
    return paths;
  }

  /**
   * The files of a repository come back, or go, all together when the turns removed or made it. One that was there before and is there now is set back
   * by git, apart from its files. One that the turns made stays when others have changed it since.
   */
  #judgeRepository(repository: BytePath, paths: ReadonlyMap<BytePath, readonly Change[]>): void {
    const history = this.#history;
    const { force } = this.#request;
    const [before, now] = [history.at(repository, this.#target), history.current(repository)];
    if (before?.kind === 'directory' && now?.kind === 'directory') return;
    const all = [...paths.values()].flat();
    const isOurs = all.some((change) => change.by === 'ours' || (change.by === 'foreign' && change.isShared));
    const isMade = !before && now?.kind === 'directory';
    // A program that only reads a repository renews its index, too.
    const index = isMade ? `${repository}/index` : undefined;
    const isTouched = [...paths].some(
      ([path, changes]) => path !== index && changes.some(({ by }) => by === 'foreign'),
    );
    if (!isOurs || (isMade && isTouched && !force)) {
      if (isTouched) this.#kept.push(repository);
      return;
    }
    for (const [path, changes] of paths) {
      // Forced, all of it follows: git cannot read a part of a repository.
      if (force)
        this.#judge(
          path,
          changes.map(({ seq }) => ({ seq, by: 'ours' })),
        );
      else this.#judge(path, path === index ? changes.filter(({ by }) => by !== 'foreign') : changes);
    }
  }

  #changeAt(seq: number): Change {
    let owners = this.#owners.get(seq);
    if (!owners) {
      owners = this.#history.ownersAt(seq);
      this.#owners.set(seq, owners);
    }
    const { running } = owners;
    const counted = running.filter((owner) => !this.#neutral.has(ownerKey(owner)));
    if (counted.length === 0 && running.length > 0) return { seq, by: 'neutral' };
    const others = counted.filter((owner) => !this.#ours.has(ownerKey(owner)));
    const [other] = others;
    if (counted.length > 0 && !other) return { seq, by: 'ours' };
    return { seq, by: 'foreign', isShared: others.length < counted.length, author: other?.thread ?? 'user' };
  }

  #judge(path: BytePath, changes: readonly Change[]): void {
    const history = this.#history;
    const first = changes.findIndex((change) => change.by === 'ours' || (change.by === 'foreign' && change.isShared));
    const from = changes[first];
    if (!from) {
      if (changes.some(({ by }) => by === 'foreign')) this.#kept.push(path);
      return;
    }
    const have = history.current(path);
    const want = history.at(path, from.seq - 1);
    if (have?.kind === 'skipped' || want?.kind === 'skipped') {
      const [{ target, size }] = [have?.kind === 'skipped' ? have : (want as StampedEntry)];
      this.#notCovered.push({ path: shownPath(path), reason: target as SkipReason, size });
      return;
    }
    if (isSame(have && plainEntry(have), want && plainEntry(want))) return;
    const foreign = changes.slice(first).find((change) => change.by === 'foreign');
    if (foreign?.by === 'foreign' && !this.#request.force) {
      this.#conflict(path, foreign.seq, foreign.author);
      return;
    }
    this.#ops.set(path, { path, have: have ?? null, want: want ? plainEntry(want) : null });
  }

  #conflict(path: BytePath, seq: number, by: string): void {
    const [before, after] = [this.#history.at(path, seq - 1), this.#history.at(path, seq)];
    const change = before === undefined ? 'created' : after === undefined ? 'deleted' : 'modified';
    this.#conflicts.push({ path: shownPath(path), change, by });
  }
}

/** Directories of the operations whose modes allow no new entries, with these modes. */
export function closedParents(history: History, ops: readonly RestoreOp[]): (readonly [BytePath, number])[] {
  const closed = new Map<BytePath, number>();
  for (const { path } of ops) {
    const parent = parentOf(path);
    if (parent === undefined || closed.has(parent)) continue;
    const present = history.current(parent);
    if (present?.kind === 'directory' && (present.mode & 0o300) !== 0o300) closed.set(parent, present.mode);
  }
  return [...closed];
}
