import { defaults } from '../../protocol/index.ts';
import type { Database } from './database.ts';
import type { TraceTable } from './trace-table.ts';

/** Approximate time in milliseconds that others wait for one step: the step ends after it. */
const stepMs = 10;
const pagesBetweenLooks = 32;

/**
 * Takes the events of deleted sessions off the disk, little by little: a long session's would block everybody for seconds.
 * Then gives the room that has become free back to the file system, in the same way.
 */
export class TraceSweeper {
  readonly #database: Database;
  readonly #table: TraceTable;
  readonly #onFault: (error: unknown) => void;
  #timer: NodeJS.Timeout | undefined;
  #isShrinking = false;

  /** Begins at once: an earlier process may have left some. @param onFault called when the disk refuses */
  constructor(database: Database, table: TraceTable, onFault: (error: unknown) => void) {
    this.#database = database;
    this.#table = table;
    this.#onFault = onFault;
    this.start();
  }

  /** Starts to sweep. When the process ends or the disk refuses, the next start removes the rest. */
  start(): void {
    this.#timer ??= setTimeout(() => this.#step(), defaults.agent.traceSweepPauseMs).unref();
  }

  stop(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  #step(): void {
    this.#timer = undefined;
    try {
      if (this.#database.isCheckpointing || this.#sweep() || this.#shrink()) this.start();
    } catch (error) {
      this.#onFault(error);
    }
  }

  /** @returns whether there was anything */
  #sweep(): boolean {
    if (!this.#table.hasRemains()) return false;
    this.#forAMoment(() => this.#table.sweep(defaults.agent.traceSweepEvents));
    return true;
  }

  /** Some free pages are soon used again; many are not. @returns whether there are more */
  #shrink(): boolean {
    if (!this.#database.canShrink) return false;
    const free = this.#database.freePages;
    if (free === 0 && this.#isShrinking) this.#database.truncateLog();
    this.#isShrinking = free > 0 && (this.#isShrinking || free >= defaults.tracing.vacuumPages);
    let left = this.#isShrinking ? Math.min(free, defaults.tracing.vacuumPages) : 0;
    if (left === 0) return false;
    this.#forAMoment(() => {
      this.#database.vacuum(pagesBetweenLooks);
      left -= pagesBetweenLooks;
      return left > 0;
    });
    return true;
  }

  /** Repeats `work` in one transaction until nothing is left or the time is over. @param work returns whether there is more */
  #forAMoment(work: () => boolean): void {
    const until = performance.now() + stepMs;
    this.#database.together(() => {
      let isLeft = true;
      while (isLeft && performance.now() < until) isLeft = work();
    });
  }
}
