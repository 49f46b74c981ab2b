import { type BytePath, shownPath } from './byte-path.ts';
import type { CheckpointDatabase, Row } from './database.ts';
import {
  type EntryKind,
  isSame,
  type NotCovered,
  type PathEntry,
  type SkipReason,
  type StampedEntry,
} from './entry.ts';
import type { Owner } from './owner.ts';
import type { SavedRepositories } from './repositories.ts';

export type MarkEdge = 'start' | 'resume' | 'end' | 'look' | 'crash' | 'afterCrash' | 'beforeRestore' | 'restored';

/** A turn whose files are saved. One that was resumed after the death of its server has several spans: `spansOf`. */
export interface SavedTurn extends Owner {
  readonly startSeq: number;
  /** Null: it still runs. */
  readonly endSeq: number | null;
  /** Whether the process ended during the turn: the next start saved its end. */
  readonly isCrashed: boolean;
  readonly undoneBy: string | null;
}

/** A change of one path at one mark. */
export interface PathChange {
  readonly path: BytePath;
  readonly seq: number;
}

/** A mark with the owners of the changes since the mark before. */
export interface OwnedMark {
  readonly seq: number;
  readonly edge: MarkEdge;
  readonly running: readonly Owner[];
}

/** Condition for skipped entries, without repositories: their saved state shows a change. */
const isSkippedIn = "kind = 'skipped' AND target <> 'repository' AND fromSeq <= ?2 AND (toSeq IS NULL OR toSeq > ?1)";

/** Stored marks, turns and entries. */
export class History {
  readonly #database: CheckpointDatabase;

  constructor(database: CheckpointDatabase) {
    this.#database = database;
  }

  get newestSeq(): number {
    return Number(this.#database.get('SELECT max(seq) AS seq FROM marks')?.['seq'] ?? 0);
  }

  /** Inserts a mark. @returns its number */
  addMark(
    edge: MarkEdge,
    running: readonly Owner[],
    {
      files,
      bytes,
      git,
    }: { readonly files: number; readonly bytes: number; readonly git: SavedRepositories | undefined },
  ): number {
    return this.#database.run(
      'INSERT INTO marks (at, edge, running, files, bytes, git) VALUES (?, ?, ?, ?, ?, ?)',
      ...[Date.now(), edge, JSON.stringify(running), files, bytes, git ? JSON.stringify(git) : null],
    ).lastKey;
  }

