/** Random programs of git and file operations, as a turn runs them, for a workspace with every kind of repository. */
import { execFileSync, spawnSync } from 'node:child_process';
import {
  appendFileSync,
  chmodSync,
  existsSync,
  mkdirSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { PlainRepository, type TreeEntry } from './plain-repository.ts';
import { environment } from './repositories.ts';

type Random = (below: number) => number;

const names = ['grün', '日本', 'ветка', 'e\u0301', '🌿', 'plain', 'a/b', 'a"b'] as const;
const files = ['a.txt', 'b.txt', 'ü.txt', 'dir/c.txt', 'app/d.txt'] as const;

/**
 * Where the repository of the workspace is. `own`: in its `.git`; `above`: in the directory above; `linked`: the workspace is a worktree;
 * `elsewhere`: `.git` names a directory that does not name the workspace back.
 */
export type Layout = 'own' | 'above' | 'linked' | 'elsewhere';

/** Commands of a shell that make a workspace in its present directory. */
const workspaceCommands = (layout: Layout, prefix: string): readonly string[] => [
  'git() { command git -c protocol.file.allow=always "$@"; }',
  'init="init --quiet --template= --initial-branch=main"',
  'made() { git $init "$1"; echo x > "$1/x.txt"; git -C "$1" add .; git -C "$1" commit --quiet --message=x; }',
  'made ../source',
  layout === 'linked'
    ? 'made ../beside; git -C ../beside worktree add --quiet -b work "$PWD"'
    : `git $init${layout === 'elsewhere' ? ' --separate-git-dir=../elsewhere' : ''}`,
  'mkdir -p dir app',
  `for file in ${files.join(' ')}; do echo "$file" > "$file"; done`,
  String.raw`printf 'lib\nignored\n' > .gitignore`,
  `made ${prefix}lib`,
  `git submodule --quiet add "$(cd ../source; pwd)" ${prefix}mod`,
  'git add .',
  'git commit --quiet --message=first',
  ...names.slice(0, 4).map((name) => `git branch '${name}'`),
  'git tag --annotate --message=x v-ü',
  'git notes add --message=mine HEAD',
  'git update-ref refs/remotes/origin/main HEAD',
  'git symbolic-ref refs/remotes/origin/HEAD refs/remotes/origin/main',
  ...['one', 'two'].map((text) => `echo ${text} >> a.txt; git stash --quiet`),
];

/** Makes a workspace with branches, tags, notes, remote refs, two stashes, a nested repository and a submodule. @returns the workspace */
export function makeWorkspace(top: string, layout: Layout): string {
  const prefix = layout === 'above' ? 'app/' : '';
  // One process that this one forks: a fork of all tests takes longer than most commands of git.
  const script = workspaceCommands(layout, prefix).join('\n');
  execFileSync('sh', ['-ec', script], { cwd: top, env: environment, stdio: ['ignore', 'ignore', 'pipe'] });
  return join(top, prefix);
}

const pick = <T>(random: Random, all: readonly T[]): T => all[random(all.length)] as T;
const stash = 'refs/stash';
const stashLog = 'logs/refs/stash';

/** Workspace in which an operation works. */
interface Ground {
  readonly random: Random;
  readonly root: string;
  readonly git: PlainRepository;
}

/** Does one thing to the files, as git or a shell would; without a process. @returns false: it cannot be done as things are */
type Operation = (ground: Ground) => boolean;

const heads = (random: Random) => `refs/heads/${pick(random, names)}`;
/** A file that is there. */
function fileIn({ random, git }: Ground): string | undefined {
  const path = pick(random, files);
  return existsSync(join(git.top, path)) ? path : undefined;
}
const emptyCommit = (git: PlainRepository, text: string): string | undefined =>
  git.commit && git.commitTree(git.treeOf(git.commit), [git.commit], text);

/** Moves HEAD with the files as the index has them. */
function commitIndex(git: PlainRepository, entries: readonly TreeEntry[], text: string): boolean {
  if (entries.some(({ stage = 0 }) => stage > 0)) return false;
  git.setIndex(entries);
  git.setCommit(git.commitTree(git.putTree(entries), [git.commit], text));
  git.write('MERGE_HEAD', undefined);
  git.write('MERGE_MSG', undefined);
  git.write('MERGE_MODE', undefined);
  return true;
}

/** Lines of the list of the stash, oldest first. */
const stashes = (git: PlainRepository): string[] =>
  existsSync(join(git.common, stashLog)) ? (readLog(git).match(/^.+\n/gm) ?? []) : [];
const readLog = (git: PlainRepository) => (git.common === git.directory ? git : commonOf(git)).read(stashLog) ?? '';
const commonOf = (git: PlainRepository) =>
  Object.assign(Object.create(git), { directory: git.common }) as PlainRepository;

function setStashes(git: PlainRepository, lines: readonly string[]): void {
  git.write(stashLog, lines.length > 0 ? lines.join('') : undefined, git.common);
  git.setRef(stash, lines.at(-1)?.slice(41, 81));
}

/** Operations of a turn by kind. */
export const operations = {
  append(ground) {
    const path = fileIn(ground);
    if (path !== undefined) appendFileSync(join(ground.git.top, path), `${ground.random(100)}\n`);
    return path !== undefined;
  },
  remove(ground) {
    const path = fileIn(ground);
    if (path !== undefined) rmSync(join(ground.git.top, path));
    return path !== undefined;
  },
  'make files'({ root, random }) {
    mkdirSync(join(root, 'deep/er'), { recursive: true });
    writeFileSync(join(root, `deep/er/${random(3)}`), 'x');
    writeFileSync(join(root, `new${random(3)}.txt`), `${random(100)}\n`);
    return true;
  },
  rename(ground) {
    const { git, root, random } = ground;
    const from = fileIn(ground);
    if (from !== undefined) renameSync(join(git.top, from), join(root, `moved${random(2)}`));
    return from !== undefined;
  },
  mode(ground) {
    const path = fileIn(ground);
    if (path !== undefined) chmodSync(join(ground.git.top, path), pick(ground.random, [0o755, 0o600, 0o644]));
    return path !== undefined;
  },
  link({ root, random }) {
    const path = join(root, `link${random(2)}`);
    rmSync(path, { force: true });
    symlinkSync(pick(random, ['a.txt', '../missing', 'dir']), path);
    return true;
  },
  stage(ground) {
    const { git } = ground;
    const path = fileIn(ground);
    const entry = path === undefined ? undefined : git.entryAt(path);
    if (entry) git.setIndex([...git.index().filter((each) => each.path !== path), entry]);
    return entry !== undefined;
  },
  unstage({ git, random }) {
    const path = pick(random, files);
    const others = git.index().filter((each) => each.path !== path);
    git.setIndex(others);
    return true;
  },
  commit: ({ git }) => commitIndex(git, git.refreshed(), 'turn'),
  'empty commit'({ git, random }) {
    const commit = emptyCommit(git, String(random(100)));
    if (commit) git.setCommit(commit);
    return commit !== undefined;
  },
  'move a branch'({ git, random }) {
    const commit = emptyCommit(git, String(random(100)));
    return commit !== undefined && git.setRef(heads(random), commit);
  },
  'delete a branch'({ git, random }) {
    const name = heads(random);
    return git.refs().has(name) && git.branch !== name && git.setRef(name, undefined);
  },
  'rename a branch'({ git, random }) {
    const [from, to] = [random(3) === 0 ? (git.branch ?? heads(random)) : heads(random), heads(random)];
    const [commit, isPresent] = [git.refs().get(from), git.branch === from];
    if (commit === undefined || git.refs().has(to)) return false;
    git.setRef(from, undefined);
    const isMoved = git.setRef(to, commit);
    if (!isMoved) git.setRef(from, commit);
    else if (isPresent) git.write('HEAD', `ref: ${to}\n`);
    return isMoved;
  },
  'switch to a branch'({ git, random }) {
    const name = heads(random);
    const commit = git.refs().get(name) ?? git.commit;
    if (commit === undefined || !(git.refs().has(name) || git.setRef(name, commit))) return false;
    git.write('HEAD', `ref: ${name}\n`);
    git.checkOut(git.entriesOf(git.treeOf(commit)));
    return true;
  },
  'leave the branch'({ git }) {
    const { commit, branch } = git;
    if (commit === undefined || branch === undefined) return false;
    git.write('HEAD', `${commit}\n`);
    return true;
  },
  tag: ({ git, random }) => git.commit !== undefined && git.setRef(`refs/tags/t-${pick(random, names)}`, git.commit),
  'delete a tag': ({ git }) => git.refs().has('refs/tags/v-ü') && git.setRef('refs/tags/v-ü', undefined),
  note({ git, random }) {
    const { commit } = git;
    if (commit === undefined) return false;
    const note = { path: commit, mode: 0o100644, object: git.put('blob', Buffer.from(`${random(100)}\n`)) };
    const parent = git.refs().get('refs/notes/commits');
    return git.setRef('refs/notes/commits', git.commitTree(git.putTree([note]), [parent], 'note'));
  },
  'delete a remote ref': ({ git }) => git.setRef('refs/remotes/origin/main', undefined),
  'move the remote HEAD'({ git, random }) {
    return git.setRef('refs/remotes/origin/HEAD', `ref: refs/remotes/origin/${pick(random, ['other', 'main', 'a/b'])}`);
  },
  'pack refs'({ git }) {
    git.packRefs();
    return true;
  },
  stash({ git }) {
    const { commit } = git;
    const [staged, worked] = [git.index(), git.refreshed()];
    if (commit === undefined || [...staged, ...worked].some(({ stage = 0 }) => stage > 0)) return false;
    const index = git.commitTree(git.putTree(staged), [commit], 'index');
    const work = git.commitTree(git.putTree(worked), [commit, index], 'WIP');
    const lines = stashes(git);
    const last = lines.at(-1)?.slice(41, 81) ?? '0'.repeat(40);
    setStashes(git, [...lines, `${last} ${work} t <t@localhost> 1700000000 +0000\tWIP\n`]);
    git.checkOut(git.entriesOf(git.treeOf(commit)));
    return true;
  },
  'pop the stash'({ git }) {
    const lines = stashes(git);
    const work = lines.pop()?.slice(41, 81);
    if (work === undefined) return false;
    const { commit } = git;
    git.checkOut(git.entriesOf(git.treeOf(work)));
    if (commit !== undefined) git.setIndex(git.entriesOf(git.treeOf(commit)));
    setStashes(git, lines);
    return true;
  },
  'drop a stash'({ git, random }) {
    const lines = stashes(git);
    if (lines.length === 0) return false;
    lines.splice(random(lines.length), 1);
    setStashes(git, lines);
    return true;
  },
  'clear the stash'({ git }) {
    const isThere = stashes(git).length > 0;
    setStashes(git, []);
    return isThere;
  },
  configure({ git, random }) {
    appendFileSync(join(git.common, 'config'), `[turn]\n\tvalue = ${random(100)}\n`);
    git.write('info/exclude', `ignored${random(3)}\n`, git.common);
    return true;
  },
  'begin a merge'({ git, random }) {
    const other = git.refs().get(heads(random));
    const conflict = git.index().find(({ path, stage = 0 }) => path === 'a.txt' && stage === 0);
    if (other === undefined || !conflict) return false;
    git.write('MERGE_HEAD', `${other}\n`);
    git.write('MERGE_MSG', `Merge ${random(100)}\n`);
    git.write('MERGE_MODE', '');
    const sides = [1, 2, 3].map((stage) => ({ ...conflict, stage }));
    git.setIndex([...git.index().filter(({ path }) => path !== 'a.txt'), ...sides]);
    writeFileSync(join(git.top, 'a.txt'), '<<<<<<< HEAD\n=======\n>>>>>>> other\n');
    return true;
  },
  'begin a rebase'({ git, random }) {
    const { commit, branch } = git;
    if (commit === undefined || branch === undefined) return false;
    git.write('rebase-merge/head-name', `${branch}\n`);
    git.write('rebase-merge/onto', `${commit}\n`);
    git.write(`rebase-merge/rewritten-list`, `${random(100)}\n`);
    git.write('HEAD', `${commit}\n`);
    return true;
  },
  'reset all'({ git }) {
    const { commit } = git;
    if (commit === undefined) return false;
    git.checkOut(git.entriesOf(git.treeOf(commit)));
    for (const name of ['MERGE_HEAD', 'MERGE_MSG', 'MERGE_MODE']) git.write(name, undefined);
    return true;
  },
  'commit in the nested repository'({ root, random }) {
    const lib = PlainRepository.at(join(root, 'lib'));
    if (!lib || !existsSync(join(root, 'lib/x.txt'))) return false;
    appendFileSync(join(root, 'lib/x.txt'), `${random(100)}\n`);
    return commitIndex(lib, lib.refreshed(), 'lib');
  },
  'refs of the nested repository'({ root, random }) {
    const lib = PlainRepository.at(join(root, 'lib'));
    const commit = lib && emptyCommit(lib, String(random(100)));
    return commit !== undefined && lib?.setRef(heads(random), commit) === true;
  },
  'remove the nested repository'({ root, random }) {
    if (!existsSync(join(root, 'lib/.git'))) return false;
    rmSync(join(root, random(2) === 0 ? 'lib' : 'lib/.git'), { recursive: true });
    return true;
  },
  'commit in the submodule'({ root, random }) {
    const mod = PlainRepository.at(join(root, 'mod'));
    if (!mod || !existsSync(join(root, 'mod/x.txt'))) return false;
    appendFileSync(join(root, 'mod/x.txt'), `${random(100)}\n`);
    return commitIndex(mod, mod.refreshed(), 'mod');
  },
  'take the submodule out'({ root }) {
    if (!existsSync(join(root, 'mod/.git'))) return false;
    rmSync(join(root, 'mod'), { recursive: true });
    mkdirSync(join(root, 'mod'));
    return true;
  },
  'make a repository'({ root, random }) {
    const top = join(root, `made${random(2)}`);
    if (existsSync(top)) return false;
    for (const name of ['.git/objects', '.git/refs/heads']) mkdirSync(join(top, name), { recursive: true });
    writeFileSync(join(top, '.git/HEAD'), 'ref: refs/heads/main\n');
    writeFileSync(join(top, '.git/config'), '[core]\n\trepositoryformatversion = 0\n\tbare = false\n');
    writeFileSync(join(top, 'x.txt'), 'x\n');
    const made = new PlainRepository(top);
    const entry = made.entryAt('x.txt');
    return entry !== undefined && commitIndex(made, [entry], 'made');
  },
} satisfies Record<string, Operation>;

const kinds = Object.keys(operations) as (keyof typeof operations)[];

/** Commands of git itself, for a shell; names are quoted. */
const commands = {
  'git add': (random) => `git add '${pick(random, files)}'`,
  'git commit': () => 'git commit -qam turn',
  'git branch -m': (random) => `git branch -qm '${pick(random, names)}' '${pick(random, names)}'`,
  'git checkout -b': (random) => `git checkout -q -b '${pick(random, names)}'`,
  'git stash': () => 'git stash -q',
  'git stash -u': () => 'git stash -q -u',
  'git stash pop': () => 'git stash pop -q',
  'git stash drop': (random) => `git stash drop -q stash@{${random(2)}}`,
  'git merge': (random) => `git merge -q '${pick(random, names)}'`,
  'git cherry-pick': (random) => `git cherry-pick '${pick(random, names)}'`,
  'git reset': () => 'git reset -q --hard',
  'git notes': () => 'git notes add -f -m turn HEAD',
  'git pack-refs': () => 'git pack-refs --all',
  'git worktree add': () => 'git worktree add -q --detach ../beside-turn',
  'git commit in mod': () => 'git -C mod commit -q --allow-empty -m mod',
  'git stash in lib': () => 'echo y >> lib/x.txt; git -C lib stash -q',
  'git submodule deinit': () => 'git submodule -q deinit -f mod',
  'git init': (random) => `git init -q made${random(2)}`,
} satisfies Record<string, (random: Random) => string>;
export const commandKinds = Object.keys(commands) as (keyof typeof commands)[];

/** Runs a program of operations on files, without a process. @returns the operations that changed something, in order */
export function runFileProgram(root: string, top: string, random: Random): readonly string[] {
  const done: string[] = [];
  const count = 1 + random(4);
  for (let tries = 0; done.length < count && tries < 20; tries += 1) {
    const kind = pick(random, kinds);
    if (operations[kind]({ random, root, git: new PlainRepository(top) })) done.push(kind);
  }
  return done;
}

/** Runs a program of git itself in one shell; a command that cannot be done as things are does nothing. @returns the commands */
export function runGitProgram(root: string, random: Random): readonly string[] {
  const chosen = Array.from({ length: 1 + random(4) }, () => pick(random, commandKinds));
  const script = chosen.map((kind) => commands[kind](random)).join('\n');
  const env = { ...environment, GIT_TEMPLATE_DIR: '' };
  spawnSync('sh', ['-c', script], { cwd: root, env, stdio: 'ignore' });
  return chosen;
}
