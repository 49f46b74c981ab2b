/** Git that Oratorio itself runs in a repository: worktrees, forks, checkpoints, a merge of a fork, a prune of races, a review. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { forksOf, worktreesOf } from '../../../src/agent/index.ts';
import { CheckpointError, defaultLimits, LocalEngines, WorkspaceCheckpoints } from '../../../src/checkpoints/index.ts';
import { userWork } from '../../../src/cli/race/user-work.ts';
import { runGit } from '../../../src/git/index.ts';
import { GitError, openReviewGit } from '../../../src/review/git/index.ts';
import type { Scene } from './git-attacks.ts';

/** Search path whose git drops the locked settings: the positive control. */
export function unlockedPath(scene: Scene): string {
  const bin = join(scene.root, 'bin');
  mkdirSync(bin);
  const git = execFileSync('sh', ['-c', 'command -v git'], { encoding: 'utf8' }).trim();
  const script = `#!/bin/sh\nexec env -u GIT_CONFIG_COUNT -u GIT_ALLOW_PROTOCOL '${git}' "$@"\n`;
  writeFileSync(join(bin, 'git'), script, { mode: 0o755 });
  return `${bin}:${process.env['PATH']}`;
}

/** Runs our own git in a repository of the workspace. A repository that an attack has broken is an error that Oratorio reports. */
export async function ownWork(scene: Scene, directory: string, path = process.env['PATH'] ?? ''): Promise<void> {
  const root = join(scene.workspace, directory);
  const environment = { ...scene.environment, PATH: path };
  const settings = { environment, passEnvironment: [], secrets: [] };
  const worktree = await worktreesOf(settings)(root, 'one');
  if (typeof worktree !== 'string') {
    writeFileSync(join(worktree.path, 'of the sub-agent'), 'text\n');
    await worktree.close(true);
  }
  const fork = await forksOf(settings)(root, async () => undefined);
  const signal = new AbortController().signal;
  if (typeof fork === 'string') await userWork({ directory: fork, endedAt: undefined, env: environment, signal });
  await runGit({ args: ['worktree', 'prune'], cwd: root, workspacePath: root, env: environment });
  await checkpoint(scene, root, environment);
  await review(scene, root, path);
}

async function checkpoint(scene: Scene, root: string, gitEnvironment: Readonly<Record<string, string>>) {
  const checkpoints = new WorkspaceCheckpoints({
    ...{ directory: join(scene.root, 'stores'), limits: { ...defaultLimits, freeBytes: 0 }, gitEnvironment },
    ...{ rollback: () => undefined, isInUse: () => false, engines: new LocalEngines() },
  });
  const turn = async (workspacePath: string, threadId: string, change: () => unknown) => {
    const place = { threadId, turnId: 'turn_001', workspacePath };
    checkpoints.begin(place, 'certain');
    await checkpoints.secure(place);
    await change();
    await checkpoints.settle(place);
  };
  const fork = join(scene.root, `fork-${basename(root)}`);
  try {
    await turn(root, 'thread_a', async () => {
      writeFileSync(join(root, 'file'), 'changed\n');
      const args = ['checkout', '-q', '-B', 'of-the-turn'];
      await runGit({ args, cwd: root, workspacePath: root, env: gitEnvironment, convertsFiles: true });
    });
    await checkpoints.diff('thread_a', root, undefined, true);
    mkdirSync(fork);
    await checkpoints.copyTo(fork, root, undefined);
    await turn(fork, 'thread_b', () => writeFileSync(join(fork, 'of the fork'), 'text\n'));
    await checkpoints.merge(
      { threadId: 'thread_b', workspacePath: fork },
      { threadId: 'thread_a', workspacePath: root },
      true,
    );
    const undo = { threadId: 'thread_a', workspacePath: root, turnIds: ['turn_001'], force: true, conversation: [] };
    await checkpoints.restore(undo);
  } catch (error) {
    if (!(error instanceof CheckpointError || (error as NodeJS.ErrnoException).code !== undefined)) throw error;
  } finally {
    await checkpoints.close();
  }
}

/** Reviews the first pull request of the upstream repository with this checkout. */
async function review(scene: Scene, workspacePath: string, path: string): Promise<void> {
  const opened = await openReviewGit({
    ...{ worktreeRoot: join(scene.root, 'reviews'), gitEndpoint: `file://${dirname(scene.root)}`, path },
    ...{ allowFileProtocol: true, retention: { succeededMs: 0, failedMs: 0 } },
  });
  const { base, head } = scene.pull;
  try {
    await opened.prepare({
      ...{ runId: 'run-1', repository: { instance: 'forge.test', owner: basename(scene.root), name: 'upstream' } },
      ...{ workspacePath, number: 1, headSha: head, baseRef: 'main', baseSha: base, sinceSha: null },
      token: async () => null,
    });
  } catch (error) {
    if (!(error instanceof GitError)) throw error;
  } finally {
    await opened.close();
  }
}
