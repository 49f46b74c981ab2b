import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { setTimeout as pause } from 'node:timers/promises';
import { isBusy } from '../../../supervise/index.ts';
import { ReviewStoreError } from '../errors.ts';
import { limits } from '../limits.ts';

interface Group {
  readonly committed: Promise<void>;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
  size: number;
}

/**
 * Combines transactions of one connection into one commit, one transaction at a time. Each is a savepoint in the open commit and
 * resolves when that commit is on the disk: one flush serves all transactions of one turn of the event loop, and no caller receives a
 * result that a power cut can undo.
 */
export class GroupCommit {
  readonly #sqlite: DatabaseSync;
  readonly #savepoint: StatementSync;
  readonly #release: StatementSync;
  readonly #waiting: (() => void)[] = [];
  #isTaken = false;
  #mustEnd = false;
  #group: Group | undefined;

  constructor(sqlite: DatabaseSync) {
    this.#sqlite = sqlite;
    this.#savepoint = sqlite.prepare('SAVEPOINT "one"');
    this.#release = sqlite.prepare('RELEASE "one"');
  }

  /** Waits for exclusive use; the caller must call `pass` afterwards. @throws ReviewStoreError databaseBusy, when too many wait */
  take(): Promise<void> | undefined {
    if (!this.#isTaken) {
      this.#isTaken = true;
      return undefined;
    }
    if (this.#waiting.length >= limits.sqlite.maxWaiting)
      throw new ReviewStoreError('databaseBusy', 'Too many writes wait for the database: retry later');
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  pass(): void {
    if (this.#mustEnd) this.#end();
    // Without an open commit the next one starts in a later turn of the event loop, so that other work can run in between.
    const next = this.#waiting.shift();
    if (!next) this.#isTaken = false;
    else if (this.#group) next();
    else setImmediate(next);
  }

  /** Begins a transaction; the caller must have exclusive use. */
  async begin(): Promise<void> {
    if (!this.#group) await this.#open();
    this.#savepoint.run();
  }

  /** Completes the transaction. @returns when it is on the disk; `pass` may be called before */
  release(): Promise<void> {
    const group = this.#group;
    if (!group) throw new ReviewStoreError('databaseFailed', 'The transaction was ended by the database');
    this.#release.run();
    group.size += 1;
    if (group.size >= limits.sqlite.groupSize) this.#mustEnd = true;
    return group.committed;
  }

  /** Rolls the transaction back. On a full disk SQLite has ended the whole commit itself: then all its transactions reject. */
  rollBack(because: unknown): void {
    if (!this.#group) return;
    try {
      this.#sqlite.exec('ROLLBACK TO "one"; RELEASE "one"');
    } catch {
      this.#abandon(because);
    }
  }

  /** Commits the open group. */
  close(): void {
    if (this.#group) this.#end();
  }

  /** Begins a commit. Waits for other writers without blocking the event loop, because they may be in the same process. */
  async #open(): Promise<void> {
    const deadline = performance.now() + limits.sqlite.busyMs;
    for (;;) {
      try {
        this.#sqlite.exec('BEGIN IMMEDIATE');
        break;
      } catch (error) {
        if (!isBusy(error) || performance.now() > deadline) throw error;
        await pause(1 + Math.random() * 4);
      }
    }
    const { promise: committed, resolve, reject } = Promise.withResolvers<void>();
    // Each transaction receives the failure; without transactions the rejection is unhandled, and harmless.
    committed.catch(() => {});
    const group: Group = { committed, resolve, reject, size: 0 };
    this.#group = group;
    setImmediate(() => {
      if (this.#group !== group) return;
      if (this.#isTaken) this.#mustEnd = true;
      else this.#end();
    });
  }

  #end(): void {
    this.#mustEnd = false;
    const group = this.#group;
    if (!group) return;
    try {
      this.#sqlite.exec('COMMIT');
      this.#group = undefined;
      group.resolve();
    } catch (error) {
      this.#abandon(error);
    }
  }

  #abandon(because: unknown): void {
    const group = this.#group;
    this.#group = undefined;
    this.#mustEnd = false;
    try {
      this.#sqlite.exec('ROLLBACK');
    } catch {
      // SQLite has rolled back already.
    }
    group?.reject(because);
  }
}
