/**
 * Options with which the compiler takes a third of the processor time, at the same speed: each of its checkers repeats the
 * work on types that they share, and its garbage collector runs seldom.
 */
export const frugal = { args: ['--checkers', '1'], env: { GOGC: '400' } } as const;
