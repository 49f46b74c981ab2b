/** Work on checkpoints in whose middle a test kills the process: a turn that is taken back, also in a worktree, a fork, and one that is brought back. */
import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Engine } from '../../src/checkpoints/engine.ts';
import { runGitIn } from '../../src/checkpoints/git.ts';
import { defaultLimits } from '../../src/checkpoints/limits.ts';

export const kinds = ['restore', 'worktree', 'fork', 'merge'] as const;
export type Kind = (typeof kinds)[number];

export interface Place {
  readonly root: string;
  readonly stores: string;
}

export const turn = { thread: 'thread', turn: 'turn_001' };
const environment = { PATH: process.env['PATH'] ?? '' };

/** Store of the workspace, the directory of the fork, and the store of the fork. */
export const placesOf = ({ root, stores }: Place) => ({
  store: join(stores, 'workspace'),
  fork: join(root, '..', 'fork'),
  forkStore: join(stores, 'fork'),
  /** Exists once a conversation works in the fork. */
  conversation: join(stores, 'conversation'),
});

const git = (root: string, ...args: string[]): string =>
  execFileSync('git', ['-c', 'user.name=t', '-c', 'user.email=t@localhost', ...args], { cwd: root, encoding: 'utf8' });

/** Worktrees of the repository of a workspace, itself included. */
export const worktreesOf = (root: string): readonly string[] => git(root, 'worktree', 'list').trim().split('\n');

/** HEAD, branches and the staged changes. */
export const gitStateOf = (root: string): string =>
  ['symbolic-ref HEAD', 'for-each-ref', 'ls-files --stage'].map((line) => git(root, ...line.split(' '))).join('');

/** Makes the empty workspace a repository with one commit, or a worktree of one beside it. */
export function makeRepository(root: string, isWorktree: boolean): void {
  const directory = isWorktree ? join(root, '..', 'repository') : root;
  mkdirSync(directory, { recursive: true });
  git(directory, 'init', '--quiet', '--initial-branch=main');
  git(directory, 'commit', '--quiet', '--allow-empty', '--message=first');
  if (isWorktree) git(directory, 'worktree', 'add', '--quiet', '-b', 'work', root);
}

/** Stages something, as the user. */
export const stageOfUser = (root: string): string => git(root, 'add', 'lines');

/** Commands of git in the turn. */
const gitCommands = {
  restore: ['checkout --quiet -b other', 'add mode', 'commit --quiet --message=second'],
  worktree: ['add mode', 'commit --quiet --message=second', 'checkout --quiet --detach'],
};

export function fill(root: string): void {
  const at = (path: string) => join(root, path);
  for (const directory of ['deleted', 'changed']) mkdirSync(at(directory));
  for (let number = 0; number < 10; number += 1) {
    writeFileSync(at(`deleted/${number}`), `deleted ${number}`);
    writeFileSync(at(`changed/${number}`), `content ${number}`);
  }
  writeFileSync(at('lines'), 'one\ntwo\nthree\nfour\nfive\nsix\nseven\n');
  writeFileSync(at('mode'), 'mode');
  chmodSync(at('mode'), 0o755);
  symlinkSync('target', at('link'));
  mkdirSync(at('closed'));
  writeFileSync(at('closed/file'), 'closed');
  chmodSync(at('closed'), 0o555);
}

function change(root: string): void {
  const at = (path: string) => join(root, path);
  for (let number = 0; number < 10; number += 1) {
    writeFileSync(at(`changed/${number}`), `changed ${number} by the turn`);
    mkdirSync(at(`made/${number}`), { recursive: true });
    writeFileSync(at(`made/${number}/file`), 'made');
  }
  rmSync(at('deleted'), { recursive: true });
  rmSync(at('link'));
  symlinkSync('elsewhere', at('link'));
  chmodSync(at('mode'), 0o600);
  writeFileSync(at('lines'), readFileSync(at('lines'), 'utf8').replace('one', 'ONE'));
}

/** Does the work. @param onStep called before each step that changes the disk */
export async function work(kind: Kind, place: Place, onStep: () => void): Promise<void> {
  const { store, fork, forkStore, conversation } = placesOf(place);
  const engineOf = (root: string, directory: string) =>
    new Engine({
      ...{ root, directory, onStep, git: runGitIn(root, environment), mergeEnvironment: environment },
      limits: { ...defaultLimits, freeBytes: 0 },
    });
  const engine = engineOf(place.root, store);
  if (kind === 'restore' || kind === 'worktree') {
    await engine.mark([{ edge: 'start', ...turn }]);
    change(place.root);
    for (const line of gitCommands[kind]) git(place.root, ...line.split(' '));
    await engine.mark([{ edge: 'end', ...turn }]);
    const order = { thread: 'thread', turns: ['turn_001'], paths: undefined, force: false, conversation: ['turn_001'] };
    await complete(engine, await engine.prepare(order));
  } else {
    engine.announceCopy(fork);
    if (kind === 'fork') git(place.root, 'worktree', 'add', '--quiet', '--no-checkout', '--detach', fork);
    else mkdirSync(fork, { mode: 0o700 });
    onStep();
    await engine.copyTo(fork, undefined);
    writeFileSync(conversation, '');
    onStep();
    engine.keepCopy(fork);
    if (kind === 'merge') await mergeBack(engine, engineOf(fork, forkStore), place.root, fork);
  }
  engine.close();
}

async function mergeBack(engine: Engine, theirs: Engine, root: string, fork: string): Promise<void> {
  await theirs.mark([{ edge: 'start', ...turn }]);
  change(fork);
  await theirs.mark([{ edge: 'end', ...turn }]);
  const lines = join(root, 'lines');
  writeFileSync(lines, readFileSync(lines, 'utf8').replace('seven', 'SEVEN'));
  const changes = await theirs.forkChanges('thread');
  theirs.close();
  await complete(engine, await engine.prepareMerge({ thread: 'thread', fork: changes, force: false }));
}

async function complete(engine: Engine, { number }: { readonly number: number | undefined }): Promise<void> {
  if (number === undefined) throw new Error('the restore was refused');
  await engine.conclude(number, engine.apply(number));
}
