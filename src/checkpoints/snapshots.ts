import { statfsSync } from 'node:fs';
import { type BytePath, nameOf, parentOf } from './byte-path.ts';
import type { Contents } from './contents.ts';
import type { CheckpointDatabase } from './database.ts';
import type { StampedEntry } from './entry.ts';
import { CheckpointError, isFull } from './errors.ts';
import type { History, MarkEdge } from './history.ts';
import { ignoredDirectories, ignoredPaths, type RunGit } from './ignored.ts';
import { leftOutOf } from './left-out.ts';
import type { CheckpointLimits } from './limits.ts';
import type { Owner } from './owner.ts';
import type { Repositories, SavedRepositories } from './repositories.ts';
import { type Candidate, OverLimit, type Scan, scan } from './scan.ts';
import { indexOf, type StatIndex } from './stat-index.ts';
import { skipped, storeCandidate } from './store-file.ts';
import type { Tree } from './tree.ts';

export interface SnapshotOptions {
  readonly tree: Tree;
  readonly database: CheckpointDatabase;
  readonly contents: Contents;
  readonly history: History;
  readonly repositories: Repositories;
  /** Directory of the store: its disk needs space. */
  readonly directory: string;
  readonly limits: CheckpointLimits;
  /** Paths that are not part of the tree. */
  readonly omitted: ReadonlySet<BytePath>;
  readonly git: RunGit | undefined;
  readonly onStep: ((step: string) => void) | undefined;
}

/** Inserts a mark of the state found by the scan. @returns its number */
export type TakeMark = (edge: MarkEdge, running: readonly Owner[]) => number;

/** A change that a scan has found. */
export interface FoundChange {
  readonly path: BytePath;
  /** Undefined: the entry is missing. */
  readonly entry: StampedEntry | undefined;
  /** Latest moment at which the change can have been made, in milliseconds; infinite: unknown. */
  readonly changedAt: number;
}

/**
 * Inserts marks. @returns the mark of a change; without a result all changes belong to the first mark
 */
export type Commit = (take: TakeMark, found: () => readonly FoundChange[]) => ((path: BytePath) => number) | undefined;

export interface TakeOptions {
  /** Last sign of life of a dead process, in milliseconds: later changes of a repository are marked. */
  readonly aliveUntil?: number | undefined;
}

/** A stored state without its rows. */
interface Stored {
  readonly stored: ReadonlyMap<BytePath, StampedEntry | undefined>;
  readonly git: SavedRepositories | undefined;
  /** No checkpoint was taken before. */
  readonly isFirst: boolean;
}

/** A transaction with more rows gets a larger cache: pages that do not fit are written twice. */
const manyRows = 2_000;

/** Saves the present state of a tree: scans it, stores the changes, commits them. */
export class Snapshots {
  readonly #options: SnapshotOptions;
  #index: StatIndex | undefined;
  #leftOut: ReadonlyMap<BytePath, number> = new Map();

  constructor(options: SnapshotOptions) {
    this.#options = options;
  }

  /**
   * Commits the state together with the marks of `commit`.
   * @throws CheckpointError, the system's error; then nothing is committed
   */
  async take(commit: Commit, { aliveUntil }: TakeOptions = {}): Promise<void> {
    const { tree, contents, onStep, history, repositories } = this.#options;
    this.#requireSpace();
    onStep?.('scan');
    const known = this.#index ?? indexOf(history.currentEntries());
    const found = await this.#scan(known);
    try {
      const stored = await this.#store(found);
      const git = repositories.save(found.repositories, aliveUntil);
      onStep?.('flush');
      contents.flush();
      onStep?.('commit');
      this.#write(found, { stored, git, isFirst: known.size === 0 }, commit);
    } catch (error) {
      this.#index = undefined;
      repositories.forget();
      contents.discard();
      throw isFull(error) ? new CheckpointError('the disk of the checkpoints is full') : error;
    } finally {
      tree.close();
    }
    this.#index = found.index;
    onStep?.('committed');
  }

