/** Commands in directories beside and below workspaces, which are not workspaces themselves. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import t, { type Test } from 'tap';
import { forksOf } from '../../src/agent/index.ts';
import { inChosenWorkspace } from '../../src/cli/choose-workspace.ts';
import type { CommandContext } from '../../src/cli/command.ts';
import { initWorkspace, openWorkspace, WorkspaceError, workspaceAbove } from '../../src/config/index.ts';
import { programEnvironment } from '../programs.ts';
import { runAt } from './in-process.ts';

function scene(t: Test) {
  const root = realpathSync(mkdtempSync(join(tmpdir(), 'oratorio-choose-')));
  t.teardown(() => rmSync(root, { recursive: true, force: true }));
  const home = join(root, 'home');
  const env = { ...programEnvironment, HOME: root, ORATORIO_HOME: home, NO_COLOR: '1' };
  const site = join(root, 'projects', 'site');
  initWorkspace(site, env);
  const other = join(root, 'projects', 'other', 'deep');
  mkdirSync(other, { recursive: true });
  return { root, home, env, site, other, run: (cwd: string, ...argv: string[]) => runAt({ cwd, env }, ...argv) };
}

const faultOf = (path: string, home: string): string => {
  try {
    return openWorkspace(path, { home }).path;
  } catch (error) {
    if (error instanceof WorkspaceError) return error.fault;
    throw error;
  }
};

t.test('regression: C6 a fork makes no directory around it a workspace, in a repository and without one', async (t) => {
  for (const hasGit of [true, false]) {
    const { root, home, site, other, run } = scene(t);
    if (hasGit) {
      execFileSync('git', ['init', '-q', site]);
      execFileSync('git', ['-c', 'user.name=a', '-c', 'user.email=a@b', 'commit', '-qm', 'x', '--allow-empty'], {
        cwd: site,
      });
    }
    let announced = '';
    const fork = await forksOf({ environment: process.env, passEnvironment: [], secrets: [] })(site, async (path) => {
      announced = path;
    });
    t.equal(fork, announced);
    t.equal(dirname(dirname(String(fork))), dirname(site), 'it lies beside the workspace');
    for (const path of [dirname(site), dirname(String(fork)), String(fork), root]) {
      t.equal(faultOf(path, home), 'notWorkspace', path);
    }
    t.equal(workspaceAbove(other, { home }), undefined);
    for (const argv of [['exec', 'run: pwd'], ['context']]) {
      const { code, stderr } = await run(other, ...argv);
      t.equal(code, 4, `${argv[0]}: ${stderr}`);
    }
  }
});

t.test('regression: C6 directories that earlier versions and other programs left are not workspaces', async (t) => {
  const { root, home, other, run } = scene(t);
  mkdirSync(join(root, 'projects', '.oratorio', 'worktrees', 'site-1'), { recursive: true });
  t.equal(faultOf(join(root, 'projects'), home), 'notWorkspace');
  t.equal(workspaceAbove(other, { home }), undefined);
  const { code, stderr } = await run(other, 'exec', 'run: pwd');
  t.equal(code, 4);
  t.match(stderr, /is not a/);
  // The usual home of a user who has another one now.
  const before = process.env['HOME'];
  process.env['HOME'] = root;
  try {
    mkdirSync(join(root, '.oratorio'));
    writeFileSync(join(root, '.oratorio', 'config.json'), '{}');
    t.equal(workspaceAbove(other, { home }), undefined);
  } finally {
    process.env['HOME'] = before;
  }
});

t.test('a workspace that has run stays one without its configuration file', async (t) => {
  const { home, site } = scene(t);
  rmSync(join(site, '.oratorio', 'config.json'));
  t.equal(faultOf(site, home), 'notWorkspace');
  mkdirSync(initialState(site, home), { recursive: true });
  t.equal(faultOf(site, home), site);
  t.equal(workspaceAbove(join(site, 'src'), { home }), undefined, 'but no command walks up to it');
});

const initialState = (site: string, home: string): string => {
  writeFileSync(join(site, '.oratorio', 'config.json'), '{}');
  const { stateDirectory } = openWorkspace(site, { home });
  rmSync(join(site, '.oratorio', 'config.json'));
  return stateDirectory;
};

t.test('a command below a workspace uses it, and says so on an undimmed line', async (t) => {
  const { site, home, run } = scene(t);
  const below = join(site, 'src', 'lib');
  mkdirSync(below, { recursive: true });
  t.equal(workspaceAbove(below, { home }), site);
  const shown = await run(below, 'context');
  t.equal(shown.code, 0, shown.stderr);
  t.match(shown.stderr, `· Workspace ${site}: the directory is in it`);
  const notes: string[] = [];
  const output = { note: (line: string) => notes.push(line), colors: { dim: (text: string) => `dim ${text}` } };
  const context = { options: {}, cwd: below, home, output } as unknown as CommandContext;
  const chosen = await inChosenWorkspace(context, { mayOffer: false });
  t.equal(chosen.options['workspace'], site);
  t.same(notes, [`· Workspace ${site}: the current directory is in it`]);
});
