import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { shownPath } from './byte-path.ts';
import { GitFiles } from './git-files.ts';
import { type GitMove, type GitRestore, isAnother, type LeftPart, leftParts, stayReasons } from './git-move.ts';
import { otherHeads } from './git-place.ts';
import { readRepository } from './git-read.ts';
import { type GitState, isCoupled, isSamePlace, movedParts, partsOf } from './git-state.ts';
import { GitWriter } from './git-writer.ts';
import type { Repository } from './repositories.ts';

export interface GitRestoreOptions {
  /** Undefined: the repository is gone. */
  readonly repository: Repository | undefined;
  /** A process that was killed may have set back a part. */
  readonly isRecovery: boolean;
  readonly onStep?: ((step: string) => void) | undefined;
}

const movedSince = 'HEAD or a branch was moved since';
const betweenTurns = 'it was changed between the turns, too';

/**
 * Sets a repository back to `before`, as far as it still has the state `after` that turns have left. HEAD, its branch, the index
 * and operations in progress go together; every other ref goes alone. Commits stay in the reflog. In a worktree only its own parts
 * are moved. Runs no program that the repository names: no hook, no filter, no transport.
 */
export async function restoreGit(options: GitRestoreOptions, move: GitMove): Promise<GitRestore> {
  return new GitRestoration(options, move).run();
}

class GitRestoration {
  readonly #options: GitRestoreOptions;
  readonly #move: GitMove;
  /** Parts that the turns moved, without the index. */
  readonly #parts: readonly string[];
  readonly #moved: readonly string[];
  readonly #left: LeftPart[] = [];

  constructor(options: GitRestoreOptions, move: GitMove) {
    this.#options = options;
    this.#move = move;
    this.#parts = move.parts ?? movedParts(move.before, move.after);
    this.#moved = [...this.#parts, ...(move.isIndexMoved ? ['index'] : [])];
  }

  async run(): Promise<GitRestore> {
    const { repository, isRecovery } = this.#options;
    const { before } = this.#move;
    if (isRecovery) this.#clearLocks();
    const now = repository && readRepository(repository.place);
    if (!repository?.git || !now) return this.#stay('there is no repository, or no git');
    if (!isSamePlace(before, now)) return this.#stay(isAnother);
    if (!repository.place.way) return this.#compare(repository, now);
    const coupled = await this.#coupledTo(repository, now);
    const single = this.#singles(repository, now);
    const wanted = [...coupled.parts, ...single];
    if (wanted.length > 0 || coupled.isIndexNeeded) {
      const problem = await this.#write({ ...repository, git: repository.git }, now, wanted, coupled.isIndexNeeded);
      if (problem !== undefined) return this.#stay(problem);
    }
    this.#leaveShared();
    return this.#result();
  }

  /** Lists the parts that differ from their state before the turns, in a repository that is never written to. */
  #compare({ place, index }: Repository, now: GitState): GitRestore {
    const { before } = this.#move;
    const isIndexMoved = before.indexPrint !== index.save(place).indexPrint;
    const moved = [...movedParts(before, now), ...(isIndexMoved ? ['index'] : [])];
    this.#leave(moved, stayReasons.elsewhere);
    return { ...this.#result(), moved: moved.map(shownPath), isRestored: moved.length === 0 };
  }

