import { mkdirSync, statfsSync } from 'node:fs';
import { join, relative } from 'node:path';
import { apply, clearStaging, stage } from './apply.ts';
import { type BytePath, bytePath, nameOf, parentOf, shownPath } from './byte-path.ts';
import { Contents } from './contents.ts';
import { copyTree } from './copy-tree.ts';
import { CheckpointDatabase } from './database.ts';
import type { NotCovered, StampedEntry } from './entry.ts';
import { CheckpointError } from './errors.ts';
import { type GitRestore, type GitState, movedRefs, readGitState, restoreGit } from './git-state.ts';
import { History, type MarkEdge, type Owner, type SavedTurn } from './history.ts';
import { ignoredPaths, type RunGit } from './ignored.ts';
import type { CheckpointLimits } from './limits.ts';
import { changesOf, type ForkChanges, planMerge } from './merge.ts';
import { Pacer } from './pacer.ts';
import { type Conflict, planRestore, type RestoreOp, type RestorePlan, restorePrefix } from './plan.ts';
import { type Candidate, type Scan, scan, TooManyEntries } from './scan.ts';
import { indexOf, type StatIndex } from './stat-index.ts';
import { skipped, storeCandidate } from './store-file.ts';
import { Tree } from './tree.ts';

export interface EngineOptions {
  /** Canonical path of the tree. */
  readonly root: string;
  /** Directory of the store; it is made. */
  readonly directory: string;
  readonly limits: CheckpointLimits;
  /** Absolute paths that are no part of the tree: the user's home of Oratorio may lie in it. */
  readonly ownDirectories?: readonly string[];
  /** Runs git for the names that it ignores; undefined: nothing is ignored. */
  readonly git: RunGit | undefined;
  /** Environment of git for merges of texts; undefined: texts are not merged. */
  readonly mergeEnvironment?: Readonly<Record<string, string>> | undefined;
  /** Called before each step that changes the disk; for tests. */
  readonly onStep?: ((step: string) => void) | undefined;
}

/** A mark that is to be taken. */
export interface MarkRequest extends Owner {
  readonly edge: 'start' | 'end';
}

export interface RestoreRequest {
  readonly thread: string;
  /** Turns, or a restore, that are taken back. */
  readonly turns: readonly string[];
  readonly paths: readonly string[] | undefined;
  readonly force: boolean;
  /** Turns of the conversation that go with the files. */
  readonly conversation: readonly string[];
}

/** Changes of a fork that come into this tree. */
export interface MergeRequest {
  /** Thread that they belong to from then on. */
  readonly thread: string;
  readonly fork: ForkChanges;
}

/** A restore that is planned and, if there are no conflicts, staged and written down. */
export interface PreparedRestore extends RestorePlan {
  /** Undefined: refused because of its conflicts. */
  readonly number: number | undefined;
}

export interface RestoreOutcome {
  /** Name by which the restore can be taken back. */
  readonly restoreId: string;
  readonly restored: readonly string[];
  readonly kept: readonly string[];
  readonly conflicts: readonly Conflict[];
  /** Changed while the restore ran: left as they are. */
  readonly changedMeanwhile: readonly string[];
  readonly notCovered: readonly NotCovered[];
  /** Absent: the turns moved neither HEAD nor a branch. */
  readonly git?: GitRestore;
}

/** A restore as it is written down before it is applied. */
interface StoredRestore {
  readonly ops: readonly RestoreOp[];
  readonly closed: readonly (readonly [BytePath, number])[];
  readonly turns: readonly string[];
  readonly conversation: readonly string[];
  readonly kept: readonly string[];
  readonly conflicts: readonly Conflict[];
  readonly notCovered: readonly NotCovered[];
  readonly git?: { readonly before: GitState; readonly after: GitState } | undefined;
}

interface WrittenRestore extends Pick<RestoreRequest, 'thread' | 'turns' | 'conversation'> {
  readonly beforeSeq: number;
  readonly git?: StoredRestore['git'];
}

/** A restore that a crash has interrupted. */
export interface InterruptedRestore {
  readonly number: number;
  readonly thread: string;
  readonly conversation: readonly string[];
}

