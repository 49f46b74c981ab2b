import { mkdirSync } from 'node:fs';
import { relative } from 'node:path';
import { apply, clearStaging, stage } from './apply.ts';
import { planArrival } from './arrival.ts';
import { type BytePath, bytePath, repositoryOf, shownPath } from './byte-path.ts';
import { ContentReader } from './content-reader.ts';
import { Contents } from './contents.ts';
import { Copies } from './copies.ts';
import { copyTree } from './copy-tree.ts';
import { CheckpointDatabase } from './database.ts';
import { type KnownWork, markDeath } from './death.ts';
import { type Departure, depart, headOf } from './departure.ts';
import { type DiffRequest, diffOf, type TurnDiff } from './diff.ts';
import type { RestoreOp } from './directories.ts';
import { databaseIn, type EngineOptions, packsIn } from './engine-options.ts';
import { firstOf, repositoryNotCovered } from './entry.ts';
import type { GitMove, GitRestore } from './git-move.ts';
import { restoreGit } from './git-restore.ts';
import { History, type SavedTurn } from './history.ts';
import { type CheckpointInfo, checkpointsOf, turnsFrom } from './list.ts';
import { changesOf, changesSince, type ForkSpan, planMerge } from './merge.ts';
import { movesOf } from './moves.ts';
import { type Owner, ownerOf } from './owner.ts';
import { closedParents, findingsOf, planRestore, type RestorePlan } from './plan.ts';
import { prune } from './prune.ts';
import { Repositories } from './repositories.ts';
import type {
  ArrivalRequest,
  MarkRequest,
  MergeRequest,
  NestedRestore,
  PreparedRestore,
  RestoreOutcome,
  RestoreRequest,
} from './requests.ts';
import { type InterruptedRestore, nameOfRestore, Restores, type StoredRestore } from './restores.ts';
import { Snapshots } from './snapshots.ts';
import { spansOf } from './spans.ts';
import { Tree } from './tree.ts';

interface WrittenRestore extends Pick<StoredRestore, 'turns' | 'conversation' | 'git' | 'repositories'> {
  readonly thread: string;
  readonly beforeSeq: number;
}

/** The checkpoints of one tree: does one thing at a time, as its machine decides. It blocks its thread. */
export class Engine {
  readonly #options: EngineOptions;
  readonly #tree: Tree;
  readonly #database: CheckpointDatabase;
  readonly #contents: Contents;
  readonly #history: History;
  readonly #restores: Restores;
  readonly #copies: Copies;
  readonly #repositories: Repositories;
  readonly #snapshots: Snapshots;

  /** Opens the store. @throws CheckpointError, the error of SQLite or of the system */
  constructor(options: EngineOptions) {
    const { root, directory, limits, git, onStep, ownDirectories = [] } = options;
    this.#options = options;
    const packs = packsIn(directory);
    mkdirSync(packs, { recursive: true, mode: 0o700 });
    const tree = new Tree(root);
    const database = new CheckpointDatabase(databaseIn(directory));
    const contents = new Contents(packs, database);
    const history = new History(database);
    const own = [directory, ...ownDirectories].map((path) => relative(root, path));
    const omitted = new Set(own.filter((path) => path !== '' && !path.startsWith('..')).map(bytePath));
    this.#tree = tree;
    this.#database = database;
    this.#contents = contents;
    this.#history = history;
    this.#restores = new Restores(database);
    this.#copies = new Copies(database, git);
    const repositories = new Repositories({ root, contents, directory, git });
    this.#repositories = repositories;
    const saved = { tree, database, contents, history, repositories };
    this.#snapshots = new Snapshots({ ...saved, directory, limits, omitted, git, onStep });
    try {
      contents.open();
    } catch (error) {
      database.close();
      throw error;
    }
  }

