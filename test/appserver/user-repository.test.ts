/** Files of a workspace in the repository of its user, with real git. */
import {
  appendFileSync,
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { type HeldWorkspace, hideFromGit, holdWorkspace } from '../../src/appserver/workspace.ts';
import { initWorkspace } from '../../src/config/index.ts';
import { ownIdentity } from '../../src/supervise/index.ts';
import { gitIn } from '../checkpoints/repositories.ts';
import { runInProcess } from '../cli/in-process.ts';
import { temporaryDirectory } from './harness.ts';

type Git = ReturnType<typeof gitIn>;

interface Scene {
  readonly home: string;
  /** Top of the working tree, and of a workspace unless `path` differs. */
  readonly top: string;
  readonly path: string;
  readonly git: Git;
}

function repository(t: Test): Scene {
  const root = temporaryDirectory(t);
  const top = join(root, 'tree');
  mkdirSync(top);
  const git = gitIn(top);
  git('init', '-q', '-b', 'main');
  writeFileSync(join(top, 'a.txt'), 'one\n');
  git('add', '-A');
  git('commit', '-qm', 'one');
  return { home: join(root, 'home'), top, path: top, git };
}

/** Ways in which a workspace lies in a repository. */
const layouts: Readonly<Record<string, (t: Test) => Scene>> = {
  'a plain repository': repository,
  'a worktree': (t) => {
    const { home, git, top } = repository(t);
    const linked = join(top, '..', 'linked');
    git('worktree', 'add', '-q', '-b', 'other', linked);
    return { home, top: linked, path: linked, git: gitIn(linked) };
  },
  'a directory below the root': (t) => {
    const scene = repository(t);
    const path = join(scene.top, 'pkg', 'über');
    mkdirSync(path, { recursive: true });
    writeFileSync(join(path, 'c.txt'), 'c\n');
    scene.git('add', '-A');
    scene.git('commit', '-qm', 'two');
    return { ...scene, path };
  },
  'a submodule': (t) => {
    const { home, git, top } = repository(t);
    git('submodule', '--quiet', 'add', top, 'libs/sub');
    git('commit', '-qm', 'sub');
    const path = join(top, 'libs', 'sub');
    return { home, top: path, path, git: gitIn(path) };
  },
};

const settings = (path: string): string => join(path, '.oratorio', 'config.json');
const ownNames = (path: string): string[] => readdirSync(join(path, '.oratorio')).toSorted();
const status = (git: Git): string => git('status', '--porcelain', '--untracked-files=all');

/** Holds a workspace as a running server does, with its lock, its mutex and its published address. */
async function hold(t: Test, { path, home }: Scene): Promise<HeldWorkspace> {
  const held = holdWorkspace(path, home);
  await hideFromGit(held);
  held.publish({
    ...{ version: 1, pid: process.pid, identity: ownIdentity(), workspacePath: path, managedByHub: false },
    ...{ incarnation: null, adoptionProof: null, startedAt: new Date().toISOString(), serverVersion: '1' },
    endpoints: { appServerWebSocket: 'ws://127.0.0.1:1/ws?token=t' },
  });
  t.teardown(() => held.lock.release());
  return held;
}

/** Settings that the user commits, in a repository without a `.gitignore` of ours. */
function shareSettings({ path, git }: Scene): void {
  mkdirSync(join(path, '.oratorio'));
  writeFileSync(settings(path), '{}\n');
  git('add', '-A');
  git('commit', '-qm', 'settings');
}

for (const [name, make] of Object.entries(layouts)) {
  t.test(`git commands of the user leave the files of an initialised workspace alone in ${name}`, async (t) => {
    const scene = make(t);
    const { path, top, home, git } = scene;
    initWorkspace(path, { ORATORIO_HOME: home });
    writeFileSync(settings(path), '{"Model":"demo"}');
    await hold(t, scene);
    t.equal(status(git), '');
    const before = ownNames(path);
    t.same(before, ['.gitignore', 'appserver.lock', 'appserver.mutex', 'config.json']);

    writeFileSync(join(top, 'b.txt'), 'work\n');
    git('stash', '-q', '-u');
    t.notOk(existsSync(join(top, 'b.txt')), 'positive control: the stash takes untracked files');
    t.same(ownNames(path), before);
    git('add', '-A');
    t.equal(status(git), '');
    git('stash', 'pop', '-q');
    t.equal(git('stash', 'list'), '');
    t.equal(readFileSync(join(top, 'b.txt'), 'utf8'), 'work\n');

    git('clean', '-qfd');
    t.notOk(existsSync(join(top, 'b.txt')), 'positive control: the cleaning deletes untracked files');
    t.same(ownNames(path), before);
    t.equal(readFileSync(settings(path), 'utf8'), '{"Model":"demo"}');
  });

  t.test(`git does not see a running server of a workspace that was never initialised in ${name}`, async (t) => {
    const scene = make(t);
    const { path, git } = scene;
    shareSettings(scene);
    const held = await hold(t, scene);
    t.same(ownNames(path), ['appserver.lock', 'appserver.mutex', 'config.json'], 'only init writes .gitignore');
    mkdirSync(join(path, '.oratorio', 'restore'));
    writeFileSync(join(path, '.oratorio', 'restore', 'x'), '');
    t.equal(status(git), '');
    git('stash', '-q', '-u');
    git('clean', '-qfd');
    t.ok(existsSync(join(path, '.oratorio', 'appserver.lock')));
    const exclude = git('rev-parse', '--path-format=absolute', '--git-path', 'info/exclude');
    const text = readFileSync(exclude, 'utf8');
    rmSync(exclude);
    t.match(status(git), /appserver\.lock/, 'positive control: without the patterns git shows it');
    writeFileSync(exclude, text);
    held.lock.release();
    await hold(t, scene);
    t.equal(readFileSync(exclude, 'utf8'), text, 'the next start adds nothing');
  });
}

t.test('a setting file that the user tracks stays tracked, and init changes no tracked file', async (t) => {
  const scene = repository(t);
  const { path, home, git } = scene;
  shareSettings(scene);
  const earlier = '# Written by Oratorio: settings can be committed, everything else stays here.\n';
  const text = `${earlier}/*\n!/.gitignore\n!/config.json\n!/commands/\n!/skills/\n`;
  const gitignore = join(path, '.oratorio', '.gitignore');
  writeFileSync(gitignore, text);
  git('add', '-A');
  git('commit', '-qm', 'gitignore');
  t.match(await runInProcess(home, 'init', path), { code: 0 });
  t.equal(status(git), '');
  writeFileSync(settings(path), '{"Model":"demo"}');
  await hold(t, scene);
  t.equal(status(git), 'M .oratorio/config.json');
  git('commit', '-qam', 'more');

  git('rm', '-q', '--cached', '.oratorio/.gitignore');
  git('commit', '-qm', 'untracked');
  t.equal(status(git), '?? .oratorio/.gitignore', 'positive control: the earlier text does not ignore itself');
  t.match(await runInProcess(home, 'init', path), { code: 0 });
  t.equal(status(git), '', 'init renews the text of an earlier version when the repository does not hold it');
  writeFileSync(gitignore, 'mine\n');
  t.match(await runInProcess(home, 'init', path), { code: 0 });
  t.equal(readFileSync(gitignore, 'utf8'), 'mine\n');
});

t.test('the patterns for git reach no file outside of the repository that owns the workspace', async (t) => {
  const plant: Readonly<Record<string, (scene: Scene, target: string) => void>> = {
    'info/exclude is a link': ({ top }, target) => {
      rmSync(join(top, '.git', 'info', 'exclude'), { force: true });
      symlinkSync(target, join(top, '.git', 'info', 'exclude'));
    },
    'info is a link': ({ top }, target) => {
      rmSync(join(top, '.git', 'info'), { recursive: true, force: true });
      symlinkSync(join(target, '..'), join(top, '.git', 'info'));
    },
    'info/exclude is a hard link': ({ top }, target) => {
      rmSync(join(top, '.git', 'info', 'exclude'), { force: true });
      linkSync(target, join(top, '.git', 'info', 'exclude'));
    },
    '.git is a file that names another repository': ({ top }, target) => {
      rmSync(join(top, '.git'), { recursive: true });
      writeFileSync(join(top, '.git'), `gitdir: ${join(target, '..', '..')}\n`);
    },
    '.git is a link to another repository': ({ top }, target) => {
      rmSync(join(top, '.git'), { recursive: true });
      symlinkSync(join(target, '..', '..'), join(top, '.git'));
    },
  };
  for (const [name, change] of Object.entries(plant)) {
    const other = repository(t);
    const target = join(other.top, '.git', 'info', 'exclude');
    mkdirSync(join(target, '..'), { recursive: true });
    appendFileSync(target, 'mine');
    const scene = repository(t);
    shareSettings(scene);
    change(scene, target);
    const before = readFileSync(target, 'utf8');
    await hold(t, scene);
    t.equal(readFileSync(target, 'utf8'), before, name);
  }
  const scene = repository(t);
  shareSettings(scene);
  rmSync(join(scene.top, '.git', 'info'), { recursive: true, force: true });
  await hold(t, scene);
  t.equal(status(scene.git), '', 'positive control: a missing directory of the own repository is made');
});
