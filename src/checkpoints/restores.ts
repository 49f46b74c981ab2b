import type { BytePath } from './byte-path.ts';
import type { CheckpointDatabase } from './database.ts';
import type { RestoreOp } from './directories.ts';
import { CheckpointError } from './errors.ts';
import type { GitMove, GitRestore } from './git-move.ts';
import type { SavedTurn } from './history.ts';
import { type RestoreFindings, restorePrefix } from './plan.ts';

/** A restore, written down before it is applied. */
export interface StoredRestore extends RestoreFindings {
  readonly ops: readonly RestoreOp[];
  /** Directories whose modes allow no new entries, with these modes. */
  readonly closed: readonly (readonly [BytePath, number])[];
  /** Turns whose changes are taken back. */
  readonly turns: readonly string[];
  /** Turns of the conversation that go with the files. */
  readonly conversation: readonly string[];
  /** Move of the repository that is set back with the files, or the reason why it stays. */
  readonly git?: GitMove | GitRestore | undefined;
  /** Moves of repositories in directories of the tree. */
  readonly repositories?: readonly NestedMove[] | undefined;
}

/** A repository in a directory of the tree. */
export interface NestedMove {
  readonly path: BytePath;
  readonly move: GitMove | GitRestore;
}

/** A restore in progress. */
export interface OpenRestore {
  readonly thread: string;
  /** Mark of the files before the restore. */
  readonly beforeSeq: number;
  readonly stored: StoredRestore;
}

/** A restore that a crash has interrupted. */
export interface InterruptedRestore {
  readonly number: number;
  readonly thread: string;
  readonly conversation: readonly string[];
}

export const nameOfRestore = (number: number): string => `${restorePrefix}${number}`;

/** Stored restores: one that is written down is completed, by the next start if need be. */
export class Restores {
  readonly #database: CheckpointDatabase;

  constructor(database: CheckpointDatabase) {
    this.#database = database;
  }

  /** @returns its number */
  add({ thread, beforeSeq, stored }: OpenRestore): number {
    return this.#database.run(
      "INSERT INTO restores (at, thread, state, beforeSeq, plan) VALUES (?, ?, 'applying', ?, ?)",
      ...[Date.now(), thread, beforeSeq, JSON.stringify(stored)],
    ).lastKey;
  }

  /** @throws CheckpointError when the restore is not in progress */
  get(number: number): OpenRestore {
    const row = this.#database.get('SELECT * FROM restores WHERE number = ?', number);
    if (row?.['state'] !== 'applying') throw new CheckpointError('there is no such restore');
    return {
      thread: String(row['thread']),
      beforeSeq: Number(row['beforeSeq']),
      stored: JSON.parse(String(row['plan'])) as StoredRestore,
    };
  }

  interrupted(): readonly InterruptedRestore[] {
    return this.#database
      .all("SELECT number, thread, plan FROM restores WHERE state = 'applying' ORDER BY number")
      .map((row) => ({
        number: Number(row['number']),
        thread: String(row['thread']),
        conversation: (JSON.parse(String(row['plan'])) as StoredRestore).conversation,
      }));
  }

  finish(number: number, isRecovery: boolean): void {
    this.#database.run(
      "UPDATE restores SET state = 'done', recovered = ?, plan = '{}' WHERE number = ?",
      ...[Number(isRecovery), number],
    );
  }

  /** Whether a turn is a restore that a later start has completed. */
  wasRecovered({ turn }: Pick<SavedTurn, 'turn'>): boolean {
    if (!turn.startsWith(restorePrefix)) return false;
    const number = Number(turn.slice(restorePrefix.length));
    return Number(this.#database.get('SELECT recovered FROM restores WHERE number = ?', number)?.['recovered']) === 1;
  }

  /** Forgets restores that can no longer be taken back. */
  trim(): void {
    this.#database.run(
      "DELETE FROM restores WHERE state = 'done' AND ? || number NOT IN (SELECT turn FROM turns)",
      restorePrefix,
    );
  }
}
