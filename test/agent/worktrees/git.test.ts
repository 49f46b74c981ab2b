import { chmodSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { GitFailure, gitIn } from '../../../src/agent/worktrees/git.ts';

const notFound = 'fatal: not a git repository (or any parent up to mount point /w)';

for (const [condition, said, reason] of [
  ['with advice after the reason', `${notFound}\nStopping at filesystem boundary.\n`, notFound],
  ['without a fatal error', 'error: patch failed: a.txt:1\nerror: a.txt: no match\n', 'error: a.txt: no match'],
  ['without a word', '', 'git status ended with 3'],
] as const) {
  t.test(`a git that fails ${condition} is reported with its reason`, async (t) => {
    const directory = t.testdir({ said, bin: {}, ws: {} });
    const git = join(directory, 'bin', 'git');
    writeFileSync(git, `#!/bin/sh\ncat '${join(directory, 'said')}' >&2\nexit 3\n`);
    chmodSync(git, 0o755);
    const run = gitIn({ PATH: `${join(directory, 'bin')}:/usr/bin:/bin` });
    await t.rejects(run(['status'], { cwd: join(directory, 'ws') }), new GitFailure(reason));
  });
}

t.test('regression: H48 a program of the workspace is not git for a fork of it', async (t) => {
  const directory = t.testdir({
    ws: { bin: {}, '.oratorio': { 'config.json': '{}' } },
    '.oratorio-worktrees': { fork: {} },
  });
  const planted = join(directory, 'ws', 'bin', 'git');
  writeFileSync(planted, `#!/bin/sh\necho planted\n`);
  chmodSync(planted, 0o755);
  const run = gitIn({ PATH: `${join(directory, 'ws', 'bin')}:${process.env['PATH']}` });
  const fork = join(directory, '.oratorio-worktrees', 'fork');
  t.match(await run(['--version'], { cwd: fork }), /^git version/);
  rmSync(join(directory, 'ws', '.oratorio'), { recursive: true });
  t.equal(await run(['--version'], { cwd: fork }), 'planted', 'the control: the directory is no workspace');
});
