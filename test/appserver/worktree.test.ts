/** Threads that work somewhere else than in the workspace, over real JSON-RPC with the demo model and the real tools. */
import { existsSync, mkdirSync, realpathSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import t from 'tap';
import { revokeTrust } from '../../src/config/index.ts';
import { gitIn } from '../checkpoints/repositories.ts';
import { makeWorkspace, startServer, temporaryDirectory } from './harness.ts';
import { Session, scenario } from './session.ts';

function makeWorktree(root: string, name = 'one'): string {
  const worktree = join(root, name);
  mkdirSync(worktree, { recursive: true });
  writeFileSync(join(worktree, 'a.txt'), `in ${name}\n`);
  return realpathSync(worktree);
}

const rootIn = (path: string) => join(path, '.oratorio', 'worktrees');

/** Results of the tools of the next turn. */
async function toolResults(session: Session, threadId: string, prompt: string): Promise<string[]> {
  const turnId = await session.say(threadId, prompt);
  const { turn } = await session.until(
    'turn/completed',
    (params) => params.turn.id === turnId && params.threadId === threadId,
  );
  return turn.items.flatMap((item) => (item.type === 'toolResult' ? [item.text] : []));
}

scenario(
  t,
  'a thread with a workspace override reads, writes and runs commands in the worktree',
  {},
  async (t, { open, path }) => {
    const worktree = makeWorktree(rootIn(path));
    const session = await open({ onApproval: () => ({ decision: 'accept' }) });
    const { thread } = await session.call('thread/start', { config: { workspaceOverride: worktree } });
    t.match(thread, { workspacePath: path, config: { workspaceOverride: worktree } });
    const results = await toolResults(session, thread.id, 'read a.txt\nwrite b.txt: made\nrun: pwd');
    t.match(results, [/in one/, /b\.txt/, worktree]);
    t.ok(existsSync(join(worktree, 'b.txt')));
    t.notOk(existsSync(join(path, 'b.txt')));
  },
);

t.test('a fork with files of its own is refused without trust, and the error names the commands', async (t) => {
  const { path, home } = makeWorkspace(t);
  revokeTrust({ home, workspace: path });
  const { server } = await startServer(t, undefined, {
    workspacePath: path,
    env: { ...process.env, ORATORIO_HOME: home },
  });
  const session = await Session.open(t, server.webSocketUrl, {});
  const { thread } = await session.call('thread/start', {});
  const refused = await session.refused('thread/fork', { threadId: thread.id, worktree: true });
  t.match(refused, { name: 'workspaceRestricted', data: { workspacePath: path } });
  t.match(refused.message, /oratorio trust .*oratorio restart /);
  t.ok((await session.call('thread/fork', { threadId: thread.id })).thread.id, 'a fork without files needs no trust');
});

scenario(
  t,
  'forks beside a workspace below the root of a repository stay out of that repository',
  {},
  async (t, { open, path }) => {
    const git = gitIn(dirname(path));
    git('init', '-q', '-b', 'main');
    writeFileSync(join(path, 'a.txt'), 'findme\n');
    git('add', '-A');
    git('commit', '-qm', 'one');
    const session = await open({ onApproval: () => ({ decision: 'accept' }) });
    const { thread } = await session.call('thread/start', { config: { approvalPolicy: 'autoApprove' } });
    await toolResults(session, thread.id, 'read a.txt');
    const { thread: fork } = await session.call('thread/fork', { threadId: thread.id, worktree: true });
    const directory = fork.config?.workspaceOverride ?? '';
    t.ok(existsSync(join(directory, 'a.txt')), directory);
    t.equal(dirname(dirname(directory)), dirname(path));
    writeFileSync(join(dirname(path), 'own.txt'), '');
    git('add', '-A');
    t.equal(
      git('ls-files', 'own.txt', basename(dirname(directory))).trim(),
      'own.txt',
      'control: a file of the user is added',
    );
    const results = await toolResults(session, fork.id, 'grep "findme" in .\nwrite b.txt: made');
    t.match(results[0], 'a.txt', 'the fork finds its own files');
    await session.call('thread/rollback', { threadId: fork.id, numTurns: 1, restoreFiles: true });
    t.notOk(existsSync(join(directory, 'b.txt')), 'and its turns can be taken back');
  },
);

scenario(t, 'a read-only thread writes nothing and requests no approval', {}, async (t, { open, path }) => {
  const worktree = makeWorktree(rootIn(path));
  const session = await open({ onApproval: () => ({ decision: 'accept' }) });
  const config = { workspaceOverride: worktree, readOnly: true };
  const { thread } = await session.call('thread/start', { config });
  const results = await toolResults(session, thread.id, 'read a.txt\nwrite b.txt: made\nrun: touch c.txt');
  t.match(results[0], /in one/);
  t.same(session.approvals, []);
  t.notOk(existsSync(join(worktree, 'b.txt')) || existsSync(join(worktree, 'c.txt')));
  t.match(await session.refused('thread/config/update', { threadId: thread.id, config: { readOnly: false } }), {
    name: 'workspaceOverrideRefused',
    data: { reason: 'decided' },
  });
});

scenario(
  t,
  'a directory that is not a worktree of this server is refused with the reason',
  {},
  async (t, { open, path }) => {
    const session = await open();
    const refusal = (workspaceOverride: unknown) => session.refused('thread/start', { config: { workspaceOverride } });
    t.match(await refusal('worktrees/one'), { name: 'workspaceOverrideRefused', data: { reason: 'notAbsolute' } });
    t.match(await refusal(join(rootIn(path), 'none')), { data: { reason: 'notADirectory' } });
    t.match(await refusal(path), { code: -32_018, data: { reason: 'outsideRoots' } });
    t.match(await refusal(7), { name: 'invalidParams' });
    t.match(await refusal(''), { name: 'invalidParams' });
    t.same((await session.call('thread/list', {})).data, []);
  },
);

scenario(t, 'a worktree beside the workspace is accepted', {}, async (t, { open, path }) => {
  const worktree = makeWorktree(rootIn(dirname(path)), 'beside');
  const session = await open();
  const { thread } = await session.call('thread/start', { config: { workspaceOverride: worktree, readOnly: true } });
  t.match(await toolResults(session, thread.id, 'read a.txt'), [/in beside/]);
});

const configured = temporaryDirectory(t);
scenario(
  t,
  'a worktree below the configured root is accepted',
  { Permissions: { WorktreeRoot: configured } },
  async (t, { open }) => {
    const worktree = makeWorktree(configured, 'configured');
    const session = await open();
    const { thread } = await session.call('thread/start', { config: { workspaceOverride: worktree, readOnly: true } });
    t.match(await toolResults(session, thread.id, 'read a.txt'), [/in configured/]);
  },
);