  startTurn({ thread, turn }: Owner, seq: number): void {
    this.#database.run(
      `INSERT INTO turns (thread, turn, startSeq) VALUES (?, ?, ?)
       ON CONFLICT (thread, turn) DO UPDATE SET startSeq = excluded.startSeq, endSeq = NULL, undoneBy = NULL, crashed = 0`,
      ...[thread, turn, seq],
    );
  }

  /** Opens a turn again, from a later mark on. One that is unknown, or was taken back, begins there. */
  resumeTurn(owner: Owner, seq: number): void {
    const { changes } = this.#database.run(
      'UPDATE turns SET endSeq = NULL WHERE thread = ? AND turn = ? AND undoneBy IS NULL',
      ...[owner.thread, owner.turn],
    );
    if (changes === 0) this.startTurn(owner, seq);
  }

  endTurn({ thread, turn }: Owner, seq: number, isCrashed: boolean): void {
    this.#database.run(
      'UPDATE turns SET endSeq = ?, crashed = ? WHERE thread = ? AND turn = ?',
      ...[seq, Number(isCrashed), thread, turn],
    );
  }

  /** Forgets a turn without changes. */
  dropTurn({ thread, turn }: Owner): void {
    this.#database.run('DELETE FROM turns WHERE thread = ? AND turn = ?', thread, turn);
  }

  markUndone(turns: readonly Owner[], by: string | null): void {
    for (const { thread, turn } of turns) {
      this.#database.run('UPDATE turns SET undoneBy = ? WHERE thread = ? AND turn = ?', by, thread, turn);
    }
  }

  /** Turns that a restore took back. */
  undoneBy(restore: string): readonly SavedTurn[] {
    return this.#database.all('SELECT * FROM turns WHERE undoneBy = ?', restore).map(turnOf);
  }

  /** All turns, or those of a thread, oldest first. */
  turns(thread?: string): readonly SavedTurn[] {
    const rows =
      thread === undefined
        ? this.#database.all('SELECT * FROM turns ORDER BY startSeq, turn')
        : this.#database.all('SELECT * FROM turns WHERE thread = ? ORDER BY startSeq, turn', thread);
    return rows.map(turnOf);
  }

  get openTurns(): readonly SavedTurn[] {
    return this.turns().filter(({ endSeq }) => endSeq === null);
  }

  /** Writes the state of a path from a mark on; undefined: nothing is there. @returns whether that is a change */
  put(path: BytePath, entry: StampedEntry | undefined, seq: number): boolean {
    const present = this.current(path);
    if (entry && present && isSame(present, entry) && (entry.kind !== 'skipped' || entry.mtime === present.mtime)) {
      this.#database.run(
        'UPDATE entries SET mtime = ?, ctime = ?, ino = ? WHERE path = ? AND toSeq IS NULL',
        ...[entry.mtime, entry.ctime, entry.ino, path],
      );
      return false;
    }
    if (!entry && !present) return false;
    this.#database.run('UPDATE entries SET toSeq = ? WHERE path = ? AND toSeq IS NULL', seq, path);
    if (!entry) return true;
    this.add(entry, seq);
    return true;
  }

  /** Writes the first entry of its path. */
  add({ path, kind, mode, size, hash, target, mtime, ctime, ino }: StampedEntry, seq: number): void {
    this.#database.run(
      `INSERT INTO entries (path, fromSeq, kind, mode, size, hash, target, mtime, ctime, ino) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
      ...[path, seq, kind, mode, size, hash, target, mtime, ctime, ino],
    );
  }

  current(path: BytePath): StampedEntry | undefined {
    const row = this.#database.get('SELECT * FROM entries WHERE path = ? AND toSeq IS NULL', path);
    return row && entryOf(row);
  }

  /** Entry of a path at a mark. */
  at(path: BytePath, seq: number): StampedEntry | undefined {
    const row = this.#database.get(
      'SELECT * FROM entries WHERE path = ?1 AND fromSeq <= ?2 AND (toSeq IS NULL OR toSeq > ?2)',
      path,
      seq,
    );
    return row && entryOf(row);
  }

  *currentEntries(): Generator<StampedEntry> {
    for (const row of this.#database.iterate('SELECT * FROM entries WHERE toSeq IS NULL ORDER BY path')) {
      yield entryOf(row);
    }
  }

  /** All entries at a mark. */
  *entriesAt(seq: number): Generator<StampedEntry> {
    const sql = 'SELECT * FROM entries WHERE fromSeq <= ?1 AND (toSeq IS NULL OR toSeq > ?1) ORDER BY path';
    for (const row of this.#database.iterate(sql, seq)) yield entryOf(row);
  }

  /** Everything below a directory in the newest checkpoint. */
  below(directory: BytePath): readonly StampedEntry[] {
    const [low, high] = directory === '' ? ['', '\uffff'] : [`${directory}/`, `${directory}0`];
    return this.#database
      .all('SELECT * FROM entries WHERE path > ? AND path < ? AND toSeq IS NULL', low, high)
      .map(entryOf);
  }

  /** Changes after a mark, up to another one; by path, then in order. */
  changes(after: number, through: number): readonly PathChange[] {
    return this.#database
      .all(
        `SELECT path, fromSeq AS seq FROM entries WHERE fromSeq > ?1 AND fromSeq <= ?2
         UNION SELECT path, toSeq AS seq FROM entries WHERE toSeq > ?1 AND toSeq <= ?2 ORDER BY path, seq`,
        after,
        through,
      )
      .map((row) => ({ path: String(row['path']), seq: Number(row['seq']) }));
  }

  /** Owners of the changes at a mark. */
  ownersAt(seq: number): Omit<OwnedMark, 'seq'> {
    const row = this.#database.get('SELECT edge, running FROM marks WHERE seq = ?', seq);
    return row ? ownedOf(row) : { edge: 'start', running: [] };
  }

  /** Marks after one, up to another one, with the owners of their changes. */
  *marks(after: number, through: number): Generator<OwnedMark> {
    const sql = 'SELECT seq, edge, running FROM marks WHERE seq > ? AND seq <= ? ORDER BY seq';
    for (const row of this.#database.all(sql, after, through)) yield { seq: Number(row['seq']), ...ownedOf(row) };
  }

  mark(seq: number): { readonly at: number; readonly files: number; readonly bytes: number } {
    const row = this.#database.get('SELECT at, files, bytes FROM marks WHERE seq = ?', seq);
    return { at: Number(row?.['at'] ?? 0), files: Number(row?.['files'] ?? 0), bytes: Number(row?.['bytes'] ?? 0) };
  }

  hasMark(seq: number): boolean {
    return this.#database.get('SELECT 1 FROM marks WHERE seq = ?', seq) !== undefined;
  }

  /** Saved state of the repositories at a mark; null: no repository. */
  gitAt(seq: number): unknown {
    return this.#database.get('SELECT git FROM marks WHERE seq = ?', seq)?.['git'];
  }

  /** Entries that the marks from one to another do not cover, the first ones by path. */
  skippedIn(from: number, through: number, limit: number): readonly Pick<StampedEntry, 'path' | 'target' | 'size'>[] {
    const sql = `SELECT path, target, size, max(fromSeq) FROM entries WHERE ${isSkippedIn} GROUP BY path ORDER BY path LIMIT ?3`;
    return this.#database
      .all(sql, from, through, limit)
      .map((row) => ({ path: String(row['path']), target: String(row['target']), size: Number(row['size']) }));
  }

  countSkippedIn(from: number, through: number): number {
    const sql = `SELECT count(DISTINCT path) AS count FROM entries WHERE ${isSkippedIn}`;
    return Number(this.#database.get(sql, from, through)?.['count']);
  }

  /** Forgets the turns of a thread. */
  forget(thread: string): void {
    this.#database.run('DELETE FROM turns WHERE thread = ?', thread);
  }

  /** Forgets the turns that began before a time, except the newest. @returns whether it forgot one */
  dropOlderThan(at: number): boolean {
    return this.#drop('startSeq IN (SELECT seq FROM marks WHERE at < ?)', at);
  }

  /** Forgets the oldest turn, except the newest. @returns whether it forgot one */
  dropOldest(): boolean {
    return this.#drop('startSeq = (SELECT min(startSeq) FROM turns WHERE endSeq IS NOT NULL)');
  }

  #drop(which: string, ...values: number[]): boolean {
    const isOther = 'startSeq < (SELECT max(startSeq) FROM turns)';
    return (
      this.#database.run(`DELETE FROM turns WHERE endSeq IS NOT NULL AND ${isOther} AND ${which}`, ...values).changes >
      0
    );
  }

  /** Deletes the states that neither an undo nor the merge of a fork needs. @returns whether something was deleted */
  trim(): boolean {
    const needed = 'SELECT startSeq AS seq FROM turns UNION ALL SELECT seq FROM forks';
    const oldest = this.#database.get(`SELECT min(seq) AS seq FROM (${needed})`)?.['seq'];
    const seq = oldest === null || oldest === undefined ? this.newestSeq : Number(oldest);
    const { changes } = this.#database.run('DELETE FROM entries WHERE toSeq IS NOT NULL AND toSeq <= ?', seq);
    const marks = this.#database.run('DELETE FROM marks WHERE seq < ?', seq);
    return changes + marks.changes > 0;
  }
}

export function entryOf(row: Row): StampedEntry {
  return {
    path: String(row['path']),
    kind: String(row['kind']) as EntryKind,
    mode: Number(row['mode']),
    size: Number(row['size']),
    hash: row['hash'] === null ? null : String(row['hash']),
    target: row['target'] === null ? null : String(row['target']),
    mtime: Number(row['mtime']),
    ctime: row['ctime'] === null ? null : Number(row['ctime']),
    ino: Number(row['ino']),
  };
}

const ownedOf = (row: Row): Omit<OwnedMark, 'seq'> => ({
  edge: String(row['edge']) as MarkEdge,
  running: JSON.parse(String(row['running'])) as Owner[],
});

function turnOf(row: Row): SavedTurn {
  return {
    thread: String(row['thread']),
    turn: String(row['turn']),
    startSeq: Number(row['startSeq']),
    endSeq: row['endSeq'] === null ? null : Number(row['endSeq']),
    isCrashed: Number(row['crashed']) === 1,
    undoneBy: row['undoneBy'] === null ? null : String(row['undoneBy']),
  };
}

/** Entry without its stamp. */
export const plainEntry = ({ kind, mode, size, hash, target }: PathEntry): PathEntry => ({
  kind,
  mode,
  size,
  hash,
  target,
});

export const notCoveredOf = ({ path, target, size }: Pick<StampedEntry, 'path' | 'target' | 'size'>): NotCovered => ({
  path: shownPath(path),
  reason: (target ?? 'special') as SkipReason,
  size,
});
