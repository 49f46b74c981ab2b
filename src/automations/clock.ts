/** Clock of the scheduler. Wall clock and timers need not agree: a laptop sleeps, a user sets the clock. */
export interface Clock {
  /** Milliseconds since the Unix epoch. */
  now(): number;
  setTimeout(callback: () => void, milliseconds: number): unknown;
  clearTimeout(timer: unknown): void;
}

/** The process does not stay alive for a due time. */
export const systemClock: Clock = {
  now: () => Date.now(),
  setTimeout: (callback, milliseconds) => setTimeout(callback, milliseconds).unref(),
  clearTimeout: (timer) => clearTimeout(timer as NodeJS.Timeout),
};
