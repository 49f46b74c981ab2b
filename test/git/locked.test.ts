import { execFileSync } from 'node:child_process';
import { chmodSync, existsSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { forksOf, worktreesOf } from '../../src/agent/index.ts';
import { runGitIn } from '../../src/checkpoints/git.ts';
import { type GitRun, gitEnvironment, runGit } from '../../src/git/index.ts';
import { runProgram } from '../../src/supervise/index.ts';
import { configure, fetchers, type HostileRepository, hostileRepository, touchFiles } from './hostile-repository.ts';

const settingsOf = ({ env }: Pick<HostileRepository, 'env'>) => ({
  environment: env,
  passEnvironment: [],
  secrets: [],
});

t.test('no program of a repository runs in the worktree of a sub-agent, and its changes come back', async (t) => {
  const repository = hostileRepository(t);
  touchFiles(repository.path);
  const opened = await worktreesOf(settingsOf(repository))(repository.path, 'one');
  if (typeof opened === 'string') return t.fail(opened);
  for (const name of ['f.single', 'f.long', 'f.odd', 'f.inc', 'f.wt', 'a.txt']) {
    t.equal(readFileSync(join(opened.path, name), 'utf8'), readFileSync(join(repository.path, name), 'utf8'), name);
    writeFileSync(join(opened.path, name), `changed ${name}\n`);
  }
  t.match(await opened.close(true), 'its changes are in the workspace now: a.txt, f.inc, f.long');
  t.equal(readFileSync(join(repository.path, 'f.single'), 'utf8'), 'changed f.single\n');
  t.strictSame(repository.ran(), []);
});

t.test('no program of a repository runs for a fork, for checkpoints and for a prune of worktrees', async (t) => {
  const repository = hostileRepository(t);
  touchFiles(repository.path);
  t.type(await forksOf(settingsOf(repository))(repository.path, async () => {}), 'string');
  const git = runGitIn(repository.path, repository.env);
  const commands: readonly (readonly [readonly string[], string])[] = [
    [['check-ignore', '-z', '--stdin'], 'a.txt\0'],
    [['ls-files', '-z', '--others', '--ignored', '--exclude-standard', '--directory'], ''],
    [['ls-files', '-z', '--stage', '-v'], ''],
    [['update-ref', '--stdin'], 'create refs/heads/new HEAD\n'],
    [['symbolic-ref', 'HEAD', 'refs/heads/other'], ''],
  ];
  for (const [args, input] of commands) t.not(await git(args, input), undefined, args.join(' '));
  await runGit({ args: ['worktree', 'prune'], cwd: repository.path, env: repository.env });
  t.strictSame(repository.ran(), []);
});

t.test('no program of a repository runs for any command on its files, which plain git would run', async (t) => {
  const repository = hostileRepository(t);
  const { path, env, plainly, ran } = repository;
  const commands = [
    ['status'],
    ['add', '--all', '--', ':(exclude)sub'],
    ['diff', 'HEAD'],
    ['stash', 'list', '-p'],
    ['log', '-1', '-p'],
    ['commit', '-qm', 'x'],
    ['checkout', '-q', 'other'],
    ['checkout', '-qf', 'main', '--', '.'],
    ['merge', '--no-edit', 'other'],
    ['fetch', 'origin'],
    ['gc', '--auto'],
  ];
  const person = { GIT_AUTHOR_NAME: 'a', GIT_AUTHOR_EMAIL: 'a@b', GIT_COMMITTER_NAME: 'a', GIT_COMMITTER_EMAIL: 'a@b' };
  for (const args of commands) {
    touchFiles(path);
    await runGit({ args, cwd: path, env, workspacePath: path, convertsFiles: true, variables: person });
    t.strictSame(ran(), [], args.join(' '));
  }
  // The fetch would wait for its program.
  for (const args of commands.filter(([name]) => name !== 'fetch')) {
    touchFiles(path);
    plainly(...args);
  }
  const expected = [
    'core.fsmonitor',
    'diff.external',
    'filter.included.clean',
    'filter.long.process',
    'filter.single.clean',
  ];
  const all = ran();
  for (const name of [...expected, 'gpg.openpgp.program', 'post-checkout', 'reference-transaction'])
    t.ok(all.includes(name), name);
});

/** A repository that lacks the commit of HEAD, and says where to fetch it. */
function partialClone(t: Test, own: Readonly<Record<string, string>>): string {
  const path = realpathSync(t.testdir());
  const git = (...args: string[]) =>
    execFileSync('git', ['-c', 'user.name=a', '-c', 'user.email=a@b', ...args], { cwd: path });
  git('init', '-q', '-b', 'main');
  git('commit', '-q', '--allow-empty', '-m', 'x');
  const partial = {
    'core.repositoryformatversion': '1',
    'extensions.partialClone': 'origin',
    'remote.origin.promisor': 'true',
  };
  configure(path, { ...partial, ...own });
  const head = readFileSync(join(path, '.git', 'refs', 'heads', 'main'), 'utf8').trim();
  rmSync(join(path, '.git', 'objects', head.slice(0, 2), head.slice(2)));
  return path;
}

t.test('a missing object is not fetched', async (t) => {
  const bin = t.testdir();
  const program = (name: string): string => {
    const file = join(bin, name);
    writeFileSync(file, `#!/bin/sh\n: > '${bin}/ran'\n`, { mode: 0o755 });
    return file;
  };
  program('git-remote-evil');
  const hasRun = (): boolean => {
    const found = existsSync(join(bin, 'ran'));
    rmSync(join(bin, 'ran'), { force: true });
    return found;
  };
  for (const [way, own] of Object.entries(fetchers(program))) {
    await t.test(`by ${way}`, async (t) => {
      const path = partialClone(t, own);
      const env = { PATH: `${bin}:${process.env['PATH']}`, HOME: bin };
      const refused = await forksOf(settingsOf({ env }))(path, async () => {});
      t.match(refused, { reason: /./ });
      await runGitIn(path, env)(['cat-file', '-p', 'HEAD'], '');
      t.notOk(hasRun());
      t.throws(() => execFileSync('git', ['cat-file', '-p', 'HEAD'], { cwd: path, env, stdio: 'ignore' }));
      t.ok(hasRun(), 'plain git runs the program');
    });
  }
});

t.test('git is never a program of the workspace, and reads no configuration of the user', async (t) => {
  const base = t.testdir({
    ws: { bin: { git: '#!/bin/sh\necho of the workspace\n' } },
    '.gitconfig': '[user]\n\tname = Ada\n',
  });
  const cwd = join(base, 'ws');
  chmodSync(join(cwd, 'bin', 'git'), 0o755);
  const printed = async (run: Partial<GitRun>) => {
    let text = '';
    const env = {
      PATH: `bin:${cwd}/bin:${process.env['PATH']}`,
      HOME: base,
      GIT_CONFIG_GLOBAL: join(base, '.gitconfig'),
    };
    const stdout = (chunk: Buffer) => {
      text += chunk.toString();
    };
    await runGit({ args: ['config', '--list'], cwd, env, stdout, ...run });
    return text;
  };
  t.equal(await printed({}), 'of the workspace\n', 'control: without a workspace the search path holds');
  t.notMatch(await printed({ workspacePath: cwd }), /of the workspace|Ada/);
  t.match(await printed({ workspacePath: cwd, hasUsersConfiguration: true }), 'user.name=Ada');
});

t.test('git is found without a search path, and never in the working directory', async (t) => {
  const cwd = t.testdir({ git: '#!/bin/sh\necho of the workspace\n' });
  chmodSync(join(cwd, 'git'), 0o755);
  for (const workspacePath of [undefined, cwd]) {
    for (const PATH of [undefined, '', '.', ':', cwd]) {
      // Where the caller names no workspace, an absolute directory is the caller's choice.
      if (PATH === cwd && workspacePath === undefined) continue;
      let text = '';
      const stdout = (chunk: Buffer) => {
        text += chunk.toString();
      };
      const { exitCode } = await runGit({ args: ['--version'], cwd, env: { PATH }, workspacePath, stdout });
      t.match([exitCode, text], [0, 'git version'], `PATH: ${PATH}`);
    }
  }
  const control = await runProgram({ program: 'git', args: ['--version'], cwd, env: { PATH: '.' } });
  t.equal(control.exitCode, 0, 'control: plain git is that of the directory');
});

t.test('a bare repository that lies in a workspace is not taken for its repository', async (t) => {
  const { path, env, plainly } = hostileRepository(t);
  plainly('clone', '-q', '--bare', '.', 'bare.git');
  const asked = { args: ['rev-parse', '--git-dir'], cwd: join(path, 'bare.git') };
  t.equal((await runProgram({ program: 'git', env, ...asked })).exitCode, 0, 'control: plain git takes it');
  t.not((await runGit({ env, ...asked })).exitCode, 0);
});

t.test('transports, prompts and credentials are off unless they are allowed', async (t) => {
  const closed = gitEnvironment({ PATH: '/usr/bin', GIT_SSH_COMMAND: 'evil', GIT_DIR: '/x' });
  t.match(closed, {
    GIT_ALLOW_PROTOCOL: '',
    GIT_NO_LAZY_FETCH: '1',
    GIT_TERMINAL_PROMPT: '0',
    GIT_SSH_COMMAND: 'false',
  });
  t.notOk('GIT_DIR' in closed);
  const open = gitEnvironment(
    { PATH: '/usr/bin', HOME: '/home/ada' },
    { transports: ['https', 'ssh'], hasUsersConfiguration: true },
  );
  t.match(open, { GIT_ALLOW_PROTOCOL: 'https:ssh', HOME: '/home/ada' });
  t.notOk('GIT_NO_LAZY_FETCH' in open);
});
