/** Milliseconds on a clock that only goes forward and is not moved by changes of the wall clock. Every deadline uses it. */
export const monotonicMs = (): number => performance.now();
