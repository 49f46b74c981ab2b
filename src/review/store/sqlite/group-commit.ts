import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { setTimeout as pause } from 'node:timers/promises';
import { ReviewStoreError } from '../errors.ts';
import { limits } from '../limits.ts';
import { isBusy } from './errors.ts';

interface Group {
  readonly committed: Promise<void>;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
  size: number;
}

/**
 * One connection, one transaction at a time, many of them in one commit. Each is a savepoint in the commit that is open, and
 * has happened when that is on the disk: a flush is paid once for all that came in one turn of the event loop, and nobody is
 * told of something that a power cut takes back.
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

  /** Waits for the turn of the caller, who must `pass` it on. @throws ReviewStoreError databaseBusy, when too many wait */
  take(): Promise<void> | undefined {
    if (!this.#isTaken) {
      this.#isTaken = true;
      return undefined;
    }
    if (this.#waiting.length >= limits.sqlite.maxWaiting)
      throw new ReviewStoreError('databaseBusy', 'Too many writes wait for the database');
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  pass(): void {
    if (this.#mustEnd) this.#end();
    // The next turn is not given away within this one for ever: others have the event loop in between.
    const next = this.#waiting.shift();
    if (!next) this.#isTaken = false;
    else if (this.#group) next();
    else setImmediate(next);
  }

  /** Begins the transaction of whoever has the turn. */
  async begin(): Promise<void> {
    if (!this.#group) await this.#open();
    this.#savepoint.run();
  }

  /** Ends it well. @returns when it is on the disk; the turn may be passed on before. */
  release(): Promise<void> {
    const group = this.#group;
    if (!group) throw new ReviewStoreError('databaseFailed', 'The transaction was ended by the database');
    this.#release.run();
    group.size += 1;
    if (group.size >= limits.sqlite.groupSize) this.#mustEnd = true;
    return group.committed;
  }

  /** Takes it back. When the disk was full SQLite has ended the whole commit by itself: all who are in it are told. */
  rollBack(because: unknown): void {
    if (!this.#group) return;
    try {
      this.#sqlite.exec('ROLLBACK TO "one"; RELEASE "one"');
    } catch {
      this.#abandon(because);
    }
  }

  /** Commits what is open. */
  close(): void {
    if (this.#group) this.#end();
  }

  /** Whoever else writes is waited for without holding up the event loop: they may be in this very process. */
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
    // Those who are in it are told; a commit that nobody is in may fail unseen.
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
      // SQLite has done it already.
    }
    group?.reject(because);
  }
}