/** The checkpoints of one tree: does one thing at a time, as its machine says. */
export class Engine {
  readonly #options: EngineOptions;
  readonly #tree: Tree;
  readonly #database: CheckpointDatabase;
  readonly #contents: Contents;
  readonly history: History;
  readonly #omitted: ReadonlySet<BytePath>;
  #index: StatIndex | undefined;
  #leftOut: ReadonlySet<BytePath> = new Set();

  private constructor(options: EngineOptions) {
    const { root, directory } = options;
    this.#options = options;
    mkdirSync(join(directory, 'packs'), { recursive: true, mode: 0o700 });
    this.#tree = new Tree(root);
    const own = [directory, ...(options.ownDirectories ?? [])].map((path) => relative(root, path));
    this.#omitted = new Set(own.filter((path) => path !== '' && !path.startsWith('..')).map(bytePath));
    this.#database = new CheckpointDatabase(join(directory, 'checkpoints.db'));
    this.#contents = new Contents(join(directory, 'packs'), this.#database);
    this.history = new History(this.#database);
  }

  static async open(options: EngineOptions): Promise<Engine> {
    const engine = new Engine(options);
    try {
      await engine.#contents.open();
    } catch (error) {
      engine.#database.close();
      throw error;
    }
    return engine;
  }

  get #pacer(): Pacer {
    return new Pacer();
  }

  get contents(): Contents {
    return this.#contents;
  }

