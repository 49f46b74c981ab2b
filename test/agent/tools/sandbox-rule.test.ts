/** The documentation shows the rule of the sandbox, row by row. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { root } from '../../../scripts/toolchain.mjs';
import { agentRule, gitRule, homeRule, isGitWork, secretRule } from '../../../src/agent/tools/exec/sandbox-rule.ts';

t.test('docs/tools.md has a line for each row of the rule', async (t) => {
  const lines = readFileSync(join(root, 'docs/tools.md'), 'utf8').split('\n');
  for (const { names, access, reason } of [...gitRule, ...homeRule, ...secretRule, ...agentRule]) {
    const shown = names.split(/\s+/).filter(Boolean);
    t.ok(lines.includes(`| ${reason} | ${access} | ${shown.map((name) => `\`${name}\``).join(' ')} |`), reason);
  }
});

t.test('ordinary work of git is allowed, everything else is not', async (t) => {
  const work =
    'HEAD HEAD.lock index index.lock index.stash.12 next-index-1.lock sharedindex.ab12 packed-refs packed-refs.new packed-refs.lock ORIG_HEAD MERGE_MSG AUTO_MERGE BISECT_LOG COMMIT_EDITMSG shallow shallow.lock shallow_x1 objects refs logs rebase-merge sequencer rr-cache gc.pid.lock reftable';
  const other =
    'config config.lock.x config.worktree hooks hooks.old info modules worktrees commondir gitdir branches remotes description fsmonitor--daemon.ipc Hooks indexer objects2 refs.sh lfsx';
  for (const name of work.split(' ')) t.ok(isGitWork(name), name);
  for (const name of other.split(' ')) t.notOk(isGitWork(name), name);
});