  #write(found: Scan, { stored, git, isFirst }: Stored, commit: Commit): void {
    const { entries, bytes, gone, index } = found;
    const { database, contents, history } = this.#options;
    const totals = { files: entries, bytes, git };
    database.transaction(() => {
      contents.commit();
      let first: number | undefined;
      const take: TakeMark = (edge, running) => {
        const seq = history.addMark(edge, running, totals);
        first ??= seq;
        return seq;
      };
      const ownMark = commit(take, () => [
        ...gone.map((path) => ({ path, entry: undefined, changedAt: lastChangeOf(path, index) })),
        ...[...stored].map(([path, entry]) => ({ path, entry, changedAt: changeOf(path, entry, index) })),
      ]);
      if (first === undefined) return;
      const shared = first;
      const markOf = ownMark ?? (() => shared);
      for (const path of gone) history.put(path, undefined, markOf(path));
      // Sorted rows fill each page of the table once.
      const rows = isFirst ? [...stored].sort(([a], [b]) => (a < b ? -1 : 1)) : stored;
      for (const [path, entry] of rows) {
        if (!isFirst) history.put(path, entry, markOf(path));
        else if (entry) history.add(entry, shared);
      }
    }, stored.size > manyRows);
    contents.settle();
  }

  async #scan(known: StatIndex): Promise<Scan> {
    const { tree, limits, omitted } = this.#options;
    const run = () => scan({ tree, known, limits, omitted, leftOut: this.#leftOut });
    try {
      return run();
    } catch (error) {
      if (!(error instanceof OverLimit)) throw error;
      await this.#leaveOut(known, error);
      return run();
    }
  }

  /** Leaves out whole directories that git ignores, from a tree that is too large. */
  async #leaveOut(known: StatIndex, error: OverLimit): Promise<void> {
    const { tree, limits, omitted, git } = this.#options;
    const ignored = git ? await ignoredDirectories(git) : [];
    if (ignored.length === 0) throw error;
    const without = scan({ tree, known, limits, omitted, leftOut: new Map(ignored.map((path) => [path, 0])) });
    const room = { entries: limits.entries - without.entries, bytes: limits.contentBytes - without.bytes };
    this.#leftOut = leftOutOf(tree, ignored, room, limits);
  }

  async #store({ candidates, index }: Scan): Promise<Map<BytePath, StampedEntry | undefined>> {
    const { tree, contents, limits } = this.#options;
    const ignored = await this.#ignoredLarge(candidates);
    const stored = new Map<BytePath, StampedEntry | undefined>();
    const options = { tree, contents, maxBytes: limits.fileBytes };
    for (const candidate of candidates) {
      const { path } = candidate;
      const entry = ignored.has(path) ? skipped(candidate, 'ignoredTooLarge') : storeCandidate(candidate, options);
      stored.set(path, entry);
      correct(index, path, entry);
    }
    return stored;
  }

  /** Ignored files above the limit for them. Runs git only when there are files of such a size. */
  async #ignoredLarge(candidates: readonly Candidate[]): Promise<ReadonlySet<BytePath>> {
    const { limits, git } = this.#options;
    const { ignoredFileBytes, fileBytes } = limits;
    const large = candidates.filter(
      ({ kind, size }) => kind === 'file' && size > ignoredFileBytes && size <= fileBytes,
    );
    if (large.length === 0 || !git) return new Set();
    return ignoredPaths(
      git,
      large.map(({ path }) => path),
    );
  }

  #requireSpace(): void {
    const { directory, limits } = this.#options;
    const { bavail, bsize } = statfsSync(directory);
    if (bavail * bsize < limits.freeBytes) {
      throw new CheckpointError('the disk of the checkpoints has too little space left');
    }
  }
}

const gone = { kind: 'skipped', mode: 0, size: 0, mtime: 0, ctime: null, ino: 0 } as const;

/** Puts the facts of a file at its reading into the index. */
function correct(index: StatIndex, path: BytePath, entry: StampedEntry | undefined): void {
  const directory = index.get(parentOf(path) ?? '');
  const at = path === '' ? -1 : (directory?.indexOf(nameOf(path)) ?? -1);
  if (!directory || at === -1) return;
  const { kind, mode, size, mtime, ctime, ino } = entry ?? gone;
  directory.set(at, { kind, mode, size, mtime, ino, ctime: ctime ?? Number.NaN });
}

const changeOf = (path: BytePath, entry: StampedEntry | undefined, index: StatIndex): number =>
  entry ? (entry.ctime ?? Number.POSITIVE_INFINITY) : lastChangeOf(path, index);

/**
 * Latest moment at which a missing entry can have been removed: the last change of the nearest directory that still exists.
 * Infinite: unknown.
 */
function lastChangeOf(path: BytePath, index: StatIndex): number {
  for (let parent = parentOf(path); parent !== undefined; parent = parentOf(parent)) {
    const directory = index.get(parent);
    if (directory) return Number.isNaN(directory.ctime) ? Number.POSITIVE_INFINITY : directory.ctime;
  }
  return Number.POSITIVE_INFINITY;
}
