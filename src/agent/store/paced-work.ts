import type { Database } from './database.ts';

/** Approximate time in milliseconds that others wait for one step: the step ends after it. */
const stepMs = 10;

export interface PacedWorkOptions {
  readonly database: Database;
  /** Pause before each step, in milliseconds. */
  readonly pauseMs: number;
  /** One step. @param until time of its end, of `performance.now()`. @returns whether work is left */
  readonly step: (until: number) => boolean;
  /** Called when the disk refuses. */
  readonly onFault: (error: unknown) => void;
}

/** Does postponed work on a database in short steps, between which other requests run. */
export class PacedWork {
  readonly #options: PacedWorkOptions;
  #timer: NodeJS.Timeout | undefined;

  /** Begins at once: an earlier process may have left work. */
  constructor(options: PacedWorkOptions) {
    this.#options = options;
    this.start();
  }

  /** Starts soon. When the process ends or the disk refuses, the next call, or the next process, continues. */
  start(): void {
    this.#timer ??= setTimeout(() => this.#step(), this.#options.pauseMs).unref();
  }

  stop(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  #step(): void {
    const { database, step, onFault } = this.#options;
    this.#timer = undefined;
    try {
      if (database.isCheckpointing || step(performance.now() + stepMs)) this.start();
    } catch (error) {
      onFault(error);
    }
  }
}
