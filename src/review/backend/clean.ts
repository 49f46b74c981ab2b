import type { Logger } from '../../log/index.ts';
import type { ReviewGit } from '../git/index.ts';
import type { ReviewStore } from '../store/index.ts';

const intervalMs = 3_600_000;
/** Not in the first moment, when everything else begins. */
const firstMs = 30_000;

export interface CleanOptions {
  readonly git: Pick<ReviewGit, 'clean'>;
  readonly store: Pick<ReviewStore, 'run'>;
  readonly logger: Logger;
}

/**
 * Removes worktrees whose time is over, from time to time. Every process does so for itself: the disks of others are not its own.
 * @returns what ends that
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
      if (removed.length > 0) logger.info('worktrees were removed', { removed: removed.length });
      for (const { key, error } of failed) logger.warn('a worktree cannot be removed', { key, error });
    } catch (error) {
      logger.warn('worktrees cannot be cleaned up', { error });
    }
  }

  const isActive = async (runId: string): Promise<boolean> => (await store.run(runId))?.finishedAt === null;

  return async () => {
    isStopped = true;
    clearTimeout(timer);
    await cleaning;
  };
}