  /** HEAD, its branch, the index and operations: either all of them can be set back, or none. */
  async #coupledTo({ place, index, git }: Repository, now: GitState) {
    const { before, after, isIndexMoved = false, apart = [] } = this.#move;
    const states = [before, after, now];
    const parts = this.#parts.filter((name) => isCoupled(name, states));
    const none = { parts: [], isIndexNeeded: false };
    const stay = (reason: string) => {
      this.#leave([...parts, ...(isIndexMoved ? ['index'] : [])], reason);
      return none;
    };
    if (parts.length === 0 && !isIndexMoved) return none;
    const [wanted, left, present] = states.map(partsOf);
    const isNeeded = (name: string) => wanted?.get(name) !== present?.get(name);
    const needed = parts.filter(isNeeded);
    const isIndexNeeded = isIndexMoved && !(git && (await index.isPresent(place, before.index, git)));
    if (needed.length === 0 && !isIndexNeeded) return none;
    // HEAD and an operation count, too, when the turns have not moved them.
    const counted = new Set([...parts, ...movedParts(after, now).filter((name) => isCoupled(name, states))]);
    const strange = [...counted].filter((name) => left?.get(name) !== present?.get(name) && isNeeded(name));
    const operation = strange.find((name) => name !== 'HEAD' && !name.startsWith('refs/'));
    if (operation !== undefined) return stay(`a change of the repository is under way (${operation})`);
    if (strange.length > 0) return stay(movedSince);
    if ([...parts, 'index'].some((name) => apart.includes(name))) return stay(betweenTurns);
    const heads = otherHeads(place);
    const branches = [...needed, ...(before.head.startsWith('ref: ') ? [before.head.slice(5)] : [])];
    const taken = needed.length > 0 ? branches.find((name) => heads.includes(`ref: ${name}`)) : undefined;
    if (taken !== undefined) return stay(`${shownPath(taken)} is checked out in another worktree`);
    if (isIndexNeeded && !(git && (await index.isPresent(place, after.index, git)))) {
      return stay('the index was changed since');
    }
    if (isIndexNeeded && !(await index.isReadable(before.index))) return stay('the saved index cannot be read');
    if (existsSync(join(place.directory, 'index.lock'))) {
      return stay('a change of the repository is under way (index.lock)');
    }
    return { parts: needed, isIndexNeeded };
  }

  /** Parts that still have the state in which the turns left them, each judged alone. */
  #singles({ place }: Repository, now: GitState): readonly string[] {
    const { before, after, apart = [] } = this.#move;
    const states = [before, after, now];
    const [wanted, left, present] = states.map(partsOf);
    const heads = otherHeads(place);
    return this.#parts.filter((name) => {
      if (isCoupled(name, states) || wanted?.get(name) === present?.get(name)) return false;
      if (heads.includes(`ref: ${name}`)) this.#leave([name], `${shownPath(name)} is checked out in another worktree`);
      else if (left?.get(name) !== present?.get(name)) this.#leave([name], `${shownPath(name)} was moved since`);
      else if (apart.includes(name)) this.#leave([name], betweenTurns);
      else return true;
      return false;
    });
  }

  /** @returns the reason why everything stays */
  async #write(
    { place, index, git }: Repository & Required<Pick<Repository, 'git'>>,
    now: GitState,
    wanted: readonly string[],
    isIndexNeeded: boolean,
  ): Promise<string | undefined> {
    const { before } = this.#move;
    const { onStep } = this.#options;
    if (!place.way || !git) return 'nothing shows that the repository belongs to this workspace';
    const files = new GitFiles(place.way);
    try {
      const problem = await new GitWriter({ files, git, onStep }).set(wanted, before, now);
      if (problem !== undefined) return problem;
    } finally {
      files.close();
    }
    const after = readRepository(place);
    const [target, present] = [partsOf(before), after && partsOf(after)];
    const refused = wanted.filter((name) => target.get(name) !== present?.get(name));
    this.#leave(refused, 'git refused to move it');
    onStep?.('git index');
    if (isIndexNeeded && !index.replace(place, before.index ?? null, onStep)) {
      this.#leave(['index'], 'the index could not be replaced');
    }
    return undefined;
  }

  #clearLocks(): void {
    const { repository } = this.#options;
    if (!repository?.place.way) return;
    const files = new GitFiles(repository.place.way);
    try {
      for (const name of ['index', 'HEAD']) files.clearLock(name);
      for (const name of ['config', 'logs/refs/stash']) files.clearLock(name, 'common');
    } finally {
      files.close();
    }
  }

  /** Leaves refs of a worktree's repository that a turn moved: others may need them. */
  #leaveShared(): void {
    const { before, shared = [] } = this.#move;
    for (const name of shared)
      this.#left.push(...leftParts([name], before, `${shownPath(name)} stays: other worktrees share it`));
  }

  #leave(names: readonly string[], reason: string): void {
    this.#left.push(...leftParts(names, this.#move.before, reason));
  }

  #stay(reason: string): GitRestore {
    this.#left.splice(0);
    this.#leave(this.#moved, reason);
    return this.#result();
  }

  #result(): GitRestore {
    const left = this.#left.map((part) => ({ ...part, name: shownPath(part.name) }));
    const reason = [...new Set(left.map((part) => part.reason))].join('; ');
    const stays = new Set(this.#left.map(({ name }) => name));
    return {
      moved: this.#moved.map(shownPath),
      isRestored: !this.#moved.some((name) => stays.has(name)),
      ...(left.length > 0 && { reason, left }),
    };
  }
}
