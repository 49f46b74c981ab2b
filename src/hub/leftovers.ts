import type { Logger } from '../log/index.ts';
import { killGroupVerified, killMarked } from '../supervise/index.ts';
import type { StoredProcess } from './store.ts';

/**
 * Ends what is left of an earlier start of a process whose workspace lock is free. Resolves when nothing that carries the
 * start's marker is left, or when the rest was not signalled because it is not proved to be ours.
 */
export async function endLeftovers(logger: Logger, { identity, marker }: StoredProcess): Promise<void> {
  if (!identity) return void (await killMarked(marker));
  const { uncertain } = await killGroupVerified(identity, marker);
  if (uncertain) reportUnverified(logger, identity.pid);
}

/** Logs that a process was spared: another user's, or without the marker of our start. */
export const reportUnverified = (logger: Logger, pid: number): void =>
  logger.warn('did not signal a process that cannot be verified as ours; end it by hand if it should not run', { pid });
