import { cleanRoot, type Retention } from './clean.ts';
import { GitError } from './error.ts';
import { openLayout } from './layout.ts';
import { defaultGitLimits, type GitLimits } from './limits.ts';
import { findRecord, writeRecord } from './metadata.ts';
import { keyOf } from './paths.ts';
import { prepareWorktree } from './prepare-worktree.ts';
import { type RemoteOptions, Remotes } from './remote.ts';
import { GitRunner } from './runner.ts';
import type { StoreContext } from './store.ts';
import type { ReviewGit } from './types.ts';
import { checkClean } from './worktree.ts';

export interface ReviewGitOptions extends RemoteOptions {
  /** Absolute path, created when it is missing; the same for backend and agent server. Files outside are never changed. */
  readonly worktreeRoot: string;
  readonly retention: Retention;
  readonly limits?: Partial<GitLimits>;
  /** Search path for programs; default: our own `PATH`. */
  readonly path?: string;
}

/**
 * Opens the worktree root.
 * @throws GitError `gitMissing`, `pathOutside`; TypeError for an endpoint that is not allowed
 */
export async function openReviewGit(options: ReviewGitOptions): Promise<ReviewGit> {
  const limits = { ...defaultGitLimits, ...options.limits };
  const remotes = new Remotes(options, limits);
  const layout = await openLayout(options.worktreeRoot);
  const git = new GitRunner({ path: options.path ?? process.env['PATH'] ?? '', emptyDirectory: layout.empty, limits });
  await checkVersion(git);
  const context: StoreContext = { layout, git, limits };
  const preparing = new Set<string>();
  return {
    async prepare(target) {
      preparing.add(target.runId);
      try {
        return await prepareWorktree(context, remotes, target);
      } finally {
        preparing.delete(target.runId);
      }
    },
    verifyClean: async (worktreePath) => await checkClean(context, keyOf(layout.root, worktreePath)),
    async release(runId, outcome) {
      const found = await findRecord(layout.root, runId);
      if (!found || found.record.state === 'released') return;
      await writeRecord(layout.root, found.key, { ...found.record, state: 'released', outcome, since: Date.now() });
    },
    clean: (now, isActive) =>
      cleanRoot(context, {
        now,
        retention: options.retention,
        isActive: (runId) => preparing.has(runId) || isActive(runId),
      }),
    close: () => git.close(),
  };
}

/** The oldest git with every feature that we use, and without the overflows in its parser of attributes (CVE-2022-23521). */
const oldestGit = '2.39.1';

async function checkVersion(git: GitRunner): Promise<void> {
  const said = await git.text({ args: ['version'] });
  const found = /(?<!\d)\d+(?:\.\d+)+/.exec(said)?.[0] ?? '0';
  const isOld = found.localeCompare(oldestGit, 'en', { numeric: true }) < 0;
  if (isOld) throw new GitError('gitMissing', `git ${oldestGit} or newer is needed; found ${said.trim()}`);
}