  /** Takes marks that share one scan. @throws CheckpointError, the system's error; nothing is committed then */
  async mark(requests: readonly MarkRequest[]): Promise<void> {
    const history = this.#history;
    await this.#snapshots.take((take) => {
      for (const { edge, thread, turn } of requests) {
        const seq = take(edge, this.#running);
        if (edge === 'end') history.endTurn({ thread, turn }, seq, false);
        else if (edge === 'resume') history.resumeTurn({ thread, turn }, seq);
        else history.startTurn({ thread, turn }, seq);
      }
    });
  }

  /**
   * Ends the turns that a dead process left open, at their last known work.
   *
   * @param known facts about these turns from their stored calls, by `ownerKey`
   * @returns their number
   */
  async markDeath(known: Readonly<Record<string, KnownWork>>): Promise<number> {
    const { directory } = this.#options;
    const place = { history: this.#history, snapshots: this.#snapshots, tree: this.#tree, directory };
    return markDeath(place, known);
  }

  /**
   * Saves the current files, plans a restore and stages it. Without conflicts it is written down: from then on it is completed
   * even after a crash.
   */
  async prepare({ thread, turns, paths, force, conversation }: RestoreRequest): Promise<PreparedRestore> {
    const history = this.#history;
    const beforeSeq = await this.#takeBefore();
    const saved = history.turns(thread).filter(({ turn }) => turns.includes(turn));
    const plan = planRestore(history, { turns: saved, paths: paths?.map(bytePath), force });
    const { ops: _, ...found } = plan;
    if (plan.conflicts.length > 0 && !force) return { ...found, number: undefined };
    const moves = paths ? {} : await movesOf({ history, repositories: this.#repositories }, saved, plan.ops);
    // A restore of single files does not change the turns: their other files can still be restored.
    return this.#writeDown(plan, { thread, turns: paths ? [] : turns, conversation, beforeSeq, ...moves });
  }

  /** Saves the current tree, for the merge of its changes. */
  async forkChanges(thread: string): Promise<ForkSpan> {
    await this.#look();
    const { newestSeq: through } = this.#history;
    const [first] = this.#history.turns(thread);
    const { root, directory } = this.#options;
    return { root, directory, since: first?.startSeq ?? through, through };
  }

  /** Saves the current files, and plans, stages and writes down the changes of a fork. Without `force` conflicts refuse it. */
  async prepareMerge({ thread, fork, force }: MergeRequest): Promise<PreparedRestore> {
    const beforeSeq = await this.#takeBefore();
    const contents = this.#contents;
    const options = { history: this.#history, contents, environment: this.#options.mergeEnvironment, force };
    const database = new CheckpointDatabase(databaseIn(fork.directory));
    try {
      const theirs = new ContentReader(packsIn(fork.directory), database);
      const base = this.#copies.baseOf(fork.root);
      const hasBase = base !== undefined && this.#history.hasMark(base);
      const { changes, notCovered: left } = database.transaction(() => {
        const forked = new History(database);
        return hasBase ? changesSince(this.#history.entriesAt(base), forked.currentEntries()) : changesOf(forked, fork);
      });
      const bases = hasBase ? contents : theirs;
      const { ops, conflicts, notCovered } = await planMerge({ ...options, changes, theirs, bases });
      const found = findingsOf({ conflicts, kept: [], notCovered: [...left, ...notCovered] });
      if (conflicts.length > 0 && !force) {
        contents.discard();
        return { ...found, number: undefined };
      }
      return this.#writeDownWith({ ops, ...found }, thread, beforeSeq);
    } catch (error) {
      contents.discard();
      throw error;
    } finally {
      database.close();
    }
  }

  /** Commit of the tree; null without one. */
  head(): Promise<string | null> {
    return headOf(this.#options.git);
  }

  /** Saves the current files, and writes the changed ones of a conversation to the file of a transfer. @throws CheckpointError */
  async depart(thread: string, file: string): Promise<Departure> {
    await this.#look();
    return depart({ history: this.#history, contents: this.#contents, git: this.#options.git, thread, file });
  }

  /** Saves the current files; plans, stages and records the files of a transfer. Refuses conflicts. @throws CheckpointError */
  async prepareArrival({ thread, transfer: file, departed }: ArrivalRequest): Promise<PreparedRestore> {
    const beforeSeq = await this.#takeBefore();
    const contents = this.#contents;
    try {
      const git = this.#options.git;
      const { ops, conflicts } = await planArrival({ history: this.#history, contents, git, file, departed });
      const found = findingsOf({ conflicts, kept: [], notCovered: [] });
      if (conflicts.length === 0) return this.#writeDownWith({ ops, ...found }, thread, beforeSeq);
      contents.discard();
      return { ...found, number: undefined };
    } catch (error) {
      contents.discard();
      throw error;
    }
  }

  /** Restores that a crash has interrupted. */
  interrupted(): readonly InterruptedRestore[] {
    return this.#restores.interrupted();
  }

  /** Applies a restore that is written down, even one that was applied in part. @returns paths that it left */
  apply(number: number, isRecovery = false): readonly BytePath[] {
    const { ops, closed } = this.#restores.get(number).stored;
    const options = { ...this.#applying(ops), closed: new Map(closed) };
    if (isRecovery) stage(options);
    return apply(options).left;
  }

  /** Ends a restore whose files, and whose conversation, are in their wanted state. */
  async conclude(number: number, left: readonly BytePath[], isRecovery = false): Promise<RestoreOutcome> {
    const { thread, beforeSeq, stored } = this.#restores.get(number);
    const { onStep } = this.#options;
    const history = this.#history;
    const restoreId = nameOfRestore(number);
    const owner = { thread, turn: restoreId };
    onStep?.('conclude');
    const git = stored.git && (await this.#setBack('', stored.git, isRecovery));
    const repositories: NestedRestore[] = [];
    for (const { path, move } of stored.repositories ?? []) {
      const result = await this.#setBack(path, move, isRecovery);
      if (result.moved.length > 0 || result.left) repositories.push({ path: shownPath(path), ...result });
    }
    await this.#snapshots.take((take) => {
      const seq = take('restored', [owner]);
      history.startTurn(owner, beforeSeq);
      history.endTurn(owner, seq, false);
      const turns = stored.turns.map((turn) => ({ thread, turn }));
      for (const { turn } of turns) history.markUndone(history.undoneBy(turn), null);
      if (stored.ops.length > 0 || stored.conversation.length > 0) history.markUndone(turns, restoreId);
      this.#restores.finish(number, isRecovery);
    });
    clearStaging(this.#tree);
    const { kept, conflicts } = stored;
    // A restore of an earlier version has the full lists, and no numbers.
    const { keptTotal = kept.length, conflictsTotal = conflicts.length } = stored;
    const leftOver = new Set(left);
    const done = stored.ops.map(({ path }) => path).filter((path) => !leftOver.has(path));
    const restored = [...new Set(done.map((path) => repositoryOf(path) ?? path))];
    const staying = repositories.filter(({ isRestored }) => !isRestored).map(({ path }) => repositoryNotCovered(path));
    return {
      ...{ restoreId, restored: firstOf(restored).map(shownPath), restoredTotal: restored.length },
      ...{ changedMeanwhile: firstOf(left).map(shownPath), changedMeanwhileTotal: left.length },
      ...{ kept: firstOf(kept), keptTotal, conflicts: firstOf(conflicts), conflictsTotal },
      notCovered: firstOf([...staying, ...stored.notCovered]),
      notCoveredTotal: stored.notCoveredTotal + staying.length,
      ...(git && { git }),
      ...(repositories.length > 0 && { repositories: firstOf(repositories) }),
    };
  }

  /** Changes of turns. Saves the files first while a turn runs, so that its changes so far can be seen. */
  async diff(request: DiffRequest): Promise<TurnDiff> {
    const { thread, turn } = request;
    const isOpen = this.#running.some((each) => each.thread === thread && (turn === undefined || each.turn === turn));
    if (isOpen) await this.#look();
    return diffOf({ history: this.#history, contents: this.#contents, repositories: this.#repositories }, request);
  }

  /** Notes that a copy of the files will be made in a directory that does not exist yet. */
  announceCopy(target: string): void {
    this.#copies.announce(target);
    this.#options.onStep?.('announced');
  }

  /**
   * Copies the current files, or those at the end of a turn, into an empty directory, which is removed when that fails.
   * @returns entries
   */
  async copyTo(target: string, end: Owner | undefined): Promise<number> {
    const { onStep } = this.#options;
    const history = this.#history;
    const copied = await this.#copies.fill(target, async () => {
      await this.#look();
      const saved = end && history.turns(end.thread).find(({ turn }) => turn === end.turn);
      const seq = saved?.endSeq ?? history.newestSeq;
      this.#copies.noteBase(target, seq);
      return copyTree({ history, contents: this.#contents, from: this.#tree, seq, target, onStep });
    });
    onStep?.('copied');
    return copied;
  }

  /** Keeps a copy in which a conversation works. */
  keepCopy(target: string): void {
    this.#copies.keep(target);
  }

  /** Copies that were neither kept nor removed. */
  openCopies(): readonly string[] {
    return this.#copies.open;
  }

  /** Removes a copy that was not kept. */
  async removeCopy(target: string): Promise<void> {
    await this.#copies.remove(target);
  }

  /** Removes staged files of a restore that was never written down. */
  clearStaging(): void {
    clearStaging(this.#tree);
  }

  turns(thread?: string): readonly SavedTurn[] {
    return this.#history.turns(thread);
  }

  list(thread: string): readonly CheckpointInfo[] {
    const store = { history: this.#history, restores: this.#restores, repositories: this.#repositories };
    return checkpointsOf(store, thread);
  }

  turnsFrom(thread: string, turn: string): readonly string[] | undefined {
    return turnsFrom(this.#history, thread, turn);
  }

  /** Ends a turn that has changed nothing since its start, or since it was resumed: without an earlier span it is forgotten. */
  dropTurn(turn: Owner): void {
    const history = this.#history;
    const saved = history.turns(turn.thread).find((each) => each.turn === turn.turn);
    const before = saved && spansOf(history, saved).at(-2);
    if (before?.endSeq) history.endTurn(turn, before.endSeq, false);
    else history.dropTurn(turn);
  }

  forget(thread: string): void {
    this.#history.forget(thread);
  }

  /** Deletes turns that are too old, and the oldest turns while the store is too large. */
  prune(): void {
    const store = { history: this.#history, contents: this.#contents, restores: this.#restores, copies: this.#copies };
    prune(store, this.#options.limits);
  }

  close(): void {
    this.#tree.close();
    this.#contents.close();
    this.#database.close();
  }

  async #setBack(path: BytePath, move: GitMove | GitRestore, isRecovery: boolean): Promise<GitRestore> {
    if (!('before' in move)) return move;
    const { onStep } = this.#options;
    return restoreGit({ repository: this.#repositories.of(path), isRecovery, onStep }, move);
  }

  get #running(): readonly Owner[] {
    return this.#history.openTurns.map(ownerOf);
  }

  async #look(): Promise<void> {
    await this.#snapshots.take((take) => void take('look', this.#running));
  }

  async #takeBefore(): Promise<number> {
    let seq = 0;
    await this.#snapshots.take((take) => {
      seq = take('beforeRestore', []);
    });
    return seq;
  }

  /** Commits the new contents of a plan, then writes it down. */
  #writeDownWith(plan: RestorePlan, thread: string, beforeSeq: number): PreparedRestore {
    const contents = this.#contents;
    contents.flush();
    this.#database.transaction(() => contents.commit());
    contents.settle();
    return this.#writeDown(plan, { thread, turns: [], conversation: [], beforeSeq });
  }

  #writeDown(plan: RestorePlan, { thread, beforeSeq, ...written }: WrittenRestore): PreparedRestore {
    const closed = closedParents(this.#history, plan.ops);
    stage({ ...this.#applying(plan.ops), closed: new Map(closed) });
    this.#options.onStep?.('write down');
    const number = this.#restores.add({ thread, beforeSeq, stored: { ...plan, closed, ...written } });
    const { ops: _, ...found } = plan;
    return { ...found, number };
  }

  #applying(ops: readonly RestoreOp[]) {
    const { onStep } = this.#options;
    return { tree: this.#tree, contents: this.#contents, ops, onStep };
  }
}
