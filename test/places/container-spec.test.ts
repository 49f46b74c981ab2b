import { execFileSync } from 'node:child_process';
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { type ContainerSettings, checkedMount, commonGitDirectory, containerSpec } from '../../src/places/index.ts';
import { temporaryDirectory } from '../hub/harness.ts';

const settings: ContainerSettings = {
  ...{ engine: '/engine.sock', image: 'an-image', network: 'none', memoryMiB: 512, cpus: 1.5, pids: 256 },
  ...{ mounts: [], allowRoot: false },
};

function scene(t: Test) {
  const home = temporaryDirectory(t, 'oratorio-home-');
  const workspacePath = join(temporaryDirectory(t, 'oratorio-ws-'), 'site');
  mkdirSync(workspacePath);
  const git = (...words: string[]) => execFileSync('git', words, { cwd: workspacePath, stdio: 'pipe' });
  const spec = (changes: Partial<ContainerSettings> = {}) =>
    containerSpec({
      ...{ home, workspacePath, logDirectory: join(home, 'hub/logs/x'), skeleton: join(home, 'hub/places/x') },
      ...{
        command: ['/opt/node', 'main.cjs'],
        program: ['/opt/product'],
        environment: {},
        labels: {},
        isRootless: false,
      },
      settings: { ...settings, ...changes },
    }) as { HostConfig: { Mounts: { Source: string; Target: string; ReadOnly: boolean }[] } & Record<string, unknown> };
  const mounts = (changes?: Partial<ContainerSettings>) => spec(changes).HostConfig.Mounts;
  return { home, workspacePath, git, spec, mounts };
}

t.test('a container has limits, no capabilities, no new privileges and no restart policy', async (t) => {
  const { spec } = scene(t);
  t.match(spec(), {
    Image: 'an-image',
    User: `${process.getuid?.()}:${process.getgid?.()}`,
    HostConfig: {
      ...{ NetworkMode: 'none', CapDrop: ['ALL'], SecurityOpt: ['no-new-privileges'], Privileged: false },
      ...{ ReadonlyRootfs: true, PidsLimit: 256, Memory: 536_870_912, NanoCpus: 1_500_000_000 },
      RestartPolicy: { Name: 'no' },
    },
  });
});

t.test('only the state of the workspace is mounted from the home', async (t) => {
  const { home, mounts } = scene(t);
  const sources = mounts().map(({ Source }) => Source);
  t.notOk(sources.includes(home));
  t.same(sources.filter((source) => source.startsWith(`${home}/workspaces/`)).length, 1);
});

t.test('hooks and configuration of git are read-only, and the git directory cannot be moved', async (t) => {
  const { workspacePath, git, mounts } = scene(t);
  git('init', '-q');
  const of = (name: string) => mounts().find(({ Target }) => Target === join(workspacePath, name));
  t.match(of('.git'), { ReadOnly: false });
  t.match(of('.git/config'), { ReadOnly: true });
  t.match(of('.git/hooks'), { ReadOnly: true });
});

t.test('the common git directory of a worktree is mounted', async (t) => {
  const { workspacePath, git } = scene(t);
  git('init', '-q');
  git('-c', 'user.name=a', '-c', 'user.email=a@b', 'commit', '-q', '--allow-empty', '-m', 'one');
  const worktree = join(temporaryDirectory(t), 'feature');
  git('worktree', 'add', '-q', worktree);
  t.equal(commonGitDirectory(worktree), join(workspacePath, '.git'));
  t.equal(commonGitDirectory(workspacePath), undefined);
});

t.test('the git directory of another repository that a clone names is not mounted', async (t) => {
  const { workspacePath, git } = scene(t);
  git('init', '-q');
  const clone = join(temporaryDirectory(t), 'clone');
  mkdirSync(clone);
  writeFileSync(join(clone, '.git'), `gitdir: ${join(workspacePath, '.git')}\n`);
  t.equal(commonGitDirectory(clone), undefined);
});

t.test('mounts of system directories, homes, keys and sockets are refused by name', async (t) => {
  const { home } = scene(t);
  const link = join(temporaryDirectory(t), 'link');
  symlinkSync('/', link);
  for (const path of [
    '/',
    '/root',
    '/home',
    '/run',
    '/var/run/docker.sock',
    '/proc',
    home,
    join(home, 'hub'),
    link,
    '/missing',
    'relative',
  ])
    t.throws(() => checkedMount(path, home), { name: 'MountRefusal', message: path }, path);
  const data = temporaryDirectory(t);
  t.match(checkedMount(`${data}:ro`, home), { path: data, isReadOnly: true });
});
