/** Random programs of git and file operations, as a turn runs them, for a workspace with every kind of repository. */
import { spawnSync } from 'node:child_process';
import { appendFileSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { environment, gitIn } from './repositories.ts';

type Random = (below: number) => number;

export const names = ['grün', '日本', 'ветка', 'e\u0301', '🌿', 'plain', 'a/b', 'a"b'] as const;
const files = ['a.txt', 'b.txt', 'ü.txt', 'dir/c.txt', 'app/d.txt'] as const;

/** Makes the repository of a workspace with branches, tags, notes, remote refs, a stash, a nested repository and a submodule. */
export function makeWorkspace(root: string): void {
  const git = gitIn(root);
  const source = join(root, '..', 'source');
  for (const directory of [source, root, join(root, 'lib'), join(root, 'dir'), join(root, 'app')])
    mkdirSync(directory, { recursive: true });
  for (const directory of [source, join(root, 'lib')]) {
    gitIn(directory)('init', '--quiet', '--initial-branch=main');
    writeFileSync(join(directory, 'x.txt'), 'x\n');
    gitIn(directory)('add', '.');
    gitIn(directory)('commit', '--quiet', '--message=x');
  }
  git('init', '--quiet', '--initial-branch=main');
  for (const file of files) writeFileSync(join(root, file), `${file}\n`);
  writeFileSync(join(root, '.gitignore'), 'lib\nignored\n');
  git('submodule', '--quiet', 'add', '../source', 'mod');
  git('add', '.');
  git('commit', '--quiet', '--message=first');
  for (const name of names.slice(0, 4)) git('branch', name);
  git('tag', '--annotate', '--message=x', 'v-ü');
  git('notes', 'add', '--message=mine', 'HEAD');
  git('update-ref', 'refs/remotes/origin/main', 'HEAD');
  git('symbolic-ref', 'refs/remotes/origin/HEAD', 'refs/remotes/origin/main');
  for (const text of ['one', 'two']) {
    appendFileSync(join(root, 'a.txt'), `${text}\n`);
    git('stash', '--quiet');
  }
}

/** One shell command of a program; names are quoted. */
type Operation = (random: Random) => string;

const pick = <T>(random: Random, all: readonly T[]): T => all[random(all.length)] as T;
const name = (random: Random) => `'${pick(random, names)}'`;
const file = (random: Random) => `'${pick(random, files)}'`;
/** A commit that is made without reading the working tree: fast, and as good as any. */
const commit = (text: string) => `$(git commit-tree -m ${text} -p HEAD 'HEAD^{tree}')`;

const operations: readonly Operation[] = [
  (random) => `echo ${random(100)} >> ${file(random)}`,
  (random) => `rm -f ${file(random)}`,
  (random) => `echo ${random(100)} > new${random(3)}.txt`,
  (random) => `mkdir -p deep/er && echo x > deep/er/${random(3)}`,
  (random) => `git add ${file(random)}`,
  () => 'git commit -qam turn',
  (random) => `git update-ref HEAD ${commit(String(random(100)))}`,
  (random) => `git update-ref refs/heads/${name(random)} ${commit(String(random(100)))}`,
  (random) => `git update-ref -d refs/heads/${name(random)}`,
  (random) => `git branch -qm ${name(random)} ${name(random)}`,
  (random) => `git symbolic-ref HEAD refs/heads/${name(random)}`,
  (random) => `git checkout -q -b ${name(random)}`,
  (random) => `git tag -f t-${name(random)}`,
  () => 'git tag -d v-ü',
  () => 'git stash -q',
  () => 'git stash pop -q',
  (random) => `git stash drop -q stash@{${random(2)}}`,
  () => 'git stash clear',
  () => 'git notes add -f -m turn HEAD',
  () => 'git update-ref -d refs/remotes/origin/main',
  () => 'git symbolic-ref refs/remotes/origin/HEAD refs/remotes/origin/other',
  () => 'git pack-refs --all',
  (random) => `git config turn.value ${random(100)}`,
  (random) => `git merge -q ${name(random)}`,
  () => 'git reset -q --hard',
  (random) => `git -C lib update-ref refs/heads/${name(random)} ${commit('lib').replaceAll('git ', 'git -C lib ')}`,
  () => 'echo y >> lib/x.txt; git -C lib commit -qam lib',
  () => 'rm -rf lib',
  () => 'git -C mod commit -q --allow-empty -m mod',
  () => 'git submodule -q deinit -f mod',
  (random) => `git init -q made${random(2)}`,
];

/** Runs a program in one shell; an operation that cannot be done as things are does nothing. @returns its text */
export function runGitProgram(root: string, random: Random, count: number): string {
  const script = Array.from({ length: count }, () => pick(random, operations)(random)).join('\n');
  spawnSync('sh', ['-c', script], { cwd: root, env: environment, stdio: 'ignore' });
  return script;
}

/** Removes entries that earlier programs may have left behind, as the user. */
export function sweep(root: string): void {
  for (const directory of ['made0', 'made1']) rmSync(join(root, directory), { recursive: true, force: true });
}
