import type { Database } from './database.ts';
import type { TraceTable } from './trace-table.ts';

/** Some milliseconds' work, and a pause in which others have the event loop. */
const eventsPerStep = 500;
const pauseMs = 10;

/** Takes the events of deleted sessions off the disk, little by little: a long session's would block everybody for seconds. */
export class TraceSweeper {
  readonly #database: Database;
  readonly #table: TraceTable;
  readonly #onFault: (error: unknown) => void;
  #timer: NodeJS.Timeout | undefined;

  /** Begins at once: an earlier process may have left some. @param onFault told when the disk does not let it */
  constructor(database: Database, table: TraceTable, onFault: (error: unknown) => void) {
    this.#database = database;
    this.#table = table;
    this.#onFault = onFault;
    this.start();
  }

  /** What is left when the process ends, or when the disk refuses, is for the next start. */
  start(): void {
    this.#timer ??= setTimeout(() => this.#step(), pauseMs).unref();
  }

  stop(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  #step(): void {
    this.#timer = undefined;
    try {
      if (this.#database.together(() => this.#table.sweep(eventsPerStep))) this.start();
    } catch (error) {
      this.#onFault(error);
    }
  }
}
