import type { Logger } from '../../log/index.ts';
import type { ReviewGit } from '../git/index.ts';
import type { ReviewStore } from '../store/index.ts';

const intervalMs = 3_600_000;
/** Delay of the first clean-up, after the rest of the start. */
const firstMs = 30_000;

export interface CleanOptions {
  readonly git: Pick<ReviewGit, 'clean'>;
  readonly store: Pick<ReviewStore, 'run'>;
  readonly logger: Logger;
}

/**
 * Removes worktrees whose retention time is over, once per hour. Each process cleans its own disk.
 * @returns stops it and waits for the clean-up in progress
 */
export function cleanWorktrees({ git, store, logger }: CleanOptions): () => Promise<void> {
  let isStopped = false;
  let cleaning: Promise<void> = Promise.resolve();
  let timer = setTimeout(begin, firstMs);

  function begin(): void {
    cleaning = clean().finally(() => {
      if (!isStopped) timer = setTimeout(begin, intervalMs);
    });
  }

  async function clean(): Promise<void> {
    try {
      const { removed, failed } = await git.clean(new Date(), isActive);
      if (removed.length > 0) logger.info('removed worktrees', { removed: removed.length });
      for (const { key, error } of failed) logger.warn('could not remove a worktree; retrying', { key, error });
    } catch (error) {
      logger.warn('could not clean up worktrees; retrying', { error });
    }
  }

  const isActive = async (runId: string): Promise<boolean> => (await store.run(runId))?.finishedAt === null;

  return async () => {
    isStopped = true;
    clearTimeout(timer);
    await cleaning;
  };
}
