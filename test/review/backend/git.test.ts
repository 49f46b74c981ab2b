import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { createRoutedGit } from '../../../src/review/backend/git.ts';
import { settingsWith } from '../webhook/harness.ts';

t.test('regression: an unusable workspace blocks no other workspace', async (t) => {
  const [good, bad] = ['good', 'bad'].map((name) => join(t.testdirName, name)) as [string, string];
  t.testdir({ good: {}, bad: { '.oratorio': {} } });
  // In the way of its worktrees.
  writeFileSync(join(bad, '.oratorio', 'worktrees'), '');
  mkdirSync(join(good, '.oratorio'));
  const RepositoryWorkspaceRoutes = [
    { Project: 'Codertocat/Hello-World', WorkspacePath: bad },
    { Project: 'octo/hello', WorkspacePath: good },
  ];
  const git = createRoutedGit(() => settingsWith({}, { AgentServer: { RepositoryWorkspaceRoutes } }), {});
  t.teardown(() => git.close());
  await git.release('a-run', 'succeeded');
  t.same(await git.clean(new Date(), () => false), { removed: [], failed: [] });
  const worktree = join(good, '.oratorio', 'worktrees', 'octo-hello-0123456789ab');
  await t.rejects(git.verifyClean(worktree), { name: 'GitError' }, 'asked of the one it belongs to');
});
