import { existsSync } from 'node:fs';
import { realpath } from 'node:fs/promises';
import { join, sep } from 'node:path';
import { directoryName } from '../../config/index.ts';
import { GitError, gitEndpointOf, openReviewGit, type ReviewGit } from '../git/index.ts';
import { type BackendSettings, configuredRepositories, type Environment } from '../settings/index.ts';

interface Opened {
  readonly root: string;
  readonly git: ReviewGit;
}

const hour = 3_600_000;

/** Directory of the worktrees of a workspace: `WorktreeRoot`, or below the workspace, which its agent server can read. */
export const worktreeRootOf = ({ AgentServer: { WorktreeRoot } }: BackendSettings, workspacePath: string): string =>
  WorktreeRoot === '' ? join(workspacePath, directoryName, 'worktrees') : WorktreeRoot;

/** Git for all routes, with one worktree root each, opened on first use. */
export function createRoutedGit(settings: () => BackendSettings, env: Environment): ReviewGit {
  const opened = new Map<string, Promise<Opened>>();
  const caFile = env['NODE_EXTRA_CA_CERTS'];

  function at(root: string): Promise<Opened> {
    const known = opened.get(root);
    if (known) return known;
    const opening = open(root);
    opened.set(root, opening);
    opening.catch(() => opened.delete(root));
    return opening;
  }

  async function open(root: string): Promise<Opened> {
    const { Endpoint, GitEndpoint } = settings().GitHub;
    const git = await openReviewGit({
      worktreeRoot: root,
      gitEndpoint: gitEndpointOf(Endpoint, GitEndpoint),
      ...(caFile !== undefined && caFile !== '' && { caFile }),
      retention: {
        get succeededMs() {
          return settings().AgentServer.SucceededWorktreeRetentionHours * hour;
        },
        get failedMs() {
          return settings().AgentServer.FailedWorktreeRetentionHours * hour;
        },
      },
    });
    return { root: await realpath(root), git };
  }

  /** Opens the worktree root of a workspace. A missing workspace is an error: its directory is not created. */
  function ofWorkspace(workspacePath: string): Promise<Opened> {
    if (existsSync(workspacePath)) return at(worktreeRootOf(settings(), workspacePath));
    return Promise.reject(new GitError('baseWorkspaceNotGitRepository', `Missing workspace: ${workspacePath}`));
  }

  async function everywhere(): Promise<readonly Opened[]> {
    const present = configuredRepositories(settings())
      .map(({ workspacePath }) => workspacePath)
      .filter((path) => path !== undefined && existsSync(path));
    const roots = new Set(present.map((path) => worktreeRootOf(settings(), path ?? '')));
    // A root that cannot be opened fails its own reviews in `prepare`; the other roots remain usable.
    await Promise.allSettled([...roots].map(at));
    const all = await Promise.allSettled(opened.values());
    return all.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : []));
  }

  return {
    prepare: async (target) => (await ofWorkspace(target.workspacePath)).git.prepare(target),
    async verifyClean(worktreePath) {
      const found = (await everywhere()).find(({ root }) => worktreePath.startsWith(root + sep));
      if (!found) throw new GitError('pathOutside', `The worktree is outside of all worktree roots: ${worktreePath}`);
      await found.git.verifyClean(worktreePath);
    },
    async release(runId, outcome) {
      await Promise.all((await everywhere()).map(({ git }) => git.release(runId, outcome)));
    },
    async clean(now, isActive) {
      const reports = await Promise.all((await everywhere()).map(({ git }) => git.clean(now, isActive)));
      return {
        removed: reports.flatMap(({ removed }) => removed),
        failed: reports.flatMap(({ failed }) => failed),
      };
    },
    async close() {
      const all = await Promise.allSettled(opened.values());
      await Promise.all(all.map((each) => (each.status === 'fulfilled' ? each.value.git.close() : undefined)));
    },
  };
}
