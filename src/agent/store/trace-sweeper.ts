import { defaults } from '../../protocol/index.ts';
import type { Database } from './database.ts';
import type { TraceTable } from './trace-table.ts';

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
    this.#timer ??= setTimeout(() => this.#step(), defaults.agent.traceSweepPauseMs).unref();
  }

  stop(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  #step(): void {
    this.#timer = undefined;
    try {
      if (this.#database.together(() => this.#table.sweep(defaults.agent.traceSweepEvents))) this.start();
    } catch (error) {
      this.#onFault(error);
    }
  }
}
