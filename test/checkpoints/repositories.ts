/** Repositories for the tests of checkpoints. */
import { execFileSync } from 'node:child_process';
import type { Test } from 'tap';
import { bench, checkpointsOf } from './tree-of-files.ts';

const identity = {
  GIT_AUTHOR_NAME: 't',
  GIT_AUTHOR_EMAIL: 't@localhost',
  GIT_COMMITTER_NAME: 't',
  GIT_COMMITTER_EMAIL: 't@localhost',
};

/** Saves a process for each commit, merge and fetch. */
const withoutMaintenance = {
  GIT_CONFIG_COUNT: '1',
  GIT_CONFIG_KEY_0: 'maintenance.auto',
  GIT_CONFIG_VALUE_0: 'false',
};

/** Environment of git that depends on no user. */
export const environment = {
  ...process.env,
  ...identity,
  ...withoutMaintenance,
  GIT_CONFIG_GLOBAL: '/dev/null',
  GIT_CONFIG_NOSYSTEM: '1',
};

/** Runs git in a directory. @returns its output without the last line break */
export const gitIn =
  (cwd: string) =>
  (...args: string[]): string =>
    execFileSync('git', ['-c', 'protocol.file.allow=always', ...args], {
      cwd,
      env: environment,
      stdio: ['ignore', 'pipe', 'pipe'],
    })
      .toString()
      .trim();

/** In one shell: to start a process from this one takes longer than most commands of git. */
const stateCommands = [
  'set -e',
  "git for-each-ref '--format=%(refname) %(objectname) %(symref)'",
  "echo --; git reflog show '--format=%H %gs' refs/stash 2>&- || :",
  'echo --; git symbolic-ref --quiet HEAD || :',
  'echo --; git rev-parse --verify --quiet HEAD || :',
  'echo --; git ls-files --stage',
].join('\n');

/** All refs with their commits, the list of the stash, HEAD and the index, as text. */
export function repositoryOf(root: string): string {
  return execFileSync('sh', ['-c', stateCommands], { cwd: root, env: environment, encoding: 'utf8', stdio: 'pipe' });
}

const firstCommit = 'git init --quiet --initial-branch=main && git add . && git commit --quiet --message=first';

/** A tree of files with checkpoints, whose repository has one commit. */
export function repository(t: Test) {
  const place = bench(t);
  const git = gitIn(place.root);
  place.write('a.txt', 'one');
  execFileSync('sh', ['-c', firstCommit], { cwd: place.root, env: environment, stdio: 'ignore' });
  return { ...place, ...checkpointsOf(t, place), git };
}
