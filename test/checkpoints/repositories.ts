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

/** Environment of git that depends on no user. */
export const environment = { ...process.env, ...identity, GIT_CONFIG_GLOBAL: '/dev/null', GIT_CONFIG_NOSYSTEM: '1' };

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

/** All refs with their commits, HEAD, the list of the stash and the index, as text. */
export function repositoryOf(root: string): string {
  const git = gitIn(root);
  const tried = (...args: string[]) => {
    try {
      return git(...args);
    } catch {
      return '';
    }
  };
  const refs = git('for-each-ref', '--format=%(refname) %(objectname) %(symref)');
  const stash = tried('reflog', 'show', '--format=%H %gs', 'refs/stash');
  const head = [tried('symbolic-ref', '--quiet', 'HEAD'), tried('rev-parse', '--verify', '--quiet', 'HEAD')];
  return [refs, stash, ...head, git('ls-files', '--stage')].join('\n--\n');
}

/** A tree of files with checkpoints, whose repository has one commit. */
export function repository(t: Test) {
  const place = bench(t);
  const git = gitIn(place.root);
  git('init', '--quiet', '--initial-branch=main');
  place.write('a.txt', 'one');
  git('add', '.');
  git('commit', '--quiet', '--message=first');
  return { ...place, ...checkpointsOf(t, place), git };
}
