import { defaults } from '../../protocol/index.ts';
import type { Database } from './database.ts';
import { PacedWork } from './paced-work.ts';
import type { TraceTable } from './trace-table.ts';

const pagesBetweenLooks = 32;

/**
 * Takes the events of deleted sessions off the disk, little by little: a long session's would block everybody for seconds.
 * Then gives the room that has become free back to the file system, in the same way.
 */
export class TraceSweeper {
  readonly #database: Database;
  readonly #table: TraceTable;
  readonly #work: PacedWork;
  #isShrinking = false;

  /** Begins at once: an earlier process may have left some. @param onFault called when the disk refuses */
  constructor(database: Database, table: TraceTable, onFault: (error: unknown) => void) {
    this.#database = database;
    this.#table = table;
    const step = (until: number) => this.#sweep(until) || this.#shrink(until);
    this.#work = new PacedWork({ database, pauseMs: defaults.agent.traceSweepPauseMs, step, onFault });
  }

  /** Starts to sweep. When the process ends or the disk refuses, the next start removes the rest. */
  start(): void {
    this.#work.start();
  }

  stop(): void {
    this.#work.stop();
  }

  /** @returns whether there was anything */
  #sweep(until: number): boolean {
    if (!this.#table.hasRemains()) return false;
    this.#workUntil(until, () => this.#table.sweep(defaults.agent.traceSweepEvents));
    return true;
  }

  /** Some free pages are soon used again; many are not. @returns whether there are more */
  #shrink(until: number): boolean {
    if (!this.#database.canShrink) return false;
    const free = this.#database.freePages;
    if (free === 0 && this.#isShrinking) this.#database.truncateLog();
    this.#isShrinking = free > 0 && (this.#isShrinking || free >= defaults.tracing.vacuumPages);
    let left = this.#isShrinking ? Math.min(free, defaults.tracing.vacuumPages) : 0;
    if (left === 0) return false;
    this.#workUntil(until, () => {
      this.#database.vacuum(pagesBetweenLooks);
      left -= pagesBetweenLooks;
      return left > 0;
    });
    return true;
  }

  /** Repeats `work` in one transaction, until nothing is left or the time is over. @param work returns whether there is more */
  #workUntil(until: number, work: () => boolean): void {
    this.#database.together(() => {
      while (work() && performance.now() < until);
    });
  }
}
