import { defaults } from '../../protocol/index.ts';
import type { Expiry } from './trace-table.ts';

/** Traces that can delete old sessions. */
export interface Expirable {
  /** Deletes at most `limit` sessions, the longest inactive first. @returns how many: `limit` when there may be more */
  expire(expiry: Expiry, limit: number): number;
}

/** Time for the sweeps; a test brings its own. */
export interface RetentionClock {
  /** Milliseconds since the epoch. */
  now(): number;
  /** Calls `work` after `ms` milliseconds, unless the returned function is called before. Keeps no process alive. */
  after(ms: number, work: () => void): () => void;
}

export interface TraceRetentionOptions {
  readonly traces: Expirable;
  /** `Tracing.RetentionDays`: sessions that were not active for so long are deleted; 0 keeps them. */
  readonly days: number;
  /** `Tracing.MaxEvents`: beyond so many events the sessions that were inactive longest are deleted; 0 sets no limit. */
  readonly maxEvents: number;
  /** Called when the disk refuses; the next sweep tries again. */
  readonly onFault: (error: unknown) => void;
  readonly clock?: RetentionClock;
}

const msPerDay = 86_400_000;

/** Sessions that one step deletes: between two steps the event loop turns. */
const sessionsPerStep = 50;

/** Deletes traces that are older, or more, than a user wants to keep: at the start and every hour. Running sessions stay. */
export class TraceRetention {
  readonly #options: TraceRetentionOptions;
  readonly #clock: RetentionClock;
  #cancel: (() => void) | undefined;

  constructor(options: TraceRetentionOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
  }

  /** Sweeps a moment later, and then again and again. Asked twice, it sweeps once. */
  start(): void {
    this.#cancel ??= this.#next(defaults.agent.traceSweepPauseMs);
  }

  /** Before the traces are closed. */
  stop(): void {
    this.#cancel?.();
    this.#cancel = undefined;
  }

  #next(ms: number): () => void {
    return this.#clock.after(ms, () => {
      const isDone = this.#step();
      this.#cancel = this.#next(isDone ? defaults.tracing.sweepEveryMs : defaults.agent.traceSweepPauseMs);
    });
  }

  /** @returns whether nothing is left to be deleted now */
  #step(): boolean {
    const { traces, days, maxEvents, onFault } = this.#options;
    try {
      const deleted = traces.expire(
        {
          ...(days > 0 && { before: new Date(this.#clock.now() - days * msPerDay).toISOString() }),
          ...(maxEvents > 0 && { maxEvents }),
        },
        sessionsPerStep,
      );
      return deleted < sessionsPerStep;
    } catch (error) {
      onFault(error);
      return true;
    }
  }
}

const systemClock: RetentionClock = {
  now: () => Date.now(),
  after(ms, work) {
    const timer = setTimeout(work, ms).unref();
    return () => clearTimeout(timer);
  },
};
