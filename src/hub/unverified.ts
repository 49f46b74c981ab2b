import type { Logger } from '../log/index.ts';

/** Logs that a process was spared: another user's, or without the marker of our start. */
export const reportUnverified = (logger: Logger, pid: number): void =>
  logger.warn('did not signal a process that cannot be verified as ours; end it by hand if it should not run', { pid });