  /** Takes marks that share one scan. @throws CheckpointError, the system's error; nothing is committed then */
  async mark(requests: readonly MarkRequest[]): Promise<void> {
    await this.#checkpoint((found) => {
      const { history } = this;
      for (const { edge, thread, turn } of requests) {
        const open = history.openTurns;
        const seq = found.take(edge, open.map(ownerOf));
        if (edge === 'start') history.startTurn({ thread, turn }, seq);
        else history.endTurn({ thread, turn }, seq, false);
      }
    });
  }

  /** Ends the turns that a dead process left open, at what the files are now. */
  async endCrashed(): Promise<number> {
    const open = this.history.openTurns;
    if (open.length === 0) return 0;
    await this.#checkpoint((found) => {
      const seq = found.take('crash', open.map(ownerOf));
      for (const turn of open) this.history.endTurn(turn, seq, true);
    });
    return open.length;
  }

  /** Saves the files as they are, plans a restore and stages it. Without conflicts it is written down: from then on it is completed even after a crash. */
  async prepare({ thread, turns, paths, force, conversation }: RestoreRequest): Promise<PreparedRestore> {
    const { history } = this;
    let beforeSeq = 0;
    await this.#checkpoint((found) => {
      beforeSeq = found.take('beforeRestore', []);
    });
    const saved = history.turns(thread).filter(({ turn }) => turns.includes(turn));
    const plan = planRestore(history, { turns: saved, paths: paths?.map(bytePath), force });
    if (plan.conflicts.length > 0 && !force) return { ...plan, number: undefined };
    const git = paths ? undefined : this.#gitOf(saved);
    return this.#writeDown(plan, { thread, turns, conversation, beforeSeq, git });
  }

  /** Changes of this tree since the first checkpoint of a thread in it. */
  async forkChanges(thread: string): Promise<ForkChanges> {
    await this.#checkpoint((found) => void found.take('look', this.history.openTurns.map(ownerOf)));
    const [first] = this.history.turns(thread);
    const since = first?.startSeq ?? this.history.newestSeq;
    return changesOf(this.history, this.#contents, since);
  }

  /** Saves the files as they are, and plans, stages and writes down what a fork has changed. Conflicts refuse it. */
  async prepareMerge({ thread, fork }: MergeRequest): Promise<PreparedRestore> {
    let beforeSeq = 0;
    await this.#checkpoint((found) => {
      beforeSeq = found.take('beforeRestore', []);
    });
    const { history } = this;
    const environment = this.#options.mergeEnvironment;
    const { ops, conflicts } = await planMerge({ history, contents: this.#contents, fork, environment });
    const plan: RestorePlan = { ops, conflicts, kept: [], notCovered: fork.notCovered };
    if (conflicts.length > 0) {
      await this.#contents.discard();
      return { ...plan, number: undefined };
    }
    await this.#contents.flush();
    this.#database.transaction(() => this.#contents.commit());
    this.#contents.settle();
    return this.#writeDown(plan, { thread, turns: [], conversation: [], beforeSeq });
  }

  async #writeDown(
    plan: RestorePlan,
    { thread, turns, conversation, beforeSeq, git }: WrittenRestore,
  ): Promise<PreparedRestore> {
    const closed = this.#closedParents(plan.ops);
    await stage({ ...this.#applying(plan.ops), closed: new Map(closed) });
    const stored: StoredRestore = { ...plan, closed, turns, conversation, git };
    const { lastKey } = this.#database.run(
      "INSERT INTO restores (at, thread, state, beforeSeq, plan) VALUES (?, ?, 'applying', ?, ?)",
      ...[Date.now(), thread, beforeSeq, JSON.stringify(stored)],
    );
    return { ...plan, number: lastKey };
  }

  /** Restores that a crash has interrupted. */
  interrupted(): readonly InterruptedRestore[] {
    return this.#database
      .all("SELECT number, thread, plan FROM restores WHERE state = 'applying' ORDER BY number")
      .map((row) => ({
        number: Number(row['number']),
        thread: String(row['thread']),
        conversation: (JSON.parse(String(row['plan'])) as StoredRestore).conversation,
      }));
  }

  /** Applies a restore that is written down; also one that was applied in part. @returns paths that were left */
  async apply(number: number, isRecovery = false): Promise<readonly BytePath[]> {
    const { ops, closed } = this.#stored(number);
    const options = { ...this.#applying(ops), closed: new Map(closed) };
    if (isRecovery) await stage(options);
    const { left } = await apply(options);
    return left;
  }

  /** Ends a restore whose files, and whose conversation, are as they are to be. */
  async conclude(number: number, left: readonly BytePath[], isRecovery = false): Promise<RestoreOutcome> {
    const { thread, beforeSeq, stored } = this.#row(number);
    const restoreId = nameOfRestore(number);
    const owner = { thread, turn: restoreId };
    this.#options.onStep?.('conclude');
    const git = stored.git && (await restoreGit(this.#options.root, this.#options.git, stored.git));
    await this.#checkpoint((found) => {
      const seq = found.take('restored', [owner]);
      this.history.startTurn(owner, beforeSeq);
      this.history.endTurn(owner, seq, false);
      const turns = stored.turns.map((turn) => ({ thread, turn }));
      for (const { turn } of turns) this.history.markUndone(this.history.undoneBy(turn), null);
      if (stored.ops.length > 0 || stored.conversation.length > 0) this.history.markUndone(turns, restoreId);
      this.#database.run(
        "UPDATE restores SET state = 'done', recovered = ?, plan = '{}' WHERE number = ?",
        ...[Number(isRecovery), number],
      );
    });
    clearStaging(this.#tree);
    const leftOver = new Set(left);
    return {
      restoreId,
      restored: stored.ops
        .map(({ path }) => path)
        .filter((path) => !leftOver.has(path))
        .map(shownPath),
      kept: stored.kept,
      conflicts: stored.conflicts,
      changedMeanwhile: left.map(shownPath),
      notCovered: stored.notCovered,
      ...(git && { git }),
    };
  }

  /** Saves the files in the middle of a turn, so that its changes so far can be seen. */
  async lookIfOpen(thread: string, turn: string | undefined): Promise<void> {
    const open = this.history.openTurns;
    const isOpen = open.some((each) => each.thread === thread && (turn === undefined || each.turn === turn));
    if (isOpen) await this.#checkpoint((found) => void found.take('look', open.map(ownerOf)));
  }

  /** Copies the files as they were at the end of a turn, or as they are now, into an empty directory. @returns entries */
  async copyTo(target: string, end: Owner | undefined): Promise<number> {
    await this.#checkpoint((found) => void found.take('look', this.history.openTurns.map(ownerOf)));
    const saved = end && this.history.turns(end.thread).find(({ turn }) => turn === end.turn);
    const seq = saved?.endSeq ?? this.history.newestSeq;
    const { history } = this;
    return copyTree({ history, contents: this.#contents, from: this.#tree, seq, target, pacer: this.#pacer });
  }

  /** Removes what a restore staged that was never written down. */
  clearStaging(): void {
    clearStaging(this.#tree);
  }

  wasRecovered(turn: string): boolean {
    if (!turn.startsWith(restorePrefix)) return false;
    const number = Number(turn.slice(restorePrefix.length));
    return Number(this.#database.get('SELECT recovered FROM restores WHERE number = ?', number)?.['recovered']) === 1;
  }

  forget(thread: string): void {
    this.history.forget(thread);
  }

  /** Deletes what is too old, and the oldest turns while the store is too large. */
  async prune(): Promise<void> {
    const { ageMs, storeBytes } = this.#options.limits;
    const { history } = this;
    const pacer = this.#pacer;
    const pause = async () => {
      if (pacer.isDue) await pacer.pause();
    };
    const isOld = history.dropOldest(Date.now() - ageMs);
    if (isOld && history.trim()) await this.#contents.clean(pause);
    while (this.#contents.storedBytes > storeBytes) {
      if (!history.dropOldest('one')) return;
      if (history.trim()) await this.#contents.clean(pause);
    }
  }

  async close(): Promise<void> {
    this.#tree.close();
    await this.#contents.close();
    this.#database.close();
  }

  /** Scans, stores what changed and commits it with the marks of `commit`. */
  async #checkpoint(commit: (found: Found) => void): Promise<void> {
    const { onStep } = this.#options;
    const pacer = this.#pacer;
    this.#requireSpace();
    onStep?.('scan');
    const known = this.#index ?? (await indexOf(this.history.currentEntries(), pacer));
    const found = await this.#scan(known, pacer);
    try {
      const stored = await this.#store(found, pacer);
      onStep?.('flush');
      await this.#contents.flush();
      onStep?.('commit');
      await this.#database.pacedTransaction(async () => {
        this.#contents.commit();
        const totals = { files: found.entries, bytes: found.bytes, git: readGitState(this.#options.root) };
        let first: number | undefined;
        const take = (edge: MarkEdge, running: readonly Owner[]) => {
          const seq = this.history.addMark(edge, running, totals);
          first ??= seq;
          return seq;
        };
        commit({ take });
        if (first === undefined) return;
        for (const path of found.gone) this.history.put(path, undefined, first);
        for (const [path, entry] of stored) {
          this.history.put(path, entry, first);
          if (pacer.isDue) await pacer.pause();
        }
      });
      this.#contents.settle();
    } catch (error) {
      this.#index = undefined;
      await this.#contents.discard();
      throw error;
    } finally {
      this.#tree.close();
    }
    this.#index = found.index;
    onStep?.('committed');
  }

  async #scan(known: StatIndex, pacer: Pacer): Promise<Scan> {
    const { limits } = this.#options;
    const options = { tree: this.#tree, known, pacer, maxEntries: limits.entries, omitted: this.#omitted };
    try {
      return await scan({ ...options, leftOut: this.#leftOut });
    } catch (error) {
      if (!(error instanceof TooManyEntries)) throw error;
      this.#leftOut = await this.#ignoredDirectories(error);
      return scan({ ...options, leftOut: this.#leftOut });
    }
  }

  /** Whole directories that git ignores are left out of a tree that is too large. */
  async #ignoredDirectories(error: TooManyEntries): Promise<ReadonlySet<BytePath>> {
    const ignored = await this.#options.git?.(
      ['ls-files', '-z', '--others', '--ignored', '--exclude-standard', '--directory'],
      '',
    );
    const directories = (ignored ?? '').split('\0').filter((each) => each.endsWith('/'));
    if (directories.length === 0) throw error;
    return new Set([...this.#leftOut, ...directories.map((each) => each.slice(0, -1))]);
  }

  async #store({ candidates, index }: Scan, pacer: Pacer): Promise<Map<BytePath, StampedEntry | undefined>> {
    const { limits } = this.#options;
    const ignored = await this.#ignoredLarge(candidates);
    const stored = new Map<BytePath, StampedEntry | undefined>();
    const options = { tree: this.#tree, contents: this.#contents, maxBytes: limits.fileBytes, pacer };
    for (const candidate of candidates) {
      const entry = ignored.has(candidate.path)
        ? skipped(candidate, 'ignoredTooLarge')
        : await storeCandidate(candidate, options);
      stored.set(candidate.path, entry);
      this.#correct(index, candidate.path, entry);
      if (pacer.isDue) await pacer.pause();
    }
    return stored;
  }

  /** Files above the limit of ignored ones that git ignores. Git is asked only when there are such files. */
  async #ignoredLarge(candidates: readonly Candidate[]): Promise<ReadonlySet<BytePath>> {
    const { ignoredFileBytes, fileBytes } = this.#options.limits;
    const large = candidates.filter(
      ({ kind, size }) => kind === 'file' && size > ignoredFileBytes && size <= fileBytes,
    );
    const { git } = this.#options;
    if (large.length === 0 || !git) return new Set();
    return ignoredPaths(
      git,
      large.map(({ path }) => path),
    );
  }

  /** Puts the facts of a file as it was read into the index. */
  #correct(index: StatIndex, path: BytePath, entry: StampedEntry | undefined): void {
    const directory = index.get(parentOf(path) ?? '');
    const at = path === '' ? -1 : (directory?.indexOf(nameOf(path)) ?? -1);
    if (!directory || at === -1) return;
    const { kind, mode, size, mtime, ctime, ino } = entry ?? gone;
    directory.set(at, { kind, mode, size, mtime, ino, ctime: ctime ?? Number.NaN });
  }

  /** Where turns began and ended; undefined: nothing was moved, or not by them alone. */
  #gitOf(turns: readonly SavedTurn[]): StoredRestore['git'] {
    const { history } = this;
    const states = turns.map(({ startSeq, endSeq }) => [
      history.gitAt(startSeq),
      endSeq === null ? undefined : history.gitAt(endSeq),
    ]);
    let before: GitState | undefined;
    let after: GitState | undefined;
    for (const [start, end] of states) {
      if (!start || !end) return undefined;
      if (after && movedRefs(after, start).length > 0) return undefined;
      before ??= start;
      after = end;
    }
    return before && after && movedRefs(before, after).length > 0 ? { before, after } : undefined;
  }

  #requireSpace(): void {
    const { bavail, bsize } = statfsSync(this.#options.directory);
    if (bavail * bsize < this.#options.limits.freeBytes) {
      throw new CheckpointError('the disk of the checkpoints has too little space left');
    }
  }

  #applying(ops: readonly RestoreOp[]) {
    const { onStep } = this.#options;
    return { tree: this.#tree, contents: this.#contents, ops, pacer: this.#pacer, onStep };
  }

  /** Directories of the operations that take no entries as they are. */
  #closedParents(ops: readonly RestoreOp[]): (readonly [BytePath, number])[] {
    const closed = new Map<BytePath, number>();
    for (const { path } of ops) {
      const parent = parentOf(path);
      if (parent === undefined || closed.has(parent)) continue;
      const present = this.history.current(parent);
      if (present?.kind === 'directory' && (present.mode & 0o300) !== 0o300) closed.set(parent, present.mode);
    }
    return [...closed];
  }

  #row(number: number): { readonly thread: string; readonly beforeSeq: number; readonly stored: StoredRestore } {
    const row = this.#database.get('SELECT * FROM restores WHERE number = ?', number);
    if (row?.['state'] !== 'applying') throw new CheckpointError('there is no such restore');
    return {
      thread: String(row['thread']),
      beforeSeq: Number(row['beforeSeq']),
      stored: JSON.parse(String(row['plan'])) as StoredRestore,
    };
  }

  #stored(number: number): StoredRestore {
    return this.#row(number).stored;
  }
}

interface Found {
  /** Inserts a mark. @returns its number */
  readonly take: (edge: MarkEdge, running: readonly Owner[]) => number;
}

const gone = { kind: 'skipped', mode: 0, size: 0, mtime: 0, ctime: null, ino: 0 } as const;

const ownerOf = ({ thread, turn }: SavedTurn): Owner => ({ thread, turn });

export const nameOfRestore = (number: number): string => `${restorePrefix}${number}`;
